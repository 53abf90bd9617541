"""Limits, caps and consumables: a row is masked exactly if its request has a reason to wait, and no limit is
ever exceeded."""

from core.harness import House
from core.properties.worlds import GROUPS, OWNERS, QUEUES, World, limits, requests
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.gate import units
from nqspy.core.gate.caps import Cap
from nqspy.core.gate.classes import ClassLimits
from nqspy.core.gate.gate import Gate, Which
from nqspy.core.gate.running import RunLimit
from nqspy.model.columns import needs_key
from nqspy.model.consumables import wanted_in
from nqspy.model.events import Change
from nqspy.model.ids import HOUR
from nqspy.model.people import capped_pes, capped_use, lineage
from nqspy.model.shifts import UpcomingStop
from nqspy.shares import FairShare

SOME = settings(max_examples=examples(100))
WALLS = ("", "", " wall=1:00:00", " wall=3:00:00", " wall=unlimited")


@st.composite
def sites(draw):
    """Draw two queues with limits, a complex, caps and shifts that drain; half of the requests started before
    all limits were set, so some limits are already exceeded."""
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


@st.composite
def lines(draw):
    """Draw a line of `House.submit`."""
    gpu, matlab = draw(st.integers(0, 4)), draw(st.integers(0, 2))
    words = [draw(st.sampled_from(OWNERS)), f"group={draw(st.sampled_from(GROUPS))}"]
    words += [f"gpu={gpu}"] * bool(gpu) + [f"matlab={matlab}"] * bool(matlab)
    return " ".join([*words, f"queue={draw(st.sampled_from(QUEUES))}", f"pes={draw(st.integers(1, 3))}"])


AMOUNTS = st.fixed_dictionaries({}, optional={"gpu": st.integers(0, 4), "matlab": st.integers(0, 3)}).map(
    lambda most: tuple(f"{name}={count}" for name, count in most.items())
)


@st.composite
def labs(draw):
    """Draw a site with four GPUs and two licences, where some requests started before limits were set and
    units went offline."""
    house = House().machine(pes=draw(st.integers(1, 8)))
    house.change(Change("create", "consumable/gpu", {"count": 4, "policy": draw(st.sampled_from(
        ("lowest", "round_robin", "nearest")))}))  # fmt: skip
    house.change(Change("create", "consumable/matlab", {"count": 2}))
    for name in QUEUES:
        house.queue(name, time=1)
    World(house, [(line, 1) for line in draw(st.lists(lines(), max_size=8))]).submit_all()
    house.go()
    for seq in sorted(house.site.started):
        if draw(st.booleans()):
            house.end(seq)
    house.complex("some", *draw(st.sampled_from((("a",), ("a", "b")))))
    for path in (*(f"queue/{name}" for name in QUEUES), "complex/some", "global"):
        for setting in (limit.setting for limit in units.LIMITS):
            if draw(st.booleans()):
                house.set(f"{path}/{setting}", draw(AMOUNTS))
    house.set("consumable/gpu/offline", draw(st.sets(st.sampled_from("0123")).map(sorted)))
    World(house, [(line, 1) for line in draw(st.lists(lines(), max_size=10))]).submit_all()
    return house


def rows(site):
    """Yield the columns of each queue, with the queue."""
    return ((site.settings.queues[name], columns) for name, columns in site.waiting.items() if len(columns))


def masked(mask, columns):
    """Return the numbers of the requests in a mask."""
    return set() if mask is None else {columns.request(row).seq for row in mask.nonzero()[0].tolist()}


@SOME
@given(sites() | labs())
def test_each_rule_masks_the_requests_that_it_refuses(house):
    gate = Gate(house.site, house.now)
    for queue, columns in rows(house.site):
        for rule in gate.rules(queue.name):
            refused = {request.seq for request in columns.requests() if rule.refuses(request)}
            assert masked(rule.mask(queue.name, columns), columns) == refused, type(rule)


@SOME
@given(sites() | labs())
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
@given(sites() | labs())
def test_a_request_never_starts_if_it_is_blocked_with_nothing_running_and_no_use(house):
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


@SOME
@given(labs(), st.booleans())
def test_passes_go_on_until_nobody_can_start_and_give_each_unit_once(house, asked):
    if asked:
        house.exits(jobselect=lambda request, view: None)
    for _ in range(30):
        result = house.go()  # the site is checked
        gate = Gate(house.site, house.now)
        for _, columns in rows(house.site):
            for request in columns.requests():
                assert result.reason(request.seq).text
                room = house.site.board().free
                fits = request.spec.ask.pes <= room and gate.limit(request) is None
                assert not fits, f"{request.seq} could start"
        if not house.site.started:
            return
        house.later(seconds=5).end(min(house.site.started))


@given(
    st.dictionaries(st.sampled_from(("gpu", "matlab", "a-b.c")), st.integers(1, 99)),
    st.sets(st.sampled_from("xyz")),
)
def test_a_key_of_needs_tells_what_is_asked_for(wanted, names):
    key = needs_key(tuple(names), tuple(wanted.items()))
    assert wanted_in(key) == wanted
    assert key == needs_key(tuple(sorted(names, reverse=True)), tuple(reversed(wanted.items())))


# ---------------------------------------------------------------- caps over random nights
few = settings(max_examples=examples(60))


@st.composite
def nights(draw):
    """Draw one queue by fair share, two departments below one group, caps anywhere, and a short half-life."""
    house = House().machine(pes=draw(st.integers(1, 6))).queue("a", share=20, time=1).queue("b", time=1)
    house.set("usage/half_life", draw(st.sampled_from((2_000, 20_000, 3_600_000))))
    house.group("both", draw(st.integers(1, 5)))
    house.group("d1", draw(st.integers(0, 5)), "both").group("d2", draw(st.integers(1, 5)), "both")
    house.group("default", draw(st.integers(0, 3)))
    for name in ("both", *GROUPS):
        if draw(st.booleans()):
            house.set(f"group/{name}/limit", draw(st.sampled_from((0, 5, 12.5, 20, 50, 100))))
    return World(house, draw(st.lists(st.tuples(requests(), st.integers(0, 3)), max_size=20)))


def caps(site):
    """Return the caps, by the group for which they were set, as the messages name them."""
    pes, half_life = site.pes(), site.settings.usage.half_life
    return {
        name: Cap(name, group.limit, capped_pes(group.limit, pes), capped_use(group.limit, pes, half_life))
        for name, group in site.settings.groups.items()
        if group.limit is not None
    }


def check_starts(house, result):
    """Check that each start was within all its caps, with the committed use of the starts before it."""
    ledger = FairShare(house.site, house.now, house.samples)
    for seq in result.starts:
        request = house.request(seq)
        groups = lineage(house.site.settings.groups, request.group)
        assert all(ledger.use(name) < cap.use for name, cap in caps(house.site).items() if name in groups)
        ledger.commit(request)


def check_held(house):
    """Check that no group holds more PEs than its cap allows."""
    for cap in caps(house.site).values():
        held = [
            r.spec.ask.pes
            for r in house.site.started.values()
            if cap.group in lineage(house.site.settings.groups, r.group)
        ]
        assert sum(held) <= cap.pes


@few
@given(nights(), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12))
def test_no_cap_is_ever_exceeded(night, ends):
    house = night.house
    night.submit_all()
    for seconds, cpu in ends:
        result = house.run_pass()
        check_starts(house, result)
        house.apply(result)
        check_held(house)
        if house.site.started:
            house.later(seconds=seconds).end(min(house.site.started), cpu=str(cpu))


@few
@given(nights())
def test_when_use_alone_blocks_the_pass_says_when_the_next_one_comes(night):
    house = night.house
    night.submit_all()
    house.apply(house.run_pass())
    for seq in sorted(house.site.started):
        house.end(seq, cpu="30")
    result = house.run_pass()
    if result.starts or result.plan.wake_at is None:
        return
    assert result.plan.wake_at > house.now
    house.later(result.plan.wake_at - house.now)
    shares = FairShare(house.site, house.now, {})
    opened = [cap for cap in caps(house.site).values() if shares.use(cap.group) < cap.use]
    assert opened, "by then a group has forgotten enough"


# ---------------------------------------------------------------- limits of job classes
PES = 8
MOST = st.none() | st.integers(1, PES)
CLASS = st.fixed_dictionaries(
    {
        "priority": st.integers(1, 3), "wait": st.sampled_from((None, 0)), "pe_limit": MOST,
        "preempted": st.booleans(), "do_not_disturb": st.sampled_from((None, 0)),
    }
)  # fmt: skip
GANG = st.fixed_dictionaries({"large_size": MOST, "large_limit": MOST, "job_limit": MOST})
JOBS = st.lists(st.tuples(st.sampled_from("abcx"), st.integers(1, PES)), max_size=8)


@st.composite
def houses(draw):
    """Draw a machine on which some jobs of three classes (and of a removed one) run and some wait."""
    house = House().machine(pes=PES).queue("apps", order="class")
    for name in "abc":
        house.job_class(name, **draw(CLASS))
    for jobs in draw(JOBS), draw(JOBS):
        house.submit(*(f"anne class={name} pes={pes}" for name, pes in jobs)) if jobs else None
        house.go()
        for name, most in draw(GANG).items():
            house.set(f"gang/{name}", most)
    return house


def counting(site, holders):
    """Return limits that count these jobs."""
    limits = ClassLimits(site)
    for each in holders:
        limits.add(each)
    return limits


@settings(max_examples=examples(100))
@given(houses(), st.integers(0, PES))
def test_a_class_limit_forgets_the_jobs_that_give_way(house, staying):
    site, holders = house.site, list(house.site.started.values())
    limits, stay = counting(site, holders), counting(site, holders[:staying])
    for job in site.columns("apps").requests():
        assert limits.refuses(job, holders[staying:]) == stay.refuses(job)
