"""Figures of the house: names borne twice, words that stand in many files, lengths. `tests/house` holds those
that should not slip."""

import argparse
import ast
import configparser
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from house.checkout import ROOT, functions, parsed, place, sources
from house.feature.placing import add_to

LINES_BEFORE = 49_841
"""Lines of nqspy before room was made in it (7797ec7)."""
WORDS = {"probe": r"probe", "swap": r"swap", "calendar or shift_end": r"calendar|shift_end\b"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: ``wanted`` at most, ``before`` room was made (None: not counted then)."""

    name: str
    value: float
    wanted: float
    before: float | None
    names: tuple[str, ...] = ()


def class_names() -> dict[str, list[str]]:
    """Where public classes of one name are declared, for names borne by several."""
    found = defaultdict(list)
    for path in sources("nqspy"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(place(path, node))
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


AGAIN = ("nqspy/engine/replay/", "nqspy/sim/replay/", "nqspy/sim/gang/")
"""Rooms that repeat others as the journal has it, or use a word in the meaning of a paper."""


def files_with(pattern: str) -> list[str]:
    """Source files in which a word stands, those left out that tell the past again."""
    word, files = re.compile(pattern, re.IGNORECASE), [(place(path), path) for path in sources("nqspy")]
    return [name for name, path in files if not name.startswith(AGAIN) and word.search(path.read_text())]


def writers_of_state() -> list[str]:
    """Files that set the state of a request."""
    return [
        place(path)
        for path in sources("nqspy")
        if any(
            isinstance(node, ast.Assign)
            and any(isinstance(to, ast.Attribute) and to.attr == "state" for to in node.targets)
            and "State." in ast.unparse(node.value)
            for node in ast.walk(parsed(path))
        )
    ]


def exemptions() -> list[str]:
    """Imports that the contract of circles lets pass."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / "setup.cfg")
    listed = contracts.get("importlinter:contract:circles", "ignore_imports", fallback="")
    return [line for line in listed.splitlines() if line.strip()]


def files_of_the_example() -> list[str]:
    """What the worked example of CONTRIBUTING.md adds or changes, with a test and a page of the manual."""
    with tempfile.TemporaryDirectory() as folder:
        core = Path(folder) / "core"
        shutil.copytree(ROOT / "nqspy" / "core", core)
        return [str(path.relative_to(folder)) for path in add_to(core)] + ["its test", "its page"]


def lines() -> int:
    """Lines of nqspy's sources."""
    return sum(path.read_text().count("\n") for path in sources("nqspy"))


def lengths() -> list[int]:
    """Lines of each function of nqspy."""
    found = [node for path in sources("nqspy") for node in functions(path)]
    return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in found]


def figures() -> list[Figure]:
    """All of them."""
    twice, long, circles, writers = class_names(), lengths(), exemptions(), writers_of_state()
    example = files_of_the_example()
    told = tuple(f"{name}: {', '.join(places)}" for name, places in twice.items())
    wanted, before = {"probe": 16, "swap": 12, "calendar or shift_end": 16}, {"probe": 40, "swap": 30}
    found = [Figure("public class names borne twice", len(twice), 0, 41, told)]
    for word, pattern in WORDS.items():
        files = files_with(pattern)
        name = f"files in which {word} stands"
        found.append(Figure(name, len(files), wanted[word], before.get(word), tuple(files)))
    return [
        *found,
        Figure("exemptions in the contract of circles", len(circles), 0, 3, tuple(circles)),
        Figure("files that write a request's state", len(writers), 1, None, tuple(writers)),
        Figure("files that a feature touches", len(example), 5, 37, tuple(example)),
        Figure("lines, per cent of before", round(100 * lines() / LINES_BEFORE, 1), 93, 100),
        Figure("function, median lines", median(long), 6, 6),
        Figure("function, p99", quantiles(long, n=100)[-1], 27, None),
        Figure("function, longest", max(long), 50, 54),
    ]


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="scripts/house", description=__doc__)
    parser.add_argument("--names", action="store_true", help="what was counted, by name")
    options = parser.parse_args()
    print(f"{'figure':<44}{'now':>8}{'wanted':>8}{'before':>8}")
    for each in figures():
        before = "-" if each.before is None else f"{each.before:g}"
        print(f"{each.name:<44}{each.value:>8g}{each.wanted:>8g}{before:>8}")
        for name in each.names if options.names else ():
            print(f"    {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
