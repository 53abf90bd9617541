"""Cgroups that hold all processes of a job: cgroup2, cgroup1, or none (then the processes below the
shepherd). Which kind works is tried. A job is born in its cgroup (clone3): to move a process costs 8 ms."""

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from nqspy.executors import forks, proc
from nqspy.executors.control import CONTROLLERS, Controls, Enforced, JobLimits, make, move_cpus, rmdir, write
from nqspy.executors.forks import fork_into
from nqspy.executors.proc import Descriptor, now

_MOVES = 10
_MANY = 16
_KILLS = 3
DYING = 0.5
"""Real seconds to wait for the end of killed processes: on a busy machine that takes a while."""
STOPPING = 0.5
"""Real seconds in which all processes of a job should stop; a process that waits in the kernel cannot."""
_MOMENT = 0.001


class JobGroup:
    """Processes of one job. This base class is for a job without a cgroup: all descendants of its shepherd,
    the subreaper. ``held``: controllers that limit it; ``unborn``: directories for a new process to
    `enter`."""

    kind = "none"
    folder = ""

    def __init__(self) -> None:
        self.held = Enforced()
        self.unborn: list[str] = []

    def fork(self) -> int:
        """Fork a process of the job; return 0 in the child, which must then `enter`. Raises OSError."""
        return os.fork()

    def enter(self) -> None:
        """Move the child, just forked, into the directories that it was not born in. Raises OSError."""
        _join(*self.unborn, *self.held.enter)

    def pids(self) -> list[int]:
        """Return the pids of all processes of the job."""
        found = proc.descendants(os.getpid())
        return sorted({*members(self.folder), *found}) if self.folder else found

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the job."""
        before = self.pids()
        proc.send(before, number, self.pids())

    def kill(self) -> None:
        """Send SIGKILL to all processes, once; the caller repeats that. More than 16 are stopped first."""
        if len(self.pids()) > _MANY:
            self.freeze()
        self.signal(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop all processes, in rounds until two lists in a row have only stopped ones, or for 0.5 s."""
        until, stopped, lists = now() + STOPPING, set[int](), 0
        while lists < 2 and now() < until:
            pids = self.pids()
            lists = lists + 1 if stopped.issuperset(pids) else 0
            if not lists:
                proc.send(pids, signal.SIGSTOP, self.pids())
                stopped = proc.stopped(pids)
                if len(stopped) < len(pids):
                    time.sleep(_MOMENT)

    def thaw(self) -> None:
        """Continue all stopped processes of the job."""
        self.signal(signal.SIGCONT)

    def run_when_idle(self, only: bool) -> None:
        """Let the processes of the job run only where nothing else wants to (True), or as usual (False). A
        session's group of the scheduler (autogroup) needs its own nice value."""
        policies = os.SCHED_OTHER, os.SCHED_IDLE
        for pid in self.pids():
            write(f"/proc/{pid}/autogroup", "19" if only else "0")
            for thread in proc.threads(pid):
                with contextlib.suppress(OSError):
                    if os.sched_getscheduler(thread) == policies[not only]:
                        os.sched_setscheduler(thread, policies[only], os.sched_param(0))

    def cpu(self) -> float | None:
        """Return the CPU seconds of all processes that ever were in the job; None if they are not counted."""
        return None

    def remove(self) -> None:
        """Remove the job's directories in the cgroup trees; they must be empty."""
        self.held.remove()


class Cgroup(JobGroup):
    """A job in its own cgroups: ``folder`` in cgroup2, or in cgroup1 freezer and cpuacct (``counter``)."""

    def __init__(self, kind: str, folder: str, counter: str = "") -> None:
        """Make the job's directories in the tree of cgroups. Raises OSError."""
        super().__init__()
        self.kind, self.folder, self.counter = kind, folder, counter
        for each in filter(None, (folder, counter)):
            os.mkdir(each, 0o755)
            self.unborn += [each] if kind == "cgroup1" else []

    def fork(self) -> int:
        if self.kind == "cgroup2":
            with contextlib.suppress(OSError):
                return fork_into(self.folder)
            self.unborn = [self.folder]
        return os.fork()

    def kill(self) -> None:
        if self.kind == "cgroup2":
            write(f"{self.folder}/cgroup.kill", "1")
        super().kill()
        if self.kind == "cgroup1":  # this freezer holds killed processes until they are thawed
            self._set_freezer(frozen=False)

    def freeze(self) -> None:
        self._set_freezer(frozen=True)

    def thaw(self) -> None:
        self._set_freezer(frozen=False)
        super().thaw()

    def _set_freezer(self, *, frozen: bool) -> None:
        if self.kind == "cgroup2":
            write(f"{self.folder}/cgroup.freeze", "1" if frozen else "0")
        else:
            write(f"{self.folder}/freezer.state", "FROZEN" if frozen else "THAWED")

    def cpu(self) -> float | None:
        if self.kind == "cgroup2":
            return cpu_of(self.folder)
        text = proc.text(f"{self.counter}/cpuacct.usage")
        return int(text) / 1e9 if text.isdigit() else None

    def remove(self) -> None:
        for folder in filter(None, (self.folder, self.counter)):
            rmdir(folder)
        super().remove()


class ShepherdCgroup(JobGroup):
    """A cgroup in which a shepherd is born with all that it spawns. Its job is handled as if it had none,
    which costs less (`child.spawn`); but if the shepherd is killed, the cgroup shows whether a process
    remains. The spawner makes and removes it."""

    def __init__(self, kind: str, folder: str) -> None:
        """Make the directory for a shepherd in the tree of cgroups. Raises OSError."""
        super().__init__()
        os.mkdir(folder, 0o755)
        self.kind = kind
        self.folder = folder
        self.before = 0.0

    def begin(self) -> None:
        """Prepare the cgroup for the shepherd's next job: forget the former one's use and controllers."""
        self.held = Enforced()
        self.before = self._spent()

    def cpu(self) -> float | None:
        """Return the CPU seconds of the present job, without the shepherd's own; None if cgroup1."""
        return max(0.0, self._spent() - self.before) if self.kind == "cgroup2" else None

    def _spent(self) -> float:
        found = cpu_of(self.folder)
        return found - time.process_time() if found is not None else 0.0

    def fork(self) -> int:
        """Fork a shepherd into the cgroup; return 0 in the child. Raises OSError."""
        if self.kind == "cgroup2":
            try:
                return fork_into(self.folder)
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    raise
        pid = os.fork()
        if pid == 0:
            try:
                _join(self.folder)
            except OSError:
                self.kind, self.folder = "none", ""
        return pid

    def pids(self) -> list[int]:
        me = os.getpid()
        return [pid for pid in super().pids() if pid != me]

    def kill(self) -> None:
        """Kill all processes except the shepherd; many by cgroup.kill, after the shepherd has left."""
        if self.kind == "cgroup2" and len(self.pids()) > _MANY:
            write(f"{os.path.dirname(self.folder)}/cgroup.procs", "0")
            if os.getpid() not in members(self.folder):
                write(f"{self.folder}/cgroup.kill", "1")
        super().kill()


class Cgroups:
    """Makes cgroups for jobs and shepherds; the spawner finds out once which kind can be used."""

    def __init__(self, name: str, only: str = "") -> None:
        """Find out which kind works. ``name``: of the directories of this nqsd's home; ``only``: the one kind
        to try (``none``: make no cgroups); empty: all."""
        self.name, self.kind, self.base, self.counter = name, "none", "", ""
        for kind in ("cgroup2", "cgroup1"):
            if (only or kind) == kind and self.kind == "none" and getattr(self, f"_try_{kind}")(name):
                self.kind = kind
        places = {} if only == "none" else {name: _place("cgroup", name) for name in CONTROLLERS}
        self.controls = Controls(name, self.base if self.kind == "cgroup2" else "", places)
        for folder in self.bases():
            sweep(folder)

    def for_job(self, name: str, limits: JobLimits | None = None) -> JobGroup:
        """Return a new group for one attempt (without a cgroup if none can be made), with as many of the
        limits as the kernel can enforce."""
        cgroup = JobGroup()
        with contextlib.suppress(OSError):
            if self.kind != "none":
                counter = f"{self.counter}/{name}" if self.counter else ""
                cgroup = Cgroup(self.kind, f"{self.base}/{name}", counter)
        if limits is not None:
            cgroup.held = self.controls.hold(limits, name, cgroup.folder if cgroup.kind == "cgroup2" else "")
        return cgroup

    def for_shepherd(self, name: str) -> ShepherdCgroup | None:
        """Make and return a cgroup that holds a shepherd together with its job, for a job that needs no
        cgroup of its own (`prepare.plain`); None if none can be made."""
        for _ in range(2):
            try:
                return ShepherdCgroup(self.kind, f"{self.base}/{name}")
            except FileNotFoundError:
                with contextlib.suppress(OSError):
                    os.mkdir(self.base, 0o755)  # it was removed as empty
            except OSError:
                break
        return None

    def remove_for_shepherd(self, name: str, *, killed: bool) -> None:
        """Remove what `for_shepherd` made; ``killed``: kill all processes in it first."""
        if self.kind != "none":
            if killed:
                kill_all(self.kind, f"{self.base}/{name}")
            rmdir(f"{self.base}/{name}")

    def bases(self) -> list[str]:
        """Return this home's directories of cgroups."""
        return list(filter(None, (self.base, self.counter, *self.controls.bases())))

    def remove(self) -> None:
        """Remove the home's directories that hold no job."""
        for folder in self.bases():
            sweep(folder)
            rmdir(folder)

    def _try_cgroup2(self, name: str) -> bool:
        place = _place("cgroup2", "")
        # systemd's DelegateSubgroup=: controllers go to the directories beside that of the daemon itself.
        self.base = _make(place.removesuffix("/nqsd"), name)
        usable = bool(self.base) and os.access(f"{self.base}/cgroup.kill", os.W_OK)
        usable = usable and os.access(f"{self.base}/cgroup.freeze", os.W_OK)
        return usable and (_enters(lambda: fork_into(self.base)) or _enters(os.fork, self.base))

    def _try_cgroup1(self, name: str) -> bool:
        self.base = _make(_place("cgroup", "freezer"), name)
        self.counter = _make(_place("cgroup", "cpuacct"), name)
        usable = bool(self.base) and os.access(f"{self.base}/freezer.state", os.W_OK)
        return usable and _enters(os.fork, *filter(None, (self.base, self.counter)))


def _enters(fork: Callable[[], int], *folders: str) -> bool:
    """True if a process can enter these cgroups; tried with a child that ends at once."""
    try:
        pid = forks.begin(lambda: _join(*folders), fork)
    except OSError:
        return False
    return os.waitpid(pid, 0)[1] == 0


def kill_all(kind: str, folder: str, *more: str) -> bool:
    """Kill all processes in the cgroup of a lost job and in the directories of its controllers (``more``),
    and remove these directories; return True if surely no process remains."""
    for _ in range(_KILLS if folder else 0):
        if kind == "cgroup2":
            write(f"{folder}/cgroup.kill", "1")
        remaining = members(folder)
        proc.send(remaining, signal.SIGKILL, members(folder))
        if kind == "cgroup1":
            write(f"{folder}/freezer.state", "THAWED")  # a killed process that is frozen does not end
        proc.await_ends(remaining, DYING)
        rmdir(folder)
        if not os.path.exists(folder):
            break
    for each in more:
        proc.send(members(each), signal.SIGKILL, members(each))
        rmdir(each)
    # Where its tree is not visible (another container), a missing folder proves nothing.
    tree = os.path.dirname(os.path.dirname(folder))
    return bool(folder) and not os.path.exists(folder) and os.path.exists(f"{tree}/cgroup.procs")


def _place(fstype: str, controller: str) -> str:
    """Return the path of this process's own cgroup in the tree of ``controller``, "" if none."""
    mounts = (line.split()[:4] for line in proc.text("/proc/self/mounts").split("\n"))
    groups = (line.split(":", 2) for line in proc.text("/proc/self/cgroup").split("\n"))
    for _, mount, kind, options in mounts:
        if kind == fstype and (not controller or controller in options.split(",")):
            own = (path for _, names, path in groups if controller in names.split(","))
            return next((mount + path.rstrip("/") for path in own), "")
    return ""


def _make(place: str, name: str) -> str:
    folder = f"{place}/{name}"
    if place:
        make(folder)
    return folder if place and os.access(folder, os.W_OK) else ""


def _join(*folders: str) -> None:
    """Move this process, which must have one thread only, into cgroups. ``tasks`` (version 1) does that in
    0.3 ms; ``cgroup.procs`` waits until no process anywhere is about to fork: 8 ms. Raises OSError."""
    for folder in folders:
        if not write(f"{folder}/tasks", "0"):
            with Descriptor(os.open(f"{folder}/cgroup.procs", os.O_WRONLY)) as fd:
                os.write(fd, b"0")


def cpu_of(folder: str) -> float | None:
    """Return the CPU seconds of all processes that ever were in a cgroup2; None if unreadable."""
    words = proc.text(f"{folder}/cpu.stat").split()
    return int(words[1]) / 1e6 if words else None


def members(folder: str) -> list[int]:
    """Return the pids of the processes in a cgroup; none if it was removed."""
    return list(map(int, proc.text(f"{folder}/cgroup.procs").split()))


def sweep(base: str) -> None:
    """Remove the empty cgroups in a directory: those of jobs with a killed shepherd."""
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                rmdir(entry.path)


def move(cgroup: JobGroup, order: dict[str, Any], cpus: list[int] | None) -> None:
    """Bind all threads of a request to other CPUs, and note them in its order; repeat until no thread is new:
    one that runs may fork meanwhile. Do nothing without ``cpus`` (None)."""
    if not cpus or cpus == order["cpus"]:
        return
    order["cpus"] = cpus
    done: set[int] = set()
    for _ in range(_MOVES):
        new: dict[int, list[int]] = {}
        for pid in cgroup.pids():
            if threads := [thread for thread in proc.threads(pid) if thread not in done]:
                new[pid] = threads
        if not new:
            return
        move_cpus(cgroup.held, cpus, list(new))
        for thread in (thread for threads in new.values() for thread in threads):
            # An error: it has ended, it is another user's now, or such a CPU is no longer there.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, cpus)
        done.update(*new.values())
