"""Quotas after uneven histories: departments that had the machine alone, idled, came back, whose shares were
changed. Parts follow their targets at once, whatever lies behind and whoever handed in first."""

import pytest
from scenarios import quotas

from nqspy.model.ids import HOUR

WITHIN = 3.0
"""Points that a part over three hours may be from its target."""


def settled(course):
    """The windows that count, of a history that has some."""
    found = [window for window in course.windows() if window.begin >= course.history.since]
    assert found, "no window to look at"
    return found


def kept(course):
    worst = max(settled(course), key=lambda window: window.deviation)
    assert worst.deviation <= WITHIN, worst
    return True


@pytest.mark.parametrize("first", ["d2", "d3"])
@pytest.mark.parametrize("nights", [2, 5])
def test_after_nights_of_one_alone_the_others_share_as_they_are_entitled_to(first, nights):
    history = quotas.after_a_hog(nights, first)
    course = quotas.run(history)
    assert kept(course)
    for hour in range(2, 9):
        begin = history.since + hour * HOUR
        assert course.part("d2", begin, begin + HOUR) == pytest.approx(0.75, abs=0.06)
    assert course.part("d2", history.since, history.until) == pytest.approx(0.75, abs=0.01)


def test_who_comes_back_after_hours_has_its_part_at_once_and_takes_no_more():
    history = quotas.comes_back()
    course = quotas.run(history)
    assert kept(course)
    back = history.since // quotas.STEP * quotas.STEP + quotas.STEP
    parts = {name: course.part(name, back, back + 2 * HOUR) for name in history.shares}
    assert parts == pytest.approx({"d1": 0.6, "d2": 0.3, "d3": 0.1}, abs=0.04)


def test_a_share_that_is_changed_in_the_night_holds_at_once():
    history = quotas.share_changed()
    course = quotas.run(history)
    assert kept(course)
    parts = {name: course.part(name, history.since, history.since + 2 * HOUR) for name in history.shares}
    assert parts == pytest.approx({"d1": 60 / 130, "d2": 30 / 130, "d3": 40 / 130}, abs=0.03)


SEEDS = [pytest.param(seed, marks=pytest.mark.long if seed > 5 else ()) for seed in range(1, 21)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_in_histories_drawn_at_random_every_three_hours_keep_to_the_targets(seed):
    course = quotas.run(quotas.drawn(seed))
    for window in course.windows():
        assert window.deviation <= WITHIN, window


def test_under_the_decayed_rule_who_handed_in_first_never_decides():
    parts = []
    for first in ("d2", "d3"):
        history = quotas.after_a_hog(2, first)
        course = quotas.run(history, "decayed")
        assert kept(course)
        parts.append([course.part("d2", history.since + h * HOUR, history.since + (h + 1) * HOUR)
                      for h in range(9)])  # fmt: skip
    assert parts[0] == pytest.approx(parts[1], abs=0.07)
    assert all(part == pytest.approx(0.75, abs=0.07) for each in parts for part in each)


def test_parallel_requests_are_charged_by_pe_time():
    batches = (
        quotas.HandedIn(0, "d1", (600_000,) * 200, pes=2), quotas.HandedIn(0, "d2", (600_000,) * 400),
    )  # fmt: skip
    history = quotas.UnevenHistory("wide and narrow", {"d1": 50, "d2": 50}, batches, 5 * HOUR)
    course = quotas.run(history, charge="pe_wall")
    assert course.part("d1", HOUR, 5 * HOUR) == pytest.approx(0.5, abs=0.02)
