"""The manual's page of faults: each promise names tests, each of them exists, each failpoint is explained."""

import ast
import re

from chaos.attacks import ATTACKS
from house.checkout import PACKAGE, ROOT, parsed

from nqspy.daemon.failpoints import POINTS

PAGE = (PACKAGE / "manual" / "faults.md").read_text()
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)


def _tests(path):
    return {node.name for node in parsed(ROOT / "tests" / path).body if isinstance(node, ast.FunctionDef)}


def test_each_test_that_holds_a_promise_exists():
    assert len(NAMED) > 50
    assert not [f"{path}::{name}" for path, name in NAMED if name not in _tests(path)]


def test_each_fault_has_a_promise_and_a_test():
    faults = PAGE.split("\n- **")[1:]
    assert len(faults) > 25
    whole = re.compile(r"[^*]+\.\*\*\s+\w[^*]+?\n  - `.+::test_")
    assert not [fault for fault in faults if not whole.match(fault)]


def test_the_list_for_batch_systems_is_covered_whole():
    points = re.findall(r"^(\d+)\. .+\n +- `.+::test_", PAGE, re.MULTILINE)
    assert [int(n) for n in points] == list(range(1, 16))


def test_each_failpoint_is_explained():
    assert not [point for point in POINTS if f"| `{point}` |" not in PAGE]


def test_each_attack_of_the_programme_is_a_test_that_exists():
    named = [name.partition("::") for attack in ATTACKS for name in attack.tests]
    assert not [path for path, _, test in named if test and test not in _tests(path)]
    assert not [path for path, _, test in named if not test and not (ROOT / "tests" / path).exists()]
    assert {attack.part for attack in ATTACKS} == {str(part) for part in range(1, 10)}
