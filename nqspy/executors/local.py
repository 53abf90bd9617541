"""The real executor: requests run as processes of this machine, each under a shepherd. Orders go to the
spawner over a socket; reports come back as datagrams; if they fail, the pidfd of each shepherd shows its
end; the records in the spool show what happened. One thread waits for all of these."""

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from nqspy.executors import foreign, proc, scan
from nqspy.executors.deadline import DELIVERY, LAUNCH
from nqspy.executors.link import Key, SpawnerLink
from nqspy.executors.order import Clashes, adjustment, cpus_of, make_order, turns_of
from nqspy.executors.pageout import Residents
from nqspy.executors.pool import IDLE_SECONDS
from nqspy.executors.scan import QUIET, Fate, SpoolCleaner
from nqspy.executors.watch import Watch
from nqspy.model import actions as act
from nqspy.model import observations as ob
from nqspy.model.ids import Instant
from nqspy.model.machine import ForeignJob, Found
from nqspy.model.observations import Observation
from nqspy.model.requests import Request
from nqspy.model.site import Site

_CACHED_BLOBS = 64
_REBOOT = "the machine was restarted while it ran"


class LocalExecutor:
    """Implements `ports.Executor` on this machine. ``put`` takes observations, from the watcher's thread too;
    ``blob`` returns scripts and environments by hash (KeyError without one); ``speed``: how many times faster
    than real time the site's clock runs; ``cgroup``: the kind of cgroups to use, empty: the best that works;
    ``quiet``: see `SpoolCleaner`; ``leave``: attempts that the database does not know are left alone, as
    foreign jobs (`nqsd start --forget`), instead of ended; ``pids``: see `ForeignScan`. In
    real seconds: ``deadlines`` of a launch and of a delivery; ``idle``, how long a shepherd waits for another
    request."""

    def __init__(
        self, home: str, put: Callable[[Observation], None], blob: Callable[[str], bytes], *,
        speed: float = 1.0, python: str = sys.executable, cgroup: str = "", quiet: float = QUIET,
        leave: bool = False, pids: Callable[[], Iterable[int]] = proc.all_pids,
        deadlines: tuple[float, float] = (LAUNCH, DELIVERY), idle: float = IDLE_SECONDS,
    ) -> None:  # fmt: skip
        """Prepare the spool. Raises OSError if it cannot be used."""
        self._home = os.path.abspath(home)
        self._spool = os.path.join(self._home, "spool")
        os.makedirs(self._spool, mode=0o700, exist_ok=True)
        self._put = put

        @lru_cache(_CACHED_BLOBS)  # requests of one list share script and environment: most are read once
        def checked(digest: str) -> bytes:
            data = blob(digest)
            if not hashlib.sha256(data).hexdigest().startswith(digest):
                raise KeyError(digest)
            return data

        self._blob = checked
        self._speed, self._leave = speed, leave
        self._deadlines = deadlines
        self._clashes = Clashes()
        link = SpawnerLink(self._home, self._spool, python, cgroup, idle)
        self._watch = Watch(self._home, self._spool, put, link)
        self._cleaner = SpoolCleaner(quiet)
        self._resident = Residents()
        self._foreign = foreign.ForeignScan(pids)

    def start(self) -> None:
        """Get the spawner's lock, start the spawner and the watching thread. Raises OSError."""
        self._watch.start()

    def close(self) -> None:
        """Stop watching; running jobs go on with their shepherds."""
        self._watch.close()
        self._cleaner.close()

    def found(self) -> Found:
        """Return the CPUs that this process may use, and the machine's memory."""
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return Found(tuple(sorted(os.sched_getaffinity(0))), memory)

    def resident(self, attempts: Mapping[int, int]) -> dict[int, int]:
        """Return the bytes in memory of the given attempts (request -> attempt) by request, without those of
        unknown size; may be called in any thread."""
        found = {key[0]: self._resident.of(self._watch.path(key)) for key in attempts.items()}
        return {seq: size for seq, size in found.items() if size is not None}

    def foreign(
        self, everything: bool, known: Sequence[ForeignJob] = ()
    ) -> tuple[ForeignJob, ...] | None:  # fmt: skip
        """Return the attempts that a start left alone, and, if ``everything``, all other foreign jobs, which
        takes two calls: the first one returns None. Their ``pes`` are CPUs. ``known``: those of a former
        daemon. For one thread at a time."""
        left = scan.left(self._spool, self._watch.identifier)
        found = foreign.left_alone(left, self.found().cpus)
        if not everything:
            self._foreign.forget()
            return tuple(found)
        others = self._foreign.check(self._watch.own().union(left), known)
        return None if others is None else tuple(sorted((*found, *others), key=lambda job: job.pid))

    def latest(self) -> dict[int, int]:
        """Return for each request with attempts in the spool the number of the last one."""
        found: dict[int, int] = {}
        for _, seq, attempt in scan.attempts(self._spool):
            found[seq] = max(attempt, found.get(seq, 0))
        return found

    def do(self, action: act.Action, request: Request | None, site: Site, now: Instant) -> None:
        """Carry out an action on an attempt, without waiting; ignore all other actions."""
        match action:
            case act.Start():
                if request is not None:
                    self._begin(action, request, site)
            case act.Suspend(seq, attempt, page_out=page_out):
                self._watch.send((seq, attempt), {"do": "suspend", "page_out": page_out})
            case act.Resume(seq, attempt, _, pes):
                # Also to the PEs that it had: it may not have heard of an earlier move.
                pes = pes or (request.pes if request is not None else ())
                self._watch.send((seq, attempt), {"do": "resume", "cpus": cpus_of(pes, site)})
            case act.Migrate(seq, attempt, pes):  # a shepherd of an earlier nqspy knows "resume", too
                self._watch.send((seq, attempt), {"do": "resume", "cpus": cpus_of(pes, site)})
            case act.TakeTurns(seq, attempt):
                if request is not None:
                    self._watch.send((seq, attempt), turns_of(site, request, self._speed))
            case act.Signal(seq, attempt, number):
                self._watch.send((seq, attempt), {"do": "signal", "signal": number})
            case act.Kill(seq, attempt, reason, grace, number):
                message = {"do": "kill", "reason": reason, "grace": grace, "signal": number}
                self._watch.send((seq, attempt), message)
            case act.WriteOutput(seq, attempt, text, streams):
                self._watch.send((seq, attempt), {"do": "write", "text": text, "streams": streams})
            case act.Adjust(seq, attempt):
                if request is not None:
                    changed = adjustment(request, site)
                    self._clashes.mark(request, changed["output"], site)
                    self._watch.send((seq, attempt), changed)
            case act.SetAside(seq, attempt):
                self._watch.set_aside((seq, attempt), site.settings.server.grace)
            case act.Forget(seq, attempt):
                folder = self._watch.path((seq, attempt))
                # The output of a lost attempt stays, even if the request runs again.
                if os.path.lexists(f"{folder}/done") or scan.mark_output(folder):
                    self._cleaner.add(folder)
            case _:
                pass

    def scan(self, expected: Mapping[int, int]) -> Sequence[Observation]:
        """Return what became of each expected attempt (request -> attempt) after a restart, then one
        observation for each stray; watch those that run."""
        self._watch.lock()
        strays: list[Observation] = []
        for folder, seq, attempt in scan.attempts(self._spool):
            if expected.get(seq) == attempt:
                continue
            fate = self._sweep(folder)
            if self._leave:
                if os.path.lexists(folder):  # no later attempt gets its folder
                    self._watch.let_go((seq, attempt))
                    scan.set_aside(folder, self._watch.identifier)
            elif fate not in ("void", "unclaimed"):
                strays.append(ob.ObservedStray(seq, attempt, fate))
        scan.sweep_strays(self._spool, self._watch.identifier)
        if not list(scan.attempts(self._spool)):  # no attempt can use the scripts that an earlier nqspy kept
            shutil.rmtree(os.path.join(self._spool, "scripts"), ignore_errors=True)
        return [self._scan_one((seq, attempt), strays) for seq, attempt in expected.items()] + strays

    def _scan_one(self, key: Key, strays: list[Observation]) -> Observation:
        folder = self._watch.path(key)
        finding = scan.examine(folder, self._watch.identifier)
        if finding.pidfd is not None:
            self._watch.adopt(key, finding.pidfd)
        match finding.fate:
            case "unclaimed" | "void":
                with contextlib.suppress(OSError):
                    scan.claim_void(folder)
                # If it runs all the same (perhaps its folder was removed) it is killed.
                scan.kill_remaining(folder, self._home, self._watch.identifier)
                return ob.ObservedVoid(*key)
            case "done":
                return scan.observation(*key, finding.record)
            case "later":  # watched as far as possible: its records are not understood
                strays.append(ob.ObservedStray(*key, "later"))
            case "undelivered":
                self._watch.redeliver(key)
            case "lost":
                text = _REBOOT if finding.rebooted else ""
                if (loss := self._watch.loss(key, finding.used, text, wait=True)) is not None:
                    return loss
                self._watch.await_remaining(key)
        kind = ob.ObservedExiting if finding.over else ob.ObservedRunning
        return kind(*key, finding.used)

    def _begin(self, start: act.Start, request: Request, site: Site) -> None:
        key = (request.seq, start.attempt)
        try:
            script = self._blob(request.spec.script)
            environment = self._blob(request.spec.environment)
        except KeyError:
            text = "its script or environment is missing from the database, or damaged there"
            self._put(ob.ObservedNotStarted(*key, text))
            return
        order = make_order(
            request, start, site, home=self._home, speed=self._speed, script=script, environment=environment
        )
        order["patience"] = self._deadlines
        self._clashes.mark(request, order["output"], site)
        self._watch.begin(key, order)

    def _sweep(self, folder: str) -> Fate:
        """Remove the folder of an attempt that is not expected, if it has ended; return its fate."""
        finding = scan.examine(folder, self._watch.identifier)
        finding.close()
        if finding.fate == "lost" and not os.path.lexists(f"{folder}/kept"):
            scan.kill_remaining(folder, self._home, self._watch.identifier)
            scan.mark_output(folder)
        if finding.fate in ("done", "void", "unclaimed", "lost"):
            scan.remove(folder)
        return finding.fate
