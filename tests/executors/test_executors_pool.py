"""A shepherd whose attempt has ended serves another: nothing of the former attempt remains."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from executors.conftest import IN_CGROUP
from msgspec.structs import replace

from nqspy.executors import proc
from nqspy.model.actions import Start
from nqspy.model.observations import ObservedLost
from nqspy.model.requests import Ask

SHEPHERD = "echo $PPID > shepherd-$NAME; "


class Herd:
    """Requests by name, each with the shepherd that serves it."""

    def __init__(self, bench, ask=None):
        self.bench, self.ask = bench, ask or Ask()

    def start(self, name, script="", **spec):
        return self.bench.start(f"NAME={name}; {SHEPHERD}{script}", **({"ask": self.ask} | spec))

    def run(self, name, script="", **spec):
        """Run a script; return the observation of its end."""
        return self.bench.ending(self.start(name, script, **spec))

    def shepherd(self, name):
        return self.bench.number(f"shepherd-{name}")

    def same(self, one, other):
        return self.shepherd(one) == self.shepherd(other)

    def left(self, name):
        """Wait until the shepherd of a request has ended."""
        pid = self.shepherd(name)
        self.bench.until(lambda: proc.stat(pid) is None, "the idle shepherd has left")

    def lost(self):
        return [seen for seen in self.bench.seen if isinstance(seen, ObservedLost)]


@pytest.fixture
def herd(make_bench):
    """Return a herd whose idle shepherds stay however busy the machine is."""
    return Herd(make_bench(idle=600.0))


@pytest.fixture(params=[Ask(), IN_CGROUP], ids=["spawned", "forked"])
def kind(request, make_bench):
    """Return a herd with requests of either kind."""
    return Herd(make_bench(idle=600.0), request.param)


def test_one_shepherd_serves_one_request_after_the_other_with_nothing_of_the_one_before(kind, tmp_path):
    """Its own use, folder, mask, output and environment."""
    other = tmp_path / "other"
    other.mkdir()
    hungry = "head -c 90000000 /dev/zero | tail -c 80000000 | cksum > sum; umask; pwd; env; exit 1"
    first = kind.run(1, hungry, umask=0o27, env=b"SECRET=1\0")
    second = kind.run(2, "umask; pwd; env; exit 2", umask=0o77, workdir=str(other))
    assert (first.status, second.status, kind.run(3, "exit 3").status) == (1, 2, 3)
    (kind.bench.work / "shepherd-2").write_text((other / "shepherd-2").read_text())
    assert kind.shepherd(1) == kind.shepherd(2) == kind.shepherd(3)
    assert first.used.cpu > 50 > second.used.cpu
    assert first.used.memory > 70_000_000 > second.used.memory
    text = (other / "job.o2").read_text()
    assert text.startswith(f"0077\n{other}\n")
    assert "SECRET" not in text
    assert "SECRET=1" in kind.bench.text("job.o1")


def test_it_keeps_nothing_open(kind):
    for number in range(12):
        kind.run(number, "ls /proc/$PPID/fd | wc -l >> open")
    counts = [int(each) for each in kind.bench.text("open").split()]
    assert len(counts) == 12
    assert max(counts) - min(counts) < 6, "one for each request would be eleven"


def test_who_has_a_cpu_leaves_it_to_the_next(herd):
    bench = herd.bench
    if len(bench.site.found.cpus) < 2:
        pytest.skip("needs two CPUs")
    script = "grep Cpus_allowed_list /proc/self/status | cut -f 2 >> cpus"
    for pes in ((0,), (1,), (0, 1)):
        request = bench.request(f"NAME={len(pes)}; {SHEPHERD}{script}")
        bench.do(Start(request.seq, 1, pes), request)
        bench.ending(request)
    one, other, both = bench.text("cpus").split()
    assert (one, other) == tuple(map(str, bench.site.found.cpus[:2]))
    assert both not in (one, other)


def test_two_at_a_time_have_one_each_and_one_in_a_cgroup_of_its_own_has_another(herd):
    herd.run("a")
    slow = herd.start("b", "until test -e go; do sleep 0.01; done; exit 2")
    assert herd.run("c", "touch go").status == 0
    assert herd.bench.ending(slow).status == 2
    assert herd.shepherd("a") == herd.shepherd("b") != herd.shepherd("c")
    assert herd.run("d", ask=IN_CGROUP).status == 0
    assert herd.shepherd("d") not in (herd.shepherd("a"), herd.shepherd("c"))
    long = b"LONG=" + b"y" * 100_000 + b"\0"
    assert herd.run("e", "test ${#LONG} = 100000", env=long).status == 0, "an idle one gets it whole"
    assert herd.shepherd("e") in (herd.shepherd("a"), herd.shepherd("c"))


def test_it_leaves_when_nothing_comes(bench):
    herd = Herd(bench)
    herd.run("a")
    herd.left("a")
    assert herd.run("b").status == 0


def test_it_leaves_with_its_daemon(herd):
    herd.run("a")
    herd.bench.leave()
    herd.left("a")


def test_one_that_is_killed_while_idle_is_missed_by_nobody(herd):
    for name in "abcd":
        assert herd.run(name).status == 0
        os.kill(herd.shepherd(name), signal.SIGKILL)
        herd.left(name)
    assert not herd.lost()


def test_one_that_is_killed_at_the_second_loses_the_second(kind):
    kind.run("a")
    second = kind.start("b", "exec sleep 60")
    os.kill(kind.shepherd("b"), signal.SIGKILL)
    assert not kind.bench.expect(ObservedLost, second).unsure
    assert kind.same("a", "b")
    assert kind.run("c").status == 0
    assert not kind.lost()


def test_one_that_had_to_kill_serves_no_other(kind):
    assert kind.run("a", "sleep 60", ask=replace(kind.ask, wall=200)).reason == "wall_limit"
    assert kind.run("b").status == 0
    assert not kind.same("a", "b")


def test_when_the_spawner_is_killed_its_idle_ones_leave_and_others_come(herd):
    herd.run("a")
    os.kill(herd.bench.spawner, signal.SIGKILL)
    assert herd.run("b").status == 0
    herd.left("a")
    assert not herd.same("a", "b")


def test_one_that_was_stopped_gets_no_request_and_goes(herd):
    herd.run("a")
    os.kill(pid := herd.shepherd("a"), signal.SIGSTOP)
    herd.bench.until(lambda: (seen := proc.stat(pid)) is None or seen.state == "T", "it stands still")
    assert herd.run("b").status == 0
    assert not herd.same("a", "b")
    herd.left("a")


LOOK = """
nice; ulimit -n; cat /proc/self/oom_score_adj; ionice -p $$
cat /proc/$$/timerslack_ns /proc/$$/coredump_filter
"""


@pytest.mark.parametrize(
    "change",
    [
        "renice -n 19 -p $PPID", "prlimit --pid $PPID --nofile=64:64",
        "echo 900 > /proc/$PPID/oom_score_adj", "ionice -c 3 -p $PPID",
        "echo 40000000 > /proc/$PPID/timerslack_ns", "echo 0 > /proc/$PPID/coredump_filter",
    ],
)  # fmt: skip
def test_what_a_job_does_to_its_shepherd_is_not_done_to_the_next(herd, change):
    herd.run("a", LOOK)
    if herd.run("b", f"({change}) && exit 0").status:
        pytest.skip("the kernel refuses it here")
    herd.run("c", LOOK)
    assert herd.bench.text("job.o3") == herd.bench.text("job.o1")
    assert not herd.same("b", "c")


@pytest.fixture
def other_cgroup():
    """Return a cgroup of a controller that nqspy does not use, else of version 2."""
    for base in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/devices", "/sys/fs/cgroup"):
        folder = Path(base) / f"other-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / "cgroup.procs").exists():
            return folder
        folder.rmdir()
    pytest.skip("needs a cgroup that may be made")


def test_a_cgroup_that_a_job_puts_its_shepherd_into_is_not_the_nexts(kind, other_cgroup):
    kind.run("a", "cat /proc/self/cgroup")
    assert kind.run("b", f"echo $PPID > {other_cgroup}/cgroup.procs").status == 0
    kind.run("c", "cat /proc/self/cgroup")
    assert other_cgroup.name not in kind.bench.text("job.o3")
    assert not kind.same("b", "c")
    kind.bench.until(lambda: not (other_cgroup / "cgroup.procs").read_text(), "nobody is in it")
    other_cgroup.rmdir()


def test_a_job_that_waits_for_no_child_hides_no_cpu_time_in_its_cgroup(herd):
    burn = (
        "import os, signal, time; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for _ in range(5):\n"
        "    pid = os.fork()\n"
        "    while not pid and time.process_time() < 0.1: pass\n"
        "    if not pid: os._exit(0)\n"
        "    try: os.waitpid(pid, 0)\n"
        "    except ChildProcessError: pass\n"
    )
    herd.bench.work.joinpath("burn.py").write_text(burn)
    herd.run("a", "grep ^0:: /proc/self/cgroup")
    if "nqspy-" not in herd.bench.text("job.o1"):
        pytest.skip("no cgroup2 here")
    assert herd.run("b", "python3 -S burn.py").used.cpu >= 500
    assert herd.run("c").used.cpu < 300


_WITH_A_CHILD = """
import os, socket, sys
from nqspy.executors import pool
from nqspy.executors.pool import Offer
here, offers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
reader, writer = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(writer)
    os.read(reader, 1)  # to its parent's end, or as long as it is wanted
    os._exit(0)
if sys.argv[1] == "ended":
    os.close(writer)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
Offer(offers, False, pool.process_traits()).make()
here.setblocking(False)
try:
    sys.exit(bool(here.recv(64)))
except BlockingIOError:
    pass
"""


@pytest.mark.parametrize(("child", "offered"), [("hangs", 0), ("ended", 1)])
def test_one_whose_delivery_hangs_in_the_kernel_serves_no_other(child, offered):
    """Its child would count as a process of the next job, which could not end."""
    done = subprocess.run([sys.executable, "-c", _WITH_A_CHILD, child], check=False, timeout=60)
    assert done.returncode == offered
