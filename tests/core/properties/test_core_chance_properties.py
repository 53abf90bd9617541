"""With any recorded run times: no request starves in queues with starts by chance, no reserved start is late,
beside such queues too, and a request that fills a hole by contract delays none."""

from core.harness import House
from core.properties.worlds import (
    ASKED,
    MINUTE,
    SETTINGS,
    asked_for,
    built,
    check_reservations,
    course,
    two_queues,
)
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Used
from nqspy.model.shifts import UpcomingStop

LONGEST = 12
REQUEST = st.fixed_dictionaries(
    ASKED
    | {
        "pes": st.sampled_from([1, 1, 2, 3, 6]), "early": st.sampled_from([0, 1, 6, 11]),
        "after": st.sampled_from([0, 0, 1, 3]), "gpu": st.sampled_from([0, 0, 1, 2]), "mem": st.just(0),
        "contract": st.booleans(),
    }
)  # fmt: skip
QUEUE = st.fixed_dictionaries(
    SETTINGS
    | {
        "order": st.sampled_from(["fcfs", "sjf"]),
        "backfill": st.sampled_from(["probable", "probable", "contract", "limit", "none"]),
        "probability": st.sampled_from([30.0, 50.0, 90.0]),
        "reserve": st.sampled_from([1, 2, None]),
        "user_limit": st.none(),
    }
)


def ended(house: House, seq: Seq) -> None:
    """End a request by itself or at the end of its hole; its run is recorded."""
    run = house.request(seq).run
    cut = run.until is not None and run.until <= house.now
    used = Used(0, house.now - run.started)
    reason = "contract" if cut else "exit"
    house._event(ev.Ended(seq, house.request(seq).attempts, reason, None if cut else 0, used=used))


def ends_at(house: House, seq: Seq, end: Instant) -> Instant:
    """Return the given end, or that of the request's hole if this is earlier."""
    until = house.request(seq).run.until
    assert until is None or until >= min(house.now + MINUTE, end)
    return end if until is None else min(end, until)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(QUEUE, min_size=3, max_size=3), st.lists(REQUEST, min_size=2, max_size=22))
def test_nobody_starves_and_reserved_starts_are_met_beside_chances(queues, requests):
    house = built(queues, shortest_hole=MINUTE)
    reserved: dict[Seq, Instant] = {}
    chances = {name for name, each in house.site.settings.queues.items() if each.backfill == "probable"}
    slack = len(requests) * LONGEST * MINUTE
    for _ in course(house, requests, asked_for, ended, ends_at):
        check_reservations(house, reserved, lambda request: slack if request.queue in chances else 0)
    assert not house.site.requests, "somebody never started"


# ---------------------------------------------------------------- requests whose lengths are not known
PES, UNITS = 8, 2
ENDLESS = st.fixed_dictionaries(
    ASKED
    | {
        "queue": st.sampled_from(["front", "back"]), "pes": st.sampled_from([1, 1, 2, 2, 3, 4, 6]),
        "early": st.sampled_from([0, 0, 3]), "after": st.sampled_from([0, 0, 1, 3]),
        "gpu": st.sampled_from([0, 0, 1, 2]), "mem": st.just(0),
        "endless": st.sampled_from([False, False, True]),
    }
)  # fmt: skip
UNLIMITED = {"user_limit": st.none(), "pe_limit": st.none(), "reserve": st.sampled_from([1, 2, None])}
PROMISING = st.fixed_dictionaries(SETTINGS | UNLIMITED | {"order": st.sampled_from(["fcfs", "sjf"])})


def amounts(house: House, seqs: list[Seq]) -> tuple[int, int]:
    """Return the PEs and the units that these requests hold together."""
    asks = [house.request(seq).spec.ask for seq in seqs]
    return sum(ask.pes for ask in asks), sum(count for ask in asks for _, count in ask.consumables)


def look(house: House, before: dict[Seq, set[Seq]], reserved: dict[Seq, Instant]) -> None:
    """Check reserved starts after a pass. ``before``: requests that ran or had a reservation before one got a
    reservation without a time."""
    order = list(house.site.reserved)
    without = [seq for seq in order if house.request(seq).reservation.at is None]
    for seq in set(before).difference(without):
        del before[seq]
    for seq in without:
        before.setdefault(seq, {*house.site.started, *order[: order.index(seq)]})
        passed = [other for other in house.site.started if other not in before[seq]]
        wanted, held = amounts(house, [seq]), amounts(house, passed)
        for most, need, use in zip((PES, UNITS), wanted, held, strict=True):
            assert not need or use <= most - need, f"{seq} waits for what {passed} hold"
    check_reservations(house, reserved)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(PROMISING, min_size=2, max_size=2), st.lists(ENDLESS, min_size=3, max_size=22))
def test_all_that_pass_together_leave_free_what_a_reservation_without_time_needs(queues, requests):
    house = two_queues(queues)
    before: dict[Seq, set[Seq]] = {}
    reserved: dict[Seq, Instant] = {}
    for _ in course(house, requests, asked_for, House.end):
        look(house, before, reserved)
    assert not house.site.requests, "somebody never started"


# ---------------------------------------------------------------- warm equals cold
ORDERED = st.fixed_dictionaries(
    {name: SETTINGS[name] for name in ("order", "backfill")} | {"reserve": st.sampled_from([1, 2, None])}
)
SHORT = st.tuples(
    st.sampled_from(["front", "back"]),
    st.sampled_from([1, 1, 2, 3, 5, 8]),
    st.sampled_from(["1:00", "2:00", "3:00", "5:00", "9:00", "unlimited"]),
    st.sampled_from([0, 0, 0, 1, 2]),
)
COMING = st.tuples(st.sampled_from([0, 1, 20, 30, 60, 60, 90]), st.lists(SHORT, max_size=3))
STOP = st.none() | st.tuples(st.integers(1, 12), st.sampled_from(["drain", "suspend", "requeue"]))


def come(house: House, requests: list[tuple]) -> None:
    for queue, pes, wall, gpu in requests:
        house.submit(f"anne pes={pes} wall={wall}" + (f" gpu={gpu}" if gpu else ""), queue=queue)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(ORDERED, min_size=2, max_size=2), st.lists(SHORT, min_size=3, max_size=9),
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
