"""What is free and kept over time: a profile, and spans, against a count instant by instant."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nqspy.core.timeline.profile import FOREVER, Profile
from nqspy.core.timeline.spans import Holding, Spans, spare_of
from nqspy.model.ids import Instant, Seq

HORIZON = 40
SPAN = st.tuples(st.integers(0, HORIZON), st.integers(1, HORIZON), st.integers(1, 4))


def counted(most: int, spans: list[tuple[int, int, int]]) -> list[int]:
    """How much is free at each instant."""
    free = [most] * (2 * HORIZON)
    for begin, length, amount in spans:
        for at in range(begin, begin + length):
            free[at] -= amount
    return free


def holding(most: int, **held: list[tuple[int, int, int]]) -> Profile:
    """A profile with so much of each amount, of which these spans hold some."""
    profile = Profile(0, dict.fromkeys(held, most))
    for amount, spans in held.items():
        for begin, length, count in spans:
            profile.hold(begin, begin + length, {amount: count})
    return profile


@given(st.lists(SPAN, max_size=8), st.lists(SPAN, max_size=8), st.integers(1, 4), st.integers(1, HORIZON))
def test_of_several_amounts_all_must_be_free_at_once(pes, gpus, wanted, length):
    profile = holding(4, pes=pes, gpu=gpus)
    both = zip(counted(4, pes), counted(4, gpus), strict=True)
    free = [min(pair) for pair in both] + [4] * 2 * HORIZON
    starts = (at for at in range(2 * HORIZON + 1) if min(free[at : at + length]) >= wanted)
    assert profile.earliest({"pes": wanted, "gpu": wanted}, length) == next(starts)


@given(
    st.lists(SPAN, max_size=8),
    st.lists(SPAN, max_size=8),
    st.integers(0, 5),
    st.integers(1, HORIZON) | st.just(FOREVER),
)
def test_what_fits_now_is_what_could_start_at_the_earliest_now(pes, gpus, wanted, length):
    profile = holding(6, pes=pes, gpu=gpus)
    claims = {"pes": wanted, "gpu": 2, "nobody's": 9}
    assert profile.fits(claims, length) == (profile.earliest(claims, length) == 0)


@given(st.lists(SPAN, max_size=10), st.lists(st.integers(0, 9), max_size=10))
def test_what_is_given_back_leaves_no_trace(spans, order):
    profile, gone = holding(9, pes=spans), {place for place in order if place < len(spans)}
    for begin, length, count in (spans[place] for place in gone):
        profile.release(begin, begin + length, {"pes": count})
    without = holding(9, pes=[span for place, span in enumerate(spans) if place not in gone])
    for at in range(2 * HORIZON):
        assert profile.free("pes", at) == without.free("pes", at)


@given(st.lists(SPAN, max_size=8), st.lists(st.integers(1, 2 * HORIZON), min_size=1, max_size=9))
def test_what_is_free_all_the_time_until_an_instant(spans, ends):
    profile = holding(6, pes=spans)
    free = [*counted(6, spans), 6]
    found = profile.least_until("pes", np.array(ends, dtype=float))
    assert profile.least("pes") == min(free)
    assert found.tolist() == [min(free[:end]) for end in ends]


def test_what_has_no_known_end_is_free_at_no_instant_that_can_be_told():
    profile = Profile(100, {"pes": 2})
    profile.hold(0, FOREVER, {"pes": 1})
    assert profile.earliest({"pes": 1}, FOREVER) == 100
    assert profile.earliest({"pes": 2}, 1) is None
    assert profile.earliest({"pes": 3}, 1) is None


def test_an_amount_of_which_nobody_has_spoken_bounds_nobody():
    profile = Profile(0, {"pes": 1})
    profile.hold(0, 10, {"pes": 1, "licence": 5})
    assert profile.earliest({"licence": 7}, 3) == 0
    assert not profile.has("licence")


NOW, PES = Instant(100), 9
BEGIN = st.integers(100, 140) | st.just(FOREVER)
KEEP = st.tuples(st.integers(1, 5), BEGIN, st.integers(1, 20), st.integers(1, 3), st.integers(1, 4))
"""Request, begin, length, PEs, turn."""


@given(st.lists(KEEP | st.integers(1, 5), max_size=20))
def test_what_is_kept_and_lifted_in_any_order_is_what_is_counted(steps):
    spans, kept = Spans(Profile(NOW, {"pes": PES})), dict[Seq, Holding]()
    for step in steps:
        seq = Seq(step if isinstance(step, int) else step[0])
        assert spans.lift(seq) == kept.pop(seq, None)
        if not isinstance(step, int):
            _, begin, length, pes, turn = step
            kept[seq] = Holding(begin, min(begin + length, FOREVER), {"pes": pes}, {}, turn)
            spans.keep(seq, kept[seq])
        copy = spans.copy(NOW)
        for each in (spans, copy):
            assert_counts(each, kept)


def assert_counts(spans: Spans, kept: dict[Seq, Holding]) -> None:
    for at in range(NOW, 170, 7):
        held = sum(each.claims["pes"] for each in kept.values() if each.begin <= at < each.end)
        assert spans.profile.free("pes", at) == PES - held
    untimed = [(each.turn, seq) for seq, each in kept.items() if each.begin == FOREVER]
    assert spans.has_untimed == bool(untimed)
    if untimed:
        wanted = sum(kept[seq].claims["pes"] for _, seq in untimed)
        assert spans.profile.free(spare_of("pes"), 150) == PES - wanted
    for seq in range(1, 6):
        others = [(each.begin, other) for other, each in kept.items() if other != seq]
        assert spans.first(Seq(seq), {"pes"}) == min(others, default=None)
        turn = 2, Seq(seq)
        assert spans.is_untimed_before(turn) == any(each < turn for each in untimed)
    assert spans.is_untimed_before(None) == bool(untimed)
