"""Suspension and return of requests for broken resources, shifts and short memory; and which features a
domain lists."""

from time import process_time

import pytest
from core.harness import force, spec_of
from core.properties.worlds import live, worlds
from core.story import Story
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core import features, resource_health
from nqspy.core.passes import explain
from nqspy.core.preemption.health import Count
from nqspy.core.preemption.swap import CONTROL, SWAP
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Suspend
from nqspy.model.cause import cause_of
from nqspy.model.configure import dump, load
from nqspy.model.errors import BadValue
from nqspy.model.events import Change
from nqspy.model.health import Probe
from nqspy.model.reasons import KINDS, ReasonCode
from nqspy.model.shifts import Shift
from nqspy.model.tree import declared

BOTH = """machine 4; create domain/wide pes=(2-3); queue day; queue night domain=wide
    run anne wall=9:00:00 queue=day, ben wall=9:00:00 queue=night; later 60"""
STOPPED = f"{BOTH}; day suspend stop:day stop:night"
WIDE = "set domain/wide/features"
STORIES = {
    f"without swap requests run on while memory is short: {listed}": f"""{BOTH}; {WIDE} {listed}
        submit cleo queue=night; memory high 91 anne=20 ben=60; does suspend:{leaves}; why cleo MEMORY"""
    for listed, leaves in (("-", "ben"), ("(swap)", "ben"), ("(health,shift_end)", "anne"), ("()", "anne"))
} | {
    # The last large request stays only where requests that may give way fill the memory.
    f"the memory of a domain without swap counts as that of other programs: {listed}": f"""{BOTH}
        {WIDE} {listed}; memory high 91 anne=100 ben=700; does suspend:{leaves}"""
    for listed, leaves in (("(swap)", "ben"), ("()", "anne"))
} | {
    f"nothing is told or expected of a shift that lets requests run on: {listed}": f"""{BOTH}
        queue other domain=wide reserve=1; {WIDE} {listed}; stops night 180 suspend; go; why ben {why}
        run cleo pes=2 wall=1:00 queue=other; reserved cleo {at}"""
    for listed, why, at in (("-", "will_rest 06:00 night", 180), ("(health)", "-", 540))
} | {
    f"without health what runs goes on and what waits still waits: {listed} {running}": f"""{BOTH}
        probe nfs broken running={running}; set queue/day/needs (nfs); set queue/night/needs (nfs)
        submit cleo queue=night; {WIDE} {listed}; does {running}:anne{more}; why cleo RESOURCE"""
    for running in ("suspend", "requeue")
    for listed, more in (("-", f" {running}:ben"), ("(swap,shift_end)", ""))
} | {
    "one that gave way to memory comes back when its domain lists swap no more": f"""{BOTH}
        memory high 91 anne=20 ben=60; does suspend:ben; {WIDE} (); does -; why ben MEMORY
        memory calm 20 anne=20; does resume:ben""",
    "with shift_end all give way": f"{STOPPED}; does suspend:anne suspend:ben",
    "without shift_end requests run on when a shift stops their queue": f"""{STOPPED}
        {WIDE} (health,swap); does suspend:anne""",
    "a suspended one goes on once its domain lists the feature no more": f"""{STOPPED}
        does suspend:anne suspend:ben; does -; why ben SHIFT; {WIDE} (); does resume:ben; why anne SHIFT""",
    "domain application has the setting too": f"""{BOTH}; day requeue stop:day
        set domain/application/features (swap); does -; set domain/application/features -
        does requeue:anne""",
}  # fmt: skip
THREE = "machine 2; queue night; run anne, ben, cleo"
PARKED = """run anne pes=2 wall=1:00:00{units}; later 10; suspend anne probe nfs
    submit ben pes=2 wall=20:00; begins ben 0-1"""
AWAY = f"machine 2; queue night reserve=1; {PARKED.format(units='')}"
STORIES |= {
    "before all that waits": f"{THREE}; suspend anne probe nfs; go; returns anne; why cleo NO_PES",
    "one that an operator suspended keeps its PEs and stays": f"{THREE}; suspend anne op; does -",
    "what is to end gives way to none and does not come back": f"""{THREE}; suspend ben probe nfs; delete ben
        does start:cleo; delete anne; day suspend stop:night; does suspend:cleo""",
    "a PE that the machine no longer has is neither freed nor taken": """machine 2; queue night
        queue batch; run anne queue=night, ben queue=night; machine 1; submit cleo, dora
        day suspend stop:night; does suspend:anne suspend:ben start:cleo; pes cleo 0""",
    "on the PE that becomes free": f"""{THREE}; suspend anne probe nfs; begins cleo 0; go; returns -
        why anne pes_to_go_on 1 -; end ben; go; returns anne 1; pes anne 1; end cleo; submit dora
        starts dora; pes dora 0""",
    "on its own PEs if they are free": """machine 4; queue night; run anne, ben pes=2; suspend ben probe nfs
        end anne; go; returns ben; pes ben 1-2""",
    "it keeps of its PEs what is free": """machine 4; queue night; run anne pes=2; suspend anne probe nfs
        submit ben; begins ben 0; go; returns anne 1-2""",
    "too few free PEs are kept for it": """machine 4; queue night; run anne pes=3; suspend anne probe nfs
        submit ben, cleo, dora; begins ben 0; begins cleo 3; starts -; why anne pes_to_go_on 3 2
        end cleo; go; returns anne 1-3""",
    "two that had the same PE": """machine 1; queue night; run anne, ben; suspend anne probe nfs; later 5s
        begins ben 0; suspend ben probe nfs; go; returns anne; why ben NO_PES""",
    "a user limit counts it": """machine 3; queue night user_limit=1; run anne, anne, ben
        suspend anne probe nfs; go; returns anne; why anne2 limit_reached""",
    "while it is away only memory counts": """machine 3
        queue night user_limit=1 run_limit=1 memory_limit=10mw; run anne mem=6mw, anne mem=4mw, anne mem=1mw
        suspend anne probe nfs; delete anne; starts anne2; end anne2; submit ben mem=5mw; starts anne3""",
    "a start is reserved behind its return": f"""{AWAY}; run cleo pes=2 wall=5:00; reserved cleo 80; later 20
        end ben; go; returns anne; later 50; end anne; starts cleo""",
    "what it did not give back is its own until its end": f"""machine 2; queue night reserve=1
        create consumable/gpu units=(g0); {PARKED.format(units=" gpu=1")}; run cleo gpu=1 wall=5:00
        reserved cleo 80; units anne gpu=g0""",
    "nothing is kept for one of a stopped queue": f"""{AWAY}; set queue/night/started off
        queue day reserve=1; run cleo pes=2 wall=5:00; reserved cleo 30""",
}  # fmt: skip
PROBES = (
    "machine 4; queue day time=1; queue night time=1; probe nfs; probe licence; set queue/night/needs (nfs)"
)
BROKEN = f"{PROBES}; probe nfs broken; probe licence broken"
LINES = "submit anne queue=day needs=licence, ben queue=night, cleo queue=day"
STORIES |= {
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
DRAIN = "machine 4; queue night; stops night 480 drain"
DRAINED = {
    "what cannot end in time is not started": f"""{DRAIN}
        submit anne wall=9:00:00, ben wall=8:00:00, cleo wall=1:00:00, dora, eva wall=8:00:01
        starts ben cleo dora; why anne SHIFT until=480; why eva too_long 28801000 06:00 night""",
    "the minutes count as time goes by": """machine 1; queue night; stops night 480 drain
        submit anne wall=2:00:00, ben wall=1:00:00; later 360; later 1ms; starts ben; why anne SHIFT""",
    "other queues are left alone": """machine 4; queue night; queue batch; stops night 480 drain
        submit anne wall=9:00:00 queue=night, ben wall=9:00:00 queue=batch; starts ben""",
    "the queue's wall limit counts": """machine 4; queue night max_wall=8:00:00; stops night 480 drain
        submit anne wall=1:00, ben; starts anne ben""",
    "the queue's wall limit is too long": """machine 4; queue night max_wall=8:00:01; stops night 480 drain
        submit anne wall=1:00, ben; starts anne""",
    "an explicit unlimited is started": f"{DRAIN}; submit anne wall=unlimited; starts anne",
    "no exit forces a start past it, an operator does": f"""{DRAIN}
        submit anne wall=9:00:00, ben wall=9:00:00; asks forcing all=force; starts -; schedule ben now
        starts ben; why anne SHIFT""",
} | {
    f"only drain holds requests: {kind}": f"""machine 4; queue night; stops night 480 {kind}
        submit anne wall=9:00:00; starts anne"""
    for kind in ("leave", "suspend", "requeue")
}  # fmt: skip

ONE = "machine 1; queue night; run anne"
RESTS = f"{ONE}; day suspend stop:night; does suspend:anne"
SPILLED = {
    "its PEs are used": """machine 2; queue night priority=10; queue batch
        run anne queue=night, ben queue=batch, cleo queue=batch; day suspend stop:night
        does suspend:anne start:cleo; pes cleo 0; does -; why anne SHIFT""",
    "it goes on when its queue is started, whatever the shift": f"""{RESTS}; set shift/day/spill leave; does -
        begin_shift evening; does -; set queue/night/started on; does resume:anne""",
    "requeue ends what may run again and leaves the rest": """machine 2; queue night; queue batch
        run anne queue=night, ben queue=night rerun=no; submit cleo; day requeue stop:night
        does requeue:anne; does start:cleo; does -""",
    "a queue that an operator stopped goes on": """machine 2; queue night; queue batch
        run anne queue=night, ben queue=batch; day suspend stop:night; set queue/night/started on
        set queue/batch/started off; does -""",
    "what an operator resumes is left alone until the shift comes again": f"""{RESTS}; later 5s; resume anne
        does -; later 1440; begin_shift day; does suspend:anne""",
    "one that the scheduler resumed gives way when its queue stops again": f"""{RESTS}; later 5s
        set queue/night/started on; does resume:anne; later 5s; set queue/night/started off
        does suspend:anne""",
    "one that another feature parked does not come back": f"""{ONE}; suspend anne probe nfs
        day suspend stop:night; does -; why anne shift_stopped night""",
} | {
    f"{kind} does nothing to what runs": f"{ONE}; day {kind} stop:night; does -"
    for kind in ("leave", "drain")
}  # fmt: skip

TOLD = {
    f"told beforehand: {spill} {asked}": f"""machine 1; queue night; stops night 480 {spill}
        submit anne {asked}; go; why anne {told}"""
    for spill, asked, told in (
        ("suspend", "wall=9:00:00", "will_rest 06:00 night"), ("suspend", "wall=8:00:00", "-"),
        ("requeue", "wall=9:00:00", "will_end 06:00 night"), ("requeue", "wall=9:00:00 rerun=no", "-"),
        ("suspend", "", "-"), ("leave", "wall=9:00:00", "-"),
    )
}  # fmt: skip
STORIES |= DRAINED | SPILLED | TOLD


@pytest.mark.parametrize("title", STORIES)
def test_features_of_a_domain(house, title):
    Story(house).play(STORIES[title])


def test_a_domain_lists_what_may_give_way_and_nothing_that_starts_requests(house):
    Story(house).play(BOTH)
    known = declared(type(house.site.domain("wide")))["features"]
    assert known.words == ("health", "shift_end", "swap", "compact")
    assert {*known.words, *known.fixed} == {*features.BY_NAME}
    for word, text in (("route", "route is always on"), ("sawp", "'sawp' is not known")):
        with pytest.raises(BadValue, match=text):
            house.set("domain/wide/features", [word])


def test_a_domain_that_no_longer_lists_a_feature_is_left_alone_by_it(house):
    Story(house).play(STOPPED)
    actions = house.run_pass().actions
    assert [features.stands(house.site, each) for each in actions] == [True, True]
    house.set("domain/wide/features", ["health"])
    assert [features.stands(house.site, each) for each in actions] == [True, False]
    house.set("domain/wide/features", None).go()
    assert features.why_held(house.site, house.request(2)) is not None
    house.set("domain/wide/features", [])
    assert [features.why_held(house.site, house.request(seq)) is None for seq in (1, 2)] == [False, True]


def test_rows_have_the_list_without_words_of_removed_features(house):
    Story(house).play(BOTH)
    assert "features" not in dump(house.site.settings)["domain/wide"]
    house.set("domain/wide/features", ["health", "swap"])
    rows = dump(house.site.settings)
    assert load(rows).domains["wide"].features == ("health", "swap")
    rows["domain/wide"]["features"] = ["health", "gone"]
    assert load(rows).domains["wide"].features == ("health",)
    house.set("domain/wide/features", [])
    assert load(dump(house.site.settings)).domains["wide"].features == ()


# ---------------------------------------------------------------- swap control: how it stands
MW = 8 * 2**20


def status(house):
    return CONTROL.status(house.site, lambda at: None if at is None else f"at {at}")


def test_it_tells_how_the_memory_stands_and_who_gave_way(house):
    house.machine(pes=2).queue("night").set("swap_control/enabled", True)
    anne, ben = house.submit("anne", "ben")
    house.apply(house.run_pass())
    assert status(house).rows == [("memory", "not measured yet")]
    house._event(ev.PressureChanged("high", 91.2, "91 % in use", ((anne, 93 * MW), (ben, 40 * MW)), 100 * MW))
    for _ in range(2):
        house._event(ev.Suspended(ben, 1, "swap", cause=SWAP))
        house._event(ev.Resumed(ben, 1, "swap", cause=SWAP))
    house._event(ev.Suspended(anne, 1, "swap", cause=SWAP))
    rows = dict(status(house).rows)
    assert rows.keys() == {"memory", f"{anne}.ymp", f"{ben}.ymp"}
    assert rows["memory"] == f"high (91 % in use) since at {house.now}"
    assert status(house).data["gave_way"] == [
        {"id": f"{anne}.ymp", "times": 1, "away": True, "gave_bytes": 93 * MW},
        {"id": f"{ben}.ymp", "times": 2, "away": False, "gave_bytes": 40 * MW},
    ]
    assert status(house).data["pressure"]["level"] == "high"


def test_once_it_is_switched_off_nothing_is_known_of_the_memory(house):
    house.machine(pes=2).queue("night").set("swap_control/enabled", True)
    house._event(ev.PressureChanged("high", 91.2, "91 % in use", (), 100 * MW))
    house.set("swap_control/enabled", False)
    assert status(house).rows == [("memory", "not measured yet")]


@pytest.mark.parametrize(
    ("fails", "recovers", "before", "tries", "expected"),
    [
        (3, 2, None, "+--+---+-++", "ok . . . . . broken . . . ok"),
        (2, 5, None, "+", "ok"), (2, 5, None, "-+--", ". ok . broken"),
        (1, 3, "broken", "-++-+++", ". . . . . . ok"),
    ],
)  # fmt: skip
def test_so_many_tries_in_a_row_change_the_state(fails, recovers, before, tries, expected):
    probe, count = Probe("nfs", file="/x", fails=fails, recovers=recovers), Count(before)
    assert [count.record(probe, each == "+") or "." for each in tries] == expected.split()


# ---------------------------------------------------------------- requests that need what is broken
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
    text = "resource nfs is broken: no answer"
    house.probe("nfs", "broken", "no answer")
    assert house.go().actions == (Suspend(1, 1, cause_of("probe nfs"), text, True),)


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

    def check(result):
        waiting = [r for r in site.site.requests.values() if r.slot >= 0]
        reasons = explain(site.site, [r.seq for r in waiting], result.plan.reasons)
        for request in waiting:
            assert request.seq in reasons
        for seq in result.starts:
            needs = set(resource_health.needs_of(site.site, site.request(seq)))
            assert needs.isdisjoint(down)

    live(world, 6, check)


def test_blocked_requests_are_not_walked(house):
    Story(house).play(DRAIN)
    house.submit(*["anne wall=9:00:00"] * 2_000, "ben wall=1:00:00")
    result = house.run_pass()
    assert result.starts == [2_001]
    assert len(result.plan.reasons.own) < 5
    assert explain(house.site, [1_000], result.plan.reasons)[1_000].code is ReasonCode.SHIFT


def test_the_cause_and_the_text_of_a_suspension_by_a_shift(house):
    Story(house).play(f"{ONE}; day suspend stop:night")
    text = KINDS["shift_stopped"]("shift day", "night").text
    assert house.go().actions == (Suspend(1, 1, cause_of("shift day"), text, True),)
    assert house.why(1).matches(who="shift day", text=text)


def test_a_spill_without_effect_is_reported(house):
    Story(house).play("machine 1; queue night; day suspend start:night")
    (line,) = features.verify(house.site.settings, house.site)
    assert line.startswith("shift day: spill=suspend")


@pytest.mark.parametrize(
    ("values", "stops"),
    [
        ((("queue/night/started", False),), True),
        ((("queue/*/started", False),), True),
        ((("queue/*/started", False), ("queue/night/started", True)), False),
        ((("queue/night/started", True), ("queue/*/started", False)), True),
        ((("queue/batch/started", False), ("queue/night/enabled", False)), False),
        ((), False),
    ],
)
def test_the_last_word_of_a_shift_says_whether_it_stops_a_queue(values, stops):
    changes = tuple(Change("set", path, value) for path, value in values)
    commands = [cm.encode(cm.PurgeQueue("night")), cm.encode(cm.Configure(changes))]
    assert Shift("day", commands=commands).stops("night") is stops
