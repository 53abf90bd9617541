"""Swap control: when memory is short, the largest requests are suspended and return in turn, so that none
stays suspended for ever."""

from collections.abc import Callable, Mapping, Sequence

import pytest
from engine.harness import MAX, PLAIN, Centre, moment
from engine.story import Story
from engine.test_engine_late_plans import Late
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.preemption import swap
from nqspy.core.preemption.swap import COMPARABLE, CONTROL, SWAP, SwapControl, free_at, words
from nqspy.engine.explain import reason_of
from nqspy.engine.virtual.attempts import Run
from nqspy.model import events as ev
from nqspy.model.cause import Cause
from nqspy.model.ids import Instant, Seq
from nqspy.model.observations import ObservedPressure
from nqspy.model.people import Caller
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import State
from nqspy.sim.main import Simulation

MW = 8 * 2**20
ON = PLAIN + "set swap_control on high=85 low=70 min_resident=120\n"
EVERY = 5_000
"""Time between two readings of the memory (ms)."""


class SimulatedMemory:
    """``total`` bytes, of which people hold ``demand``: (from when on, bytes), in order. A request holds its
    `Run.memory` from its start on; one that gave way holds nothing, unless there is no ``swap``.

    ``people``: whether somebody works at a terminal at an instant. Readings go through the simulation's heap
    every ``every`` ms and are told as the daemon does.
    """

    def __init__(
        self,
        sim: Simulation,
        total: int,
        demand: Sequence[tuple[Instant, int]] = (),
        *,
        swap: bool = True,
        people: Callable[[Instant], bool] = lambda now: False,
        every: int = EVERY,
    ) -> None:
        self._sim = sim
        self._total = total
        self._demand = demand
        self._swap = swap
        self._people = people
        self._every = every
        self._most: dict[tuple[Seq, int], int] = {}
        sim.heap.push(sim.now, self)

    def __call__(self, now: Instant) -> Sequence[ObservedPressure]:
        """Return the present reading; the next one comes by itself."""
        self._sim.heap.push(Instant(now + self._every), self)
        site = self._sim.site
        control, known = swap.CONTROL.one(site.settings), site.pressure
        away = any(True for _ in swap.suspended(site))
        if not control.enabled or (not site.started and known.level == "calm"):
            return ()
        resident = self.resident(now)
        used = 100 * (self.demanded(now) + sum(resident.values())) / self._total
        people = control.interactive and self._people(now)
        level, text = swap.judge(control, swap.Reading(used, people=people), known.level)
        if level == known.level == "calm" and not away:
            return ()
        held = tuple(sorted(resident.items()))
        return (ObservedPressure(level, round(used, 1), text, held, self._total, people),)

    def demanded(self, now: Instant) -> int:
        """Return the bytes that people hold."""
        return next((size for at, size in reversed(self._demand) if at <= now), 0)

    def resident(self, now: Instant) -> Mapping[Seq, int]:
        """Return the bytes in memory by request."""
        for seq, (attempt, used) in self._sim.executor.use(now).items():
            self._most[seq, attempt] = used.memory
        return {
            request.seq: 0 if self._swap and swap.gave_way(request) else size
            for request in self._sim.site.started.values()
            if (size := self._most.get((request.seq, request.attempts), 0))
        }


NOBODY = ("09:00", "09:00")


class Prime(Centre):
    """A morning on a machine of 128 Mw: ``mem=`` of a request is what it really holds; ``demand``: what
    people hold, as (minutes after 09:00, Mw); ``people``: the times from and until which they type."""

    def __init__(self, *demand, text=ON, pes=4, length=3600, swap=True, people=NOBODY, **more):
        def run(request):
            return Run(wall=round(length * 1000), memory=request.spec.ask.memory or 0)

        super().__init__(text, at="2026-03-02T09:00:00+01:00", pes=pes, lengths=run, **more)
        start = self.sim.now
        held = [(Instant(round(start + 60_000 * minutes)), size * MW) for minutes, size in demand]
        first, last = (moment(f"2026-03-02T{each}:00+01:00") for each in people)
        typing = {"people": lambda now: first <= now < last}
        self.memory = SimulatedMemory(self.sim, 128 * MW, held, swap=swap, **typing)

    def away(self):
        """Return the suspended requests, each time, in order."""
        return [event.seq for event in self.events(ev.Suspended) if event.cause == SWAP]

    def back(self):
        """Return the resumed requests, each time, in order."""
        return [event.seq for event in self.events(ev.Resumed) if event.cause == SWAP]

    def why(self, seq):
        reason = reason_of(self.engine, self.request(seq))
        assert reason is not None
        return reason


# ---------------------------------------------------------------- how scarce it is
@pytest.mark.parametrize(
    ("used", "stalled", "people", "former", "level"),
    [
        (69, 0, False, "calm", "calm"), (84, 0, False, "calm", "calm"), (85, 0, False, "calm", "high"),
        (84, 0, False, "high", "tight"), (70, 0, False, "tight", "tight"), (69, 0, False, "high", "calm"),
        (78, 0, True, "calm", "high"), (77, 0, True, "calm", "calm"), (72, 10, False, "calm", "high"),
        (72, 9.9, False, "calm", "calm"), (40, 60, False, "calm", "calm"),
    ],
)  # fmt: skip
def test_the_level_has_two_marks_and_people_and_waiting_processes_lower_the_upper_one(
    used, stalled, people, former, level
):
    assert swap.judge(SwapControl(), swap.Reading(used, stalled, people), former)[0] == level


def test_memory_far_from_the_marks_is_read_seldom():
    assert not swap.near(SwapControl(), swap.Reading(54))
    assert swap.near(SwapControl(), swap.Reading(55))
    assert swap.near(SwapControl(), swap.Reading(10, stalled=1))


def test_sizes_are_shown_in_words():
    assert (words(93 * MW), words(MW // 2)) == ("93 Mw", "0.5 Mw")


# ---------------------------------------------------------------- giving way, coming back
class SwapStory(Story):
    """A test that checks which requests were suspended and resumed so far, in order."""

    def away(self, names: str) -> None:
        assert self.centre.away() == [self.seq(name) for name in names.split()]

    def back(self, names: str) -> None:
        assert self.centre.back() == [self.seq(name) for name in names.split()]


STORIES = {
    "people come at ten, and the largest gives way until they have gone": ({"length": 7200},
        [(60, 60), (180, 10)], """submit anne mem=20mw, ben mem=40mw; until 09:59; away; until 10:01
        state 1 running 2 suspended; has 2 pes_released=false pes=[1]; why 2 MEMORY swap; until 12:10; away 2
        back 2; until 14:00; state 2 ended; ran 2 7200"""),
    "while people type even the last one gives way until they rest": (
        {"length": 7200, "people": ("09:00", "09:40")}, [(10, 20)], """submit anne mem=100mw
        until 09:11; away 1; until 09:39; state 1 suspended; until 12:00; away 1; back 1; state 1 ended"""),
    "while people type memory is short half way between the marks": (
        {"length": 7200, "people": ("09:30", "10:00")}, [(0, 70)], """submit anne mem=20mw, ben mem=12mw
        until 09:29; away; until 09:31; away 1"""),
    "nothing new starts while others wait to come back": ({"length": 5400}, [(60, 60), (80, 30)], """
        submit anne mem=20mw, ben mem=40mw; until 10:01; submit ben mem=1mw; state 3 queued
        why 3 MEMORY swap
        until 10:22; state 2 suspended; until 10:31; state 1 ended 2 running 3 running"""),
    "the reason names the mark under which it starts": ({}, [(5, 118)], """submit anne mem=256kw; later 6m
        submit ben mem=2mw; says 2 92 %; says 2 70 %"""),
    "one for each reading that shows that it did not suffice": ({}, [(10, 100)], """
        submit anne mem=10mw, anne mem=9mw, anne mem=8mw, anne mem=7mw; until 09:10:04; away 1
        until 09:10:06; away 1 2; until 09:20; away 1 2 3"""),
    "the only one stays where there would be room without it": ({}, [(0, 70)], """submit anne mem=50mw
        until 09:01:50; state 1 running; until 09:02:10; state 1 running"""),
    "one that has just started stays for two minutes": ({}, [(0, 90)], """submit anne mem=30mw
        until 09:01:58; state 1 running; until 09:02:01; state 1 suspended"""),
    "they come back one for each reading, longest away first": ({"length": 36_000},
        [(10, 110), (20, 50), (40, 10)], """submit anne mem=40mw, anne mem=20mw; until 09:19; away 1 2
        until 09:30; back 2; until 09:45; back 2 1"""),
    "the last one comes back when it is calm, whatever its size": ({}, [(10, 120), (20, 80)], """
        submit anne mem=60mw; until 09:19; state 1 suspended; until 09:21; state 1 running"""),
    "without swap they do not take turns at holding the memory": ({"swap": False, "length": 1800}, [], """
        submit anne mem=60mw, ben mem=60mw; later 10m; state 1 suspended 2 running; later 10m; away 1
        later 3h; empty"""),
    "an operator lets one go on for two minutes": ({}, [(10, 100)], """submit anne mem=30mw; later 20m
        state 1 suspended; resume 1 by max; later 100s; state 1 running; later 2m; away 1 1"""),
    "switched off all come back and new ones start": ({}, [(10, 120)], """submit anne mem=20mw, ben mem=10mw
        later 20m; state 1 suspended 2 suspended; qmgr set swap_control off; submit anne mem=1mw
        state 1 running 2 running 3 running"""),
    "a restart changes nothing": ({"length": 7200}, [(60, 65), (120, 10)], f"""
        submit anne mem=30mw, ben mem=40mw; until 10:01; restart; why 2 MEMORY swap
        has 2 attempt.preempted_times=1 attempt.preempted_bytes={40 * MW}"""),
    "the journal of a calm day does not mention memory": ({}, [(0, 30)], """submit anne mem=20mw, ben mem=20mw
        later 3h; events pressure_changed 0"""),
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_giving_way(title):
    more, demand, text = STORIES[title]
    story = SwapStory(Prime(*demand, **more))
    story.play(text)
    story.centre.is_sound()


@pytest.mark.parametrize("then", [60, 1])
def test_a_late_decider_answers_each_reading_once_and_lets_none_give_way_when_it_is_calm_again(then):
    late = Late(ON, pes=4, lengths=lambda r: Run(wall=7_200_000, memory=r.spec.ask.memory or 0))
    late.submit("anne mem=40mw", "ben mem=30mw", "max mem=20mw")
    late.answer()
    now = late.sim.now
    held = [(Instant(now + 600_000), 60 * MW), (Instant(now + 605_000), then * MW)]
    SimulatedMemory(late.sim, 128 * MW, held)
    late.sim.run(Instant(now + 620_000))
    assert [action.seq for action in late.later_plans.plans[0].actions] == [1]
    late.answer()
    gave_way = [event.seq for event in late.events(ev.Suspended)]
    assert gave_way == ([1] if then == 60 else []), "four readings, one answer"


def test_a_day_of_scarcity_does_not_fill_the_journal():
    centre = Prime((10, 125), length=80_000)
    centre.submit("anne mem=20mw", "ben mem=20mw")
    centre.later(hours=8)
    assert len(centre.events(ev.PressureChanged)) < 20


def watch_choices(centre, until):
    """Check every decision until an instant: one for each reading, never before ``min_resident``, and never a
    request that was suspended more often than another possible one."""
    control = CONTROL.one(centre.site.settings)
    while (at := centre.sim.heap.next_at()) is not None and at <= until:
        able = {
            r.seq: r.run.preempted_times for r in centre.site.started.values()
            if r.state is State.RUNNING and free_at(r, control) <= at
        }  # fmt: skip
        before = centre.count()
        centre.sim.run(at)
        happened = [recorded.event for recorded in centre.journal.events()][before:]
        chosen = [e.seq for e in happened if isinstance(e, ev.Suspended)]
        readings = [e for e in happened if isinstance(e, ev.PressureChanged)]
        assert len(chosen) <= 1
        # Where one ends or comes back at the same instant, the choice is another one than before.
        if chosen and not any(isinstance(e, ev.Ended | ev.Resumed | ev.Starting) for e in happened):
            held = dict((readings or [centre.site.pressure])[-1].resident)
            most = max(held[seq] for seq in able)
            match = [seq for seq in able if held[seq] * COMPARABLE >= most and held[seq] > control.small]
            assert chosen[0] in match
            assert able[chosen[0]] == min(able[seq] for seq in match)


waves = st.lists(st.tuples(st.integers(2, 8), st.integers(60, 120), st.integers(2, 8)), max_size=10)
nights = st.fixed_dictionaries(
    {
        "jobs": st.lists(st.tuples(st.integers(1, 40), st.integers(2, 240)), min_size=1, max_size=5),
        "waves": waves,
        "swap": st.booleans(),
        "min_resident": st.sampled_from((0, 60, 600)),
    }
)


@settings(max_examples=examples(40))
@given(nights)
def test_on_any_night_giving_way_is_fair_and_everything_ends(night):
    jobs = dict(enumerate(night["jobs"], 1))

    def lengths(request):
        size, minutes = jobs[request.seq]
        return Run(wall=minutes * 60_000, memory=size * MW)

    at, demand = 0, []
    for quiet, size, scarce in night["waves"]:
        demand += [(at + quiet, size), (at + quiet + scarce, 5)]
        at += quiet + scarce
    text = ON + f"set swap_control min_resident={night['min_resident']}\n"
    centre = Centre(text, at="2026-03-02T20:00:00+01:00", pes=5, lengths=lengths)
    start = centre.sim.now
    held = [(Instant(start + minutes * 60_000), size * MW) for minutes, size in demand]
    SimulatedMemory(centre.sim, 128 * MW, held, swap=night["swap"], every=30_000)
    centre.submit(*["anne"] * len(jobs))
    watch_choices(centre, Instant(start + (at + 10) * 60_000))
    centre.is_sound()
    centre.sim.run(Instant(start + (at + 10 + len(jobs) * 250) * 60_000))
    assert not centre.site.requests, "nothing stays suspended for ever"
    centre.is_sound()


# ---------------------------------------------------------------- causes
def test_an_operator_who_is_called_swap_is_no_swap_control():
    centre = Prime((60, 60), (120, 10))
    centre.qmgr("add managers swap:o", MAX)
    [mine] = centre.submit("anne mem=40mw")
    centre.qmgr(f"suspend request {mine}", Caller("swap", 1107, 100, ()))
    centre.until("2026-03-02T13:00:00+01:00")
    assert centre.state(mine) == "suspended"
    assert centre.request(mine).pause.cause == Cause("operator", "swap")
    assert (centre.away(), centre.back()) == ([], [])
    assert centre.why(mine).code is ReasonCode.SUSPENDED


def test_an_event_that_does_not_fit_is_logged_and_changes_nothing(lenient):
    centre = Centre(PLAIN)
    [seq] = centre.submit("anne held")
    text = []
    centre.engine.log = text.append
    tx = centre.engine.transaction(centre.sim.now)
    tx.emit(ev.Suspended(seq, 1, "max"))
    centre.engine.flush(centre.sim.now)
    assert centre.state(seq) == "held"
    assert f"request {seq} is held: event suspended" in text[0]
