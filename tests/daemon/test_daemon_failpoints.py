"""kill -9 at each point of a request's way, and disks that fail, by failpoints that only tests switch on."""

import os
import signal
from contextlib import suppress

import pytest
from daemon.live import alive, shared, until

from nqspy.daemon.clock import Clock, parse_clock
from nqspy.daemon.failpoints import POINTS, VARIABLE, Failpoints, parse
from nqspy.daemon.home import Home, running_pid
from nqspy.daemon.starting import NoReason
from nqspy.executors import proc
from nqspy.model.errors import BadValue, NqspyError, Refusal
from nqspy.rpc.client import Client
from nqspy.rpc.submission import submission

live = shared
JOBS = 6


def armed(live, rules):
    """Start the daemon again, with these failures to come, of which it may die at once."""
    live.environment[VARIABLE] = rules
    try:
        live.start()
    except NoReason:
        assert "=kill@" in rules
    finally:
        live.environment[VARIABLE] = ""


def died(live):
    until(lambda: running_pid(Home(live.home)) is None, "its death")
    live.hang_up()


def items(live, marks):
    """Return a list of jobs that leave a mark each."""
    options = {"shell": "/bin/sh", "workdir": live.work}
    return [submission(f"echo {n} >> {marks}\nexit {n}\n", (), options) for n in range(JOBS)]


def test_what_is_no_failpoint_is_refused_with_those_there_are(make_live):
    live = make_live().site()
    done = live.run("nqsd", "start", env={VARIABLE: "comit=kill@1"}).refused("'comit=kill@1'", *POINTS)
    assert done.status == 1
    for wrong in ("commit=kill", "commit=kill@x", "reply=EIO@1", "scan=dance@1"):
        with pytest.raises(BadValue):
            parse(wrong)


def test_without_the_variable_nothing_stands_between_the_rooms():
    assert Failpoints.here({}) == Failpoints()
    clock = Clock()
    assert Failpoints.here({}).clock(clock) is clock
    assert Failpoints.here({VARIABLE: "commit=EIO@3x2"}).rules[0].times == 2


ON_THE_WAY = [
    "row=kill@{}", "commit=kill@{}", "committed=kill@{}", "hand=kill@{}", "handed=kill@{}", "reply=kill@{}",
    "replied=kill@{}", "sighted=kill@{}",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("rule", ON_THE_WAY)
def test_killed_on_the_way_of_a_list_it_goes_on_where_it_was(office, rule):
    """Each point is met in the middle of the list's life, whoever comes to it first; the client repeats what
    was not answered, with the same key."""
    live, marks = office, rule.partition("=")[0]
    fields = {"items": items(live, marks), "key": marks, "dry_run": False}
    before = len(live.events("submitted"))
    live.kill()
    armed(live, rule.format(25 if rule.startswith("row") else 3))
    told = []
    with suppress(NqspyError, OSError):
        told = live.client.call("submit", repeat=False, **fields)["ids"]
        for _ in range(100):
            live.client.call("submit", repeat=False, **fields)
    died(live)
    live.start()
    ids = live.client.call("submit", repeat=True, **fields)["ids"]
    assert told in ([], ids)
    assert [live.ended(id)["exit_status"] for id in ids] == list(range(JOBS))
    assert sorted((live.work / marks).read_text().split()) == [str(n) for n in range(JOBS)]
    assert len(live.events("submitted")) == before + JOBS


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["scan=kill@1", "scanned=kill@1", "commit=kill@1", "committed=kill@1"])
def test_killed_in_a_restart_the_next_one_finds_the_same(office, rule):
    live, name = office, rule.partition("=")[0]
    long, gate, next = f"{name}.long", f"{name}.gate", f"{name}.next"
    id = live.submit(f"echo run >> {long}; while [ ! -e {gate} ]; do sleep 0.02; done; exit 4")
    waiting = live.submit(f"echo run >> {next}", after=f"{id}:any")
    live.running(id)
    live.kill()
    armed(live, rule)
    died(live)
    live.start()
    assert live.job(id)["state"] == "running"
    (live.work / gate).touch()
    assert (live.ended(id)["exit_status"], live.ended(waiting)["exit_status"]) == (4, 0)
    assert (live.text(long), live.text(next)) == ("run\n", "run\n")


def submit_many(live, count):
    """Submit so many; return the identifiers of accepted ones, and the errors of the others."""
    accepted, refused = [], []
    for _ in range(count):
        try:
            accepted.append(live.submit("exit 0"))
        except Refusal as refusal:
            refused.append(str(refusal))
    return accepted, refused


@pytest.mark.parametrize(("error", "text"), [("EIO", "Input/output error"), ("ENOSPC", "No space left")])
def test_commits_that_fail_are_refused_in_one_line_and_work_goes_on(live, error, text):
    id = live.submit("while [ ! -e gate ]; do sleep 0.02; done; exit 9")
    live.running(id)
    live.kill()
    armed(live, f"commit={error}@3x4")
    (live.work / "gate").touch()
    accepted, refused = submit_many(live, 8)
    assert 0 < len(refused) <= 4
    assert all("nothing was changed" in each and text in each for each in refused)
    assert live.ended(id)["exit_status"] == 9, "its end waited for the disk"
    assert len(live.events("submitted")) == 1 + len(accepted)
    until(lambda: live.events("alarm"), "the alarm")
    assert text in live.events("alarm")[0]["text"]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_was_refused_as_the_disk_would_not_confirm_it_never_comes_to_be(live, end):
    live.stop()
    armed(live, "commit=unsynced@4")
    accepted, refused = submit_many(live, 6)
    assert len(refused) >= 3
    assert all("nothing was changed" in each and "I/O error" in each for each in refused)
    getattr(live, end)()
    live.start()
    assert all(live.ended(id)["exit_status"] == 0 for id in accepted)
    assert len(live.events("submitted")) == len(accepted)


def test_stopped_between_writing_and_the_disk_it_answers_when_it_goes_on(live):
    live.stop()
    armed(live, "commit=stop@3")
    script = str(live.write("j.sh", "exit 0\n"))
    pid, submitting = live.pid, live.spawn("qsub", "-s", "/bin/sh", script)
    until(lambda: proc.stat(pid).state == "T" or _poke(live), "the stop")
    assert submitting.poll() is None or alive(pid)
    os.kill(pid, signal.SIGCONT)
    out, err = submitting.communicate(timeout=180)
    assert (submitting.returncode, err) == (0, "")
    assert live.ended(out.strip())["exit_status"] == 0


def _poke(live):
    """Cause another commit; the answer may be that the daemon has stopped."""
    with Client(live.home, timeout=0.3) as hasty, suppress(NqspyError):
        hasty.qmgr("set queue batch run_limit=3")


def test_a_clock_that_is_set_moves_dates_and_nothing_runs_twice(live, tmp_path):
    step = tmp_path / "step"
    live.stop()
    armed(live, f"clock={step}")
    before = live.job(live.submit("exit 0", held=True))["submitted"]
    step.write_text("-86400000")
    id = live.submit("echo run >> ran")
    assert live.job(id)["submitted"] < before
    assert live.ended(id)["exit_status"] == 0
    step.write_text("86400000")
    late = live.submit("echo run >> ran")
    assert live.ended(late)["used"]["wall_s"] < 3600
    assert live.text("ran") == "run\nrun\n"


def test_a_stepped_clock_tells_the_bell_when_it_will_show_an_instant(tmp_path):
    file = tmp_path / "step"
    for clock in (Clock(), parse_clock("2026-03-02T20:55:00+01:00 x360")):
        right, wrong = clock, Failpoints(file=file).clock(clock)
        file.unlink(missing_ok=True)
        assert abs(wrong.now() - right.now()) < 360_000
        file.write_text("3600000")
        assert 3_000_000 < wrong.now() - right.now() < 4_200_000
        at = wrong.now() + 60_000
        assert wrong.real_of(at) == pytest.approx(right.real_of(at - 3_600_000))
