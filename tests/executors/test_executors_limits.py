"""Limits are enforced on real processes, each in its own way, and the stderr file says which one it was."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from executors.conftest import wait_until

from nqspy.executors import proc
from nqspy.executors.cage import Cage
from nqspy.executors.meter import Meter, Reaped
from nqspy.model.actions import Kill, Resume, Start, Suspend
from nqspy.model.cause import cause_of
from nqspy.model.ids import Instant
from nqspy.model.observations import ObservedRunning
from nqspy.model.requests import Ask, Attempt

BURN = "while :; do :; done\n"
MB = 1 << 20


def test_wall_time(bench):
    ending = bench.run("exec sleep 60\n", ask=Ask(wall=300))
    assert (ending.reason, ending.signal) == ("wall_limit", signal.SIGTERM)
    assert ending.text == "wall-clock limit of 0.3 s exceeded"
    assert 300 <= ending.used.wall < 3000
    assert bench.text("job.e1") == f"nqspy: request 1.ymp was ended: {ending.text}\n"


def test_wall_time_counts_by_the_clock_of_the_site(make_bench):
    bench = make_bench(speed=100.0)
    ending = bench.run("exec sleep 60\n", ask=Ask(wall=30_000))
    assert ending.reason == "wall_limit"
    assert ending.text == "wall-clock limit of 30 s exceeded"


def in_a_hole(bench, script, until, **spec):
    """A request whose hole ends so many ms after its start."""
    request = bench.request(script, contract=True, **spec)
    request.attempt = Attempt(1, (0,), Instant(0))
    bench.do(Start(request.seq, 1, (0,), until=Instant(until)), request)
    return request


def test_one_in_a_hole_is_ended_where_that_ends(bench):
    ending = bench.ending(in_a_hole(bench, "exec sleep 60\n", 300, ask=Ask(wall=60_000)))
    assert (ending.reason, ending.signal) == ("contract", signal.SIGTERM)
    assert ending.text == "the hole of 0.3 s that it was started in is over"
    assert 300 <= ending.used.wall < 3000
    assert bench.text("job.e1") == f"nqspy: request 1.ymp was ended: {ending.text}\n"


def test_the_hole_goes_by_while_it_is_suspended(bench):
    request = in_a_hole(bench, "exec sleep 60\n", 1500)
    bench.expect(ObservedRunning, request)
    bench.do(Suspend(request.seq, 1))
    ending = bench.ending(request)
    assert ending.reason == "contract"
    assert ending.used.wall < 1500


def test_time_suspended_does_not_count_as_wall_time(bench):
    request = bench.running("exec sleep 60\n", ask=Ask(wall=400))
    bench.do(Suspend(request.seq, 1))
    other = bench.run("exec sleep 0.6\n")
    assert other.reason == "exit"
    bench.do(Resume(request.seq, 1))
    ending = bench.ending(request)
    assert ending.reason == "wall_limit"
    assert ending.used.wall < 900


def test_cpu_time_of_all_processes_together(bench):
    ending = bench.run(f"({BURN}) &\n{BURN}", ask=Ask(cpu=400))
    assert ending.reason == "cpu_limit"
    assert 400 <= ending.used.cpu < 1500
    assert "CPU limit of 0.4 s exceeded" in bench.text("job.e1")


def test_cpu_time_of_a_process_is_the_kernels_business(bench):
    ending = bench.run(BURN, ask=Ask(cpu_process=1000))
    assert (ending.reason, ending.signal) == ("cpu_limit", signal.SIGXCPU)


def test_cpu_time_of_a_process_by_the_clock_of_the_site(make_bench):
    bench = make_bench(speed=100.0)
    ending = bench.run(BURN, ask=Ask(cpu_process=30_000))
    assert (ending.reason, ending.signal) == ("cpu_limit", signal.SIGXCPU)
    assert 30_000 <= ending.used.cpu < 90_000


def test_a_limit_of_each_process_leaves_the_request_alone(bench):
    ending = bench.run("sh -c 'ulimit -t; while :; do :; done'\nexit 6\n", ask=Ask(cpu_process=1000))
    assert (ending.reason, ending.status) == ("exit", 6)
    assert bench.text("job.o1").strip() == "1"


def test_the_queues_limit_counts_where_the_request_asks_nothing(bench):
    bench.queue.per_request.wall_limit = 300
    assert bench.run("exec sleep 60\n").reason == "wall_limit"
    assert bench.run("exec sleep 0.5\n", ask=Ask(wall=60_000)).reason == "exit"


def test_memory_of_all_processes_together(bench):
    eat = f"python3 -S -c 'import time; x = b\"x\" * {40 * MB}; time.sleep(60)'"
    ending = bench.run(f"{eat} &\n{eat} &\nwait\n", ask=Ask(memory=60 * MB))
    assert ending.reason == "memory_limit"
    assert ending.used.memory >= 60 * MB  # the kernel gives no more, sampling sees more
    assert "memory limit" in bench.text("job.e1")


def test_pages_of_mapped_files_are_no_memory_of_a_request(tmp_path):
    """Measured, as in a user's own daemon: one process, and two that share them."""
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
        for job in jobs:
            assert job.stdout is not None
            assert job.stdout.readline() == b"read\n"
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
    """A child between vfork and exec, held there by a FIFO that nobody writes to yet, runs in its parent's
    memory: whoever begins programs shall not be ended for twice what it has."""
    os.mkfifo(tmp_path / "fifo")
    limits = {"memory": 100 * MB, "cpu_process": None}
    order = {"limits": limits, "speed": 1.0, "grace": 300, "cpus": None}
    cage = Cage()
    with subprocess.Popen([sys.executable, "-S", "-c", BEGINS, str(tmp_path / "fifo"), who]) as parent:
        try:
            [child] = wait_until(lambda: proc.children(parent.pid), "the child is there")
            cage.pids = lambda: [parent.pid, child]
            meter = Meter(cage, order, 0.0, Reaped())
            meter.sample(1.0)
        finally:
            proc.send([*proc.children(parent.pid), parent.pid], signal.SIGKILL)
    assert 60 * MB < meter.memory < 100 * MB


def test_memory_of_a_process_is_an_allocation_failure(bench):
    ask = Ask(memory_process=300 * MB)
    ending = bench.run("exec python3 -S -c 'x = b\"x\" * 400_000_000'\n", ask=ask)
    assert (ending.reason, ending.status) == ("exit", 1)
    assert "MemoryError" in bench.text("job.e1")


def test_file_size(bench):
    bench.queue.per_process.permfile_limit = 4096
    ending = bench.run("exec dd if=/dev/zero of=big bs=1024 count=100\n")
    assert (ending.reason, ending.signal) == ("file_limit", signal.SIGXFSZ)
    assert (bench.work / "big").stat().st_size == 4096


def test_who_ignores_the_limit_is_killed_after_the_grace(bench):
    ending = bench.run("trap '' TERM\nwhile :; do sleep 0.05; done\n", ask=Ask(wall=200))
    assert (ending.reason, ending.signal) == ("wall_limit", signal.SIGKILL)


def test_a_request_is_warned_before_its_cpu_limit(bench):
    bench.queue.per_request.cpu_warning = 200
    script = "trap 'echo warned; exit 3' XCPU\n" + BURN
    ending = bench.run(script, ask=Ask(cpu=60_000))
    assert ending.status == 3
    assert bench.text("job.o1") == "warned\n"


def test_other_limits_reach_the_processes(bench):
    ask = Ask(nice=5, others=(("per_process/corefile_limit", 0), ("per_process/stack_limit", 4 * MB)))
    bench.run("ulimit -s\nulimit -c\nnice\n", ask=ask, shell="/bin/bash")
    assert bench.text("job.o1").split() == ["4096", "0", str(max(5, os.getpriority(os.PRIO_PROCESS, 0)))]


def test_each_request_keeps_to_the_cpus_of_its_pes_and_time_shared_pes_bind_it_to_none(bench):
    for pe, cpu in enumerate(bench.site.found.cpus):
        ending = bench.run("grep Cpus_allowed_list /proc/self/status; echo $NQSPY_PES\n", pes=(pe,))
        assert ending.status == 0
        assert bench.text(f"job.o{bench.seq}").split()[1:] == [str(cpu), str(pe)]
    bench.site.settings.machine.pes = len(bench.site.found.cpus) + 1
    bench.run("grep Cpus_allowed_list /proc/self/status\n")
    assert bench.text(f"job.o{bench.seq}").split()[1] == _allowed(Path("/proc/self"))


def test_one_that_goes_on_on_other_pes_moves_with_all_its_processes_and_threads(bench):
    cpus = bench.site.found.cpus
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    threads = "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()"
    request = bench.running(f"python3 -S -c '{threads}' &\n(setsid sleep 600) &\necho go\nwait\n", pes=(0,))
    group = lambda: [*_tree(bench, request)]  # noqa: E731
    bench.until(lambda: len(group()) >= 4, "script, Python with two threads, sleep")
    assert {_allowed(task) for task in group()} == {str(cpus[0])}
    bench.do(Suspend(request.seq, 1, parked=True))
    bench.do(Resume(request.seq, 1, cause_of("scheduler"), (1,)))
    bench.until(lambda: {_allowed(task) for task in group()} == {str(cpus[1])}, "they have moved")
    bench.do(Resume(request.seq, 1, pes=(1,)))  # as after a restart
    bench.do(Kill(request.seq, 1, "deleted", 0))
    bench.ending(request)


def _tree(bench, request):
    """/proc folders of all threads of a request."""
    mark = f"QSUB_REQID={request.seq}.".encode()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            environment = Path(f"/proc/{entry}/environ").read_bytes() if entry.isdigit() else b""
            if mark in environment and str(bench.home).encode() in environment:
                yield from Path(f"/proc/{entry}/task").iterdir()


def _allowed(task):
    try:
        found = re.search(r"Cpus_allowed_list:\s+(\S+)", (task / "status").read_text())
    except OSError:
        return None
    return found[1] if found else None


def test_a_deleted_request_that_also_runs_out_of_time_was_deleted(bench):
    script = "trap '' TERM\ntouch ready\nwhile :; do sleep 0.02; done\n"
    request = bench.running(script, ask=Ask(wall=600))
    bench.until((bench.work / "ready").exists, "the trap is set")
    bench.do(Kill(request.seq, 1, "deleted", 900))
    assert bench.ending(request).reason == "deleted"
