"""Caps and the share tree over random nights: nothing is ever exceeded, nothing is left that could start."""

from core.harness import House
from core.properties.worlds import GROUPS, World, requests
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.gate.caps import Cap
from nqspy.model.people import capped_pes, capped_use, lineage
from nqspy.shares import FairShare

few = settings(max_examples=examples(60))


@st.composite
def nights(draw):
    """One queue by fair share, two departments below a common group, caps anywhere, a short memory."""
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
    """The caps by the group they were set for, as the words have it."""
    pes, half_life = site.pes(), site.settings.usage.half_life
    return {
        name: Cap(name, group.limit, capped_pes(group.limit, pes), capped_use(group.limit, pes, half_life))
        for name, group in site.settings.groups.items()
        if group.limit is not None
    }


def over(site, request):
    """The caps that hold for a request."""
    return [cap for name, cap in caps(site).items() if name in lineage(site.settings.groups, request.group)]


def check_starts(house, told):
    """Each start found room under all its caps, with what the starts before it committed."""
    ledger = FairShare(house.site, house.now, house.samples)
    for seq in told.starts:
        request = house.request(seq)
        assert all(ledger.use(cap.group) < cap.use for cap in over(house.site, request))
        ledger.commit(request)


def check_held(house):
    """No group holds more PEs than its cap allows."""
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
        told = house.run_pass()
        check_starts(house, told)
        house.apply(told)
        check_held(house)
        if house.site.started:
            house.later(seconds=seconds).end(min(house.site.started), cpu=str(cpu))


@few
@given(nights())
def test_when_use_alone_keeps_back_the_pass_says_when_to_look_again(night):
    house = night.house
    night.submit_all()
    house.apply(house.run_pass())
    for seq in sorted(house.site.started):
        house.end(seq, cpu="30")
    told = house.run_pass()
    if told.starts or told.plan.wake_at is None:
        return
    assert told.plan.wake_at > house.now
    house.later(told.plan.wake_at - house.now)
    opened = [cap for cap in caps(house.site).values() if _left(house, cap)]
    assert opened, "by then a group has forgotten enough"


def _left(house, cap):
    return FairShare(house.site, house.now, {}).use(cap.group) < cap.use


@few
@given(nights())
def test_who_has_work_shares_the_whole(night):
    night.submit_all()
    house = night.house
    ledger = FairShare(house.site, house.now, {})
    groups = house.site.settings.groups
    busy = {group for group, _ in house.site.busy() if groups[group].share}
    if busy:
        assert abs(sum(ledger.share(group=group) for group in busy) - 1) < 1e-9
