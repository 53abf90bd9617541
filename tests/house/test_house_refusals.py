"""The catalogue of refusals: every kind is raised, with the values that its sentence names; codes and exit
statuses stand there once, and the manual's table of them says the same."""

import ast
import re
import string

from house.checkout import PACKAGE, parsed, place, sources

import nqspy.engine.loop  # noqa: F401  (features and handlers declare refusals of their own)
from nqspy.model.errors import REFUSALS, BadValue, Refusal, as_refusal

MAKERS = {"Refusal": set(), "_wrong_state": {"id", "state"}}
"""What makes refusals of a kind, and the values that it adds by itself."""


def makers() -> list[tuple[str, set[str], set[str]]]:
    """Every place in the package that makes refusals, the kinds named there and the values given."""
    found = []
    for path in sources("nqspy"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                values = {each.arg for each in node.keywords} | MAKERS[node.func.id]
                found.append((place(path, node), _kinds(node), values))
    return [each for each in found if None not in each[2]]  # ``**values``: one that makes for others


def _kinds(node: ast.Call) -> set[str]:
    """The words that are the argument itself, or what it is if something and else."""
    both = ([arg.body, arg.orelse] if isinstance(arg, ast.IfExp) else [arg] for arg in node.args)
    return {each.value for words in both for each in words if isinstance(each, ast.Constant)}


def named(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}


def test_every_refusal_is_of_a_kind_and_gives_what_its_sentence_names():
    wrong = [
        f"{where}: {kind or 'no kind'} with {sorted(values)}"
        for where, kinds, values in makers()
        for kind in kinds or {""}
        if kind not in REFUSALS or named(REFUSALS[kind].sentence) != values
    ]
    assert not wrong


def test_every_kind_is_raised_somewhere():
    assert set(REFUSALS) == {kind for _, kinds, _ in makers() for kind in kinds}


def test_a_code_has_one_status_but_for_those_that_the_catalogue_names():
    statuses = {}
    for kind in REFUSALS.values():
        statuses.setdefault(kind.code, set()).add(kind.status)
    # Codes whose exit status differs from one command to another, as it has from the first.
    several = {code for code, found in statuses.items() if len(found) > 1}
    assert several == {"bad_value", "too_many", "unknown_group", "unknown_object"}


def test_no_sentence_stands_twice_for_a_code_and_status():
    assert len(set(REFUSALS.values())) == len(REFUSALS)


def test_the_manuals_table_gives_each_sentence_with_its_status():
    text = (PACKAGE / "manual" / "commands.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE)
    examples = [(int(status), said) for status, cell in rows for said in re.findall("`([^`]+)`", cell)]
    assert len(examples) >= 8
    assert not [each for each in examples if each[0] not in _statuses(each[1])]


def _statuses(said: str) -> set[int]:
    """Exit statuses of the kinds that say that in words of their own, or if there is none, by quoting."""
    fit = {kind for kind in REFUSALS.values() if re.fullmatch(_pattern(kind.sentence), said)}
    own = {kind for kind in fit if "reason" not in named(kind.sentence)}
    return {kind.status for kind in own or fit}


def _pattern(sentence: str) -> str:
    parts = string.Formatter().parse(sentence)
    return "".join(re.escape(text) + ("" if name is None else ".+") for text, name, _, _ in parts)


def test_a_refusal_is_told_on_as_it_was_and_one_that_quotes_another_keeps_its_code_and_status():
    origin = Refusal("unknown_queue", queue="{nope}")
    quoted = Refusal("in_line", line=3, reason=Refusal("by_exit", reason=origin, who="a+b"))
    assert str(quoted) == "line 3: Unknown queue {nope} (as changed by exit a+b)"
    assert (quoted.code, quoted.status) == ("unknown_queue", 170)
    refusal = Refusal("bad_setting", reason=BadValue("'x' is not a size"))
    assert (str(refusal), refusal.code, refusal.status) == ("'x' is not a size", "bad_value", 166)
    told = {"text": "Unknown queue nope", "code": "unknown_queue", "status": 170}
    assert Refusal("unknown_queue", queue="nope").as_message() == told
    assert Refusal.received(told).as_message() == told
    assert as_refusal(BadValue("5x")).as_message() == {"text": "5x", "code": "bad_value", "status": 1}
