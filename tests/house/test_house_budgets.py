"""Size: functions fit a screen, files can be read in one go; and everything public says what it means."""

import ast
import runpy
from collections import Counter
from pathlib import Path

from house.checkout import PACKAGE, ROOT, functions, parsed, place, sources, tracked

CODE = ("nqspy", "exits", "scripts", "tests")
NINE_IN_TEN, LONGEST_FUNCTION = 30, 80
LONGEST_FILE = 500
LONGEST_README = 60


def test_functions_fit_a_screen():
    lengths = {
        f"{place(path, node)} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in sources(*CODE)
        for node in functions(path)
    }
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION}
    ours = sorted(lines for name, lines in lengths.items() if name.startswith("nqspy/"))
    assert ours[int(len(ours) * 0.9)] <= NINE_IN_TEN


def test_no_file_is_too_long_to_read_in_one_go():
    lengths = {place(path): path.read_text().count("\n") for path in sources(*CODE)}
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE}


def test_no_module_is_called_utils():
    assert not [place(path) for path in sources(*CODE) if path.stem in ("utils", "util", "helpers", "misc")]


def _public_without_docstring(path: Path) -> list[str]:
    told = ast.get_docstring(parsed(path)) or path.name == "__init__.py"
    found = [] if told else [f"{place(path)}: the module"]
    for node in parsed(path).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list):
            continue
        if not node.name.startswith("_") and not ast.get_docstring(node):
            found.append(f"{place(path, node)} {node.name}")
    return found


def test_everything_public_has_a_docstring():
    assert not [line for path in sources("nqspy") for line in _public_without_docstring(path)]


def test_every_room_has_a_readme_of_at_most_sixty_lines():
    fronts = [path for path in tracked() if path.name == "__init__.py" and path.parent.parent == PACKAGE]
    pages = [path.with_name("README.md") for path in fronts]
    assert not [place(page) for page in pages if not page.exists()]
    assert not [place(page) for page in pages if page.read_text().count("\n") > LONGEST_README]


def test_no_two_public_classes_have_one_name():
    names = Counter(
        node.name for path in sources("nqspy") for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )  # fmt: skip
    assert not [name for name, count in names.items() if count > 1]


def test_the_meters_of_the_house_measure_something():
    meters = list(runpy.run_path(str(ROOT / "scripts" / "house_meters.py"))["meters"]())
    names = [each.name for each in meters]
    assert len(names) == len(set(names)) >= 14
    assert {each.key for each in meters} >= {"docstrings", "persons", "long", "once", "prose"}
