"""The shadow judges each pass by the documented rules: a right one has no difference. Each alteration of a
journal is found, with its request and its pass."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from core.harness import House, force, refuse
from engine.harness import PLAIN, Centre
from engine.test_engine_late_plans import Late
from msgspec.structs import replace
from scenarios.nights import POLICIES, centre_of, evenings
from shadow.judge import Shadow, Verdict

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import MINUTE, member
from nqspy.model.site import Site

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


@pytest.fixture
def house() -> House:
    return House()


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
    assert difference.text == "it was started before one that stood before it"
    assert events[difference.n - 1].event.kind == "decided", "it names the pass"
    assert third


def test_one_that_was_left_waiting(house):
    first, second, third = two_pass_by(house)
    events = [
        each for each in house.events
        if not (isinstance(each.event, ev.Starting | ev.Started | ev.Ended) and each.event.seq == second)
    ]  # fmt: skip
    assert (second, "it was left waiting, and nothing kept it from starting") in found(events)
    assert {seq for seq, _ in found(events)} <= {second, third}, "and the next one started before it"
    assert first


def test_a_start_beyond_each_limit(house):
    house.machine(pes=4).queue("night").group("d1", 1)
    for _ in range(3):
        house.submit("anne group=d1 mem=2mb pes=1")
    house.go()
    assert found(house.events) == []
    for limit, most in (
        ("run_limit", 2), ("user_limit", 2), ("group_limit", 2), ("memory_limit", 5 << 20), ("pe_limit", 2),
    ):  # fmt: skip
        for path in (f"queue/night/{limit}", f"global/{limit}"):
            tighter = ev.Recorded(0, house.events[0].at, ev.SettingsChanged((ev.Change("set", path, most),)))
            place = next(i for i, each in enumerate(house.events) if isinstance(each.event, ev.Submitted))
            events = [*house.events[:place], tighter, *house.events[place:]]
            [(seq, text)] = found(events)
            assert seq == 3, path
            assert f"{most}" in text


def test_a_start_above_the_cap_of_a_group_counts_the_groups_below_it(house):
    house.machine(pes=4).queue("night").group("ymp", 1).group("d1", 1, "ymp").group("d2", 1, "ymp")
    house.run("anne group=d1", "ben group=d2", "ben group=d2")
    capped = ev.Recorded(0, house.now, ev.SettingsChanged((ev.Change("set", "group/ymp/limit", 50.0),)))
    [(seq, text)] = found([*house.events[:6], capped, *house.events[6:]])
    assert (seq, text) == (3, "it was started, and cap 2 of group ymp left too little")


def test_a_start_of_what_was_held_dated_or_waited_for_others(house):
    (seq,) = house.machine(pes=1).queue("night").run("anne")
    for state, words in (("held", "it was held, or waited for others"), ("waiting", "its date had not come")):
        events = altered(house.events, submission(seq), state=state)
        assert found(events) == [(seq, f"it was started, and {words}")]


def test_a_start_from_a_queue_that_was_stopped(house):
    (seq,) = house.machine(pes=1).queue("night").run("anne")
    stop = ev.Recorded(0, house.now, ev.SettingsChanged((ev.Change("set", "queue/night/started", False),)))
    assert found([*house.events[:4], stop, *house.events[4:]]) == [
        (seq, "it was started, and queue night was stopped")
    ]


def test_pes_that_another_one_holds_and_those_of_another_domain(house):
    house.machine(pes=4).queue("night")
    house.change(ev.Change("create", "domain/wide", {"pes": ("2-3",)}))
    one, two = house.run("anne", "ben")
    assert found(house.events) == []
    for pes in ((0,), (3,), (1, 1), ()):
        assert found(altered(house.events, start(two), pes=pes)) == [
            (two, "it got other PEs than it may have: held, of another domain, or too few")
        ]
    assert found(altered(house.events, start(one), pes=(1,))) != []


@pytest.mark.parametrize(
    ("placement", "given"), [("lowest", (1, 3)), ("contiguous", (3, 4)), ("most_packed", (1, 3))]
)
def test_other_pes_than_the_placement_gives(house, placement, given):
    one, two, three = house.machine(pes=8).queue("night").run("anne", "anne", "anne")
    house.end(two).change(ev.Change("create", "domain/application", {"placement": placement}))
    (seq,) = house.run("anne pes=2")
    assert house.request(seq).pes == given
    assert found(house.events) == []
    assert found(altered(house.events, start(seq), pes=(5, 6))) == [
        (seq, f"it got PEs (5, 6), and {given} were its own")
    ]
    assert (one, three) == (1, 3)


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


def test_a_unit_that_another_one_has(house):
    house.machine(pes=4).queue("night")
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0", "1")}))
    one, two = house.run("anne gpu=1", "ben gpu=1")
    assert found(house.events) == []
    wrong = "it got other units than it asked for, or some that another one had"
    assert found(altered(house.events, start(two), units=(("gpu", ("0",)),))) == [(two, wrong)]
    assert found(altered(house.events, start(two), units=())) == [(two, wrong)]
    assert one


def test_a_start_that_needs_what_is_broken(house):
    (seq,) = house.machine(pes=1).probe("nfs").queue("night").run("anne needs=nfs")
    assert found(house.events) == []
    broken = ev.Recorded(0, house.now, ev.ResourceChanged("nfs", "broken"))
    place = next(i for i, each in enumerate(house.events) if isinstance(each.event, ev.Decided))
    as_of = altered(house.events, lambda event: isinstance(event, ev.Decided), as_of=place + 1)
    assert found([*as_of[:place], broken, *as_of[place:]]) == [
        (seq, "it was started, and resource nfs was broken")
    ]


def test_a_start_that_would_hold_what_is_kept_for_a_promised_one(house):
    house.machine(pes=2).queue("night", order="fcfs", reserve=1).run("anne wall=10:00")
    wide, short = house.run("ben pes=2 wall=5:00", "cleo wall=9:00")
    assert house.request(short).started is not None
    assert found(house.events) == []
    longer = next(each.event for each in house.events if submission(short)(each.event)).spec
    longer = replace(longer, ask=replace(longer.ask, wall=11 * MINUTE))
    assert found(altered(house.events, submission(short), spec=longer)) == [
        (short, "it was started, and would hold what was kept for a promised start")
    ]
    assert wide


def test_who_passes_where_nobody_may(house):
    house.machine(pes=2).queue("night", order="fcfs").run("anne wall=10:00")
    wide, short = house.run("ben pes=2 wall=5:00", "cleo wall=9:00")
    assert found(house.events) == [], "first fit"
    none = ev.SettingsChanged((ev.Change("set", "queue/night/backfill", "none"),))
    strict = ev.Recorded(0, house.events[0].at, none)
    assert found([*house.events[:3], strict, *house.events[3:]]) == [
        (short, "it was started, and another one that waited for room stood before it")
    ]
    assert wide


def test_a_queue_of_higher_priority_comes_first(house):
    house.machine(pes=1).queue("day", priority=1).queue("night", priority=9)
    (late,) = house.submit("anne", queue="day")
    (first,) = house.run("ben", queue="night")
    assert house.request(first).started is not None
    lower = altered(
        house.events,
        lambda event: isinstance(event, ev.SettingsChanged) and event.changes[0].path == "queue/night",
        changes=(ev.Change("create", "queue/night", {"enabled": True, "started": True, "priority": 0}),),
    )
    assert found(lower) == [(first, "it was started before one that stood before it")]
    assert late


def test_the_weights_of_priority_decide(house):
    house.machine(pes=1).queue("night", cpu=6, time=10)
    anne, ben = house.submit("anne cpu=10:00", "ben cpu=1:00")
    house.later(minutes=1).go()
    assert house.request(ben).started is not None
    assert found(house.events) == []
    first_in = altered(
        house.events,
        lambda event: isinstance(event, ev.SettingsChanged) and event.changes[0].path == "queue/night",
        changes=(ev.Change("create", "queue/night", {"enabled": True, "started": True, "order": "fcfs"}),),
    )
    assert found(first_in) == [(ben, "it was started before one that stood before it")]
    assert anne


def test_an_owners_own_order_and_an_operators_word(house):
    low, high = house.machine(pes=1).queue("night").run("anne", "anne p=5")
    assert found(house.events) == []
    plain = next(each.event for each in house.events if submission(low)(each.event)).spec
    events = altered(house.events, submission(low), spec=replace(plain, priority=9))
    assert found(events) == [(high, "it was started before one that stood before it")]
    ranked = ev.Recorded(0, house.now, ev.Ranked(low, 2, "olga"))
    place = next(i for i, each in enumerate(house.events) if isinstance(each.event, ev.Decided))
    as_of = altered(house.events, lambda event: isinstance(event, ev.Decided), as_of=place + 1)
    assert found([*as_of[:place], ranked, *as_of[place:]])[0] == (
        high, "it was started before one that stood before it",
    )  # fmt: skip


def test_an_index_of_an_array_out_of_its_turn():
    centre = Centre(pes=1)
    (array,) = centre.submit("anne array=1-3")
    centre.later(minutes=1)
    events = list(centre.journal.events())
    assert found(events) == []
    wrong = altered(events, start(member(array, 1)), seq=member(array, 2))
    assert found(wrong)[0] == (member(array, 2), "it was not the next index of its array")


def test_a_night_in_which_no_pass_came(house):
    two_pass_by(house)
    last = house.events[-1]
    (seq,) = house.later(minutes=1).submit("ben")
    house.later(hours=1).submit("ben")
    assert found(house.events, pause=2 * MINUTE) == [
        (seq, "it was left waiting, and nothing kept it from starting")
    ]
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
    assert verdict.partly == {"an exit had a say in what starts (jobselect)": 1}
    assert (verdict.passes, verdict.whole) == (2, 1)
    unknown = altered(house.events, lambda event: isinstance(event, ev.Decided), exits=None)
    assert judged(unknown).partly == {"the journal does not say which exits were asked": 1}
    wrong = altered(house.events, start(3), pes=(0,))
    assert (3, "it got other PEs than it may have: held, of another domain, or too few") in found(wrong)


def test_a_simulated_week_of_the_shipped_site_has_no_difference():
    centre = centre_of(ROOT, POLICIES["site"])
    for seed, evening in enumerate(evenings(2), 11):
        centre.night(evening, seed, 1.2)
    events = list(centre.journal.events())
    verdict = judged(events, pause=2 * MINUTE)
    assert verdict.differences == []
    assert verdict.passes > 100
    assert set(verdict.partly) == {"an exit had a say in what starts (jobselect)"}
    starts = [place for place, each in enumerate(events) if isinstance(each.event, ev.Starting)]
    one, other = (events[place].event for place in starts[20:22])
    assert (other.seq, "it got other PEs than it may have: held, of another domain, or too few") in found(
        altered(events, start(other.seq), pes=one.pes)
    )
