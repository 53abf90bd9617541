"""Sets of indices: all operations give the same result as Python's sets."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model import arrays, indices, keys
from nqspy.model.arrays import ArraySpec
from nqspy.model.errors import BadValue
from nqspy.model.indices import Runs

_PIECES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(1, 7)).map(
        lambda each: f"{each[0]}-{each[0] + each[1]}:{each[2]}"
    ),
    min_size=1,
    max_size=5,
).map(",".join)


def _set(text: str) -> set[int]:
    found = set[int]()
    for piece in text.split(","):
        span, _, step = piece.partition(":")
        first, _, last = span.partition("-")
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def _check(runs: Runs, expected: set[int]) -> None:
    assert list(indices.each(runs)) == sorted(expected)
    assert indices.count(runs) == len(expected)
    ends = [end for run in runs for end in run[:2]]
    assert ends == sorted(ends), "runs interleave"
    assert all(indices.count((run,)) > 1 or run[2] == 1 for run in runs)


@given(_PIECES)
def test_what_is_read_is_what_is_meant(text: str) -> None:
    runs = indices.read(text)
    _check(runs, _set(text))
    _check(indices.read(indices.show(runs)), _set(text))
    assert all(indices.has(runs, index) == (index in _set(text)) for index in range(100))
    assert [indices.nth(runs, place) for place in range(indices.count(runs))] == sorted(_set(text))


@given(_PIECES, _PIECES)
def test_two_sets_are_joined_and_cut(one: str, other: str) -> None:
    left, right = indices.read(one), indices.read(other)
    _check(indices.plus(left, right), _set(one) | _set(other))
    _check(indices.minus(left, right), _set(one) - _set(other))
    _check(indices.both(left, right), _set(one) & _set(other))


@given(_PIECES, st.lists(st.integers(0, 95), max_size=40))
def test_single_indices_come_and_go(text: str, moved: list[int]) -> None:
    runs, expected = indices.read(text), _set(text)
    for index in moved:
        if index in expected:
            runs, expected = indices.drop(runs, index), expected - {index}
        else:
            runs, expected = indices.add(runs, index), expected | {index}
        _check(runs, expected)


def test_a_large_set_stays_small_whatever_is_taken_from_it() -> None:
    runs = indices.read("1-100000")
    assert runs == ((1, 100_000, 1),)
    for _ in range(1_000):
        runs = indices.drop(runs, indices.nth(runs, 0))
    assert runs == ((1001, 100_000, 1),)
    done: Runs = ()
    for index in range(1, 1_000):
        done = indices.add(done, index)
    assert done == ((1, 999, 1),)
    assert indices.minus(indices.read("0-99999:3"), indices.read("300-599")) == (
        (0, 297, 3),
        (600, 99_999, 3),
    )


def test_thousands_of_pieces_take_no_longer_than_their_number() -> None:
    alone = random.Random(1).sample(range(4_000_001), 9_000)
    before = time.process_time()
    runs = indices.read(",".join(map(str, alone)))
    every = indices.read("0-3999999:40")
    _check(indices.plus(runs, every), {*alone, *range(0, 4_000_000, 40)})
    _check(indices.minus(every, runs), set(range(0, 4_000_000, 40)) - set(alone))
    assert indices.both(runs, runs) == runs
    assert time.process_time() - before < 10, "the daemon serves nobody meanwhile"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is not an index"), ("a-b", "is not an index"), ("1-", "is not an index"),
        ("9-3", "3 is below 9"), ("1-9:0", "the step must be at least 1"),
        ("1-5000000", "5000000 is too large"), ("0-3999999", "at most 1000000"),
        ("1-3:-1", "is not an index"), ("\uff11-\uff13", "is not an index"),
        ("1-600000,1-600000", "1200000 indices"),
        (",".join(f"{index * 7}-{index * 7 + 1}" for index in range(5_001)), "5001 ranges"),
    ],
)  # fmt: skip
def test_what_is_no_set_is_refused(text: str, expected: str) -> None:
    with pytest.raises(BadValue, match=expected):
        indices.read(text)


def test_what_is_cut_out_of_a_run_with_a_step_costs_nothing_for_each_index() -> None:
    odd, even = indices.read("1-999999:2"), indices.read("0-999998:2")
    began = time.process_time()
    for index in range(1, 4_001, 2):
        assert indices.count(indices.minus(odd, ((index, index, 1),))) == 499_999
        assert indices.plus(odd, even) == ((0, 999_999, 1),)
        assert indices.both(odd, ((0, 999_999, 3),)) == ((3, 999_999, 6),)
    assert time.process_time() - began < 2


def test_pieces_that_interleave_are_few_or_refused() -> None:
    assert indices.read("0-999998:2,1-999999:2") == ((0, 999_999, 1),)
    for text in ("0-999999:2,0-999999:3", ",".join(["1"] * (keys.MOST_WRITTEN + 1))):
        with pytest.raises(BadValue):
            indices.read(text)


def test_single_indices_that_are_held_and_released_stay_one_group() -> None:
    state = arrays.begin(ArraySpec(((0, 99_999, 1),)), ())
    odd = range(1, 8_000, 2)
    began = time.process_time()
    for index in odd:
        state = arrays.hold(state, ((index, index, 1),), "u", "")
    [held] = state.held
    assert held.indices == ((1, 7_999, 2),)
    assert indices.count(state.ready) == 96_000
    assert len(state.ready) < 10
    for index in odd:
        state = arrays.release(state, ((index, index, 1),), "u")
    assert state.ready == state.left
    assert time.process_time() - began < 5
