"""Limits are enforced on real processes, and the stderr file names the limit."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from executors.conftest import needs, wait_until

from nqspy.executors import proc
from nqspy.executors.cgroups import JobGroup
from nqspy.executors.meter import Meter
from nqspy.executors.wall_limit import seconds, size_text
from nqspy.model.actions import Kill, Migrate, Resume, Start, Suspend
from nqspy.model.cause import cause_of
from nqspy.model.ids import Instant
from nqspy.model.observations import ObservedRunning
from nqspy.model.requests import Ask, Attempt
from nqspy.model.units import format_exact

BURN = "while :; do :; done\n"
SLEEP = "exec sleep 60\n"
MB = 1 << 20


def ended(bench, ending, reason, number, text=""):
    """Check how a request was ended, and that its errors say so."""
    assert (ending.reason, ending.signal) == (reason, number)
    if text:
        assert ending.text == text
        assert bench.text(f"job.e{bench.seq}") == f"nqspy: request {bench.seq}.ymp was ended: {text}\n"


def test_wall_time(bench):
    ending = bench.run(SLEEP, ask=Ask(wall=300))
    ended(bench, ending, "wall_limit", signal.SIGTERM, "wall-clock limit of 0.3 s exceeded")
    assert 300 <= ending.used.wall < 3000
    ignored = bench.run("trap '' TERM\nwhile :; do sleep 0.05; done\n", ask=Ask(wall=200))
    ended(bench, ignored, "wall_limit", signal.SIGKILL)  # after the grace
    bench.queue.per_request.wall_limit = 300
    assert bench.run(SLEEP).reason == "wall_limit", "the queue's, where the request asks nothing"
    assert bench.run("exec sleep 0.5\n", ask=Ask(wall=60_000)).reason == "exit"


def test_limits_count_by_the_clock_of_the_site(make_bench):
    bench = make_bench(speed=100.0)
    ending = bench.run(SLEEP, ask=Ask(wall=30_000))
    ended(bench, ending, "wall_limit", signal.SIGTERM, "wall-clock limit of 30 s exceeded")
    ending = bench.run(BURN, ask=Ask(cpu_process=30_000))
    ended(bench, ending, "cpu_limit", signal.SIGXCPU)
    assert 30_000 <= ending.used.cpu < 90_000


def in_a_hole(bench, until, **spec):
    """Start a request whose hole ends so many ms after its start."""
    request = bench.request(SLEEP, contract=True, **spec)
    request.attempt = Attempt(1, (0,), Instant(0))
    bench.do(Start(request.seq, 1, (0,), until=Instant(until)), request)
    return request


def test_one_in_a_hole_is_ended_where_that_ends_also_while_it_is_suspended(bench):
    ending = bench.ending(in_a_hole(bench, 300, ask=Ask(wall=60_000)))
    ended(bench, ending, "contract", signal.SIGTERM)
    assert "0.3 s" in ending.text
    assert 300 <= ending.used.wall < 3000
    request = in_a_hole(bench, 1500)
    bench.expect(ObservedRunning, request)
    bench.do(Suspend(request.seq, 1))
    ending = bench.ending(request)
    assert ending.reason == "contract"
    assert ending.used.wall < 1500


def test_time_suspended_does_not_count_as_wall_time(bench):
    request = bench.running(SLEEP, ask=Ask(wall=400))
    bench.do(Suspend(request.seq, 1))
    assert bench.run("exec sleep 0.6\n").reason == "exit"
    bench.do(Resume(request.seq, 1))
    ending = bench.ending(request)
    assert ending.reason == "wall_limit"
    assert ending.used.wall < 900


def test_cpu_time_of_all_processes_together_with_a_warning_before(bench):
    ending = bench.run(f"({BURN}) &\n{BURN}", ask=Ask(cpu=400))
    assert ending.reason == "cpu_limit"
    assert 400 <= ending.used.cpu < 1500
    assert "CPU limit of 0.4 s exceeded" in bench.text("job.e1")
    bench.queue.per_request.cpu_warning = 200
    assert bench.run("trap 'echo warned; exit 3' XCPU\n" + BURN, ask=Ask(cpu=60_000)).status == 3
    assert bench.text("job.o2") == "warned\n"


def test_cpu_time_of_a_process_is_the_kernels_business_and_leaves_the_request_alone(bench):
    ended(bench, bench.run(BURN, ask=Ask(cpu_process=1000)), "cpu_limit", signal.SIGXCPU)
    ending = bench.run("sh -c 'ulimit -t; while :; do :; done'\nexit 6\n", ask=Ask(cpu_process=1000))
    assert (ending.reason, ending.status, bench.text("job.o2")) == ("exit", 6, "1\n")


def test_how_limits_are_said():
    sizes = {0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 40 * MB: "40.0 MiB"}
    assert {size: size_text(size) for size in sizes} == sizes
    times = {400: "0.4 s", 600_000: "10 min", 5_400_000: "1 h 30 min", 0: "0 s"}
    assert {ms: seconds(ms) for ms in times} == {ms: format_exact(ms) for ms in times} == times


def test_memory_of_all_processes_together(bench):
    eat = f"python3 -S -c 'import time; x = b\"x\" * {40 * MB}; time.sleep(60)'"
    ending = bench.run(f"{eat} &\n{eat} &\nwait\n", ask=Ask(memory=60 * MB))
    assert ending.reason == "memory_limit"
    assert ending.used.memory >= 60 * MB  # the kernel gives no more, sampling sees more
    assert "memory limit" in bench.text("job.e1")


def test_pages_of_mapped_files_are_no_memory_of_a_request(tmp_path):
    """Measured as in a user's own daemon: one process, and two that share pages."""
    (tmp_path / "big").write_bytes(b"x" * (40 * MB))
    read = (
        "import mmap, sys, time; f = open(sys.argv[1], 'rb')\n"
        "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); sum(m[n] for n in range(0, len(m), 4096))\n"
        f"s = mmap.mmap(-1, {20 * MB}); s.write(b'y' * {20 * MB})\n"
        "print('read', flush=True); time.sleep(60)"
    )
    words = [sys.executable, "-S", "-c", read, str(tmp_path / "big")]
    jobs = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        assert [job.stdout.readline() for job in jobs] == [b"read\n"] * 2
        one, both = ({job.pid: proc.Stat(job.pid) for job in some} for some in (jobs[:1], jobs))
        assert one[jobs[0].pid].rss > 60 * MB
        assert 20 * MB <= proc.together(one) < 40 * MB
        assert 40 * MB <= proc.together(both) < 60 * MB
    finally:
        for job in jobs:
            job.kill()
            job.communicate()


BEGINS = f"""
import os, sys, threading
held = b"x" * {60 * MB}
first = [(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)]
def begin():
    os.waitpid(os.posix_spawn("/bin/cat", ["cat"], {{}}, file_actions=first), 0)
thread = threading.Thread(target=begin)
(thread.start if sys.argv[2] == "thread" else begin)()
"""


@pytest.mark.parametrize("who", ["itself", "thread"])
def test_memory_of_a_process_counts_once_while_it_begins_another(tmp_path, who):
    """A child between vfork and exec, stopped there by a FIFO without a writer, uses its parent's memory:
    programs that start others must not be ended for twice their use."""
    os.mkfifo(tmp_path / "fifo")
    limits = {"memory": 100 * MB, "cpu_process": None}
    order = {"limits": limits, "speed": 1.0, "grace": 300, "cpus": None}
    cgroup = JobGroup()
    with subprocess.Popen([sys.executable, "-S", "-c", BEGINS, str(tmp_path / "fifo"), who]) as parent:
        try:
            [child] = wait_until(lambda: proc.children(parent.pid), "the child is there")
            cgroup.pids = lambda: [parent.pid, child]
            meter = Meter(cgroup, order, 0.0)
            meter.sample(1.0)
        finally:
            proc.send([*proc.children(parent.pid), parent.pid], signal.SIGKILL)
    assert 60 * MB < meter.memory < 100 * MB


def test_limits_of_each_process_reach_it(bench):
    eat = "exec python3 -S -c 'x = b\"x\" * 400_000_000'\n"
    ending = bench.run(eat, ask=Ask(memory_process=300 * MB))
    assert (ending.reason, ending.status) == ("exit", 1)
    assert "MemoryError" in bench.text("job.e1")
    ask = Ask(nice=5, others=(("per_process/corefile_limit", 0), ("per_process/stack_limit", 4 * MB)))
    bench.run("ulimit -s\nulimit -c\nnice\n", ask=ask, shell="/bin/bash")
    assert bench.text("job.o2").split() == ["4096", "0", str(max(5, os.getpriority(os.PRIO_PROCESS, 0)))]
    bench.queue.per_process.permfile_limit = 4096
    ending = bench.run("exec dd if=/dev/zero of=big bs=1024 count=100\n")
    ended(bench, ending, "file_limit", signal.SIGXFSZ)
    assert "4.0 KiB" in ending.text
    assert (bench.work / "big").stat().st_size == 4096


def test_each_request_keeps_to_the_cpus_of_its_pes_and_time_shared_pes_bind_it_to_none(bench):
    script = "grep Cpus_allowed_list /proc/self/status; echo $NQSPY_PES\n"
    for pe, cpu in enumerate(bench.site.found.cpus):
        assert bench.run(script, pes=(pe,)).status == 0
        assert bench.text(f"job.o{bench.seq}").split()[1:] == [str(cpu), str(pe)]
    bench.site.settings.machine.pes = len(bench.site.found.cpus) + 1
    bench.run(script)
    assert bench.text(f"job.o{bench.seq}").split()[1] == _allowed(Path("/proc/self"))


def test_one_that_goes_on_on_other_pes_moves_with_all_its_processes_and_threads(bench):
    cpus = bench.site.found.cpus
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    threads = "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()"
    request = bench.running(f"python3 -S -c '{threads}' &\n(setsid sleep 600) &\necho go\nwait\n", pes=(0,))

    def allowed():
        return [_allowed(task) for task in _tree(bench, request)]

    bench.until(lambda: len(allowed()) >= 4, "script, Python with two threads, sleep")
    assert set(allowed()) == {str(cpus[0])}
    bench.do(Suspend(request.seq, 1, parked=True))
    bench.do(Resume(request.seq, 1, cause_of("scheduler"), (1,)))
    bench.until(lambda: set(allowed()) == {str(cpus[1])}, "they have moved")
    bench.do(Resume(request.seq, 1, pes=(1,)))  # as after a restart
    bench.kill(request, 0)


def test_one_that_is_moved_while_it_runs_goes_on_with_all_that_it_forks_meanwhile(bench):
    cpus = bench.site.found.cpus
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    forks = "i=0; while [ $i -lt 2000 ]; do sleep 0.01 & i=$((i+1)); wait; done"
    request = bench.running(f"(setsid sleep 600) &\n({forks}) &\necho go\nexec sleep 600\n", pes=(0,))

    def allowed():
        return {_allowed(task) for task in _tree(bench, request)}

    for pe in (1, 0, 1):
        bench.do(Migrate(request.seq, 1, (pe,)))
        bench.until(lambda cpu=cpus[pe]: allowed() == {str(cpu)}, "they have moved")
    assert not any(_stopped(task) for task in _tree(bench, request))
    bench.kill(request, 0)


def _stopped(task):
    with contextlib.suppress(OSError):
        return (task / "stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def _tree(bench, request):
    """Return the /proc folders of all threads of a request."""
    mark = f"QSUB_REQID={request.seq}.".encode()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            environment = Path(f"/proc/{entry}/environ").read_bytes()
            if mark in environment and str(bench.home).encode() in environment:
                yield from Path(f"/proc/{entry}/task").iterdir()


def _allowed(task):
    with contextlib.suppress(OSError):
        return re.search(r"Cpus_allowed_list:\s+(\S+)", (task / "status").read_text())[1]


def test_a_deleted_request_that_also_runs_out_of_time_was_deleted(bench):
    script = "trap '' TERM\ntouch ready\nwhile :; do sleep 0.02; done\n"
    request = bench.running(script, ask=Ask(wall=600))
    bench.until((bench.work / "ready").exists, "the trap is set")
    bench.do(Kill(request.seq, 1, "deleted", 900))
    assert bench.ending(request).reason == "deleted"


# ---------------------------------------------------------------- processes without end
BOMB = """
import os, signal, sys, time
{first}
for _ in range({rounds}):
    try:
        os.fork()
    except OSError:
        pass
time.sleep(20)
"""
"""Processes: two to the power of the rounds, and no more, in case these tests fail."""
PATIENT = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
leader = os.getppid()
open("ready", "w").close()
while os.getppid() == leader:
    time.sleep(0.01)
"""
"""Script that ignores TERM, and waits until its leader has ended."""
MOST = 60
ASKED = Ask(others=(("per_request/process_limit", MOST),))


def bomb(bench, first: str = "", rounds: int = 8) -> str:
    """Return a script that doubles itself; its processes are found by name."""
    path = bench.work / f"bomb-{os.getpid()}.py"
    path.write_text(BOMB.format(first=first, rounds=rounds))
    return f"{sys.executable} -S {path}"


def left(bench) -> list[str]:
    """Return the remaining processes of bombs."""
    words = ["pgrep", "-f", f"bomb-{os.getpid()}.py"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()


@pytest.mark.parametrize("cgroup", ["cgroup2", "cgroup1", "none"])
def test_a_bomb_is_ended_as_what_it_is(make_bench, cgroup):
    bench = make_bench(cgroup=cgroup)
    request = bench.start(f"exec {bomb(bench)}\n", ask=ASKED)
    assert bench.run("exit 4\n").status == 4, "it harms no other"
    ending = bench.ending(request)
    assert ending.reason == "process_limit"
    assert ending.text.startswith(f"process limit of {MOST} exceeded")
    assert bench.text("job.e1").endswith(f"was ended: {ending.text}\n")
    assert not left(bench)


def test_a_bomb_whose_leader_has_gone_is_no_good_end(bench):
    bench.site.settings.server.grace = 60_000
    script = f"{bomb(bench, PATIENT)} &\nwhile [ ! -e ready ]; do sleep 0.02; done\nexit 0\n"
    ending = bench.run(script, ask=ASKED, workdir=str(bench.work))
    assert (ending.reason, ending.status) == ("process_limit", 0)
    assert ending.used.wall < 15_000
    assert not left(bench)


def test_the_wall_limit_holds_for_what_a_leader_left_behind(bench):
    bench.site.settings.server.grace = 60_000
    script = "(trap '' TERM; touch ready; while :; do sleep 0.05; done) &\n"
    script += "while [ ! -e ready ]; do sleep 0.02; done\nexit 0\n"
    ending = bench.run(script, ask=Ask(wall=1500), workdir=str(bench.work))
    assert (ending.reason, ending.status) == ("wall_limit", 0)
    assert ending.text.startswith("wall-clock limit of 1.5 s ")


@needs("pids")
def test_the_kernel_lets_it_have_no_more(bench):
    (bench.work / "count.py").write_text(f"import os, time\nfor n in range({MOST + 20}):\n"
        "    try:\n        if os.fork() == 0:\n            time.sleep(20)\n            os._exit(0)\n"
        "    except OSError:\n        print(n)\n        break\n")  # fmt: skip
    bench.run(f"exec {sys.executable} -S count.py\n", ask=ASKED, workdir=str(bench.work))
    assert int(bench.text("job.o1")) == MOST - 1


def test_without_a_word_it_is_the_queues_limit_that_counts(bench):
    assert 200 <= bench.queue.per_request.process_limit < 1000, "some hundreds, unless it is set"
    bench.queue.per_request.process_limit = MOST
    assert bench.run(f"exec {bomb(bench)}\n").reason == "process_limit"
