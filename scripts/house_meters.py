"""Meters of the code's size, structure and English. `tests/house` holds some of them.

The wanted values are what well-kept Python projects reach, or what was decided for this one."""

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
OPENING = re.compile(
    r"(What|Whether|Who|Whom|Whose|When|How|Where|Why|Those|These|The same|It|Its|They|As|Of|From|By|Nobody"
    r"|Somebody|One)\b"
)
PERSON = re.compile(
    r"\b(who|whom|whose|he|him|his|himself|nobody|somebody|everybody|anybody)\b", re.IGNORECASE
)
PERSON_IN_MANUAL = re.compile(r"\b(whom|whose|nobody|somebody|his|him|he)\b")
COMMITS = 400
"""Number of commits in which features are searched for."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Meter:
    """A row of the table: name, measured value, wanted value, and the places counted (for ``--list``)."""

    name: str
    value: str
    wanted: str
    met: bool = True
    key: str = ""
    places: tuple[str, ...] = ()


def python(folder: str) -> list[Path]:
    """Return the Python files below a folder."""
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts)


def lines_of(path: Path) -> int:
    """Return the number of lines of a file."""
    return path.read_text(errors="replace").count("\n")


def length(node: ast.stmt) -> int:
    """Return the number of lines of a function or class."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def of_size() -> Iterator[Meter]:
    """Yield meters of lines of the code and its files."""
    sizes = [lines_of(path) for path in python("nqspy")]
    loop = lines_of(ROOT / "nqspy" / "core" / "choose.py")
    yield Meter("lines of core/choose.py", str(loop), "up to 320", loop <= 320)
    for folder, most in {"nqspy": 70_000, "tests": 52_000, "scripts": 3_500}.items():
        count = sum(map(lines_of, python(folder)))
        name = f"lines in {folder}/" + "*.py" * (folder == "scripts")
        yield Meter(name, f"{count:,}", f"{most:,}", count <= most)
    short, long = sum(size < 40 for size in sizes), sum(size > 500 for size in sizes)
    yield Meter("files; under 40 lines; over 500", f"{len(sizes)}; {short}; {long}", "few; few; 0", not long)


def once(path: Path, tree: ast.Module) -> list[tuple[int, str]]:
    """Return the private functions that are named in one place only of a file, with their numbers of
    lines."""
    defined, used = defaultdict[str, list[Function]](list), Counter[str]()
    for node in ast.walk(tree):
        if isinstance(node, Function) and node.name[:1] == "_" and node.name[:2] != "__":
            defined[node.name].append(node)
        elif isinstance(node, ast.Attribute):
            used[node.attr] += 1
        elif isinstance(node, ast.Name):
            used[node.id] += 1
        elif isinstance(node, ast.alias):
            used[node.name] += 1
    alone = [nodes[0] for name, nodes in defined.items() if len(nodes) == 1 and used[name] == 1]
    return [(length(node), f"{place(path, node)}: {node.name} ({length(node)} lines)") for node in alone]


def place(path: Path, node: ast.AST | None = None) -> str:
    """Return file and line as messages name them."""
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def of_functions() -> Iterator[Meter]:
    """Yield meters of the length of functions, and of private ones that are used once."""
    trees = {path: ast.parse(path.read_text()) for path in python("nqspy")}
    nodes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, Function)]
    lengths = sorted(map(length, nodes))
    p90, longest = lengths[int(len(lengths) * 0.9)], lengths[-1]
    value = f"{median(lengths):g}, {p90}, {longest}"
    met = p90 <= 30 and longest <= 80
    yield Meter("functions: median, p90, longest", value, "p90 up to 30, longest 80", met)
    alone = sorted(each for path, tree in trees.items() for each in once(path, tree))
    part, small = 100 * len(alone) / len(nodes), sum(lines <= 6 for lines, _ in alone)
    places = tuple(text for _, text in alone)
    yield Meter(
        "private helpers used once, of all functions", f"{part:.1f} %", "12 %", part <= 12, "once", places
    )
    yield Meter("... of them 6 lines or less", str(small), "few")


def of_docstrings() -> Iterator[Meter]:
    """Yield meters of docstrings that begin badly, and that speak of things as of people."""
    documented = (Function, ast.ClassDef, ast.Module)
    texts = [
        (place(path, node), text)
        for path in python("nqspy")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, documented) and (text := ast.get_docstring(node))
    ]
    for key, name, pattern, most in (
        ("docstrings", "docstrings that begin with a pronoun or preposition", OPENING.match, 2.0),
        ("persons", "docstrings that treat things as persons", PERSON.search, 0.5),
    ):
        places = tuple(f"{where}: {' '.join(text.split())[:140]}" for where, text in texts if pattern(text))
        part = 100 * len(places) / len(texts)
        yield Meter(name, f"{part:.1f} %", f"{most:g} %", part <= most, key, places)


def of_manual() -> Iterator[Meter]:
    """Yield meters of the manual's words, long sentences and wide lines."""
    pages = {path: path.read_text() for path in sorted((ROOT / "nqspy" / "manual").glob("*.md"))}
    sentences = []
    for path, text in pages.items():
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        text = re.sub(r"(?m)^\|.*$|^#.*$|<!--.*?-->", "", text)
        split = re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n- ", text)
        sentences += [(path, each) for each in split if len(each.split()) >= 4]
    words = sum(len(text.split()) for text in pages.values())
    yield Meter("manual: words", f"{words:,}", "55,000", words <= 55_000)
    long = [(path, each.split()) for path, each in sentences if len(each.split()) > 30]
    places = tuple(f"{place(path)} ({len(each)} words): {' '.join(each)[:140]}" for path, each in long)
    part = 100 * len(long) / len(sentences)
    yield Meter("manual: sentences over 30 words", f"{part:.1f} %", "3 %", part <= 3, "long", places)
    persons = sum(PERSON_IN_MANUAL.search(each) is not None for _, each in sentences)
    part = 100 * persons / len(sentences)
    name = "manual: sentences with whom, whose, nobody, he, his"
    yield Meter(name, f"{part:.1f} %", "1 %", part <= 1)
    wide = sum(len(line) > 140 for text in pages.values() for line in text.splitlines())
    yield Meter("manual: lines over 140 columns", str(wide), "0", not wide)


def quoted(node: ast.Assert) -> str | None:
    """Return a sentence that an assertion quotes: five words at least."""
    texts = (each.value for each in ast.walk(node.test) if isinstance(each, ast.Constant))
    for text in texts:
        if isinstance(text, str) and " " in text.strip() and len(re.findall(r"[A-Za-z]{2,}", text)) >= 5:
            return text
    return None


def of_tests() -> Iterator[Meter]:
    """Yield the meter of assertions that quote a sentence."""
    places = tuple(
        f"{place(path, node)}: {text[:100]}"
        for path in python("tests")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assert) and (text := quoted(node))
    )
    met = len(places) <= 100
    yield Meter("assertions that quote a sentence", str(len(places)), "100", met, "prose", places)


def of_features() -> Iterator[Meter]:
    """Yield meters of files of the package touched by commits with a trailer ``Feature: NAME``."""
    form = "--format=%x00%(trailers:key=Feature,valueonly,separator=%x2C)"
    words = ["git", "log", form, "--name-only", f"-{COMMITS}"]
    log = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    touched = defaultdict[str, set[str]](set)
    for commit in log.split("\0")[1:]:
        name, *files = commit.split("\n")
        if name.strip():
            touched[name.strip()] |= {f for f in files if f.startswith("nqspy/") and f.endswith(".py")}
    for name, found in sorted(touched.items()):
        places = tuple(sorted(found))
        yield Meter(f"files of nqspy/ in commits of 'Feature: {name}'", str(len(found)), "a handful", True,
                    "features", places)  # fmt: skip


def meters() -> Iterator[Meter]:
    """Yield all meters."""
    for group in (of_size, of_functions, of_docstrings, of_manual, of_tests, of_features):
        yield from group()


def main() -> int:
    """Print the table; with ``--check`` the status is 1 where a row falls short."""
    parser = argparse.ArgumentParser(prog="scripts/house", description=__doc__)
    parser.add_argument("--list", metavar="WHAT", choices=LISTED, help=f"places: {', '.join(LISTED)}")
    parser.add_argument("--check", action="store_true", help="only rows that fall short")
    options = parser.parse_args()
    found = list(meters())
    if options.list:
        print("\n".join(text for each in found if each.key == options.list for text in each.places))
        return 0
    for each in found:
        if not (options.check and each.met):
            print(f"{each.name:<58} {each.value:>14}   {each.wanted}")
    return int(options.check and not all(each.met for each in found))


LISTED = ("docstrings", "persons", "long", "once", "prose", "features")

if __name__ == "__main__":
    sys.exit(main())
