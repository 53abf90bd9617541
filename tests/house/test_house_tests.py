"""The tests themselves: none hidden by its name or place, none skipped without a reason."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from house.checkout import functions, parsed, place, sources

FILES = [path for path in sources("tests") if "data" not in path.parts]
TESTS = [path for path in FILES if path.name.startswith("test_")]


def _scopes(path: Path) -> list[list[ast.FunctionDef]]:
    """The functions that pytest may collect: those of the module, and of each class named Test."""
    classes = [node for node in parsed(path).body if isinstance(node, ast.ClassDef)]
    bodies = [parsed(path).body, *(node.body for node in classes if node.name.startswith("Test"))]
    return [[node for node in body if isinstance(node, ast.FunctionDef)] for body in bodies]


def test_every_function_called_test_is_collected():
    hidden = []
    for path in FILES:
        collected = [node for scope in _scopes(path) for node in scope] if path in TESTS else []
        named = [node for node in functions(path) if node.name.startswith("test")]
        hidden += [place(path, node) for node in named if node not in collected]
    assert not hidden, "inner, asynchronous, in a class or a file whose name does not begin with Test"


def test_no_test_hides_an_earlier_one_of_the_same_name():
    twice = []
    for path in TESTS:
        for scope in _scopes(path):
            names = Counter(node.name for node in scope)
            twice += [f"{place(path)} {name}" for name, count in names.items() if count > 1]
    assert not twice


def test_two_files_of_tests_never_have_the_same_name():
    names = Counter(path.name for path in TESTS)
    assert not [name for name, count in names.items() if count > 1]


SKIPS = ("skip", "skipif", "xfail", "importorskip")


def _skips(path: Path) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yield each skip of a file with its reasons."""
    calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in SKIPS:
            words = {word.arg: word.value for word in call.keywords}
            alone = call.args if call.func.attr == "skip" else []
            yield call, [*alone, *(words[name] for name in ("reason", "msg") if name in words)]
    called = [call.func for call in calls]
    bare = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute) and node not in called]
    yield from ((node, []) for node in bare if node.attr in SKIPS and "mark" in ast.unparse(node))


def test_a_skipped_test_says_why():
    assert not [place(path, node) for path in FILES for node, reasons in _skips(path) if not reasons]


def _waits_for_a_condition(path: Path) -> set[ast.AST]:
    """Pauses of at most a tenth of a second in the loop of a wait: that is waiting for a condition."""
    return {
        call.func
        for loop in ast.walk(parsed(path))
        if isinstance(loop, ast.While)
        for call in ast.walk(loop)
        if isinstance(call, ast.Call) and call.args and _at_most_a_tenth(call.args[0])
    }


def _at_most_a_tenth(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "min":
        return any(map(_at_most_a_tenth, value.args))
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float) and value.value <= 0.1


def _imports_sleep(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.ImportFrom) and node.module == "time" and "sleep" in [a.name for a in node.names]
    )


ASLEEP_ON_PURPOSE = {"tests/userexit/test_userexit_guard.py"}
"""There an exit that sleeps is what is tested."""


def test_no_test_sleeps():
    asleep = [
        place(path, node)
        for path in FILES
        if place(path) not in ASLEEP_ON_PURPOSE
        for node in ast.walk(parsed(path))
        if _imports_sleep(node)
        or (
            isinstance(node, ast.Attribute)
            and ast.unparse(node) in ("time.sleep", "asyncio.sleep")
            and node not in _waits_for_a_condition(path)
        )
    ]
    assert not asleep, "wait for a condition instead"


ELSEWHERE = {"--reuid", "runuser", "sudo", "su"}
"""Words of a command line that begin a program as another user."""


def _values(node: ast.List | ast.Tuple) -> set[object]:
    return {each.value for each in node.elts if isinstance(each, ast.Constant)}


def test_programs_of_other_users_are_begun_where_all_can_read_them():
    begun = [
        place(path, node)
        for path in FILES
        if path.name != "everybody.py"
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.Call) and "extra_groups" in {word.arg for word in node.keywords})
        or (isinstance(node, ast.List | ast.Tuple) and _values(node) & ELSEWHERE)
    ]
    assert not begun, "tests/daemon/everybody.py has functions for it"
