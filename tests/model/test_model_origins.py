"""Inputs and consequences: what a replay feeds, and what it compares."""

import pytest

from nqspy.model import events as ev
from nqspy.model.cause import HANDS, SCHEDULER, Cause
from nqspy.model.codec import KINDS
from nqspy.model.origins import ORIGINS, Origin, origin_of


def test_every_kind_of_event_has_an_origin():
    assert set(ORIGINS) == set(KINDS.values())


@pytest.mark.parametrize(
    ("event", "origin"),
    [
        (ev.Starting(1, 1, (0,)), Origin.DECIDED),
        (ev.Eligible((1,)), Origin.CLOCK),
        (ev.Held((1,), "u", "anne", cause=Cause("owner", "anne")), Origin.ASKED),
        (ev.Held((1,), "s", "large", cause=Cause("exit", "large")), Origin.DECIDED),
        (ev.Held((1,), "u", "hands", cause=HANDS), Origin.OBSERVED),
        (ev.Suspended(1, 1, "swap", cause=Cause("feature", "swap")), Origin.DECIDED),
        (ev.Suspended(1, 1, "swap", cause=Cause("operator", "swap")), Origin.ASKED),
        (ev.Suspended(1, 1, "shift day"), Origin.DECIDED),
        (ev.Deleting(1, 1, "scheduler", rerun=True, cause=SCHEDULER), Origin.DECIDED),
        (ev.Deleting(1, 1, "anne"), Origin.ASKED),
    ],
)
def test_what_several_may_bring_about_is_told_by_its_cause(event, origin):
    assert origin_of(event) is origin
    assert origin.is_input is (origin is not Origin.DECIDED)
