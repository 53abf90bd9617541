"""qsub -p: an owner's order among his own requests, and nobody else's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.core.order.own_priority import behind_their_own
from nqspy.model.columns import Columns
from nqspy.model.dictionary import Dictionary
from nqspy.model.requests import Ask, Request, Spec, State


def test_a_higher_priority_goes_first_among_the_same_owners(house):
    low = house.machine(pes=1).queue("night").submit("anne p=-5")[0]
    plain, high = house.later(seconds=5).submit("anne", "anne p=10")
    house.later(seconds=5)
    assert house.standing().line() == [high, plain, low]
    for first in (high, plain, low):
        assert house.go().starts == [first]
        house.end(first)


def test_others_keep_their_places_and_nobody_gains_on_them(house):
    mine = house.machine(pes=1).queue("night").submit("anne")[0]
    ben = house.later(seconds=5).submit("ben p=-1000")[0]
    urgent = house.later(seconds=5).submit("anne p=1000")[0]
    house.later(seconds=5)
    assert house.standing().line() == [ben, urgent, mine]


def test_ties_of_one_instant_are_parted_too(house):
    house.machine(pes=1).queue("night", share=0, cpu=0, memory=0, time=0)
    first, second, third = house.submit("anne", "anne p=1", "ben")
    assert house.standing().line() == [second, third, first]
    assert house.go().starts == [second]


def test_who_stands_behind_his_owners_better_one_already_is_not_put_back(house):
    house.machine(pes=1).queue("night", order="fcfs")
    better, low, cleo = house.submit("anne", "anne p=-3", "cleo")
    house.later(minutes=1)
    assert house.standing().line() == [better, low, cleo]


def test_shares_count_as_before(house):
    old, new = house.machine(pes=1).queue("night", share=20, time=1).submit("anne p=1", "anne p=2")
    assert house.standing().line() == [new, old]


def test_an_operators_word_counts_more(house):
    low, high = house.machine(pes=1).queue("night").submit("anne p=1", "anne p=2")
    house.schedule(low, "next")
    assert house.standing().line() == [low, high]


def test_what_cannot_start_does_not_keep_its_owners_others_back(house):
    big, small = house.machine(pes=2).queue("night").submit("anne pes=3 p=9", "anne pes=1")
    assert house.go().starts == [small]
    assert big


@pytest.mark.parametrize("order", [{"order": "fcfs"}, {"time": 0}, {"time": 1}, {"order": "sjf"}], ids=str)
def test_who_is_put_back_behind_one_that_cannot_start_stays_before_those_who_came_later(house, order):
    runs = house.machine(pes=2).queue("night", **order).run("cleo", "cleo")
    low = house.later(minutes=1).submit("anne wall=10:00")[0]
    wide = house.later(minutes=1).submit("anne p=3 pes=2 wall=10:00")[0]
    ben = house.later(minutes=1).submit("ben wall=11:00")[0]
    house.later(minutes=1)
    assert house.standing().line() == [wide, low, ben]
    house.end(runs[0])
    assert house.go().starts == [low]


ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-3, 3), st.floats(0, 100), st.booleans()), max_size=40
)


@given(ROWS)
def test_values_only_sink_and_each_owners_are_in_his_order(rows):
    columns, numbers = Columns(), Dictionary()
    for seq, (owner, priority, _, _) in enumerate(rows, 1):
        spec = Spec(owner, 1, "n", "q", "s", "e", "/", ask=Ask(), priority=priority)
        columns.add(Request(seq, spec, "q", State.QUEUED, 0, 0), numbers)
    before = np.array([value if there else -np.inf for *_, value, there in rows], dtype=np.float64)
    base = before.copy()
    behind_their_own(base, columns, columns.date, columns.turn)
    assert (base <= before).all()
    assert ((base == -np.inf) == (before == -np.inf)).all()
    for one, (owner, high, _, there) in enumerate(rows):
        for other, (whose, low, _, also) in enumerate(rows):
            if owner == whose and high > low and there and also:
                assert base[one] > base[other] or (base[one] == base[other] and one < other)
    again = base.copy()
    behind_their_own(again, columns, columns.date, columns.turn)
    assert again == pytest.approx(base, abs=1e-6)
