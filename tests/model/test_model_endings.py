"""Verdict on every kind of end: success, exit status and signal."""

import typing

import pytest

from nqspy.model.endings import End
from nqspy.model.requests import EndReason

REASONS = typing.get_args(EndReason.__value__ if hasattr(EndReason, "__value__") else EndReason)


@pytest.mark.parametrize(
    ("end", "seen"),
    [
        (End("exit", 0), (True, 0, 0, 0)),
        (End("exit", 3), (False, 3, 3, 3)),
        (End("signal", None, 9), (False, 137, None, 265)),
        (End("wall_limit", 0), (False, 1, 1, -29)),
        (End("wall_limit", 143), (False, 143, 143, -29)),
        (End("cpu_limit", None, 24), (False, 152, None, -28)),
        (End("memory_limit", 143), (False, 143, 143, -27)),
        (End("deleted", 0), (False, 3, 3, -103)),
        (End("deleted", 7), (False, 7, 7, 7)),
        (End("deleted", None, 15), (False, 143, None, 271)),
        (End("deleted"), (False, 3, None, -103)),
        (End("lost"), (False, 1, None, -4)),
        (End("not_started"), (False, 1, None, -1)),
    ],
)
def test_an_end_has_one_verdict_for_all(end, seen):
    assert (end.ok, end.code, end.shown_status, end.pbs_status) == seen
    assert End(end.reason, end.shown_status, end.signal).code == end.code, "from JSON too"


@pytest.mark.parametrize("reason", REASONS)
def test_no_end_but_by_itself_with_0_is_a_success_for_anybody(reason):
    end = End(reason, 0)
    assert (end.ok, not end.code, end.shown_status == 0, end.pbs_status == 0) == (reason == "exit",) * 4
