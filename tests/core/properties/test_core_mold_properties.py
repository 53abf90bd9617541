"""For any sizes of requests: the size with the earliest expected end is chosen, no start is later than its
reservation, and a replay of the journal gives the same site."""

from core.harness import START, House, spec_of
from core.properties.worlds import QUEUE, REQUEST, asked_for, built, check_reservations, course
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from shadow.judge import Shadow

from nqspy.core.timeline.profile import Profile
from nqspy.core.variants import sizes as mold
from nqspy.engine.lifecycle import apply
from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request, State
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site

MINUTE = 60_000
SIZES = st.dictionaries(st.integers(1, 6), st.integers(1, 12), min_size=2, max_size=4)
MAYBE_SIZES = st.one_of(st.none(), SIZES)


def molded(each: dict) -> str:
    """Return the line of a request, with several sizes if it has some."""
    if each["sizes"] is None:
        return asked_for(each)
    most = 3 if each["queue"] == "apart" else 6
    fit = {pes: wall for pes, wall in each["sizes"].items() if pes <= most} or {1: 5, 2: 3}
    return asked_for(each) + words(fit)


def words(sizes: dict[int, int]) -> str:
    """Return sizes with their times as words for `House.submit`."""
    walls = ",".join(f"{wall}:00" for wall in sizes.values())
    return f" sizes={','.join(map(str, sizes))} walls={walls}"


def ends_at(house: House, seq: Seq, at: Instant) -> Instant:
    """Return the given end, or that of the time limit of its size if this is earlier."""
    wall = house.request(seq).spec.ask.wall
    return Instant(min(at, house.now + wall))


QUEUES = st.lists(QUEUE, min_size=3, max_size=3)
MOLDED = st.lists(st.tuples(REQUEST, MAYBE_SIZES), min_size=2, max_size=18)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20), st.integers(1, 8)), max_size=6),
    SIZES,
    st.one_of(st.none(), st.integers(0, 20)),
)
def test_the_size_with_the_earliest_end_is_the_one_that_trying_every_minute_finds(held, sizes, latest):
    free, profile = [8] * 100, Profile(START)
    profile.provide("pes", 8)
    for begin, length, pes in held:
        fits = min(free[begin : begin + length]) >= pes
        for minute in range(begin, begin + length) if fits else ():
            free[minute] -= pes
        if fits:
            profile.hold(START + begin * MINUTE, START + (begin + length) * MINUTE, {"pes": pes})
    spec = spec_of("anne", **dict(word.split("=") for word in words(sizes).split()))
    site, request = House().machine(pes=8).site, Request(1, spec, "q", State.QUEUED, START, START)
    by = None if latest is None else START + latest * MINUTE
    found = mold.soonest(
        site, START, request, lambda one: profile.earliest({"pes": one.spec.ask.pes}, one.spec.ask.wall), by
    )
    ends = {
        (minute + wall, minute, pes)
        for pes, wall in sizes.items()
        for minute in range(41)
        if min(free[minute : minute + wall]) >= pes and (latest is None or minute <= latest)
    }
    best = [(pes, START + minute * MINUTE) for _, minute, pes in sorted(ends)[:1]]
    assert [(each[0].spec.ask.pes, each[1]) for each in [found] if each is not None] == best


def check_sizes(house: House) -> None:
    """Check that each reservation and each running request has one of its sizes, with that size's time."""
    for request in house.site.requests.values():
        reservation, shape = request.reservation, request.spec.mold
        if reservation is not None and reservation.at is not None:
            assert reservation.at >= house.now, f"{request.seq} should have started"
            assert reservation.pes in ((0,) if shape is None else shape.sizes)
        if request.started is not None and shape is not None:
            assert request.spec.ask.pes == len(request.pes)
            assert request.spec.ask.wall == shape.wall_on(len(request.pes))


@settings(max_examples=examples(300), deadline=None)
@given(QUEUES, MOLDED)
def test_no_start_is_later_than_reserved_and_a_replay_gives_the_same(queues, requests):
    house, again = built(queues), Site(host="ymp")
    reserved: dict[Seq, Instant] = {}
    seen = 0
    lists = [asked | {"sizes": sizes} for asked, sizes in requests]
    for _ in course(house, lists, molded, House.end, ends_at):
        check_reservations(house, reserved)
        check_sizes(house)
        for recorded in house.events[seen:]:
            apply(again, recorded)
        seen = len(house.events)
        assert again.requests == house.site.requests
        check_site(again)
    assert not house.site.requests, "somebody never started"
    sizes = [len(each.event.pes) for each in house.events if isinstance(each.event, ev.Starting)]
    assert len(sizes) == len(requests)
    found = Shadow(Site(host="ymp"), pause=None).take_all(house.events).differences
    assert not [(each.seq, each.before, each.text) for each in found]
