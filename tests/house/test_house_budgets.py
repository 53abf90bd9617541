"""Size: functions fit a screen, files can be read in one go; and everything public says what it means."""

import ast
from pathlib import Path
from statistics import median

from house.checkout import PACKAGE, functions, parsed, place, sources, tracked

CODE = ("nqspy", "exits", "scripts", "tests")
LONGEST_FUNCTION = 60
LONGEST_FILE = 500
LONGEST_README = 60


def _length(node: ast.AST) -> int:
    assert isinstance(node, ast.stmt)
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_function_is_longer_than_a_screen():
    long = [
        f"{place(path, node)} {node.name}: {_length(node)} lines"
        for path in sources(*CODE)
        for node in functions(path)
        if _length(node) > LONGEST_FUNCTION
    ]
    assert not long


def test_half_of_all_functions_are_shorter_than_ten_lines():
    lengths = [_length(node) for path in sources("nqspy") for node in functions(path)]
    assert median(lengths) < 10


def test_no_file_is_too_long_to_read_in_one_go():
    lengths = {place(path): path.read_text().count("\n") for path in sources(*CODE)}
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE}


def test_no_module_is_called_utils():
    assert not [place(path) for path in sources(*CODE) if path.stem in ("utils", "util", "helpers", "misc")]


def _public_without_docstring(path: Path) -> list[str]:
    found = (
        []
        if ast.get_docstring(parsed(path)) or path.name == "__init__.py"
        else [f"{place(path)}: the module"]
    )
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
    rooms = {
        path.parent for path in tracked() if path.name == "__init__.py" and path.parent.parent == PACKAGE
    }
    missing = [place(room) for room in sorted(rooms) if not (room / "README.md").exists()]
    assert not missing
    long = [
        place(path)
        for path in PACKAGE.glob("*/README.md")
        if len(path.read_text().splitlines()) > LONGEST_README
    ]
    assert not long
