"""Seed 000's experiment in small: the same jobs by space sharing and by class."""

import json

import pytest
from sim.sim_calls import KeptRun, program

from nqspy.engine.virtual.moves import Channel
from nqspy.model import events as ev
from nqspy.model.site_checks import check_site
from nqspy.sim import gang
from nqspy.sim.gang import GangOrder, GangRun
from nqspy.sim.workloads.jobs import Wanted
from nqspy.sim.workloads.t3d import INTERACTIVE, QUEUES, is_working, t3d

FEW = 500


class Watched(KeptRun, GangRun):
    """A run that stores its events."""


@pytest.fixture(scope="module")
def runs():
    found = {}
    for classes in (False, True):
        run = Watched(t3d(Wanted(jobs=FEW)), GangOrder(classes))
        found[classes] = run, run.figures()
        check_site(run.sim.site)
    return found


def test_the_recipe_is_kept():
    jobs = list(t3d(Wanted(seed=3)).jobs())
    working = [job for job in jobs if is_working(job.submit / 1000)]
    assert 0.6 < sum(job.group == INTERACTIVE for job in working) / len(working) < 0.7
    assert all(job.run <= job.estimate for job in jobs)
    assert all(job.width <= QUEUES[job.group].pes for job in jobs if job.group != INTERACTIVE)


def test_more_of_the_machine_is_used_by_class_than_by_space_sharing(runs):
    (_, space), (_, by_class) = runs[False], runs[True]
    assert by_class["utilisation"]["hours"] > 1.1 * space["utilisation"]["hours"]
    assert by_class["jobs"] == space["jobs"] == {"ended": FEW, "left": 0}
    assert space["preempted"] == space["swapping_s"] == 0
    assert by_class["preempted"] > 0
    assert by_class["swapping_s"] >= 1
    left = [r.event.took for r in runs[True][0].events if isinstance(r.event, ev.MovedOut)]
    assert min(left) > 0, "a job leaves its PEs in the time that its memory takes"


def test_every_job_has_its_pes_in_a_row(runs):
    for run, _ in runs.values():
        for recorded in run.events:
            event = recorded.event
            if isinstance(event, ev.Starting | ev.Resumed) and event.pes:
                assert event.pes == tuple(range(event.pes[0], event.pes[0] + len(event.pes)))


def test_nobody_is_disturbed_before_his_time(runs):
    run, _ = runs[True]
    loaded, pes, preempted = {}, {}, 0
    for recorded in run.events:
        event = recorded.event
        if isinstance(event, ev.Starting | ev.Resumed):
            loaded[event.seq], pes[event.seq] = recorded.at, event.pes or pes.get(event.seq, ())
        elif isinstance(event, ev.Suspended):
            assert recorded.at - loaded[event.seq] >= gang.PER_PE * 1000 * len(pes[event.seq])
            preempted += 1
    assert preempted


@pytest.mark.parametrize(
    ("rate", "moves", "ranks", "done", "busy", "idled"),
    [
        (1.0, [(1, 4, 0), (2, 2, 1_000)], {}, {4_000: [1], 9_000: [2]}, 6_000, 4 * 4_000 + 2 * 5_000),
        (1.0, [(1, 4, 0), (2, 2, 1_000)], {1: 0, 2: 5}, {6_000: [2, 1]}, 6_000, None),
        (0.0, [(1, 64, 5)], {}, {5: [1]}, 0, None),
    ],
    ids=["one after the other", "a higher rank overtakes", "no time"],
)
def test_a_channel_moves_state(rate, moves, ranks, done, busy, idled):
    channel = Channel(int(rate * (1 << 20)), 1 << 20)
    for number, pes, at in moves:
        channel.begin((number, 1), pes, at)
    if ranks:
        channel.order(lambda key: ranks[key[0]], 1_000)
        assert channel.next_done() == 3_000
    for at, numbers in done.items():
        assert channel.done(at) == [(number, 1) for number in numbers]
    assert channel.next_done() is None
    assert channel.busy == busy
    assert idled in (None, channel.idled)


def test_by_day_requests_of_the_whole_machine_do_not_start(runs):
    run, _ = runs[True]
    asked = (r.event for r in run.events if isinstance(r.event, ev.Submitted))
    wide, known = 0, {event.seq for event in asked if event.queue == gang.WIDE}
    for recorded in run.events:
        event = recorded.event
        if isinstance(event, ev.Starting) and event.seq in known:
            hour = (recorded.at - run.begin) / 3_600_000
            assert hour // 24 % 7 >= 5 or not 4 <= hour % 24 < 18
            wide += 1
    assert wide


def test_the_command_prints_what_programs_read():
    found = json.loads(program("gang", "--jobs", 60, "--run", "gang", "--json").stdout)
    assert set(found) == {"utilisation", "interactive64", "swapping_s", "preempted", "jobs"}
    assert set(found["utilisation"]) == {"week", "hours", "weeks"}
    assert set(found["interactive64"]) == {"within_60s", "mean_s", "p95_s", "jobs"}
    table = program("gang", "--jobs", 60).stdout.decode()
    assert "space" in table
    assert "working hours" in table
    assert f"{gang.BY_DAY} PEs together" in " ".join(table.split())


def test_more_than_anything_has_is_refused_in_a_line():
    message = program("gang", "--do-not-disturb", 10**24)
    assert (message.returncode, message.stderr.count(b"\n")) == (2, 1)
    assert b"invalid value for '--do-not-disturb'" in message.stderr
