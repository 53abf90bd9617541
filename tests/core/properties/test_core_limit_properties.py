"""Masks and reasons say the same: a row is masked if and only if its request is given a reason."""

from core.harness import House
from core.properties.worlds import GROUPS, QUEUES, World, limits, requests
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.gate.gate import Gate, Which
from nqspy.core.gate.running import RunLimit
from nqspy.model.ids import HOUR
from nqspy.model.shifts import UpcomingStop
from nqspy.shares import FairShare

SOME = settings(max_examples=examples(100))
WALLS = ("", "", " wall=1:00:00", " wall=3:00:00", " wall=unlimited")


@st.composite
def sites(draw):
    """Two queues under limits, a complex, caps anywhere, shifts that drain; half of the requests were started
    before all limits came, so that some leave less than nothing."""
    house = House().machine(pes=draw(st.integers(1, 8)))
    for name in QUEUES:
        house.queue(name, max_memory=draw(st.none() | st.just("3b")), time=1)
    house.group("both", 1).group("d1", 1, "both").group("d2", draw(st.integers(0, 5)), "both")
    lines = st.tuples(requests(), st.sampled_from(WALLS))
    world = World(house, [(line + wall, 1) for line, wall in draw(st.lists(lines, max_size=12))])
    world.submit_all()
    house.go()
    for seq in sorted(house.site.started):
        if draw(st.booleans()):
            house.end(seq, cpu="30")
    for path in (*(f"queue/{name}" for name in QUEUES), "complex/some", "global"):
        if path.startswith("complex"):
            house.complex("some", *draw(st.sampled_from((("a",), ("a", "b")))))
        for name, value in draw(limits()).items():
            house.set(f"{path}/{name}", value)
    for name in ("both", *GROUPS[:2]):
        house.set(f"group/{name}/limit", draw(st.sampled_from((None, 0, 12.5, 50, 100))))
    for name in QUEUES:
        house.set(f"queue/{name}/per_request/wall_limit", draw(st.sampled_from((None, 0, 7_200_000))))
        if draw(st.booleans()):
            hours, spill = draw(st.integers(-1, 4)), draw(st.sampled_from(("drain", "suspend")))
            house.site.upcoming_stops[name] = UpcomingStop(house.now + hours * HOUR, "day", spill, "06:00")
    World(house, [(line + wall, 1) for line, wall in draw(st.lists(lines, max_size=12))]).submit_all()
    return house


def rows(site):
    """The columns of each queue, with the queue."""
    return ((site.settings.queues[name], columns) for name, columns in site.waiting.items() if len(columns))


def masked(mask, columns):
    """Numbers of the requests in a mask."""
    return set() if mask is None else {columns.request(row).seq for row in mask.nonzero()[0].tolist()}


@SOME
@given(sites())
def test_each_rule_masks_the_requests_that_it_refuses(house):
    gate = Gate(house.site, house.now)
    for queue, columns in rows(house.site):
        for rule in gate.rules(queue.name):
            refused = {request.seq for request in columns.requests() if rule.refuses(request)}
            assert masked(rule.mask(queue.name, columns), columns) == refused, type(rule)


@SOME
@given(sites())
def test_all_together_keep_back_those_who_are_given_a_reason(house):
    site = house.site
    gate = Gate(site, house.now, run_limits=False)
    for queue, columns in rows(site):
        mask = gate.mask(queue.name, columns, Which.LIMITS)
        given_one = {r.seq for r in columns.requests() if gate.limit(r) or r.spec.ask.pes > site.pes()}
        assert masked(mask, columns) == given_one


@SOME
@given(sites())
def test_a_run_limit_that_is_reached_closes_the_queue_and_is_the_reason_of_all(house):
    gate = Gate(house.site, house.now)
    for queue, columns in rows(house.site):
        closed = gate.closed(queue.name)
        runs = [each for each in gate.rules(queue.name) if type(each) is RunLimit]
        for request in columns.requests():
            assert next((reason for each in runs if (reason := each.refuses(request))), None) == closed


@SOME
@given(sites())
def test_what_can_never_start_is_what_is_kept_back_when_nothing_runs_and_all_use_is_forgotten(house):
    site, now = house.site, house.now
    gate = Gate(site, now)
    masks = {queue.name: gate.mask(queue.name, columns, Which.EVER) for queue, columns in rows(site)}
    for seq in sorted(site.started):
        house.end(seq)
    house.set("usage/half_life", 1).later(minutes=1)
    empty = Gate(site, now, lambda: FairShare(site, house.now, {}))
    for queue, columns in rows(site):
        mask = masks[queue.name]
        given_one = {r.seq for r in columns.requests() if empty.limit(r) or r.spec.ask.pes > site.pes()}
        assert masked(mask, columns) == given_one
