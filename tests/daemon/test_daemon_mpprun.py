"""`mpprun` under a real daemon: streams, statuses, signals, PEs, waiting, kills."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from daemon.inner import Inner
from daemon.live import PATIENCE, Live, alive, command, office, until

from nqspy.daemon import main
from nqspy.engine.handlers.requests import drop
from nqspy.model.people import Caller

SITE = """\
set machine pes=2
create class interactive priority=4 wait=0 do_not_disturb=0
create class production priority=2 wait=30:00 do_not_disturb=0
create class benchmark priority=3 do_not_disturb=unlimited preempted=off users=nobody
set gang default_class=production
create batch_queue batch workdir=submit
enable queue batch
start queue batch
create batch_queue apps order=class
enable queue apps
start queue apps
set default batch_request queue batch
set default mpprun queue apps
"""
OFFICE, site = SITE, office
WAITS = "echo $$ > {0}.pid; while [ ! -e {0}.go ]; do sleep 0.05; done"


class Called:
    """A running `mpprun`."""

    def __init__(self, live: Live, *words: str, folder=None, **more):
        self.process = subprocess.Popen(
            [*command("mpprun"), *words], cwd=folder or live.work, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=live.environment | more,
        )  # fmt: skip

    def sent(self, number: int) -> None:
        self.process.send_signal(number)

    def ends(self) -> int:
        self.out, self.err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode

    def leave(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        if not self.process.stdout.closed:
            self.process.communicate()


@pytest.fixture
def call():
    """Return a function that calls `mpprun`; end all calls, and what killed ones leave, after the test."""
    called = []
    with tempfile.TemporaryDirectory(prefix="nqspy-apps-") as place:

        def begin(live: Live, *words: str, **more) -> Called:
            called.append(Called(live, *words, TMPDIR=place, **more))
            return called[-1]

        yield begin
        for each in called:
            each.leave()


def sh(text: str) -> tuple[str, ...]:
    return "sh", "-c", text


def pid(live: Live, name: str) -> int:
    return int(live.text(f"{name}.pid"))


def go(live: Live, name: str) -> None:
    (live.work / f"{name}.go").touch()


def apps(live: Live) -> list[dict]:
    return [dict(each.data) for each in live.client.requests(queue="apps")]


def waiting(live: Live, number: int = 1) -> list[dict]:
    """Return the waiting applications, once there are so many."""
    return until(
        lambda: len(found := [each for each in apps(live) if each["state"] == "queued"]) == number and found,
        f"{number} wait",
    )


def gone(live: Live) -> None:
    until(lambda: not apps(live), "no application is left")


# ------------------------------------------------------------ streams, statuses, surroundings
def test_a_program_has_the_streams_of_its_caller(site):
    done = site.sh(f"echo hi | {' '.join(command('mpprun'))} -n 1 cat").ok()
    assert (done.out, done.err) == ("hi\n", "")
    done = site.run("mpprun", *sh("read a; echo out $a; echo err >&2"), stdin="what\n").ok()
    assert (done.out, done.err) == ("out what\n", "err\n")


def test_its_status_is_that_of_the_program(site):
    assert site.run("mpprun", *sh("exit 3")).status == 3
    assert site.run("mpprun", *sh("kill -KILL $$")).status == 128 + 9
    late = site.run("mpprun", "-t", "1", "sleep", "60")
    assert late.status == 124
    assert "limit" in late.err
    heeded = site.run("mpprun", "-t", "1", *sh("trap 'exit 0' TERM; while :; do sleep 0.1; done"))
    assert heeded.status == 124
    gone(site)


def test_a_limit_is_told_as_such_whether_the_program_or_its_leader_is_quicker(site, call):
    many = [call(site, "-t", "1", "sleep", "60") for _ in range(8)]
    assert [each.ends() for each in many] == [124] * 8
    gone(site)


def test_it_has_the_callers_environment_folder_and_umask(site):
    folder = site.work / "deep"
    folder.mkdir()
    show = "sh -c 'pwd; umask; echo \"$WORD\"; echo $QSUB_REQID'"
    done = site.sh(f"cd deep; umask 027; {' '.join(command('mpprun'))} {show}", WORD="a b\nc").ok()
    where, mask, *word, id = done.lines
    assert (where, mask, word) == (str(folder), "0027", ["a b", "c"])
    job = site.ended(id)
    assert (job["queue"], job["class"], job["exit_status"], job["name"]) == ("apps", "interactive", 0, "sh")


def test_it_runs_on_exactly_its_pes_and_what_leads_it_loads_no_packages_of_the_site(site):
    show = "import os; print(os.environ['NQSPY_PES'], *sorted(os.sched_getaffinity(0)))"
    told, *cpus = site.run("mpprun", "-n", "1", "python3", "-c", show).ok().out.split()
    assert [int(cpu) for cpu in cpus] == [sorted(os.sched_getaffinity(0))[int(told)]]
    leader = "import os; print(*open(f'/proc/{os.getppid()}/cmdline').read().split(chr(0))[1:2])"
    assert site.run("mpprun", "python3", "-c", leader).ok().out == "-IS\n"


EAR = """\
import os, signal
all = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, all)
open("ear.pid", "w").write(f"{os.getpid()}\\n")
found = None
while found != signal.SIGTERM:
    found = signal.Signals(signal.sigwait(all))
    open("heard", "a").write(f"{found.name[3:]}\\n")
raise SystemExit(7)
"""
"""No shell: one that is about to begin a program may lose a signal (dash, between vfork and exec)."""


def test_signals_go_through_to_the_programs_process_group(site, call):
    one = call(site, sys.executable, "-c", EAR)
    pid(site, "ear")
    for name in ("USR1", "USR2", "HUP", "QUIT", "INT", "TERM"):
        one.sent(getattr(signal, f"SIG{name}"))
        until(lambda name=name: name in site.text("heard").split(), name)
    assert one.ends() == 7
    two = call(site, *sh(WAITS.format("plain")))
    pid(site, "plain")
    two.sent(signal.SIGINT)
    assert two.ends() == 128 + 2


def test_a_stop_at_the_terminal_stops_both_and_they_go_on_together(site, call):
    one = call(site, *sh("echo $$ > still.pid; exec sleep 60"))
    mine = pid(site, "still")

    def state(number: int) -> str:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]

    one.sent(signal.SIGTSTP)
    until(lambda: state(mine) == "T" and state(one.process.pid) == "T", "both stand still")
    one.sent(signal.SIGCONT)
    until(lambda: state(mine) == "S" and state(one.process.pid) == "S", "both go on")
    one.sent(signal.SIGTERM)
    assert one.ends() == 128 + 15


# ------------------------------------------------------------ waiting
def test_one_waits_until_pes_are_free_unless_it_is_killed_interrupted_deleted_or_loses_its_folder(
    site, call, tmp_path
):
    """What is told to each of four that wait behind one that holds all PEs, and what becomes of it."""
    one = call(site, "-n", "2", *sh(WAITS.format("holds")))
    pid(site, "holds")
    killed = call(site, "-n", "1", *sh("touch ran"))
    [job] = waiting(site)
    assert (killed.process.poll(), job["within"]) == (None, None)
    killed.sent(signal.SIGKILL)
    assert site.ended(job["id"])["end_reason"] == "deleted"
    interrupted = call(site, *sh("touch ran"))
    [job] = waiting(site)
    interrupted.sent(signal.SIGINT)
    assert interrupted.ends() == 128 + 2
    assert site.ended(job["id"])["end_reason"] == "deleted"
    deleted = call(site, *sh("touch ran"))
    [job] = waiting(site)
    site.run("qdel", job["id"]).ok()
    assert deleted.ends() == 1
    [message] = deleted.err.splitlines()
    assert job["id"] in message
    assert message.endswith("deleted")
    folder = tmp_path / "folder"
    folder.mkdir()
    folderless, last = call(site, "true", folder=folder), call(site, "-n", "1", *sh("echo mine; exit 4"))
    waiting(site, 2)
    folder.rmdir()
    go(site, "holds")
    assert (one.ends(), folderless.ends()) == (0, 127)
    [message] = folderless.err.splitlines()
    assert str(folder) in message
    assert (last.ends(), last.out) == (4, "mine\n")
    assert not (site.work / "ran").exists()


def test_who_is_killed_while_it_runs_has_the_program_ended(site, call):
    one = call(site, *sh("echo $$ > lone.pid; exec sleep 60"))
    mine = pid(site, "lone")
    one.sent(signal.SIGKILL)
    until(lambda: not alive(mine), "it is hung up on")
    gone(site)


def test_a_daemon_that_dies_changes_nothing(make_live, call):
    live = make_live().site(SITE).start()
    one = call(live, "-n", "2", *sh(WAITS.format("runs") + "; echo ran; exit 3"))
    pid(live, "runs")
    two = call(live, *sh("echo waited; exit 4"))
    three, four = (call(live, *sh("touch never")) for _ in range(2))
    waiting(live, 3)
    live.kill()
    three.sent(signal.SIGKILL)
    three.ends()
    four.sent(signal.SIGKILL)  # and nobody waits for it
    until(lambda: not alive(four.process.pid), "it has ended")
    assert one.process.poll() is None
    go(live, "runs")
    assert (one.ends(), one.out) == (3, "ran\n")
    assert two.process.poll() is None
    live.start()
    assert (two.ends(), two.out) == (4, "waited\n")
    gone(live)
    assert not (live.work / "never").exists()
    assert len(live.events("starting")) == 2


# ------------------------------------------------------------ inside a request
def test_inside_a_request_with_pes_it_runs_on_those(site):
    run = " ".join(command("mpprun"))
    script = f"echo $NQSPY_PES $QSUB_REQID; {run} -n 2 sh -c 'echo $NQSPY_PES $QSUB_REQID; exit 5'; echo $?\n"
    script += f"{run} -n 3 true; echo $?; {run} -t 1 sleep 60; echo $?\n"
    id = site.submit(script, pes=2, stdout=site.work / "inside", join=True)
    assert site.ended(id)["exit_status"] == 0
    mine, its, status, refusal, *rest = site.text("inside").splitlines()
    assert mine == its == f"0-1 {id}"
    assert (status, rest) == ("5", ["1", "124"])
    assert refusal.startswith(f"mpprun: -n 3: request {id} has only 2 PEs")
    assert not apps(site)


def test_inside_a_request_of_a_command_domain_it_is_an_application_on_the_same_account(site):
    site.set(
        "create domain command kind=command",
        "create batch_queue scripts domain=command workdir=submit",
        "enable queue scripts",
        "start queue scripts",
    )
    run = " ".join(command("mpprun"))
    script = f"echo \"[$NQSPY_PES]\"; {run} -n 2 sh -c 'echo $NQSPY_PES $QSUB_REQID'; echo $?\n"
    id = site.submit(script, queue="scripts", account="deep-sea", stdout=site.work / "around", join=True)
    assert site.ended(id)["exit_status"] == 0
    none, told, status = site.text("around").splitlines()
    pes, its = told.split()
    assert (none, pes, status) == ("[]", "0-1", "0")
    job = site.ended(its)
    assert (job["account"], job["class"], job["within"]) == ("deep-sea", "production", id)


# ------------------------------------------------------------ refused
def test_what_can_never_run_is_refused_in_one_line(site):
    site.run("mpprun", "-n", "3", "true").refused("mpprun: ", "2")
    site.run("mpprun", "-debug", "true").refused("benchmark is not open to")
    site.run("mpprun", "-class", "fast", "true").refused("there is no job class fast")
    site.set("set class interactive pe_limit=1")
    site.run("mpprun", "-n", "2", "true").refused("interactive", "at most 1")
    site.set("set class interactive pe_limit=unlimited")
    site.set("set no_default mpprun queue")
    site.run("mpprun", "true").refused("set default mpprun queue")
    site.set("set default mpprun queue apps")
    assert not apps(site)


TWO_CLASSES = """\
set machine pes=1
create class interactive priority=1
create class production priority=2
create batch_queue apps priority=10
enable queue apps
set default mpprun queue apps
"""


def test_an_application_that_ends_while_the_daemon_starts_is_told_to_its_caller(tmp_path, monkeypatch):
    me = Caller("me", os.geteuid(), os.getegid(), (), True)
    trap = "trap 'exit 7' URG; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(["/bin/sh", "-c", trap], stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == b"ready\n"
        began = int(Path(f"/proc/{waiting.pid}/stat").read_text().rpartition(")")[2].split()[19])
        inner = Inner(tmp_path / "home", TWO_CLASSES)
        inner.submit(me, caller=[waiting.pid, began])
        inner.close()
        assert waiting.poll() is None
        begin = main.restart.begin

        def lost(engine, *rest):
            tx = engine.transaction(rest[3])
            [request] = engine.site.requests.values()
            drop(tx, request, "nqsd", "it was lost")
            begin(engine, *rest)
            return engine.flush(rest[3])

        monkeypatch.setattr(main.restart, "begin", lost)
        inner = Inner(tmp_path / "home", TWO_CLASSES)
        try:
            assert waiting.wait(timeout=20) == 7
            assert inner.daemon.engine.site.requests == {}
        finally:
            inner.close()
            waiting.kill()


def test_who_was_not_told_by_a_daemon_that_died_asks_the_next_one(make_live):
    live = make_live().site(TWO_CLASSES).start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG})  # what tells it never comes
    try:
        waiting = live.spawn("mpprun", "true")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with waiting:
        try:
            [job] = until(lambda: live.client.requests(queue="apps"), "it waits", 20)
            live.run("qdel", job.id).ok()
            live.kill()
            live.start()
            _, message = waiting.communicate(timeout=20)
            assert (waiting.returncode, len(message.splitlines())) == (1, 1)
        finally:
            waiting.kill()
