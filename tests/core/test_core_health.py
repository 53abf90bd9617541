"""What needs a broken resource is not started, and gives way as its probe says."""

from time import process_time

import pytest
from core.harness import force, spec_of
from core.properties.worlds import live, worlds
from core.story import Story
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core import resource_health
from nqspy.core.passes import explain
from nqspy.core.preemption.health import Count
from nqspy.model import events as ev
from nqspy.model.actions import Suspend
from nqspy.model.cause import cause_of
from nqspy.model.health import Probe


@pytest.mark.parametrize(
    ("fails", "recovers", "before", "tries", "said"),
    [
        (3, 2, None, "+--+---+-++", "ok . . . . . broken . . . ok"),
        (2, 5, None, "+", "ok"), (2, 5, None, "-+--", ". ok . broken"),
        (1, 3, "broken", "-++-+++", ". . . . . . ok"),
    ],
)  # fmt: skip
def test_so_many_tries_in_a_row_change_the_state(fails, recovers, before, tries, said):
    probe, count = Probe("nfs", file="/x", fails=fails, recovers=recovers), Count(before)
    assert [count.tell(probe, each == "+") or "." for each in tries] == said.split()


# ---------------------------------------------------------------- requests that need what is broken

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
    "running ones are parked, and their PEs go to others until it is well": f"""{PROBES}; machine 1
        set probe/nfs/running suspend; run anne queue=night; submit ben queue=day; probe nfs broken
        does suspend:anne start:ben; does -; why anne goes_on_when_well; probe nfs ok; does -
        why anne NO_PES; end ben; does resume:anne""",
    "those that may be run again are queued, and the others go on": f"""{PROBES}
        set probe/nfs/running requeue; run anne queue=night, ben queue=night rerun=no; probe nfs broken
        does requeue:anne""",
    "what is parked is queued again if that is the stronger wish": f"""{PROBES}
        set probe/nfs/running suspend; set probe/licence/running requeue; run anne queue=night needs=licence
        probe nfs broken; does suspend:anne; probe licence broken; does requeue:anne
        does -; why anne starts_when_well""",
    "those kept back do not count for the share of others": """queue night share=10; create group/d1 share=1
        create group/d2 share=99; probe nfs broken; submit anne group=d1, ben group=d2 needs=nfs
        shares anne=1""",
} | {
    f"of several broken ones the strongest wish counts: {one} {other}": f"""{PROBES}
        set probe/nfs/running {one}; set probe/licence/running {other}; run anne queue=night needs=licence
        probe nfs broken; probe licence broken; does {act}"""
    for one, other, act in (
        ("hold", "suspend", "suspend:anne"), ("suspend", "hold", "suspend:anne"), ("hold", "hold", "-"),
        ("suspend", "requeue", "requeue:anne"), ("requeue", "suspend", "requeue:anne"),
    )
} | {
    f"no place in the line helps: {word}": f"""{BROKEN}; {LINES}; schedule anne {word}; schedule ben {word}
        starts cleo; line day anne"""
    for word in ("first", "next", "now")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_needs(house, title):
    Story(house).play(STORIES[title])


def test_many_that_wait_for_it_cost_a_pass_next_to_nothing(house):
    Story(house).play(f"{PROBES}; probe licence broken")
    specs = [spec_of("anne", needs="licence") for _ in range(4)]
    for n in range(20_000):
        house._event(ev.Submitted(house.site.next_seq, specs[n % 4], "day", "queued"))
    [free] = house.submit("ben queue=day")
    house.exits(jobselect=lambda request, view: None)
    began = process_time()
    assert house.run_pass().starts == [free]
    assert process_time() - began < 1.0


def test_the_cause_and_the_text_of_a_suspension(house):
    Story(house).play(f"{PROBES}; set probe/nfs/running suspend; run anne queue=night")
    said = "resource nfs is broken: no answer"
    house.probe("nfs", "broken", "no answer")
    assert house.go().actions == (Suspend(1, 1, cause_of("probe nfs"), said, True),)


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
