"""Scans for foreign jobs, on real processes and on invented readings of /proc."""

import itertools
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from examples import examples
from executors.conftest import wait_until
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.executors import foreign, proc
from nqspy.executors.foreign import CALM, ForeignScan

SPIN = "while True: pass"
CPU = max(os.sched_getaffinity(0))


@pytest.fixture
def begin():
    """Return a function that runs Python code in a new process, bound to the last CPU."""
    begun = []

    def run(code, bound=True):
        words = [sys.executable, "-I", "-S", "-c", code]
        bind = (lambda: os.sched_setaffinity(0, {CPU})) if bound else None
        begun.append(subprocess.Popen(words, preexec_fn=bind, start_new_session=True))
        return begun[-1]

    yield run
    for each in begun:
        os.killpg(each.pid, signal.SIGKILL)  # its children, too
        each.wait()


def scan_of(*roots):
    """Return a scan that sees only these processes, and all below them."""
    return ForeignScan(lambda: [pid for one in roots for pid in (one.pid, *proc.descendants(one.pid))])


def again(scan, own=()):
    """Return what a scan finds 0.2 s from now."""
    end = proc.now() + 0.2
    wait_until(lambda: proc.now() > end, "a while")
    return scan.check(own)


def found(scan, condition):
    """Scan until the result meets the condition; return it."""
    scan.check(())
    return wait_until(lambda: (jobs := again(scan)) and condition(jobs) and jobs, "foreign jobs")


def test_a_process_that_computes_is_found_on_its_cpu_until_it_ends(begin):
    spins, sleeps = begin(SPIN), begin("import time; time.sleep(1000)")
    scan = scan_of(spins, sleeps)
    assert scan.check(()) is None, "one reading shows no use"
    [job] = found(scan, bool)
    user = os.stat(f"/proc/{spins.pid}").st_uid
    assert (job.pid, job.pes, job.start) == (spins.pid, (CPU,), proc.Stat(spins.pid).start)
    assert job.user == foreign._user(user)
    assert job.command == proc.text(f"/proc/{spins.pid}/comm")
    spins.kill()  # nobody has waited for it yet
    os.waitid(os.P_PID, spins.pid, os.WEXITED | os.WNOWAIT)
    assert scan.check(()) == ()


def test_what_nqspy_started_and_all_below_it_is_not_foreign(begin):
    parent = begin(f"import os\nif os.fork(): os.wait()\n{SPIN}")
    scan = scan_of(parent)
    assert scan.check((parent.pid,)) is None
    assert again(scan, (parent.pid,)) == ()
    [child] = proc.children(parent.pid)
    assert found(scan, lambda jobs: child in {job.pid for job in jobs})


def test_a_process_counts_with_its_short_children(begin):
    child = "sum(range(200000)); os._exit(0)"
    parent = begin(f"import os\nwhile True:\n if not os.fork():\n  {child}\n os.wait()")
    assert parent.pid in {job.pid for job in found(scan_of(parent), bool)}


def test_a_long_child_that_has_ended_is_no_new_use_of_its_parent(begin):
    parent = begin(f"import os, time\nif not os.fork():\n {SPIN}\nos.wait()\ntime.sleep(1000)")
    scan = scan_of(parent)
    [job] = found(scan, bool)
    os.kill(job.pid, signal.SIGKILL)
    assert [again(scan) for _ in range(3)] == [(), (), ()]


def test_a_thread_of_the_kernel_is_known():
    assert not proc.Stat(os.getpid()).kernel
    others = [one for pid in proc.all_pids() if (one := proc.stat(pid)) is not None and one.kernel]
    assert all(one.rss == 0 for one in others)
    assert 0 <= proc.Stat(os.getpid()).processor < 4096


# ---------------------------------------------------------------- invented readings
@dataclass
class Machine:
    """Readings of one process 7 on four CPUs; ``used``: its CPU seconds; ``at``: the time."""

    used: float = 0.0
    at: float = 0.0
    cpu: int = 0

    def stat(self, pid):
        return SimpleNamespace(start=1, parent=1, cpu=self.used, reaped=0.0, dead=False, kernel=False)

    def scan(self, patch):
        patch.setattr(foreign.proc, "stat", self.stat)
        patch.setattr(foreign.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
        patch.setattr(foreign, "_last_on", lambda pid: [self.cpu])
        job = lambda pid, process: foreign.ForeignJob(pid, 1, "zoe", "x", process.cpus)  # noqa: E731
        patch.setattr(foreign, "_job", job)
        made = ForeignScan(lambda: [7], lambda: self.at)
        made.check(())
        return made

    def use(self, scan, part):
        """Let a minute pass in which it uses this part of a PE; return the CPUs it then has."""
        self.at, self.used = self.at + 60, self.used + 60 * part
        [*jobs] = scan.check(())
        return jobs[0].pes if jobs else ()


@pytest.mark.parametrize(
    ("parts", "counts"),
    [
        ((0.09, 0.11, 0.09, 0.11), (0, 1, 1, 1)),
        ((0.2, 0.04, 0.04, 0.2, 0.04, 0.04, 0.04), (1, 1, 1, 1, 1, 1, 0)),
        ((1.05, 1.2, 3.9, 9.0, 1.0, 1.0, 1.0), (1, 2, 4, 4, 4, 4, 1)),
        ((2.2, 2.07, 2.07, 2.07, 2.07), (3, 3, 3, 3, 3)),
    ],
)
def test_it_gets_a_pe_at_once_and_loses_it_after_some_scans(monkeypatch, parts, counts):
    machine = Machine()
    scan = machine.scan(monkeypatch)
    assert tuple(len(machine.use(scan, part)) for part in parts) == counts
    assert CALM == 3


def test_a_process_that_the_kernel_moves_keeps_its_pe(monkeypatch):
    machine = Machine(cpu=2)
    scan = machine.scan(monkeypatch)
    assert machine.use(scan, 1.0) == (2,)
    machine.cpu = 3
    assert machine.use(scan, 1.0) == (2,)
    assert machine.use(scan, 2.0) == (2, 3)


@given(st.lists(st.floats(0.051, 0.15), min_size=2, max_size=60))
@settings(max_examples=examples(100), deadline=None)
def test_a_process_at_the_threshold_makes_no_storm_of_changes(parts):
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine()
        scan = machine.scan(patch)
        pictures = [machine.use(scan, part) for part in parts]
    changes = sum(one != other for one, other in itertools.pairwise(pictures))
    assert changes <= 1, "it comes once, and never goes"
