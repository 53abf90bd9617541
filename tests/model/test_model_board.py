"""Domains, which are disjoint sets of PEs, and the board of the holders of each PE."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model import board
from nqspy.model.board import Board, pes_of
from nqspy.model.configure import apply_changes, problems
from nqspy.model.domains import APPLICATION, Domain, home_of, names, numbers
from nqspy.model.errors import BadValue
from nqspy.model.events import Change
from nqspy.model.site import Settings

PES = st.integers(0, 7)
MOVES = st.lists(
    st.tuples(st.integers(1, 5), st.booleans(), st.lists(PES, unique=True, max_size=4)), max_size=20
)


def board_of(pes, holders, offline=(), slots=1, foreign=()):
    """Return the board of a machine with this many PEs, all of one domain."""
    return Board(Domain("application", depth=slots), np.ones(pes, dtype=bool), holders, offline, foreign)


@given(MOVES, st.sets(PES), st.sets(PES), st.integers(0, 7), st.integers(1, 3))
def test_what_has_room_is_what_nobody_fills(moves, offline, foreign, pes, slots):
    held = {}
    known = board_of(pes, {}, offline, slots, foreign)
    for seq, takes, chosen in moves:
        mine = held.setdefault(seq, set())
        if takes:
            known.hold([pe for pe in chosen if pe not in mine])
            mine.update(chosen)
        else:
            known.release(mine & set(chosen))
            mine.difference_update(chosen)
    filled = [pe for pe in range(8) if sum(pe in mine for mine in held.values()) >= slots]
    room = [pe for pe in range(pes) if pe not in filled and pe not in offline | foreign]
    assert known.open().tolist() == room
    assert known.free == len(room)
    there = {pe for pe in offline if pe < pes}
    assert (known.away, known.foreign) == (len(there), len({pe for pe in foreign if pe < pes} - offline))
    assert known.lost() == {pe for pe in there if not any(pe in mine for mine in held.values())}


@given(MOVES, st.sets(PES), st.integers(0, 7), st.integers(1, 3))
def test_a_board_that_is_read_is_the_maintained_one(moves, offline, pes, slots):
    holders = {}
    for seq, takes, chosen in moves:
        mine = {pe for pe, those in holders.items() if seq in those}
        if takes:
            board.hold(holders, seq, [pe for pe in chosen if pe not in mine])
        else:
            board.release(holders, seq, chosen)
    read = board_of(pes, holders, offline, slots)
    assert read.free == len(list(read.open()))
    assert all(holders.values()), "who holds nothing is left out"


def test_a_copy_of_a_pass_leaves_the_site_as_it_is():
    holders = {}
    board.hold(holders, 1, (0, 1))
    known = board_of(4, holders)
    known.hold((2,))
    known.release((0,))
    assert holders == {0: (1,), 1: (1,)}
    assert not board.has_slots(holders, (1, 2), 1)
    assert board.has_slots(holders, (1, 2), 2)


@pytest.mark.parametrize("name", ["nonsense", "applications", ""])
def test_a_queue_names_a_domain_that_is_there(name):
    settings = Settings()
    apply_changes(settings, (Change("create", "queue/night", {"domain": name}),))
    [text] = problems(settings)
    assert text.startswith("queue night: ")
    assert f"{name}; domains: application" in text


def test_ranges_name_pes():
    pes = {("16-18",): (16, 17, 18), ("0-3", "8"): (0, 1, 2, 3, 8), ("8", "0-1", "1"): (0, 1, 8), (): ()}
    assert {ranges: numbers(ranges) for ranges in pes} == pes


@pytest.mark.parametrize(
    "text", ["", "a", "3-", "-3", "5-2", "1-2-3", "٣", "0x1", "1.5", "0-99999999", "9999999"]
)
def test_what_names_no_pes_is_refused(text):
    with pytest.raises(BadValue, match="names no PEs"):
        numbers((text,))


PARTS = st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=0, max_size=12)


@given(PARTS, st.integers(0, 12))
def test_every_pe_is_in_one_domain(parts, total):
    domains = {
        name: Domain(name, tuple(str(pe) for pe, part in enumerate(parts) if part == name)) for name in "abc"
    }
    masks = {name: pes_of(domains, name, total) for name in names(domains)}
    for pe in range(total):
        assert [name for name, mask in masks.items() if mask[pe]] == [home_of(domains, pe)]
    assert names(domains) == [APPLICATION, "a", "b", "c"]


def test_a_domain_that_is_none_has_no_pes():
    assert not pes_of({}, "nonsense", 4).any()
    assert pes_of({}, APPLICATION, 4).all()
