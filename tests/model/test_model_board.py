"""Who holds which PE: what is free follows from who took and gave, whatever is offline or out of range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model import board
from nqspy.model.board import Board
from nqspy.model.configure import apply_changes, problems
from nqspy.model.domains import Domain
from nqspy.model.events import Change
from nqspy.model.site import Settings

PES = st.integers(0, 7)
MOVES = st.lists(
    st.tuples(st.integers(1, 5), st.booleans(), st.lists(PES, unique=True, max_size=4)), max_size=20
)


def board_of(pes, holders, offline=(), slots=1):
    """A machine of so many PEs that are all one domain's."""
    return Board(Domain("application", depth=slots), np.ones(pes, dtype=bool), holders, offline)


@given(MOVES, st.sets(PES), st.integers(0, 7), st.integers(1, 3))
def test_what_has_room_is_what_nobody_fills(moves, offline, pes, slots):
    held = {}
    known = board_of(pes, {}, offline, slots)
    for seq, takes, chosen in moves:
        mine = held.setdefault(seq, set())
        if takes:
            known.take([pe for pe in chosen if pe not in mine])
            mine.update(chosen)
        else:
            known.give(mine & set(chosen))
            mine.difference_update(chosen)
    filled = [pe for pe in range(8) if sum(pe in mine for mine in held.values()) >= slots]
    room = [pe for pe in range(pes) if pe not in filled and pe not in offline]
    assert known.open().tolist() == room
    assert known.free == len(room)
    there = {pe for pe in offline if pe < pes}
    assert known.gone() == {pe for pe in there if not any(pe in mine for mine in held.values())}


@given(MOVES, st.sets(PES), st.integers(0, 7), st.integers(1, 3))
def test_a_board_that_is_read_is_one_that_was_kept(moves, offline, pes, slots):
    holders = {}
    for seq, takes, chosen in moves:
        mine = {pe for pe, those in holders.items() if seq in those}
        if takes:
            board.take(holders, seq, [pe for pe in chosen if pe not in mine])
        else:
            board.give(holders, seq, chosen)
    read = board_of(pes, holders, offline, slots)
    assert read.free == len(list(read.open()))
    assert all(holders.values()), "who holds nothing is left out"


def test_a_copy_of_a_pass_leaves_the_site_as_it_is():
    holders = {}
    board.take(holders, 1, (0, 1))
    known = board_of(4, holders)
    known.take((2,))
    known.give((0,))
    assert holders == {0: (1,), 1: (1,)}
    assert not board.has_slots(holders, (1, 2), 1)
    assert board.has_slots(holders, (1, 2), 2)


@pytest.mark.parametrize("name", ["nonsense", "applications", ""])
def test_a_queue_names_a_domain_that_is_there(name):
    settings = Settings()
    apply_changes(settings, (Change("create", "queue/night", {"domain": name}),))
    assert problems(settings) == [f"queue night: there is no domain {name}; domains: application"]
