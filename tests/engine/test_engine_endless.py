"""Requests without a wall limit where starts are promised: whatever waits for whom, somebody starts."""

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
