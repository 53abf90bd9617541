"""What needs a broken resource is not started, and gives way as its probe says."""

from time import process_time

import pytest
from core.harness import House, force, spec_of
from core.properties.worlds import live, worlds
from core.story import Story
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nqspy.core import resource_health
from nqspy.core.passes import explain
from nqspy.core.preemption.health import Count, wish
from nqspy.model import events as ev
from nqspy.model.actions import Requeue, Resume, Start, Suspend
from nqspy.model.cause import cause_of
from nqspy.model.health import Probe
from nqspy.model.ids import Instant
from nqspy.model.reasons import ReasonCode


def house(**probe) -> House:
    made = House().machine(pes=4).queue("day", time=1).queue("night", time=1)
    made.probe("nfs", **probe).probe("licence")
    return made.set("queue/night/needs", ("nfs",))


# ---------------------------------------------------------------- counting tries


def told(count: Count, probe: Probe, tries: str) -> list[str]:
    """What single tries, + good and - failed, make the state: a dot where nothing changes."""
    return [count.tell(probe, each == "+") or "." for each in tries]


def test_it_breaks_after_so_many_failures_in_a_row_and_recovers_after_so_many_good_tries():
    probe = Probe("nfs", file="/x", fails=3, recovers=2)
    assert told(Count(), probe, "+--+---+-++") == [
        "ok", ".", ".", ".", ".", ".", "broken", ".", ".", ".", "ok",
    ]  # fmt: skip


def test_what_was_never_tried_is_well_at_the_first_good_try_and_broken_after_the_failures():
    probe = Probe("nfs", file="/x", fails=2, recovers=5)
    assert told(Count(), probe, "+") == ["ok"]
    assert told(Count(), probe, "-+--") == [".", "ok", ".", "broken"]


def test_what_was_known_before_a_restart_stands_until_tries_say_otherwise():
    probe = Probe("nfs", file="/x", fails=1, recovers=3)
    assert told(Count("broken"), probe, "-++-+++") == [".", ".", ".", ".", ".", ".", "ok"]


# ---------------------------------------------------------------- waiting requests


PROBES = (
    "machine 4; queue day time=1; queue night time=1; probe nfs; probe licence; set queue/night/needs (nfs)"
)
BROKEN = f"{PROBES}; probe nfs broken; probe licence broken"
LINES = "submit anne queue=day needs=licence, ben queue=night, cleo queue=day"
STORIES = {
    "a queue that needs what is broken starts nothing": f"""{PROBES}; probe nfs broken
        submit anne queue=night, ben queue=day; starts ben; why anne starts_when_well; probe nfs ok
        starts anne""",
    "a probe that was never tried holds nothing": f"""{PROBES}
        submit anne queue=night, ben queue=day needs=licence; starts ben anne""",
    "only the requests that need it wait": f"""{PROBES}; probe licence broken
        submit anne queue=day needs=nfs+licence, ben queue=day, cleo queue=day needs=nfs; starts ben cleo
        why anne RESOURCE""",
    "a force of an exit does not help": f"""{BROKEN}; asks forcing all=force; {LINES}; starts cleo; asked cleo
        why anne RESOURCE; why ben RESOURCE""",
    "what runs goes on if the probe says hold": f"""{PROBES}; set probe/nfs/running hold
        run anne queue=night; probe nfs broken; go; gives -""",
} | {
    f"no place in the line helps: {word}": f"""{BROKEN}; {LINES}; schedule anne {word}; schedule ben {word}
        starts cleo; line day anne"""
    for word in ("first", "next", "now")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_needs(house, title):
    Story(house).play(STORIES[title])


def test_those_kept_back_do_not_count_for_the_share_of_others():
    site = house().group("d1", 1).group("d2", 99)
    site.queue("shared", share=10).probe("licence", "broken")
    mine, _ = site.submit("anne group=d1 queue=shared", "ben group=d2 needs=licence queue=shared")
    alone = site.standing("shared").of(site.request(mine)).share
    assert alone == 1.0


def test_a_hundred_thousand_that_wait_for_it_cost_a_pass_next_to_nothing():
    site = house().probe("licence", "broken")
    specs = [spec_of("anne", needs="licence") for _ in range(4)]
    for n in range(20_000):
        seq = site.site.next_seq
        site._event(ev.Submitted(seq, specs[n % 4], "day", "queued"))
    [free] = site.submit("ben queue=day")
    site.exits(jobselect=lambda request, view: None)
    began = process_time()
    assert site.run_pass().starts == [free]
    assert process_time() - began < 1.0


# ---------------------------------------------------------------- started requests


def test_running_ones_are_parked_and_their_pes_go_to_others_until_it_is_well():
    site = house(running="suspend").machine(pes=1)
    [night] = site.run("anne queue=night")
    [day] = site.probe("nfs", "broken", "no answer").submit("ben queue=day")
    told = site.run_pass()
    assert [type(each) for each in told.actions] == [Suspend, Start]
    assert told.actions[0] == Suspend(
        night, 1, cause_of("probe nfs"), "resource nfs is broken: no answer", True
    )
    site.apply(told)
    told = site.go()
    assert told.reason(night).text.endswith("it goes on when probe nfs is well again")
    told = site.probe("nfs", "ok").go()
    assert told.actions == (), "its PE is another's now"
    assert told.reason(night).code is ReasonCode.NO_PES
    site.end(day)
    assert site.go().actions == (Resume(night, 1, cause_of("scheduler")),)


def test_those_that_may_be_run_again_are_queued_and_the_others_go_on():
    site = house(running="requeue")
    [again] = site.submit("anne queue=night")
    once = replace(spec_of("ben"), rerunnable=False)
    site._event(ev.Submitted(2, once, "night", "queued"))
    site.go()
    site.probe("nfs", "broken")
    assert site.run_pass().actions == (Requeue(again, 1, cause_of("probe nfs"), "resource nfs is broken"),)


@pytest.mark.parametrize(
    ("of", "action"),
    [
        (("hold", "suspend"), "suspend"), (("suspend", "hold"), "suspend"),
        (("suspend", "requeue"), "requeue"), (("requeue", "suspend"), "requeue"), (("hold", "hold"), None),
    ],
)  # fmt: skip
def test_of_several_broken_ones_the_strongest_wish_counts(of, action):
    site = house(running=of[0]).set("probe/licence/running", of[1])
    [both] = site.run("anne queue=night needs=licence")
    site.probe("nfs", "broken").probe("licence", "broken")
    found = wish(site.site, site.request(both))
    assert (found.action if found else None) == action


def test_what_is_parked_already_is_queued_again_when_that_is_the_stronger_wish():
    site = house(running="suspend").set("probe/licence/running", "requeue")
    [both] = site.run("anne queue=night needs=licence")
    site.probe("nfs", "broken").go()
    told = site.probe("licence", "broken").go()
    assert [type(each) for each in told.actions] == [Requeue]
    assert site.request(both).state.value == "queued"


# ---------------------------------------------------------------- whatever comes


@settings(max_examples=examples(60))
@given(worlds(), st.lists(st.sampled_from(("a", "b", "c")), max_size=3), st.data())
def test_what_needs_something_broken_never_starts(world, down, data):
    site = world.house
    for name in "abc":
        site.probe(name, "broken" if name in down else data.draw(st.sampled_from(("", "ok"))))
        site.set(f"probe/{name}/running", data.draw(st.sampled_from(("hold", "suspend", "requeue"))))
    site.set("queue/b/needs", data.draw(st.sampled_from(((), ("a",), ("b", "c")))))
    if data.draw(st.booleans()):
        site.exits(jobselect=lambda request, view: data.draw(st.sampled_from((None, force()))))
    world.lines = [
        (f"{line} needs={data.draw(st.sampled_from(('', '', 'a', 'b+c')))}", at) for line, at in world.lines
    ]

    def check(told):
        waiting = [r for r in site.site.requests.values() if r.slot >= 0]
        reasons = explain(site.site, [r.seq for r in waiting], told.plan.reasons)
        for request in waiting:
            assert request.seq in reasons
        for seq in told.starts:
            needs = set(resource_health.needs_of(site.site, site.request(seq)))
            assert needs.isdisjoint(down)

    live(world, 6, check)


def test_the_reason_of_each_request_is_what_the_masks_say():
    site = house().probe("licence", "broken").probe("nfs", "broken", "gone")
    seqs = site.submit(
        "a queue=day", "a queue=day needs=nfs", "a queue=day needs=licence+nfs", "a queue=night",
    )  # fmt: skip
    columns = site.site.waiting["day"]
    mask = resource_health.blocked_mask(site.site, columns)
    assert mask is not None
    for seq in seqs[:3]:
        request = site.request(seq)
        assert bool(mask[request.slot]) == (resource_health.keeping(site.site, request) is not None)
    assert resource_health.keeping(site.site, site.request(seqs[3])).who == "probe nfs"
    assert site.site.resources["nfs"].since == Instant(site.now)
