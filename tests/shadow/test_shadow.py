"""The shadow judges each pass by the documented rules: a right one has no difference. Each alteration of a
journal is found, with its request and its pass."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core.harness import House, force, refuse
from core.story import Story
from engine.harness import PLAIN, Centre
from engine.test_engine_late_plans import Late
from msgspec.structs import replace
from scenarios.nights import POLICIES, centre_of, evenings
from shadow.judge import Shadow, Verdict
from shadow.look import BLIND, CLASSES, LEFT, OTHER_INDEX, OTHER_PES, OTHER_UNITS, PASSED_BY

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import MINUTE, member
from nqspy.model.site import Site
from nqspy.sim.gang import GangOrder, GangRun
from nqspy.sim.workloads.jobs import Wanted
from nqspy.sim.workloads.t3d import t3d

ROOT = Path(__file__).parents[2]


def judged(events, pause: int | None = None) -> Verdict:
    return Shadow(Site(host="ymp"), pause=pause).take_all(events)


def found(events, pause: int | None = None) -> list[tuple[int, str]]:
    return [(each.seq, each.text) for each in judged(events, pause).differences]


def altered(events, which: Callable[[Any], bool], **fields: Any) -> list[ev.Recorded]:
    """A journal of which the events that ``which`` chooses say something else."""
    return [
        replace(each, event=replace(each.event, **fields)) if which(each.event) else each for each in events
    ]


def submission(seq: int) -> Callable[[Any], bool]:
    return lambda event: isinstance(event, ev.Submitted) and event.seq == seq


def start(seq: int) -> Callable[[Any], bool]:
    return lambda event: isinstance(event, ev.Starting) and event.seq == seq


def two_pass_by(house: House) -> tuple[int, int, int]:
    """One PE, three requests, one after the other."""
    house.machine(pes=1).queue("night")
    first, second, third = (house.later(minutes=1).submit("anne")[0] for _ in range(3))
    for seq in (first, second, third):
        house.go()
        house.later(minutes=1).end(seq)
    assert found(house.events) == []
    return first, second, third


# ---------------------------------------------------------------- what is altered is found
def test_two_starts_in_the_wrong_order(house):
    first, second, third = two_pass_by(house)
    swapped = {first: second, second: first}
    events = [
        replace(each, event=replace(each.event, seq=swapped.get(each.event.seq, each.event.seq)))
        if isinstance(each.event, ev.Starting | ev.Started | ev.Ended)
        else each
        for each in house.events
    ]
    [difference] = judged(events).differences
    assert (difference.seq, difference.before) == (second, first)
    assert difference.text == PASSED_BY
    assert events[difference.n - 1].event.kind == "decided", "it names the pass"
    assert third


def test_one_that_was_left_waiting(house):
    first, second, third = two_pass_by(house)
    events = [
        each for each in house.events
        if not (isinstance(each.event, ev.Starting | ev.Started | ev.Ended) and each.event.seq == second)
    ]  # fmt: skip
    assert (second, LEFT) in found(events)
    assert {seq for seq, _ in found(events)} <= {second, third}, "and the next one started before it"
    assert first


Altered = Callable[[list[ev.Recorded]], list[ev.Recorded]]


def says(which: Callable[[Any], bool], **fields: Any) -> Altered:
    return lambda events: altered(events, which, **fields)


def asks(seq: int, **fields: Any) -> Altered:
    """Have a request ask for something else when it is submitted."""
    asked = {name: fields.pop(name) for name in ("wall",) if name in fields}

    def make(events):
        (made,) = [each.event for each in events if submission(seq)(each.event)]
        spec = replace(made.spec, ask=replace(made.spec.ask, **asked), **fields)
        return altered(events, submission(seq), spec=spec)

    return make


def setting(path: str, value: Any) -> Altered:
    """Change a setting before the first request comes."""

    def make(events):
        changed = ev.Recorded(0, events[0].at, ev.SettingsChanged((ev.Change("set", path, value),)))
        place = next(i for i, each in enumerate(events) if isinstance(each.event, ev.Submitted))
        return [*events[:place], changed, *events[place:]]

    return make


def before_the_pass(event: ev.Event) -> Altered:
    """Have something happen that the first pass sees."""

    def make(events):
        place = next(i for i, each in enumerate(events) if isinstance(each.event, ev.Decided))
        as_of = altered(events, lambda each: isinstance(each, ev.Decided), as_of=place + 1)
        return [*as_of[:place], ev.Recorded(0, events[place].at, event), *as_of[place:]]

    return make


ONE = "machine 1; queue night; run anne"
LIMITED = """machine 4; queue night; create group/d1 share=1
    run anne group=d1 mem=2mb, anne group=d1 mem=2mb, anne group=d1 mem=2mb"""
CAPPED = """machine 4; queue night; create group/ymp share=1; create group/d1 share=1 parent=ymp
    create group/d2 share=1 parent=ymp; run anne group=d1, ben group=d2, ben group=d2"""
WIDE = "machine 4; queue night; create domain/wide pes=(2-3); run anne, ben"
UNITS = "machine 4; queue night; create consumable/gpu units=(0,1); run anne gpu=1, ben gpu=1"
ALTERED = {
    f"beyond {path}/{limit}": (LIMITED, setting(f"{path}/{limit}", most), 3, f" {most} of ")
    for limit, most in (
        ("run_limit", 2), ("user_limit", 2), ("group_limit", 2), ("memory_limit", 5 << 20), ("pe_limit", 2)
    )
    for path in ("queue/night", "global")
} | {
    f"on other PEs: {pes}": (WIDE, says(start(2), pes=pes), 2, OTHER_PES)
    for pes in ((0,), (3,), (1, 1), ())
} | {
    f"on other units: {units}": (UNITS, says(start(2), units=units), 2, OTHER_UNITS)
    for units in ((("gpu", ("0",)),), ())
} | {
    f"on other PEs than placement {word} gives": (
        f"""machine 8; queue night; run anne, anne, anne; end anne2
        create domain/application placement={word}; run ben pes=2""",
        says(start(4), pes=(5, 6)), 4, f"it got PEs (5, 6), and {given} were its own",
    )
    for word, given in (("lowest", (1, 3)), ("contiguous", (3, 4)), ("most_packed", (1, 3)))
} | {
    "beyond a cap, which counts the groups below": (
        CAPPED, setting("group/ymp/limit", 50.0), 3, "cap 2 of group ymp left too little"
    ),
    "of one that was held": (ONE, says(submission(1), state="held"), 1, "it was held, or waited for others"),
    "before its date": (ONE, says(submission(1), state="waiting"), 1, "its date had not come"),
    "from a stopped queue": (ONE, setting("queue/night/started", False), 1, "queue night was stopped"),
    "that needs what is broken": (
        "machine 1; probe nfs; queue night; run anne needs=nfs",
        before_the_pass(ev.ResourceChanged("nfs", "broken")), 1, "resource nfs was broken",
    ),
    "that would hold what is kept": (
        """machine 2; queue night order=fcfs reserve=1; run anne wall=10:00
        run ben pes=2 wall=5:00, cleo wall=9:00""",
        asks(3, wall=11 * MINUTE), 3, "would hold what was kept for a promised start",
    ),
    "that passes where none may": (
        "machine 2; queue night order=fcfs; run anne wall=10:00; run ben pes=2 wall=5:00, cleo wall=9:00",
        setting("queue/night/backfill", "none"), 3, "another one that waited for room stood before it",
    ),
    "before one of a queue of higher priority": (
        "machine 1; queue day priority=1; queue night priority=9; submit anne queue=day; run ben",
        setting("queue/night/priority", 0), 2, PASSED_BY,
    ),
    "against the weights of priority": (
        "machine 1; queue night cpu=6 time=10; submit anne cpu=10:00, ben cpu=1:00; later 1; go",
        setting("queue/night/order", "fcfs"), 2, PASSED_BY,
    ),
    "against its owner's order": (
        "machine 1; queue night; run anne, anne p=5", asks(1, priority=9), 2, PASSED_BY
    ),
    "against an operator's word": (
        "machine 1; queue night; run anne, anne p=5", before_the_pass(ev.Ranked(1, 2, "olga")), 2, PASSED_BY
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", ALTERED)
def test_a_start(house, title):
    story, alter, seq, text = ALTERED[title]
    Story(house).play(story)
    assert found(house.events) == []
    first, *_ = found(alter(house.events))
    assert (first[0], text in first[1]) == (seq, True), first


@pytest.mark.parametrize("limit", ["", "set queue batch run_limit=1\n"])
def test_a_start_that_was_dropped_as_the_plan_came_had_taken_its_pes_and_limits(limit):
    centre = Late(f"{PLAIN}stop queue batch\n{limit}", pes=3)
    centre.submit("anne", "ben")
    centre.answer()
    centre.qmgr("start queue batch")
    centre.ask(cm.HoldRequests(("1",)))
    centre.arrive()
    assert centre.starts() == ([] if limit else [2])
    events = list(centre.journal.events())
    assert found(events) == []
    assert centre.request(2).pes == (() if limit else (1,))


def test_an_index_of_an_array_out_of_its_turn():
    centre = Centre(pes=1)
    (array,) = centre.submit("anne array=1-3")
    centre.later(minutes=1)
    events = list(centre.journal.events())
    assert found(events) == []
    wrong = altered(events, start(member(array, 1)), seq=member(array, 2))
    assert found(wrong)[0] == (member(array, 2), OTHER_INDEX)


def test_a_night_in_which_no_pass_came(house):
    two_pass_by(house)
    last = house.events[-1]
    (seq,) = house.later(minutes=1).submit("ben")
    house.later(hours=1).submit("ben")
    assert found(house.events, pause=2 * MINUTE) == [(seq, LEFT)]
    stopped = ev.DaemonStarted(last.at, True)
    away = [*house.events[:-1], replace(house.events[-1], event=stopped)]
    assert found(away, pause=2 * MINUTE) == [], "nobody was there"


# ---------------------------------------------------------------- what exits say
def test_what_exits_decided_is_taken_from_the_journal_and_counted(house):
    house.machine(pes=2).queue("night", user_limit=1)
    house.exits(jobselect=lambda r, view: {"ben": refuse(), "cleo": force()}.get(r.owner))
    house.run("anne", "ben", "cleo")
    verdict = judged(house.events)
    assert verdict.differences == []
    assert dict(verdict.partly) == {}, "no PE is free: nobody could have started instead"
    house.end(1).go()
    verdict = judged(house.events)
    assert verdict.partly == {BLIND[1]: 1}
    assert (verdict.passes, verdict.whole) == (2, 1)
    unknown = altered(house.events, lambda event: isinstance(event, ev.Decided), exits=None)
    assert judged(unknown).partly == {BLIND[0]: 1}
    wrong = altered(house.events, start(3), pes=(0,))
    assert (3, OTHER_PES) in found(wrong)


def test_a_simulated_week_of_the_shipped_site_has_no_difference():
    centre = centre_of(ROOT, POLICIES["site"])
    for seed, evening in enumerate(evenings(2), 11):
        centre.night(evening, seed, 1.2)
    events = list(centre.journal.events())
    verdict = judged(events, pause=2 * MINUTE)
    assert verdict.differences == []
    assert verdict.passes > 100
    assert set(verdict.partly) == {BLIND[1]}
    starts = [place for place, each in enumerate(events) if isinstance(each.event, ev.Starting)]
    one, other = (events[place].event for place in starts[20:22])
    assert (other.seq, OTHER_PES) in found(altered(events, start(other.seq), pes=one.pes))


def test_of_queues_by_class_it_says_that_classes_decided():
    events = []

    class Told(GangRun):
        def _follow(self, recorded):
            events.extend(recorded)
            super()._follow(recorded)

    Told(t3d(Wanted(jobs=150)), GangOrder(True)).figures()
    verdict = judged(events)
    assert verdict.differences == []
    assert set(verdict.partly) == {CLASSES}
    assert verdict.whole > 0
