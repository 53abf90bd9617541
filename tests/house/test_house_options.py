"""Each option of a request is declared once: the fields and types that name it agree with the list."""

import pytest

from nqspy.cli import draft, request_tables
from nqspy.cli.fast import Parser
from nqspy.model.options import OPTIONS, Option
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Spec
from nqspy.model.tree import declared
from nqspy.ports import CHANGEABLE, ChangedFields
from nqspy.rpc import submission

NAMES = ("path", "modify", "python", "shown", "changes", "json", "pbs")


def test_each_option_is_a_field_or_a_limit_of_each_request():
    for option in OPTIONS:
        head, _, rest = option.path.partition("/")
        assert head in Spec.__struct_fields__, option.path
        if head == "ask":
            assert rest in Ask.__struct_fields__ or rest in declared(Queue), option.path


def test_each_field_of_what_is_asked_is_declared():
    paths = {option.path for option in OPTIONS}
    assert {f"ask/{name}" for name in Ask.__struct_fields__} - paths == {"ask/others"}


@pytest.mark.parametrize("kind", NAMES)
def test_each_name_stands_for_one_option(kind):
    names = [name for option in OPTIONS if (name := getattr(option, kind))]
    assert len(names) == len(set(names))


def test_types_have_the_names_of_the_list():
    assert set(ChangedFields.__annotations__) == set(CHANGEABLE)
    assert set(submission.Options.__annotations__) == set(submission._RIGHT)


READ = [
    ("name", "x", "x"), ("flag", "", True), ("number", "-3", -3), ("names", "a,b+c", ["a", "b", "c"]),
    ("time", "2:00", 120_000), ("size", "1kb", 1024), ("count", "4", 4),
]  # fmt: skip


@pytest.mark.parametrize("path", ["new", "ask/new"])
@pytest.mark.parametrize(("unit", "word", "value"), READ)
def test_a_declared_flag_is_read_by_its_unit(monkeypatch, path, unit, word, value):
    option = Option(path, unit, "a sentence", low=-9, high=9, flags={"qsub": ("--new",)})
    monkeypatch.setattr(request_tables, "OPTIONS", (option,))
    monkeypatch.setattr(draft, "OPTIONS", (option,))
    monkeypatch.setattr(draft, "_OF_ASK", {"new"} if path == "ask/new" else set())
    found, rest = Parser(request_tables.rows("qsub")).parse(["--new", *([word] if word else [])])
    made = draft.SubmissionDraft("nqs", int, "/")
    made.apply(found, "command")
    assert rest == []
    assert (made.ask if path == "ask/new" else made.spec) == {"new": value}
