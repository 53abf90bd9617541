"""Shepherds are killed -9: all processes of their jobs end, however they hide, before the loss is reported;
if that is not certain, this is reported too."""

import os
import pwd
import signal
from pathlib import Path

import pytest
from daemon.everybody import interpreter, open_way, packages, run
from executors.conftest import BOTH, IN_CGROUP, WAIT, cgroups_here, gone

from nqspy.executors import proc, records
from nqspy.model.observations import ObservedLost, ObservedRunning

# Leaves session and environment and holds nothing of the job's; a child of a child whose parents are gone.
HIDE = """
(setsid env -i sh -c 'cd /; sh -c "echo \\$\\$ > $0; exec sleep 60" </dev/null >/dev/null 2>&1 & exit' \\
    "$PWD/hidden" &)
"""
WAITING = f"{HIDE}exec sleep 60\n"
needs_cgroups = pytest.mark.skipif(cgroups_here().kind == "none", reason="no cgroup may be written here")


def end(pid: int) -> None:
    """Kill a process and wait until it has ended, whoever is its parent."""
    os.kill(pid, signal.SIGKILL)
    proc.await_ends([pid], 20)


@pytest.fixture
def hiding(make_bench):
    """Start a request with a hidden process; return the bench, the request and that process."""

    def begin(kind, script=WAITING, **spec):
        bench = make_bench(cgroup=kind)
        return bench, bench.running(script, **spec), bench.number("hidden")

    return begin


@pytest.mark.parametrize("kind", ["", "cgroup1", "none"])
@BOTH
def test_who_hides_ends_before_the_loss_is_told(hiding, kind, ask):
    bench, request, hidden = hiding(kind, ask=ask)
    lost = bench.lose(request)
    assert gone(hidden)
    assert not lost.unsure, "it may be run again from now on"


def test_who_forks_without_end_ends_too(hiding):
    chain = "setsid env -i sh -c 'while :; do (sleep 0.02; :) & done' >/dev/null 2>&1 &\n"
    bench, request, hidden = hiding("none", f"{chain}{WAITING}")
    assert not bench.lose(request).unsure
    assert gone(hidden)
    assert proc.descendants(bench.spawner) == []


def test_several_lost_at_once_are_each_told_for_sure_and_the_others_go_on(make_bench):
    bench = make_bench(cgroup="none")
    stays = bench.running(f"{WAIT}exit 7\n")
    requests = [bench.running(WAITING) for _ in range(3)]
    for request in requests:
        os.kill(bench.shepherd(request), signal.SIGKILL)
    assert [bench.expect(ObservedLost, request).unsure for request in requests] == [False] * 3
    bench.go()
    assert bench.ending(stays).status == 7


@pytest.mark.parametrize("kind", ["", "none"])
def test_a_shepherd_killed_while_no_daemon_is_there_leaves_nothing_either(hiding, make_bench, kind):
    bench, request, hidden = hiding(kind)
    spawner = bench.spawner
    bench.leave()
    assert not gone(spawner), "it stays as long as it has shepherds"
    os.kill(bench.shepherd(request), signal.SIGKILL)
    bench.until(lambda: gone(hidden), "the hidden one ends")
    bench.until(lambda: gone(spawner), "the spawner leaves")
    (lost,) = make_bench(cgroup=kind).scan()
    assert lost == ObservedLost(request.seq, 1, lost.used, brief=True)


def test_a_loss_is_not_told_before_the_spawner_of_a_former_daemon_has_ended_what_is_left(hiding, make_bench):
    bench, request, hidden = hiding("none")
    spawner = bench.spawner
    bench.leave()
    os.kill(spawner, signal.SIGSTOP)
    end(bench.shepherd(request))
    later = make_bench(cgroup="none")
    assert isinstance(later.scan()[0], ObservedRunning)
    assert not gone(hidden)
    os.kill(spawner, signal.SIGCONT)
    assert not later.expect(ObservedLost, request).unsure
    assert gone(hidden)


@BOTH
def test_without_spawner_and_cgroup_nobody_knows_and_this_is_said(hiding, ask):
    # Another one has left session and environment too, but is known by the output it holds.
    other = f"setsid env -i sh -c 'echo $$ > known; exec sleep 60' &\n{WAITING}"
    bench, request, hidden = hiding("none", other, ask=ask)
    known = bench.number("known")
    end(bench.spawner)
    assert bench.lose(request).unsure
    assert gone(known)
    os.kill(hidden, signal.SIGKILL)


@needs_cgroups
def test_without_spawner_a_cgroup_knows(hiding):
    bench, request, hidden = hiding("")
    end(bench.spawner)
    assert not bench.lose(request).unsure
    assert gone(hidden)


# ------------------------------------------------------------ cgroups that nobody needs any more
def groups_of(bench) -> list[str]:
    """Return this home's directories next to this process's own cgroups. (To walk all takes minutes if many
    homes have left theirs.)"""
    name = bench.executor._watch._link._name
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    places = {f"{tree}{path}" for _, names, path in lines for tree in (f"/{names}", "/unified", "")}
    found = (f"/sys/fs/cgroup{place.rstrip('/').removesuffix('/nqsd')}/{name}" for place in places)
    return sorted({path for path in found if os.path.isdir(path)})


@needs_cgroups
@pytest.mark.parametrize("killed", [False, True], ids=["stays", "is killed"])
def test_the_cgroups_of_a_home_that_was_stopped_go_with_its_last_request(make_bench, killed):
    """If its spawner was killed: with the next end."""
    bench = make_bench()
    requests = [bench.running(WAIT), bench.running(WAIT, ask=IN_CGROUP)]
    bench.leave()
    assert groups_of(bench)
    if killed:
        keeper = records.claimed_with(str(bench.folder(requests[0])))["keeper"]
        os.kill(proc.Identity.parse(keeper).pid, signal.SIGKILL)
    bench.go()
    for each in requests:
        bench.until((bench.folder(each) / "done").exists, "its end")
    if killed:
        make_bench().leave()
    bench.until(lambda: not groups_of(bench), "no directory is left")


@needs_cgroups
@pytest.mark.parametrize("when", ["start", "end"])
def test_what_a_spawner_of_another_session_left_goes(make_bench, when):
    bench = make_bench()
    listed = bench.home / "spool" / "cgroups"
    bench.until(listed.exists, "the spawner notes its own")
    own = listed.read_text().splitlines()
    assert set(own) <= set(groups_of(bench))
    base = Path(cgroups_here().base)
    left, foreign = base / Path(own[0]).name, base / "nqspy-0-1"
    try:
        if when == "start":
            bench.leave()
            bench.until(lambda: not groups_of(bench) and not listed.exists(), "nothing is left")
        for folder in (left / "7.1", foreign):
            folder.mkdir(parents=True)
        with listed.open("a") as file:
            file.write(f"{left}\n{foreign}\n/gone/{left.name}\n")
        if when == "start":
            bench = make_bench()
            bench.until(lambda: listed.read_text().splitlines() == own, "its own alone are noted")
        bench.leave()
        bench.until(lambda: not listed.exists(), "nothing is noted any more")
        assert not left.exists()
        assert foreign.exists(), "another home's"
    finally:
        for folder in (left / "7.1", left, foreign, base):
            if folder.exists():
                folder.rmdir()


# ------------------------------------------------------------ a daemon of an ordinary user
AS_USER = """
import hashlib, os, pwd, queue, signal, sys, time
from nqspy.executors import proc, records
from nqspy.executors.local import LocalExecutor
from nqspy.model.actions import Start
from nqspy.model.queues import Queue
from nqspy.model.requests import Request, Spec, State
from nqspy.model.observations import ObservedLost, ObservedRunning
from nqspy.model.site import Site

def told(kind):
    while not isinstance(seen := observations.get(timeout=20), kind):
        pass
    return seen

home, script = sys.argv[1:]
observations = queue.Queue()
blobs = {hashlib.sha256(data).hexdigest(): data for data in (script.encode(), b"")}
executor = LocalExecutor(home, observations.put, blobs.__getitem__)
executor.start()
site = Site(host="ymp", found=executor.found())
site.settings.queues["batch"] = Queue("batch", workdir="submit")
me = pwd.getpwuid(os.geteuid())
spec = Spec(owner=me.pw_name, uid=me.pw_uid, gid=me.pw_gid, name="job", queue="batch", workdir=home,
            shell="/bin/sh", **dict(zip(("script", "environment"), blobs)))
executor.do(Start(1, 1, (0,)), Request(1, spec, "batch", State.RUNNING, 0, 0, attempt=1), site, 0)
told(ObservedRunning)
end = time.monotonic() + 20
while not (os.path.exists("hidden") and open("hidden").read()) and time.monotonic() < end:
    time.sleep(0.01)
hidden = int(open("hidden").read())
os.kill(proc.Identity.parse(records.holder(home + "/spool/1.1")).pid, signal.SIGKILL)
print(told(ObservedLost).unsure, proc.stat(hidden) is None)
executor.close()
"""


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to become an ordinary user")
def test_under_a_daemon_of_an_ordinary_user_who_hides_ends_too(tmp_path):
    who, home, python = pwd.getpwnam("nobody"), tmp_path / "ordinary", interpreter()
    open_way(tmp_path)
    home.mkdir()
    os.chown(home, who.pw_uid, who.pw_gid)
    done = run(
        [python, "-c", AS_USER, str(home), WAITING], who.pw_uid, who.pw_gid, timeout=60, cwd=home,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": packages(python, home.parent)},
    )  # fmt: skip
    assert done.stdout.split() == ["False", "True"], done.stderr
