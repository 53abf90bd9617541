"""Answers to qmgr's `show`, and what settings of job classes that do not go together are told."""

import pytest

CLASSES = ("create class production priority=2", "create class standby")


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ("show class fast", "there is no class fast"),
        ("show classes fast", "there is no class fast"),
        ("show probes disk", "there is no probe disk"),
        ("show complex disk", "there is no complex disk"),
    ],
)
def test_a_name_that_there_is_not_is_called_by_its_kind(fresh, shown, told):
    fresh.qmgr(*CLASSES)
    assert fresh.refusal("root", "qmgr", script=shown)[1].removeprefix("line 1: ") == told


def test_the_class_of_jobs_that_name_none_is_not_deleted(fresh):
    fresh.qmgr(*CLASSES)
    told = fresh.refusal("root", "qmgr", script="delete class production")[1]
    assert "its default_class is production" in told
    assert "set gang default_class= first" in told
    fresh.qmgr("set gang default_class=standby", "delete class production")
