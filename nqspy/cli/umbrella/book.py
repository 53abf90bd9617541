"""``nqspy manual``: the book that is shipped with the package, a Markdown file for each topic."""

import sys
from importlib.resources import files
from importlib.resources.abc import Traversable

from nqspy.cli.umbrella.asking import fail, write


def topics(book: Traversable | None = None) -> dict[str, Traversable]:
    """The topics by name, in order."""
    book = book if book is not None else files("nqspy") / "manual"
    if not book.is_dir():
        return {}
    pages = sorted((each for each in book.iterdir() if each.name.endswith(".md")), key=lambda each: each.name)
    return {
        page.name.removesuffix(".md"): page for page in pages if page.name not in ("README.md", "index.md")
    }


def print_manual(topic: str | None, book: Traversable | None = None) -> None:
    """Prints a topic, the index without one; rendered on a terminal, plain text elsewhere."""
    found = topics(book)
    if topic is None:
        render(index(found))
        return
    page = found.get(topic.lower())
    if page is None:
        close = [name for name in found if name.startswith(topic.lower())]
        if len(close) != 1:
            fail(f"the manual has no topic {topic!r}; there are: {', '.join(found) or 'none'}", 2)
        page = found[close[0]]
    render(page.read_text(encoding="utf-8"))


def index(found: dict[str, Traversable]) -> str:
    """The list of topics with their titles."""
    lines = [f"- `{name}`: {_title(page)}" for name, page in found.items()]
    return "\n".join(["# The manual of nqspy", "", "`nqspy manual TOPIC` prints one of:", "", *lines, ""])


def _title(page: Traversable) -> str:
    first = page.read_text(encoding="utf-8").lstrip().partition("\n")[0]
    return first.lstrip("# ").strip()


def render(text: str) -> None:
    """Markdown on a terminal, as it is elsewhere."""
    if not sys.stdout.isatty():
        write(text if text.endswith("\n") else text + "\n")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))
