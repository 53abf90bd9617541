"""Slot tables: the figures of seed 002, and what holds for all of them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from nqspy.model.slots import SlotTable, slots_of

A, B, C, D = (1, (0, 1, 2, 3, 4)), (2, (5, 6, 7, 8, 9)), (3, (2, 3, 4, 5, 6)), (4, (5, 6, 7, 8, 9))


def test_figure_4_a_runs_in_two_slots_of_three():
    slots = slots_of([A, B, C, D])
    assert slots == [[1, 2], [3], [4, 1]]
    table = SlotTable(tuple(map(tuple, slots)), (10, 10, 10))
    assert [table.parts(seq) for seq in (1, 2, 3, 4)] == [(20, 30), (10, 30), (10, 30), (10, 30)]
    assert table.turns() == {1: (0, 2), 2: (0,), 3: (1,), 4: (2,)}


def test_figure_7_fewer_gangs_run_more_often():
    assert slots_of([A, B, D]) == [[1, 2], [4, 1]]  # C has ended
    moved = (3, (0, 1, 2, 3, 4))
    assert slots_of([A, B, moved, D]) == [[1, 2], [3, 4]]  # C has moved


intervals = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 8)).map(lambda each: tuple(range(each[0], sum(each)))),
    min_size=1, max_size=12,
)  # fmt: skip


@given(intervals, st.randoms(use_true_random=False))
def test_no_slot_has_a_pe_twice_and_adjacent_pes_need_no_more_slots_than_holders(spans, random):
    holders = list(enumerate(spans, 1))
    slots = slots_of(holders)
    for slot in slots:
        assert max(Counter(pe for seq in slot for pe in spans[seq - 1]).values()) == 1
    assert {seq for slot in slots for seq in slot} == set(dict(holders))
    assert len(slots) == max(Counter(pe for span in spans for pe in span).values())
    for slot in slots:  # no PE is idle in a slot if a request fits there
        held = {pe for seq in slot for pe in spans[seq - 1]}
        assert all(seq in slot or held & set(span) for seq, span in holders)
