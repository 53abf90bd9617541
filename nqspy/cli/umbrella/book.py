"""``nqspy manual``: the book shipped with the package, a Markdown file for each topic."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from nqspy.cli.umbrella.asking import fail, write

INDEX = "index"


def topics(book: Traversable | None = None) -> dict[str, Traversable]:
    """Return the manual's topics with their files, by name; ``book``: its folder, None: the package's."""
    book = book if book is not None else files("nqspy") / "manual"
    if not book.is_dir():
        return {}
    pages = sorted((each for each in book.iterdir() if each.name.endswith(".md")), key=lambda each: each.name)
    return {
        page.name.removesuffix(".md"): page for page in pages if page.name not in ("README.md", f"{INDEX}.md")
    }


def print_manual(topic: str | None, book: Traversable | None = None) -> None:
    """Print a topic, the pages that have a word, or, without either, the index; on a terminal rendered, by a
    pager, else as plain text."""
    found = topics(book)
    if topic is None or topic.lower() == INDEX:
        render(index(found, book))
        return
    page = found.get(topic.lower())
    if page is None:
        close = [name for name in found if name.startswith(topic.lower())]
        page = found[close[0]] if len(close) == 1 else None
    if page is not None:
        render(page.read_text(encoding="utf-8"))
    elif pages := search(topic, found):
        render(f"`{topic}` is on these pages, the best first:\n\n" + "".join(pages))
    else:
        fail(f"the manual has no topic and no word {topic!r}; topics: {', '.join(found) or 'none'}", 2)


MOST_PAGES = 8
"""Most pages that a search shows."""


def search(word: str, found: dict[str, Traversable]) -> list[str]:
    """Return an item for each page with a word, the best first: topic, title, and headings with the word. A
    title or heading with the word counts as much as ten times in the text."""
    ranked = []
    for name, page in found.items():
        text = page.read_text(encoding="utf-8")
        title, *headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
        named = [heading for heading in headings if word.lower() in heading.lower()]
        score = text.lower().count(word.lower()) + 10 * (len(named) + (word.lower() in title.lower()))
        if score:
            sections = f" ({'; '.join(named)})" if named else ""
            ranked.append((-score, f"- `{name}`: {title}{sections}\n"))
    return [item for _, item in sorted(ranked)[:MOST_PAGES]]


def index(found: dict[str, Traversable], book: Traversable | None = None) -> str:
    """Return the book's first page; without one the list of topics with their titles."""
    page = (book if book is not None else files("nqspy") / "manual") / f"{INDEX}.md"
    if page.is_file():
        return page.read_text(encoding="utf-8")
    texts = ((name, page.read_text(encoding="utf-8")) for name, page in found.items())
    titles = {name: text.lstrip().partition("\n")[0] for name, text in texts}
    lines = [f"- `{name}`: {title.lstrip('# ').strip()}" for name, title in titles.items()]
    return "\n".join(["# The manual of nqspy", "", "`nqspy manual TOPIC` prints one of:", "", *lines, ""])


def render(text: str) -> None:
    """Show Markdown by the person's pager (``PAGER``, else less) on a terminal, else as it is."""
    if not sys.stdout.isatty():
        write(text if text.endswith("\n") else text + "\n")
        return
    text = drawn(text, shutil.get_terminal_size().columns, colour=True)
    pager = shlex.split(os.environ.get("PAGER", "less"))
    usable = sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if not pager or not usable or shutil.which(pager[0]) is None:
        sys.stdout.write(text)
        return
    environment = {"LESS": "FRX", "LESSCHARSET": "utf-8"} | os.environ
    try:
        subprocess.run(pager, input=text.encode(), env=environment, check=False)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except OSError:  # it cannot be run after all
        sys.stdout.write(text)


def drawn(text: str, columns: int, *, colour: bool = False) -> str:
    """Return a Markdown page as a terminal of ``columns`` shows it: words that fit a line are not broken."""
    from rich.console import Console
    from rich.markdown import Markdown

    def draw(markdown: str, *, plain: bool) -> str:
        page = io.StringIO()
        console = Console(file=page, width=columns, force_terminal=not plain, legacy_windows=False)
        console.print(Markdown(markdown))
        return page.getvalue()

    def table(found: re.Match[str]) -> str:
        text = found[0].replace("<br>", " ")
        words = re.findall(r"[^\s|`*\\]{4,}", re.sub(r"\]\([^)]*\)|\[", " ", text))
        shown = draw(text, plain=True)
        whole = all(word in shown for word in words if set(word) - set("-:"))
        return text if whole else "".join(_as_list(text))

    return draw(_TABLE.sub(table, text), plain=not colour)


_TABLE = re.compile(r"(?:^\|.*\n?){3,}", re.MULTILINE)
_CELL = re.compile(r"(?<!\\)\|")


def _as_list(table: str) -> Iterator[str]:
    """Yield a table too wide for its terminal as a list: an item for each row, with all its cells."""
    cells = (_CELL.split(line.strip().strip("|")) for line in table.splitlines())
    heads, _rule, *rows = [[cell.strip() for cell in row] for row in cells]
    for first, *rest in rows:
        pairs = zip(heads[1:], rest, strict=False)
        named = [f"{head}: {cell}" if head else cell for head, cell in pairs if cell]
        yield "- " + "\n  - ".join([first, *named]).replace("\\|", "|") + "\n"
