"""Swap control: when memory is short the largest requests give way and come back, in turn, and nobody stays
away for ever."""

import pytest
from engine.harness import MAX, PLAIN, Centre, moment
from engine.pressure import SimulatedMemory
from engine.test_engine_late_plans import Late
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core.preemption import swap
from nqspy.core.preemption.swap import COMPARABLE, CONTROL, SWAP, SwapControl, free_at, words
from nqspy.engine.explain import reason_of
from nqspy.engine.virtual.attempts import Run
from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import State

MW = 8 * 2**20
ON = PLAIN + "set swap_control on high=85 low=70 min_resident=120\n"


class Prime(Centre):
    """A morning on a machine of 128 Mw: ``mem=`` of a request is what it really holds; ``demand``: what
    people hold, as (minutes after 09:00, Mw)."""

    def __init__(self, *demand, text=ON, pes=4, length=3600, swap=True, people=None, **more):
        def run(request):
            return Run(wall=round(length * 1000), memory=request.spec.ask.memory or 0)

        super().__init__(text, at="2026-03-02T09:00:00+01:00", pes=pes, lengths=run, **more)
        start = self.sim.now
        held = [(Instant(round(start + 60_000 * minutes)), size * MW) for minutes, size in demand]
        options = {} if people is None else {"people": people}
        self.memory = SimulatedMemory(self.sim, 128 * MW, held, swap=swap, **options)

    def away(self):
        """Who gave way, each time, in order."""
        return [event.seq for event in self.events(ev.Suspended) if event.cause == SWAP]

    def back(self):
        """Who came back, each time, in order."""
        return [event.seq for event in self.events(ev.Resumed) if event.cause == SWAP]

    def why(self, seq):
        reason = reason_of(self.engine, self.request(seq))
        assert reason is not None
        return reason


# ---------------------------------------------------------------- how scarce it is


@pytest.mark.parametrize(
    ("used", "stalled", "people", "former", "level"),
    [
        (69, 0, False, "calm", "calm"),
        (84, 0, False, "calm", "calm"),
        (85, 0, False, "calm", "high"),
        (84, 0, False, "high", "tight"),
        (70, 0, False, "tight", "tight"),
        (69, 0, False, "high", "calm"),
        (78, 0, True, "calm", "high"),
        (77, 0, True, "calm", "calm"),
        (72, 10, False, "calm", "high"),
        (72, 9.9, False, "calm", "calm"),
        (40, 60, False, "calm", "calm"),
    ],
)
def test_the_level_has_two_marks_and_people_and_waiting_processes_lower_the_upper_one(
    used, stalled, people, former, level
):
    assert swap.judge(SwapControl(), swap.Reading(used, stalled, people), former)[0] == level


def test_memory_far_from_the_marks_is_looked_at_seldom():
    assert not swap.near(SwapControl(), swap.Reading(54))
    assert swap.near(SwapControl(), swap.Reading(55))
    assert swap.near(SwapControl(), swap.Reading(10, stalled=1))


def test_sizes_are_told_in_words():
    assert (words(93 * MW), words(MW // 2)) == ("93 Mw", "0.5 Mw")


# ---------------------------------------------------------------- giving way, coming back


def test_at_ten_the_people_come_and_the_largest_request_gives_way_until_they_have_gone():
    centre = Prime((60, 60), (180, 10), length=7200)
    small, large = centre.submit("anne mem=20mw", "ben mem=40mw")
    centre.until("2026-03-02T09:59:00+01:00")
    assert centre.away() == []
    centre.until("2026-03-02T10:01:00+01:00")
    assert (centre.state(small), centre.state(large)) == ("running", "suspended")
    assert centre.request(large).pes
    assert not centre.request(large).pes_released
    reason = centre.why(large)
    assert (reason.code, reason.who) == (ReasonCode.MEMORY, "swap")
    [event] = centre.events(ev.Suspended)
    assert event.text == (
        "its memory (40 Mw resident) gives way: 94 % in use; it comes back when there is room"
    )
    assert reason.text == (
        "its memory (40 Mw) gave way: 62 % in use now; it comes back when that leaves room under 70 %"
    )
    centre.until("2026-03-02T12:10:00+01:00")
    assert (centre.away(), centre.back()) == ([large], [large])
    centre.until("2026-03-02T14:00:00+01:00")
    assert centre.state(large) == "ended"
    assert centre.end_of(large).used.wall == 7_200_000, "its time stood still while it was away"
    centre.is_sound()


def test_nothing_new_starts_while_memory_is_short_or_others_wait_to_come_back():
    centre = Prime((60, 60), (80, 30), length=5400)
    first, large = centre.submit("anne mem=20mw", "ben mem=40mw")
    centre.until("2026-03-02T10:01:00+01:00")
    [late] = centre.submit("ben mem=1mw")
    assert centre.state(late) == "queued"
    assert centre.why(late).text == "requests that gave way to memory pressure come back first"
    centre.until("2026-03-02T10:22:00+01:00")
    assert centre.state(large) == "suspended", "90 of 128 Mw would be 70 %"
    centre.until("2026-03-02T10:31:00+01:00")
    assert centre.state(first) == "ended"
    assert (centre.state(large), centre.state(late)) == ("running", "running")
    assert centre.events(ev.Resumed)[-1].seq == large


def test_the_reason_names_the_mark_under_which_it_starts():
    centre = Prime((5, 118))
    centre.submit("anne mem=256kw")
    centre.later(minutes=6)
    [late] = centre.submit("ben mem=2mw")
    assert centre.why(late).text == "memory is short: 92 % in use; it starts when less than 70 % is"


def test_one_gives_way_for_each_reading_that_shows_it_did_not_suffice():
    centre = Prime((10, 100))
    centre.submit("anne mem=10mw", "anne mem=9mw", "anne mem=8mw", "anne mem=7mw")
    centre.until("2026-03-02T09:10:04+01:00")
    assert centre.away() == [1]
    centre.until("2026-03-02T09:10:06+01:00")
    assert centre.away() == [1, 2]
    centre.until("2026-03-02T09:20:00+01:00")
    assert centre.away() == [1, 2, 3], "then 107 of 128 Mw are less than 85 %"


def test_one_that_has_just_started_or_come_back_stays_for_two_minutes():
    centre = Prime((0, 70))
    centre.submit("anne mem=50mw")
    centre.until("2026-03-02T09:01:50+01:00")
    assert centre.state(1) == "running"
    centre.until("2026-03-02T09:02:10+01:00")
    assert centre.state(1) == "running", "it is the only one, and without it there would be room"
    centre = Prime((0, 90))
    centre.submit("anne mem=30mw")
    centre.until("2026-03-02T09:01:58+01:00")
    assert centre.state(1) == "running"
    centre.until("2026-03-02T09:02:01+01:00")
    assert centre.state(1) == "suspended", "at the second, not at the next reading"


def test_small_requests_never_give_way():
    centre = Prime((10, 120))
    centre.submit("anne mem=256kw", "ben mem=4mw")
    centre.later(hours=1)
    assert set(centre.away()) == {2}


def test_the_one_that_gave_way_least_often_goes_first_among_comparable_ones():
    waves = [(minutes, size) for n in range(8) for minutes, size in ((10 + 10 * n, 70), (15 + 10 * n, 20))]
    centre = Prime(*waves, length=36_000)
    centre.submit("anne mem=25mw", "ben mem=20mw", "max mem=2mw")
    centre.later(hours=2)
    assert centre.away()[:6] == [1, 2, 1, 2, 1, 2]
    assert 3 not in centre.away(), "its 2 Mw are no match"
    assert centre.back() == centre.away()


def test_they_come_back_one_for_each_reading_longest_away_first_as_far_as_there_is_room():
    centre = Prime((10, 110), (20, 50), (40, 10), length=36_000)
    centre.submit("anne mem=40mw", "anne mem=20mw")
    centre.until("2026-03-02T09:19:00+01:00")
    assert centre.away() == [1, 2]
    centre.until("2026-03-02T09:30:00+01:00")
    assert centre.back() == [2], "39 Mw are free: the larger one has no room yet"
    centre.until("2026-03-02T09:45:00+01:00")
    assert centre.back() == [2, 1]


def test_the_last_one_comes_back_when_it_is_calm_whatever_its_size():
    centre = Prime((10, 120), (20, 80))
    centre.submit("anne mem=60mw")
    centre.until("2026-03-02T09:19:00+01:00")
    assert centre.state(1) == "suspended"
    centre.until("2026-03-02T09:21:00+01:00")
    assert centre.state(1) == "running", "nobody else runs"


def test_without_swap_requests_that_fill_the_memory_end_one_after_the_other():
    centre = Prime(swap=False, length=1800)
    centre.submit("anne mem=60mw", "ben mem=60mw")
    centre.later(minutes=10)
    assert sorted(centre.state(seq) for seq in (1, 2)) == ["running", "suspended"]
    centre.later(minutes=10)
    assert centre.away() == [1], "they do not take turns at holding the memory"
    centre.sim.run()
    assert [centre.state(seq) for seq in (1, 2)] == ["ended", "ended"]


def test_while_people_type_even_the_last_one_gives_way_and_comes_back_when_they_rest():
    def morning(now):
        return now < moment("2026-03-02T09:40:00+01:00")

    centre = Prime((10, 20), people=morning, length=7200)
    centre.submit("anne mem=100mw")
    centre.until("2026-03-02T09:11:00+01:00")
    assert centre.away() == [1]
    centre.until("2026-03-02T09:39:00+01:00")
    assert centre.state(1) == "suspended"
    centre.until("2026-03-02T12:00:00+01:00")
    assert (centre.away(), centre.back(), centre.state(1)) == ([1], [1], "ended")


def test_an_operator_may_let_one_go_on():
    centre = Prime((10, 100))
    centre.submit("anne mem=30mw")
    centre.later(minutes=20)
    assert centre.state(1) == "suspended"
    centre.qmgr("resume request 1", MAX)
    centre.later(seconds=100)
    assert centre.state(1) == "running", "for two minutes"
    centre.later(minutes=2)
    assert centre.away() == [1, 1]


def test_switched_off_all_come_back_and_new_ones_start():
    centre = Prime((10, 120))
    centre.submit("anne mem=20mw", "ben mem=10mw")
    centre.later(minutes=20)
    assert [centre.state(seq) for seq in (1, 2)] == ["suspended"] * 2
    centre.qmgr("set swap_control off")
    [late] = centre.submit("anne mem=1mw")
    assert [centre.state(seq) for seq in (1, 2, late)] == ["running"] * 3
    centre.is_sound()


def test_while_people_type_it_is_short_half_way_between_the_marks():
    def lunch(now):
        return moment("2026-03-02T09:30:00+01:00") <= now < moment("2026-03-02T10:00:00+01:00")

    centre = Prime((0, 70), people=lunch, length=7200)
    centre.submit("anne mem=20mw", "ben mem=12mw")
    centre.until("2026-03-02T09:29:00+01:00")
    assert centre.away() == []
    centre.until("2026-03-02T09:31:00+01:00")
    assert centre.away() == [1]
    assert "80 % in use, people are at work" in centre.events(ev.Suspended)[0].text


def test_a_restart_while_one_is_away_changes_nothing_and_pages_it_out_again():
    centre = Prime((60, 65), (120, 10), length=7200)
    centre.submit("anne mem=30mw", "ben mem=40mw")
    centre.until("2026-03-02T10:01:00+01:00")
    before = centre.request(2)
    centre.sim.restart()
    after = centre.request(2)
    assert after is not before
    run = after.run
    assert (after.state, run.preempted_times, run.preempted_bytes) == (State.SUSPENDED, 1, 40 * MW)
    assert run.pause.cause == SWAP


def test_a_late_decider_lets_nobody_give_way_when_it_is_calm_again():
    late = Late(ON, pes=4, lengths=lambda r: Run(wall=7_200_000, memory=r.spec.ask.memory or 0))
    late.submit("anne mem=40mw", "ben mem=20mw")
    late.answer()
    now = late.sim.now
    SimulatedMemory(late.sim, 128 * MW, [(Instant(now + 600_000), 60 * MW), (Instant(now + 605_000), MW)])
    late.sim.run(Instant(now + 600_000))
    plan = late.later_plans.plans[0]
    assert [action.seq for action in plan.actions] == [1]
    late.sim.run(Instant(now + 605_000))
    late.answer()
    assert [late.state(seq) for seq in (1, 2)] == ["running"] * 2
    assert not late.events(ev.Suspended)


def test_a_late_decider_answers_each_reading_once():
    late = Late(ON, pes=4, lengths=lambda r: Run(wall=7_200_000, memory=r.spec.ask.memory or 0))
    late.submit("anne mem=40mw", "ben mem=30mw", "max mem=20mw")
    late.answer()
    now = late.sim.now
    SimulatedMemory(late.sim, 128 * MW, [(Instant(now + 600_000), 60 * MW)])
    late.sim.run(Instant(now + 620_000))
    late.answer()
    assert [event.seq for event in late.events(ev.Suspended)] == [1], "four readings, one answer"


def test_a_journal_of_a_calm_day_does_not_mention_memory():
    centre = Prime((0, 30))
    centre.submit("anne mem=20mw", "ben mem=20mw")
    centre.later(hours=3)
    assert not centre.events(ev.PressureChanged)


def test_a_day_of_scarcity_does_not_fill_the_journal():
    centre = Prime((10, 125), length=80_000)
    centre.submit("anne mem=20mw", "ben mem=20mw")
    centre.later(hours=8)
    assert len(centre.events(ev.PressureChanged)) < 20


# ---------------------------------------------------------------- whatever comes


def watch_choices(centre, until):
    """Looks at every decision to the instant ``until``: one for each reading, not before ``min_resident``,
    and never one that gave way more often than another that could have."""
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
