"""Estimated starts: the latest, the probable, and the texts where they are unknown."""

from cProfile import Profile
from itertools import count
from typing import Any

import pytest
from engine.harness import ANNE, PLAIN, Centre, asked, item, moment, observable
from engine.story import Story, play

from nqspy.core.no_exits import NoExits
from nqspy.engine import look_ahead
from nqspy.engine.inputs import Between
from nqspy.engine.look_ahead import BY_LIMITS, CHANCES, LATEST, PROBABLY, RESERVED, LookAhead, never
from nqspy.engine.virtual.ahead import AheadRun
from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import observations as ob
from nqspy.model.events import Change
from nqspy.model.ids import Seq, array_key, member
from nqspy.model.site_copy import copy_site


def seconds(centre: Centre, seq: Seq, of: str = "latest") -> float | None:
    """Return the seconds to the estimated start; asking changes nothing."""
    before = observable(centre.site)
    found = getattr(centre.forecasts(seq)[seq], of)
    assert observable(centre.site) == before
    assert found.basis
    return None if found.start is None else (found.start - centre.sim.now) / 1000


def ahead_of(centre: Centre, **more: Any) -> LookAhead:
    """Return a look-ahead from now on."""
    return LookAhead(centre.site, centre.sim.now, centre.engine.between, **more)


class ForecastStory(Story):
    """A test in which people ask for estimated starts; asking changes nothing."""

    def latest(self, words: str, of: str = "latest") -> None:
        """Check in how many seconds a request starts at the latest; ``-``: unknown, because of these."""
        name, wanted, *by = words.split()
        seq = self.seq(name)
        found = seconds(self.centre, seq, of)
        assert found == (None if wanted == "-" else float(wanted)), found
        estimate = getattr(self.centre.forecasts(seq)[seq], of)
        assert wanted != "-" or [*estimate.by] == [self.seq(each) for each in by], estimate

    def probably(self, words: str) -> None:
        """Check in how many seconds a request starts probably; ``-``: unknown, because of these."""
        self.latest(words, "probably")


STORIES = {
    "at the latest by limits, and probably by what ended before": """site pes=1 length=60
        submit anne name=sweep wall=10:00, anne name=sweep wall=10:00, anne name=sweep wall=10:00; later 10m
        submit anne name=sweep wall=20:00, ben wall=10; latest 5 1200; probably 5 120""",
    "when PEs become free by what requests asked for": """site pes=1
        submit anne wall=100, ben wall=200, cleo, dora held, eva at=50 wall=10; later 10s; probably 2 90
        probably 3 290; probably 4 -; probably 5 - 3""",
    "a CPU limit is no wall limit": """site pes=4; submit anne pes=4 cpu=40:00, ben; latest 2 - 1
        probably 2 600""",
    "a default wall limit counts until it is over": """site pes=1 length=5000
        qmgr set default wall_limit=10:00; submit anne, ben; latest 2 600; later 11m; latest 2 - 1""",
    "one that is suspended": """site pes=1; submit anne wall=100, ben wall=100; suspend 1; latest 2 - 1""",
    "of a stopped queue": "qmgr stop queue batch; submit anne; probably 1 -",
    "one that its queue keeps does not wait for an endless one": """site pes=4
        qmgr create batch_queue shut | enable queue shut | set queue batch order=fcfs reserve=1
        submit anne, ben pes=4 wall=100, cleo wall=10 queue=shut, dora wall=10 after=2:ok
        latest 3 -; latest 4 - 1""",
    "that a limit of nothing holds": "qmgr set queue batch run_limit=0; submit anne; probably 1 -",
} | {
    f"CPU time of a wide request is no wall time: {asked} {limit}": f"""site pes=4; qmgr {limit}
        submit anne {asked}, ben pes=4; probably 2 {seconds}"""
    for asked, limit, seconds in (
        ("pes=4 cpu=40:00", "", 600),  # on all its PEs at once
        ("pes=4 cpu=40:00 wall=5:00", "", 300), ("pes=1 cpu=40:00", "", 2400),
        ("pes=4", "set per_request cpu_limit=1:20:00 batch", 1200),
        ("pes=4", "set per_process cpu_limit=10:00 batch", 600),  # of each process
        ("pes=4", "set per_request wall_limit=7:00 batch", 420),
    )
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_estimated_starts(title):
    ForecastStory(Centre()).play(STORIES[title])


ONE_RESERVED = "set queue batch order=fcfs reserve=1"


@pytest.mark.parametrize(
    ("setting", "basis"),
    [
        ("", LATEST),
        (ONE_RESERVED, RESERVED),
        (f"{ONE_RESERVED} backfill=probable", LATEST + CHANCES.format(queue="batch")),
    ],
)
def test_what_a_start_at_the_latest_rests_on(setting, basis):
    centre = Centre(f"{PLAIN}{setting}\n", pes=4, length=100)
    centre.submit("anne pes=3 wall=100", "ben pes=4 wall=100")
    centre.submit("cleo pes=4 wall=30")
    forecast = centre.forecasts(2)[2]
    assert (seconds(centre, 2), forecast.latest.basis) == (100, basis)
    assert forecast.probably.basis.startswith(BY_LIMITS)


def test_who_is_like_none_that_ended_goes_by_those_of_its_owner_then_of_all():
    parts = {"anne": 0.5, "ben": 0.1}
    centre = Centre(PLAIN, pes=1, lengths=lambda r: Run(round(parts[r.owner] * (r.spec.ask.wall or 0))))
    centre.submit(*["anne name=a wall=100"] * 4, *["ben name=b wall=100"] * 3)
    centre.later(minutes=10)
    centre.submit("anne name=new wall=100", "ben wall=1000", "cleo wall=10")
    assert seconds(centre, 9, "probably") == 50
    assert centre.forecasts(9)[9].probably.basis == PROBABLY
    assert seconds(centre, 10, "probably") == 150


def test_a_reserved_start_that_an_exit_may_refuse_depends_on_that_too():
    class Asking(NoExits):
        def has(self, hook):
            return hook == "jobselect"

    centre = Centre(PLAIN + "set queue batch order=fcfs reserve=1\n", pes=4, length=100)
    centre.submit("anne pes=3 wall=100", "ben pes=4 wall=100")
    forecast = LookAhead(centre.site, centre.sim.now, Between()).forecasts([Seq(2)], Asking(), never)[2]
    assert forecast.latest.start == centre.request(2).reservation.at
    assert forecast.latest.basis != RESERVED


def test_a_failed_prerequisite_and_no_endless_request_is_the_cause_that_a_start_is_unknown():
    text = "submit anne, ben after=1:ok; delete 1 by anne; qmgr start queue batch; submit cleo, cleo wall=9"
    found = play(text, settings=f"{PLAIN}stop queue batch\n", pes=1).centre.forecasts(2, 4)
    assert (found[2].latest.by, found[2].latest == found[2].probably) == ((), True)
    assert found[4].latest.by == (3,)


def test_the_repair_of_a_resource_is_unknown():
    shifts = 'define shift day when=("0 8 * * *")\nend\n'
    centre = Centre(PLAIN + "create probe nfs file=/there every=60\n" + shifts, pes=1)
    centre.submit("anne wall=100")
    centre.sim.feed([ob.ObservedResource("nfs", "broken", "gone")])
    [late] = centre.submit("ben wall=100 needs=nfs")
    forecast = centre.forecasts(late)[late]
    assert (forecast.latest.start, forecast.probably.start) == (None, None)
    parts = iter((0.0, 0.1))  # a simulation that ends early gives the same
    looking = LookAhead(centre.site, centre.sim.now, Between())
    assert looking.forecasts([late], NoExits(), lambda: next(parts, 1.0))[late].probably.start is None


def test_an_estimate_names_a_queue_that_takes_chances_on_the_same_pes():
    centre = Centre(PLAIN + "create batch_queue lucky priority=5 backfill=probable reserve=1\n", pes=4)
    centre.qmgr("create domain apart pes=(3)\ncreate batch_queue alone domain=apart\nenable queue alone")
    centre.qmgr("start queue alone")
    centre.submit("anne pes=3 wall=100", "ben wall=10")
    centre.submit(*["cleo wall=100"] * 2, queue="alone")
    assert CHANCES.format(queue="lucky") in centre.forecasts(2)[2].latest.basis
    assert centre.forecasts(4)[4].latest.basis == LATEST


def test_of_an_array_each_index_has_its_own():
    centre = Centre(PLAIN, pes=1)
    centre.submit("anne array=1-5 wall=100")
    array = array_key(1)
    assert (seconds(centre, array), seconds(centre, member(array, 4))) == (100, 300)


def test_an_array_of_which_all_indices_have_begun_waits_for_nothing():
    centre = Centre(PLAIN, pes=2)
    centre.submit("anne array=1-2 wall=100", "anne array=1-2 wall=100")
    assert ahead_of(centre).forecasts(None, NoExits(), never).keys() == {array_key(2)}


def test_an_estimate_that_runs_out_of_time_says_how_far_it_came():
    centre = Centre(PLAIN, pes=1)
    centre.submit(*["anne wall=100"] * 20)
    steps = count()
    found = ahead_of(centre).forecasts(None, NoExits(), lambda: next(steps) / 20)
    assert found[2].latest.start is not None
    assert found[20].latest.start is None
    assert found[20].probably.start == centre.sim.now + 1_900_000, "a rough figure, by what waits before it"


def test_a_rough_figure_takes_what_has_no_limit_to_run_as_long_as_the_last_that_ended():
    centre = Centre(PLAIN, pes=1, length=30)
    centre.submit(*["anne"] * 5)
    centre.later(minutes=10)
    centre.submit(*["anne"] * 20)
    roughly = ahead_of(centre).forecasts((25,), NoExits(), lambda: 1)[25].probably
    assert roughly.start == centre.sim.now + 19 * 30_000


def test_of_very_many_requests_the_first_are_simulated(monkeypatch):
    monkeypatch.setattr(look_ahead, "MOST", 5)
    centre = Centre(PLAIN, pes=1)
    centre.submit(*["anne wall=100"] * 12)
    found = ahead_of(centre, wanted=(12,)).forecasts((12,), NoExits(), never)[12]
    before, _, conditions = found.latest.basis.partition("; ")
    assert (before, {"11", "5"} <= {*conditions.split()}) == (LATEST, True)
    everybody = ahead_of(centre).forecasts(None, NoExits(), never)
    assert everybody.keys() == set(range(2, 13)), "nobody is told nothing"
    assert everybody[12].latest.basis == conditions


def test_settings_may_be_tried():
    centre = Centre(PLAIN + "set queue batch run_limit=0\n", pes=1)
    centre.submit("anne wall=100")
    ahead = [
        ahead_of(centre, changes=changes) for changes in ((), (Change("set", "queue/batch/run_limit", 1),))
    ]
    assert [each.starts(NoExits(), never) for each in ahead] == [{}, {1: centre.sim.now}]


def behind_an_endless_one(waiting: int, more: str = "") -> Centre:
    """Return a site where this many requests wait for all PEs, one of which is held without a wall limit."""
    centre = Centre(PLAIN + f"set queue batch order=fcfs reserve=1 {more}\n", pes=4)
    centre.submit("anne pes=1", *["ben pes=4 wall=100"] * 2)
    lines = [item(f"user{n % 20} pes=4 wall=100", centre.sim.now, number=n) for n in range(waiting - 2)]
    centre.ask(cm.Submit(tuple(lines)))
    return centre


def test_thousands_behind_an_endless_request_are_answered_in_one_count():
    calls = Profile()
    centre = behind_an_endless_one(2_000, "backfill=none")
    found = calls.runcall(ahead_of(centre).forecasts, None, NoExits(), never)
    assert {each.latest.by for each in found.values()} == {(1,)}
    each = sum(entry.callcount for entry in calls.getstats()) / len(found)
    assert each < 200, f"{each:.0f} calls for each that waits"


def test_an_estimate_without_time_still_knows_that_nothing_is_to_come():
    centre = behind_an_endless_one(20)
    found = ahead_of(centre).forecasts(None, NoExits(), lambda: 1.0)
    assert found[20].latest.by == found[20].probably.by == (1,)


def test_an_estimate_that_is_broken_off_before_shifts_names_the_endless_request():
    centre = behind_an_endless_one(20)
    centre.qmgr('define shift day when=("0 8 * * *")\nset queue batch user_limit=5\nend')
    latest = ahead_of(centre).forecasts((20,), NoExits(), lambda: 1.0)[20].latest
    assert latest.by == (1,)


def test_a_dry_run_is_answered_by_the_site_as_it_was_when_somebody_asked():
    centre = Centre(PLAIN, pes=1)
    centre.submit("anne wall=100")
    wish, handle = cm.Submit((item("ben wall=10", centre.sim.now),), dry_run=True), object()
    centre.sim.feed([asked(wish, ANNE, handle)])
    [late] = [reply.value for to, reply in centre.sim.replies if to is handle]
    before = observable(centre.site)
    centre.ask(cm.Delete(("1",), signal=9))
    centre.qmgr("stop queue batch")
    then = observable(centre.site)
    [would] = late.make(0)["dry_run"]
    assert would["estimate"]["latest"]["basis"] == LATEST
    assert would["estimate"]["start"].startswith("2026-03-02T20:01:40")
    assert before != then == observable(centre.site), "the look changes nothing"


@pytest.mark.parametrize(("shift", "start"), [("night", "2026-03-02T21:00:00+01:00"), ("", None)])
def test_a_rough_guess_knows_when_a_shift_starts_the_queue(shift, start):
    night = 'define shift night when=("0 21 * * *")\nstart queue batch\nend\n' if shift else ""
    centre = Centre(PLAIN + night + "stop queue batch\n", pes=2)
    (seq,) = centre.submit("anne cpu=60")
    found = ahead_of(centre).forecasts((seq,), centre.engine.exits, lambda: 1.0)[seq].probably
    assert found.start == (None if start is None else moment(start))


@pytest.mark.parametrize("hours", [1, 0, -1])
def test_a_clock_that_was_set_while_requests_ran_moves_no_end_of_theirs(hours):
    centre = Centre(PLAIN, pes=1, length=10_000)
    running, _ = centre.submit("anne wall=10000", "ben wall=100")
    centre.later(seconds=5000)
    centre.engine.clock_moved = lambda: {running: hours * 3_600_000}
    assert seconds(centre, 2) == 5000 + hours * 3600


def test_the_pause_of_a_suspended_one_moves_with_its_start():
    shift = 'define shift {} when="0 {} * * *" spill=suspend\n{} queue batch\nend\n'
    shifts = shift.format("early", 19, "start") + shift.format("late", 21, "stop")
    centre = Centre(PLAIN + shifts, pes=1, length=7200)
    centre.submit("anne wall=7200")
    centre.until("2026-03-02T21:30:00+01:00")
    assert centre.state(1) == "suspended"
    site, moved = copy_site(centre.site), ((1, 3_600_000),)
    run = AheadRun(
        site, lambda settings, request: Run(wall=7_200_000), centre.sim.now, NoExits(), Between(moved=moved)
    )
    assert run.site.started[1].run.ran(run.now) == centre.site.started[1].run.ran(centre.sim.now) == 3_600_000


CLOSED = """define shift down when="0 8 {day} 3 *" spill=drain
stop queue batch
end
define shift up when="0 18 {day} 3 *"
start queue batch
end
"""


@pytest.mark.parametrize("day", [5, 18, 31])
def test_a_request_too_long_for_the_time_before_a_maintenance_starts_after_it(day):
    centre = Centre(PLAIN + CLOSED.format(day=day), pes=1)
    [seq] = centre.submit("anne wall=2000:00:00")
    forecast = centre.forecasts(seq)[seq]
    wanted = moment(f"2026-03-{day:02}T18:00:00+0{1 + (day > 28)}:00")
    assert (forecast.latest.start, forecast.probably.start) == (wanted, wanted)


def test_behind_a_request_without_an_end_that_a_shift_lets_start_that_request_is_named():
    night = 'define shift night when="0 21 * * *"\nstart queue batch\nend\n'
    day = 'define shift day when="0 6 * * *" spill=suspend\nstop queue batch\nend\n'
    centre = Centre(PLAIN + night + day, pes=1)
    centre.qmgr("stop queue batch")
    first, second = centre.submit("anne", "ben wall=60")
    assert centre.forecasts(first)[first].latest.start is not None
    latest = centre.forecasts(second)[second].latest
    assert (latest.start, latest.by) == (None, (first,))
