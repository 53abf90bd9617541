"""Requests without a wall limit where starts are promised: whatever waits for whom, somebody starts."""

import pytest
from engine.harness import PLAIN, Centre
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.engine.virtual.attempts import Run

MANY = ("2", "3", "all")
FILLS = ("limit", "none", "contract", "probable")
REQUEST = st.fixed_dictionaries(
    {
        "owner": st.sampled_from(["anne", "ben", "cleo"]),
        "pes": st.integers(1, 4),
        "wall": st.sampled_from(["", "", " wall=300", " wall=900"]),
        "array": st.sampled_from(["", "", "", " array=1-3"]),
        "place": st.sampled_from(["", "", "first", "next", "now"]),
        "after": st.sampled_from([0, 0, 200, 700]),
    }
)


def serving(backfill: str, reserve: str, order: str = "fcfs") -> Centre:
    text = f"set queue batch order={order} reserve={reserve} backfill={backfill}\n"
    return Centre(PLAIN + text, pes=4, lengths=lambda r: Run(wall=600_000))


@pytest.mark.parametrize("backfill", FILLS)
@pytest.mark.parametrize("reserve", MANY)
def test_who_is_promised_a_time_waits_for_nobody_who_is_promised_none(backfill, reserve):
    centre = serving(backfill, reserve)
    centre.submit("anne pes=4 wall=600", "anne pes=2 wall=600", "ben pes=4", "cleo pes=4 wall=300")
    second, third = centre.request(2).reservation.at, centre.request(3).started
    assert third is None
    centre.later(minutes=10)
    assert centre.request(2).started == second
    centre.later(hours=1)
    assert not centre.site.requests


@pytest.mark.parametrize("backfill", FILLS)
def test_of_those_without_a_time_the_first_starts(backfill):
    centre = serving(backfill, "all")
    centre.submit("anne pes=4", "ben pes=4", "cleo pes=3", "anne pes=4")
    centre.later(minutes=10)
    assert centre.state(2) == "running"
    centre.later(hours=1)
    assert not centre.site.requests


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(FILLS),
    st.sampled_from(MANY),
    st.sampled_from(["fcfs", "sjf", "priority"]),
    st.lists(REQUEST, min_size=4, max_size=12),
)
def test_nothing_waits_for_ever_beside_a_free_machine(backfill, reserve, order, requests):
    centre = serving(backfill, reserve, order)
    for each in requests:
        (seq,) = centre.submit(f"{each['owner']} pes={each['pes']}{each['wall']}{each['array']}")
        if each["place"] and centre.state(seq) == "queued":
            centre.qmgr(f"schedule request {centre.id(seq)} {each['place']}")
        centre.later(seconds=each["after"])
    centre.later(hours=24)
    assert not centre.site.requests
