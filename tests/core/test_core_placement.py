"""Placement policies: which free PEs a request gets, and how many one request could get."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.core.placement.placements import PLACEMENTS
from nqspy.model.board import Board
from nqspy.model.domains import Domain


def board(text: str, depth: int = 1, own: str = "") -> Board:
    """A board as text: how many hold each PE; ``own``: ``x`` where it is the domain's (none: all are)."""
    holders = {pe: tuple(range(1, int(held) + 1)) for pe, held in enumerate(text) if held != "0"}
    mask = np.array([each == "x" for each in own], dtype=bool) if own else np.ones(len(text), dtype=bool)
    return Board(Domain("d", depth=depth), mask, holders)


@pytest.mark.parametrize(
    ("policy", "held", "room", "picks"),
    [
        ("lowest", "0110010", 4, {1: (0,), 2: (0, 3), 4: (0, 3, 4, 6)}),
        ("contiguous", "0110010", 2, {1: (0,), 2: (3, 4)}),
        ("contiguous", "000100000100", 5, {1: (10,), 2: (10, 11), 3: (0, 1, 2), 4: (4, 5, 6, 7)}),
        ("contiguous", "111", 0, {}),
        ("most_packed", "000100100000", 10, {1: (4,), 2: (4, 5), 3: (0, 4, 5), 5: (0, 1, 2, 4, 5)}),
    ],
)
def test_who_gets_which_pes(policy, held, room, picks):
    one = PLACEMENTS[policy]
    assert one.room(board(held)) == room
    assert {count: one.pick(board(held), count) for count in picks} == picks


def test_a_block_does_not_reach_over_pes_of_another_domain():
    mine = board("000000", own="xxx.xx")
    assert PLACEMENTS["contiguous"].room(mine) == 3
    assert PLACEMENTS["contiguous"].pick(mine, 2) == (4, 5)


def test_where_pes_have_slots_those_are_filled_first_that_have_holders():
    assert PLACEMENTS["most_packed"].pick(board("0102", depth=3), 2) == (1, 3)
    assert PLACEMENTS["most_packed"].pick(board("0102", depth=2), 2) == (0, 1)


@given(st.text("012", max_size=16), st.integers(1, 2), st.data())
def test_whoever_asks_for_no_more_than_there_is_room_gets_free_pes_each_once(held, depth, data):
    for name, policy in PLACEMENTS.items():
        one = board(held, depth)
        room = policy.room(one)
        assert 0 <= room <= one.free
        assert (room > 0) == (one.free > 0)
        if room:
            count = data.draw(st.integers(1, room))
            pes = policy.pick(one, count)
            assert len(set(pes)) == count
            assert set(pes) <= set(one.open().tolist())
            assert list(pes) == sorted(pes)
            assert name != "contiguous" or pes[-1] - pes[0] == count - 1
