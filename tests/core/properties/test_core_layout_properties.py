"""The spans of one pass serve the next passes as long as they hold: warm equals cold.

Each pass of a `House` is compared with one that knows nothing of earlier passes. Nothing ends here: requests
come, time goes by, and what runs goes on beyond its limit.
"""

from core.harness import House
from core.properties.worlds import two_queues
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model.shifts import UpcomingStop

MINUTE = 60_000
QUEUE = st.fixed_dictionaries(
    {
        "order": st.sampled_from(["fcfs", "sjf", "priority"]),
        "backfill": st.sampled_from(["limit", "limit", "none"]),
        "reserve": st.sampled_from([1, 2, None]),
    }
)
REQUEST = st.tuples(
    st.sampled_from(["front", "back"]),
    st.sampled_from([1, 1, 2, 3, 5, 8]),
    st.sampled_from(["1:00", "2:00", "3:00", "5:00", "9:00", "unlimited"]),
    st.sampled_from([0, 0, 0, 1, 2]),
)
COMING = st.tuples(st.sampled_from([0, 1, 20, 30, 60, 60, 90]), st.lists(REQUEST, max_size=3))
STOP = st.none() | st.tuples(st.integers(1, 12), st.sampled_from(["drain", "suspend", "requeue"]))


def come(house: House, requests: list[tuple]) -> None:
    for queue, pes, wall, gpu in requests:
        house.submit(f"anne pes={pes} wall={wall}" + (f" gpu={gpu}" if gpu else ""), queue=queue)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(QUEUE, min_size=2, max_size=2), st.lists(REQUEST, min_size=3, max_size=9),
       st.lists(COMING, min_size=2, max_size=12), STOP)  # fmt: skip
def test_a_pass_with_the_spans_of_an_earlier_pass_decides_as_one_that_makes_them_anew(
    queues, first, coming, stop
):
    house = two_queues(queues)
    if stop is not None:
        at = house.now + stop[0] * MINUTE
        house.site.upcoming_stops = {"back": UpcomingStop(at, "day", stop[1], "8:00")}
        house.site.closings = {"back": at}
    come(house, first)
    house.go()
    for seconds, requests in coming:
        house.later(seconds=seconds)
        come(house, requests)
        house.go()
