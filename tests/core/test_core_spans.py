"""What is kept over time, against a plain count of all that is kept."""

from hypothesis import given
from hypothesis import strategies as st

from nqspy.core.timeline.profile import FOREVER, Profile
from nqspy.core.timeline.spans import Holding, Spans, spare_of
from nqspy.model.ids import Instant, Seq

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
