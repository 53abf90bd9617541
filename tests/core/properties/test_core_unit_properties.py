"""The rules of consumables: masks and reasons say the same, and a pass gives each unit once."""

from core.harness import House
from core.properties.test_core_limit_properties import masked, rows
from core.properties.worlds import GROUPS, OWNERS, QUEUES, World
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.gate.gate import Gate, Which
from nqspy.core.gate.units import LIMITS
from nqspy.model.columns import needs_key
from nqspy.model.consumables import wanted_in
from nqspy.model.events import Change

SOME = settings(max_examples=examples(150))


@st.composite
def lines(draw):
    """A line of `House.submit`."""
    gpu, matlab = draw(st.integers(0, 4)), draw(st.integers(0, 2))
    words = [draw(st.sampled_from(OWNERS)), f"group={draw(st.sampled_from(GROUPS))}"]
    words += [f"gpu={gpu}"] * bool(gpu) + [f"matlab={matlab}"] * bool(matlab)
    return " ".join([*words, f"queue={draw(st.sampled_from(QUEUES))}", f"pes={draw(st.integers(1, 3))}"])


def limits():
    """Amounts of a limit on units."""
    named = st.fixed_dictionaries({}, optional={"gpu": st.integers(0, 4), "matlab": st.integers(0, 3)})
    return named.map(lambda most: tuple(f"{name}={count}" for name, count in most.items()))


@st.composite
def labs(draw):
    """Four GPUs, two licences; requests of which some have started before all limits came and units went."""
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
        for setting in (limit.setting for limit in LIMITS):
            if draw(st.booleans()):
                house.set(f"{path}/{setting}", draw(limits()))
    house.set("consumable/gpu/offline", draw(st.sets(st.sampled_from("0123")).map(sorted)))
    World(house, [(line, 1) for line in draw(st.lists(lines(), max_size=10))]).submit_all()
    return house


@SOME
@given(labs())
def test_each_rule_masks_the_requests_that_it_refuses(house):
    gate = Gate(house.site, house.now)
    for queue, columns in rows(house.site):
        for rule in gate.rules(queue.name):
            refused = {request.seq for request in columns.requests() if rule.refuses(request)}
            assert masked(rule.mask(queue.name, columns), columns) == refused, type(rule)


@SOME
@given(labs())
def test_all_together_keep_back_those_who_are_given_a_reason(house):
    site = house.site
    gate = Gate(site, house.now)
    for queue, columns in rows(site):
        mask = gate.mask(queue.name, columns, Which.LIMITS)
        given_one = {r.seq for r in columns.requests() if gate.limit(r) or r.spec.ask.pes > site.pes()}
        assert masked(mask, columns) == given_one


@SOME
@given(labs())
def test_what_can_never_start_is_what_is_kept_back_when_nothing_runs(house):
    site = house.site
    gate = Gate(site, house.now)
    masks = {queue.name: gate.mask(queue.name, columns, Which.EVER) for queue, columns in rows(site)}
    for seq in sorted(site.started):
        house.end(seq)
    empty = Gate(site, house.now)
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
        told = house.go()  # the site is checked
        gate = Gate(house.site, house.now)
        for _, columns in rows(house.site):
            for request in columns.requests():
                assert told.reason(request.seq).text
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
