"""The decider's process: whatever an exit does there, submissions, queries, endings and kills go on; the
process is begun anew, and what killed it twice is left out."""

import os
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, alive, until
from daemon.person import submit_as
from decider.wild import WILD, Wild

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root's daemon gives up rights")


@pytest.fixture(scope="module")
def wild(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wild")
    home = Wild(folder / "home", folder / "work").begin()
    yield home
    home.close()


def once(wild):
    """Assert that no request was started twice."""
    starts = [each["request"] for each in wild.events("starting")]
    assert len(starts) == len(set(starts))


HANGS = ("total", "deaf")
DIES = ("leave", "crash")
FAILS = {"catastrophe": "ran longer than its budget", "hoard": "", "threads": "start new thread"}
"""Faults that only a process of its own shows: the others are in ``tests/userexit``."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*HANGS, *DIES])
def test_what_no_guard_can_interrupt_ends_the_process_and_nothing_else(wild, fault):
    former = wild.child()
    seen = wild.suffer(fault)
    assert seen.killed
    assert seen.delay < 15
    assert seen.acknowledged < 1.5
    assert any("wild" in text and "ended the process" in text for text in seen.alarms)
    [poison] = [each.id for each in wild.client.requests() if each.data["name"] == fault]
    reason = wild.why(poison)["reason"]
    assert (reason["code"], reason["who"]) == ("EXIT", "wild")
    assert "ended the process" in reason["text"], "it is held back, and not asked about again"
    assert wild.child() != former
    assert not alive(former)
    once(wild)
    wild.calm()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAILS)
def test_what_the_guard_sees_is_a_failure_of_the_exit_and_nothing_more(wild, fault):
    former = wild.child()
    seen = wild.suffer(fault)
    assert not seen.killed
    assert wild.child() == former
    [poison] = [each.id for each in wild.client.requests() if each.data["name"] == fault]
    assert FAILS[fault] in wild.why(poison)["reason"]["text"]
    assert any(FAILS[fault] in text for text in seen.alarms)
    once(wild)
    wild.calm()


def test_what_an_exit_prints_comes_into_the_log_and_not_without_end(wild):
    wild.suffer("printing")
    until(lambda: "to stdout" in wild.log and "raw" in wild.log, "what was printed")
    until(lambda: "lines a minute; the rest is not logged" in wild.log, "a word on the rest")
    assert wild.log.count("to stderr") < 100
    wild.calm()


@pytest.mark.slow
def test_who_changes_nqspy_changes_it_for_his_own_process_only(wild):
    seen = wild.suffer("patch")
    assert seen.killed
    assert wild.job(wild.submit("sleep 60", name="mine"))["owner"] != "nobody"
    until(lambda: wild.losses() and wild.child(), "another process")
    wild.calm()


def test_a_forged_plan_never_gives_a_pe_twice(wild):
    wild.set("stop queue batch")
    poison = wild.submit("true", name="forge")
    ids = [wild.submit("sleep 0.2", name="plain") for _ in range(5)]
    wild.set("start queue batch")
    for id in ids:
        wild.ended(id)
    pes = {}
    for each in wild.events():
        if each["kind"] == "starting":
            assert not set(each["pes"]) & {pe for held in pes.values() for pe in held}, each
            pes[each["request"]] = each["pes"]
        elif each["kind"] == "ended":
            pes.pop(each["request"], None)
    wild.ended(poison)
    once(wild)
    wild.calm()


@ROOT_ONLY
@pytest.mark.privileged
def test_an_exit_that_kills_its_process_twice_is_left_out_until_it_is_enabled(make_wild):
    wild = make_wild().begin()
    first = wild.submit("true", name="leave")
    until(lambda: wild.losses() == 1, "the first death")
    assert wild.ended(wild.submit("true", name="plain"))["exit_status"] == 0
    submit_as(wild, 1, "leave")
    gated = wild.submit("true", name="gated")
    for id in (first, gated):
        assert wild.ended(id)["exit_status"] == 0, "without the exit the standard rules decide"
    [off] = wild.events("exit_off")
    assert off["exit"] == "wild"
    assert "within an hour" in off["text"]
    assert any("switched off: wild" in each["text"] for each in wild.events("alarm"))
    shown = wild.qmgr("show exits").ok().out
    assert "wild [off]" in shown
    assert "left out: jobselect" in shown
    assert "no user exit" in wild.run("nqsd", "status").ok().out
    wild.set("enable exit wild")
    kept = wild.submit("true", name="gated")
    wild.until(kept, lambda job: job["reason"]["text"] == "gate closed", "be refused by the exit again")
    assert wild.run("qmgr", "--json", "-c", "show exits").ok().data[0]["enabled"] is True
    once(wild)


def test_a_process_killed_from_outside_is_begun_anew_and_blames_nobody_and_ends_with_the_daemon(make_wild):
    wild = make_wild().begin()
    for _ in range(2):
        os.kill(wild.child(), 9)
        assert wild.ended(wild.submit("true", name="plain"))["exit_status"] == 0
    assert not wild.events("exit_off")
    assert wild.client.call("exits_list")["exits"][0]["enabled"]
    assert wild.losses() == 2
    for end in (wild.kill, wild.stop):
        pid = wild.child()
        end()
        until(lambda pid=pid: not alive(pid), "its end")
        wild.start()


SLOW_DOOR = """\
import signal
import time

from nqspy.userexit import refuse, userexit


@userexit
def submit(request):
    if request.name == "stuck":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(60)
    return refuse("no bad names") if request.name == "bad" else None
"""


@pytest.mark.slow
def test_a_submit_exit_has_a_deadline_then_the_stock_rule_counts(make_wild):
    wild = make_wild()
    wild.site(ONE_QUEUE, {"door": SLOW_DOOR}).start()
    wild.set("set exit door budget=20ms")
    stuck = wild.submit("true", name="stuck")
    more = wild.submit("true", name="bad")
    assert wild.ended(stuck)["exit_status"] == wild.ended(more)["exit_status"] == 0, "nobody waited twice"
    texts = [each["text"] for each in wild.events("alarm")]
    assert any("not answer in time" in text for text in texts), texts
    until(lambda: wild.losses() == 1, "the end of the process")
    until(lambda: wild.run("qsub", "-N", "bad", stdin="true\n").status == 1, "the rule in force again")


BAD_FILES = {
    "leaving": ("import os\nos._exit(4)\n", "status 4"),
    "crashing": ("import ctypes\nctypes.string_at(0)\n", "SIGSEGV"),
    "missing": ("import there_is_no_such_module\n", "there_is_no_such_module"),
}


def test_a_file_that_ends_its_process_is_left_out_at_the_start_and_refused_later(make_wild):
    wild = make_wild()
    exits = {name: code for name, (code, _) in BAD_FILES.items()}
    message = wild.site(ONE_QUEUE, exits | {"wild": WILD}).run("nqsd", "start").ok().err
    for name, (_, words) in BAD_FILES.items():
        assert f"{name}.py" in message
        assert words in message
    assert [each["name"] for each in wild.client.call("exits_list")["exits"]] == ["wild"]
    former = wild.child()
    wild.qmgr("reload exits").refused("exits/", "stay in force")
    assert wild.child() == former
    for name in BAD_FILES:
        (wild.home / "exits" / f"{name}.py").unlink()
    wild.exit("wild", "import os\nos._exit(4)\n")
    wild.qmgr("reload exits").refused("wild.py", "status 4", "stay in force")
    gated = wild.submit("true", name="gated")
    wild.until(gated, lambda job: job["reason"]["text"] == "gate closed", "be refused as before")
    wild.exit("wild", WILD.replace("gate closed", "another gate"))
    wild.qmgr("reload exits").ok()
    wild.until(gated, lambda job: job["reason"]["text"] == "another gate", "be refused by the new file")
    (wild.home / "exits" / "wild.py").unlink()
    assert "no exits loaded" in wild.qmgr("reload exits").ok().out
    assert wild.ended(gated)["exit_status"] == 0
    assert not alive(former)


def test_the_process_has_neither_sockets_nor_the_database_nor_a_way_to_begin_another(wild):
    pid = wild.child()
    held = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert all(name == "/dev/null" or name.startswith("pipe:") for name in held), held
    maps = Path(f"/proc/{pid}/maps").read_text()
    assert "nqs.db" not in maps
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    assert [line.split()[2:4] for line in limits if line.startswith("Max processes")] == [["0", "0"]]


REACHING = """\
import ctypes, os, socket
from nqspy.userexit import refuse, userexit

libc = ctypes.CDLL(None, use_errno=True)

def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), name)

def tried():
    pid = os.getppid()
    ways = {{
        "stream": lambda: socket.socket(socket.AF_UNIX).connect({sock!r}),
        "datagram": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", {reports!r}),
        "pair": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", {reports!r}),
        "memory": lambda: os.close(os.open(f"/proc/{{pid}}/mem", os.O_RDWR)),
        "signal": lambda: os.kill(pid, 0),
        "namespace": lambda: call("unshare", 0x10000000),
        "key": lambda: call("syscall", 250 if os.uname().machine == "x86_64" else 219, 0, -3, 0),
    }}
    if {decides}:
        ways["memory file"] = lambda: os.memfd_create("x")
        ways["shared memory"] = lambda: call("shmget", 4711, 4096, 0o1600)
    if {decides} and os.geteuid() != {uid}:
        ways["file"] = lambda: open("/tmp/nqspy-exit-%d" % os.getpid(), "w").close()
        ways["file of root's"] = lambda: open({secret!r}).close()
    ways["network"] = lambda: socket.socket(socket.AF_INET).close()
    done = []
    for name, way in ways.items():
        try:
            way()
            done.append(name)
        except OSError:
            pass
    return " ".join(done) or "nothing"

{hook}
"""
DECIDES = '@userexit\ndef jobselect(request):\n    return refuse("it reached " + tried())'
IS_TOLD = '@userexit\ndef jobend(request):\n    print("it reached " + tried())'


def reaching(live, hook, decides):
    (live.work / "secret").touch(0o600)
    files = {"sock": live.home / "nqsd.sock", "reports": live.home / "spool" / "reports.sock"}
    places = {name: str(path) for name, path in (files | {"secret": live.work / "secret"}).items()}
    return REACHING.format(hook=hook, decides=decides, uid=os.geteuid(), **places)


def test_the_process_reaches_neither_the_daemons_socket_nor_the_daemon(open_folder, make_wild):
    live = make_wild(open_folder, calm=True)
    live.site(ONE_QUEUE, {"reaching": reaching(live, DECIDES, True)}).start()
    id = live.submit("true")
    live.until(id, lambda job: "it reached" in (job["reason"] or {}).get("text", ""), "be kept back")
    assert "it reached nothing" in live.job(id)["reason"]["text"]


def test_nor_does_the_one_that_gives_notices_which_has_the_network(open_folder, make_wild):
    live = make_wild(open_folder, calm=True)
    live.site(ONE_QUEUE, {"reaching": reaching(live, IS_TOLD, False)}).start()
    live.ended(live.submit("true"))
    message = until(lambda: [line for line in live.log.splitlines() if "it reached" in line], "the notice")
    assert message[0].endswith("it reached network")


@ROOT_ONLY
def test_under_root_it_runs_as_nobody_and_can_neither_read_nor_signal(wild):
    status = Path(f"/proc/{wild.child()}/status").read_text()
    found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    import pwd

    nobody = pwd.getpwnam("nobody")
    assert found["Uid"].split() == [str(nobody.pw_uid)] * 4
    assert found["Gid"].split() == [str(nobody.pw_gid)] * 4
    assert not found["Groups"].split()
    assert found["NoNewPrivs"].strip() == "1"
    seen = wild.suffer("signal_parent")
    assert not seen.killed
    assert any("PermissionError" in text for text in seen.alarms)
    wild.calm()


def test_without_exits_there_is_no_process(live):
    assert "run in nqsd itself" in live.run("nqsd", "status").ok().out
    live.exit("wild", WILD)
    live.qmgr("reload exits").ok()
    assert "run in process" in live.run("nqsd", "status").ok().out
    assert "run in process" in live.run("nqspy", "doctor").out


SHARES = """\
from nqspy.userexit import userexit


@userexit
def shrpri(owner, group, view):
    return 2.0 if view.share(group=group) else 1.0


@userexit
def route(request, destinations):
    return ("second",) if request.name == "sideways" else None
"""

PIPES = """\
create batch_queue first run_limit=1
create batch_queue second
enable queue first
enable queue second
create pipe_queue door destination=(first, second)
enable queue door
start queue door
"""


def test_looks_ahead_and_displays_are_answered_by_the_process(make_wild):
    wild = make_wild(calm=True).site(ONE_QUEUE + PIPES, {"wild": WILD, "shares": SHARES}).start()
    gated = wild.submit("sleep 60", name="gated")
    wild.until(gated, lambda job: job["reason"]["text"] == "gate closed", "be examined")
    why = wild.why(gated)
    assert why["estimate"]["start"] is None
    assert why["reason"]["text"] == "gate closed"
    assert why["priority"]["share"] == 1.0
    dry = wild.run("qsub", "--dry-run", "-N", "plain", stdin="sleep 1\n").ok().out
    assert "latest: " in dry
    assert "no estimate" not in dry
    wild.set("set queue batch run_limit=0")
    kept = wild.submit("sleep 60", name="kept")
    wild.write("more.qmgr", "set queue batch run_limit=4\n")
    planned = wild.run("qmgr", "plan", "more.qmgr").ok().out
    assert f"{kept} would start earlier" in planned
    trace = wild.client.call("exits_trace", request=gated)["trace"]
    [row] = [each for each in trace if each["exit"] == "wild"]
    assert row["answer"] == "refuse('gate closed')"
    assert wild.job(wild.submit("true", name="sideways", queue="door"))["queue"] == "second"
    assert wild.job(wild.submit("true", name="ahead", queue="door"))["queue"] == "first"


def test_the_memory_it_may_take_is_a_setting(make_wild):
    wild = make_wild().begin()
    former = wild.child()
    wild.ended(wild.submit("true", name="large"))
    wild.set("set decider memory=96mb")
    large = wild.submit("true", name="large")
    wild.until(large, lambda job: "Cannot allocate" in (job["reason"] or {}).get("text", ""), "be kept back")
    assert wild.child() != former
    assert "set decider memory=96mb" in wild.qmgr("snap").ok().out
    assert "96mb" in wild.qmgr("show parameters").ok().out
