"""Finds out by records and processes what became of attempts; ends lost jobs; removes folders."""

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from nqspy.executors import cgroups, proc, records, scratch
from nqspy.model import observations as ob
from nqspy.model.keys import name_of
from nqspy.model.requests import Ending, Used

Fate = Literal["unclaimed", "void", "alive", "undelivered", "done", "lost", "later"]
"""Fates of an attempt: not begun; can never begin; its shepherd lives; its job has ended, its delivery has
not; over; its shepherd was killed before it recorded an end; begun by a later nqspy."""


@dataclass(slots=True)
class Finding:
    """Fate of one attempt, with details. ``pidfd``: of its living shepherd, to be closed; ``record``: its end
    and use as far as recorded; ``rebooted``: True if it began in an earlier boot; ``over``: True if its job
    has ended and its output is still to be delivered."""

    fate: Fate
    pidfd: int | None = None
    record: dict[str, Any] = field(default_factory=dict)
    rebooted: bool = False
    over: bool = False

    @property
    def used(self) -> Used:
        """Return the CPU time, wall time and memory last recorded for the attempt."""
        return Used(*self.record.get("used", ()))

    def close(self) -> None:
        """Close the pidfd of the attempt's shepherd."""
        if self.pidfd is not None:
            os.close(self.pidfd)


def examine(folder: str, identifier: proc.Identifier) -> Finding:
    """Return what became of the attempt in that folder; the pidfd is opened before the records are read, so
    that no end is missed. Raises OSError if no descriptor is free."""
    story = records.story(folder)
    if story is not None:
        return Finding("done", record=story)
    holder = records.holder(folder)
    if holder is None or holder == records.VOID:
        return Finding("unclaimed" if holder is None else "void")
    finding = Finding("lost")
    with contextlib.suppress(ValueError):  # a claim that was damaged, by a power cut perhaps
        identity = proc.Identity.parse(holder)
        finding = Finding("lost", identifier.reopen(identity), rebooted=identity.boot != identifier.boot)
    alive = finding.pidfd is not None
    try:
        if records.protocol(folder) > records.PROTOCOL:
            finding.fate = "later"
        elif (done := records.read(folder, "done")) is not None:
            finding.close()
            finding.fate, finding.pidfd, finding.record = "done", None, done
        else:
            # After a power cut the name of the record may be missing while its line is there.
            ended = records.read(folder, "exit") or (None if alive else records.read(folder, "exit", "claim"))
            finding.fate = "alive" if alive else "lost" if ended is None else "undelivered"
            finding.over = ended is not None
            finding.record = {"used": records.noted_use(folder)} if ended is None else ended["ending"]
    except BaseException:
        finding.close()
        raise
    return finding


_TRIES = 5


class _Marks(NamedTuple):
    """Marks that identify a job's processes: variables (request, attempt, home), and output files."""

    request: bytes
    attempt: bytes
    home: str
    folder: str

    def on(self, pid: int) -> bool:
        """True if a process has the marks, writes the attempt's output, or is its shepherd: in the attempt's
        folder with the spawner's command line, so it is no job and no operator's shell."""
        if _leads(f"/proc/{pid}/cwd") in (self.folder, f"{self.folder} (deleted)"):
            with contextlib.suppress(OSError):
                command = proc.contents(f"/proc/{pid}/cmdline")
                if b"/spawner.py" in command or b"/starter.py" in command:  # the name of earlier versions
                    return True
        if any(_leads(f"/proc/{pid}/fd/{fd}").startswith(f"{self.folder}/std") for fd in (1, 2)):
            return True
        try:
            variables = proc.contents(f"/proc/{pid}/environ").split(b"\0")
        except OSError as error:
            if error.errno in proc.SHORT:
                raise
            return False
        marked = {self.attempt, b"NQSPY_HOME=" + os.fsencode(self.home)}.issubset(variables)
        return marked and any(each.startswith(self.request) for each in variables)


def _leads(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def kill_remaining(folder: str, home: str, identifier: proc.Identifier) -> bool:
    """Kill the remaining processes of a lost job; return True if its cgroup, its spawner's record (``swept``)
    or another boot proves that none remains. Raises OSError if no descriptor is free."""
    record = records.read(folder, "pid")
    with contextlib.suppress(ValueError):
        if proc.Identity.parse(records.holder(folder) or "").boot != identifier.boot:
            return True
    found = record or records.claimed_with(folder)
    group = found.get("cage")
    emptied = group is not None and cgroups.kill_all(*group, *found.get("controls", ()))
    _kill_marked(folder, home, record)
    return emptied or os.path.lexists(f"{folder}/swept")


def inherited(folder: str, identifier: proc.Identifier) -> bool:
    """True if the spawner above a lost job lives: it kills the processes, and reports when none remains."""
    with contextlib.suppress(ValueError, KeyError, AttributeError):
        fd = identifier.reopen(proc.Identity.parse(records.claimed_with(folder)["keeper"]))
        if fd is not None:
            os.close(fd)
            return True
    return False


def _kill_marked(folder: str, home: str, record: dict[str, Any] | None) -> None:
    """Kill the processes with the job's session or marks; ``record``: the record ``pid``, with the leader."""
    seq, attempt = records.attempt_named(folder) or (0, 0)
    request, number = f"QSUB_REQID={name_of(seq)}.", f"NQSPY_ATTEMPT={attempt}"
    marks = _Marks(request.encode("ascii"), number.encode("ascii"), home, os.path.realpath(folder))
    born = session = 0
    if record is not None and record["leader"]:
        leader = proc.Identity.parse(record["leader"])
        born, first = leader.start, proc.stat(leader.pid, sure=True)
        # Without its leader a session cannot be distinguished from a later one with its number.
        session = leader.pid if first is not None and first.start == born else 0
    for _ in range(_TRIES):  # some may fork during the search
        found = list(_processes(born, session, marks))
        if not found:
            return
        proc.send(found, signal.SIGKILL, list(_processes(born, session, marks)))
        proc.await_ends(found, cgroups.DYING)


def _processes(born: int, session: int, marks: _Marks) -> Iterator[int]:
    """Yield the job's processes: not older than its leader, in its session (0: unknown) or with its marks."""
    for pid in proc.all_pids():
        reading = proc.stat(pid, sure=True)
        if reading is None or reading.state in "ZX" or pid == os.getpid() or reading.start < born:
            continue
        if (session and reading.session == session) or marks.on(pid):
            yield pid


BRIEF = 60.0
"""Real seconds after the claim within which a lost attempt counts as lost soon after its start."""


def brief(folder: str) -> bool:
    """True if an attempt that was just found lost was claimed at most `BRIEF` seconds ago."""
    with contextlib.suppress(OSError):
        now = time.time()  # noqa: TID251 - compared with the time of a file
        return now - os.stat(f"{folder}/claim").st_mtime <= BRIEF
    return False


def claim_void(folder: str) -> bool:
    """Claim an attempt so that it can never begin; return False if a shepherd was quicker. Return True too on
    a full disk, where nothing can begin. Raises OSError if no descriptor is free."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return records.claim(folder, records.VOID)
    except OSError as error:
        if error.errno in proc.SHORT:
            raise
        return True  # on a full disk nothing can begin


def observation(seq: int, attempt: int, record: dict[str, Any]) -> ob.Observation:
    """Return the observation of an attempt's end that a ``done`` record describes."""
    if record.get("again"):
        return ob.ObservedVoid(seq, attempt, record["text"], record.get("unknown", False))
    if record["reason"] == "not_started" and record.get("status") is None:
        return ob.ObservedNotStarted(seq, attempt, record["text"])
    how = record["reason"], record["status"], record["signal"]
    files = record.get("stdout"), record.get("stderr")
    return ob.ObservedEnded(seq, attempt, Ending(*how, Used(*record["used"]), record["text"], *files))


def spooled(folder: str) -> dict[str, str]:
    """Return the paths of the streams that have output in the spool, by stream."""
    found = {}
    for path in (f"{folder}/stdout", f"{folder}/stderr"):
        with contextlib.suppress(OSError):  # it was brought to its place, or never written
            if os.stat(path).st_size:
                found[os.path.basename(path)] = path
    return found


def give_up_delivery(folder: str, ending: dict[str, Any]) -> dict[str, Any]:
    """Write and return the ``done`` record of an attempt that ended as ``ending`` says: its output stays in
    the spool. Raises OSError."""
    found = spooled(folder)
    text = f"its output stays in {folder} ({records.shown_by(folder, *found)})" if found else ""
    story = ending | found | {"text": "; ".join(filter(None, (ending["text"], text))), "kept": bool(found)}
    records.add(folder, "done", story)
    return story


def mark_output(folder: str) -> bool:
    """Record ``kept`` for a lost attempt with output, so that its folder stays in the spool; return False if
    that fails, True also if there is no output."""
    with contextlib.suppress(OSError):
        if records.holder(folder) not in (None, records.VOID) and spooled(folder):
            records.add(folder, "kept", {})
        return True
    return False


def set_aside(folder: str, identifier: proc.Identifier) -> None:
    """Rename the folder of a stray to ``stray-SEQ.ATTEMPT``; its shepherd goes on. Raises OSError."""
    finding = examine(folder, identifier)
    if finding.pidfd is not None:
        proc.send_by(finding.pidfd, signal.SIGCONT)
    finding.close()
    spool, name = os.path.split(folder)
    for number in range(1000):
        aside = f"{spool}/stray-{name}" + (f"-{number}" if number else "")
        if not os.path.lexists(aside):
            os.rename(folder, aside)
            return


def sweep_strays(spool: str, identifier: proc.Identifier) -> None:
    """Remove the folders ``stray-*`` of strays that have ended."""
    for entry in os.scandir(spool):
        if entry.name.startswith("stray-") and entry.is_dir(follow_symlinks=False):
            finding = examine(entry.path, identifier)
            finding.close()
            if finding.fate == "done":
                remove(entry.path)


def left(spool: str, identifier: proc.Identifier) -> list[int]:
    """Return the pids of living shepherds of strays: attempts that a start left alone, or ends just now."""
    found = []
    for entry in os.scandir(spool):
        if entry.name.startswith("stray-") and entry.is_dir(follow_symlinks=False):
            finding = examine(entry.path, identifier)
            if finding.pidfd is not None:
                found.append(proc.pid_of(finding.pidfd))
            finding.close()
    return found


def attempts(spool: str) -> Iterator[tuple[str, int, int]]:
    """Yield the folders of attempts in the spool: path, request, attempt."""
    for entry in os.scandir(spool):
        named = records.attempt_named(entry.name)
        if named is not None and entry.is_dir(follow_symlinks=False):
            yield entry.path, *named


def remove(folder: str) -> None:
    """Remove an attempt's folder, unless output must stay in it, and its scratch folder."""
    with contextlib.suppress(OSError):  # it is tried again after the next restart
        folders = records.claimed_with(folder).get("scratch")
        if folders:
            scratch.clear(*folders)
        done = records.read(folder, "done")
        if (done is not None and done.get("kept")) or os.path.lexists(f"{folder}/kept"):
            return
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        os.rmdir(folder)


QUIET = 5.0
"""Real seconds without a new folder before removing begins."""
_MOST = 20_000
"""Most folders that may wait; beyond that the oldest are removed at once."""
_STEP = 20


class SpoolCleaner:
    """Thread that removes folders of ended attempts while nothing else goes on: some file systems are slow
    after deletions (ext4 without journal: a fifth of a short job's cost). The next scan finds the rest."""

    def __init__(self, quiet: float = QUIET) -> None:
        """``quiet``: real seconds without a new folder before removing begins."""
        self._quiet = quiet
        self._folders: deque[str] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def add(self, folder: str) -> None:
        """Have a folder removed later, unless output must stay in it."""
        self._folders.append(folder)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="cleaner", daemon=True)
            self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Stop the thread that removes folders."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait()
            self._wake.clear()
            # Check for the stop after each clear, which may just have cleared its event.
            while self._folders and not self._stopping:
                if len(self._folders) > _MOST or not self._wake.wait(self._quiet):
                    remaining = _STEP  # at least so many, then until a new one comes
                    while self._folders and (remaining > 0 or not self._wake.is_set()):
                        remove(self._folders.popleft())
                        remaining -= 1
                self._wake.clear()
