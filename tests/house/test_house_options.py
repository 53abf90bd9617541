"""Each option of a request is declared once: the fields and types that name it agree with the list."""

import pytest

from nqspy.model.options import OPTIONS
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Spec
from nqspy.model.tree import declared
from nqspy.ports import CHANGEABLE, ChangedFields
from nqspy.rpc import submission

NAMES = ("path", "modify", "python", "seen", "changes", "json", "pbs")


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
