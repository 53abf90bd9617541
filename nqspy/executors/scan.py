"""What became of an attempt, by its records in the spool and the processes that are there."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from nqspy.executors import cage, proc, records
from nqspy.model.requests import Ending, Used
from nqspy.model.sightings import SeenEnded, SeenNotStarted, SeenVoid, Sighting

_LOOKS = 5
_DYING = 0.5
"""Real seconds in which killed processes should be gone: on a busy machine a signal is not an end yet."""

Fate = Literal["unclaimed", "void", "alive", "undelivered", "done", "lost", "later"]


@dataclass(slots=True)
class Finding:
    """What a look at one attempt found. ``pidfd``: of its living shepherd, the finder's to close;
    ``record``: its story as far as it is known; ``rebooted``: it was of a former boot of the machine."""

    fate: Fate
    pidfd: int | None = None
    record: dict[str, Any] = field(default_factory=dict)
    rebooted: bool = False

    @property
    def used(self) -> Used:
        """What it had used when that was last written down."""
        return Used(*self.record.get("used", ()))


def look(folder: str, identifier: proc.Identifier) -> Finding:
    """What became of the attempt in that folder.

    The shepherd's pidfd is opened before the records are read, so that an end in between is not missed.
    """
    holder = records.holder(folder)
    if holder is None:
        return Finding("unclaimed")
    if holder == records.VOID:
        return Finding("void")
    rebooted = False
    try:
        identity = proc.Identity.parse(holder)
        pidfd = identifier.reopen(identity)
        rebooted = identity.boot != identifier.boot
    except ValueError:
        pidfd = None  # a claim that was damaged, by a power cut perhaps
    if records.protocol(folder) > records.PROTOCOL:
        return Finding("later", pidfd)
    done = records.read(folder, "done")
    if done is not None:
        if pidfd is not None:
            os.close(pidfd)
        return Finding("done", record=done)
    last = {"used": records.noted_use(folder)}
    if pidfd is not None:
        return Finding("alive", pidfd, last)
    ended = records.read(folder, "exit")
    if ended is not None:
        return Finding("undelivered", record=ended["ending"])
    return Finding("lost", record=last, rebooted=rebooted)


def claim_void(folder: str) -> bool:
    """Claims an attempt so that it can never begin; False when somebody was quicker. Raises OSError."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return records.claim(folder, records.VOID)


def sighting(seq: int, attempt: int, record: dict[str, Any]) -> Sighting:
    """The end that a ``done`` record tells."""
    if record.get("again"):
        return SeenVoid(seq, attempt, record["text"])
    if record["reason"] == "not_started":
        return SeenNotStarted(seq, attempt, record["text"])
    ending = Ending(
        record["reason"],
        record["status"],
        record["signal"],
        Used(*record["used"]),
        record["text"],
        record.get("stdout"),
        record.get("stderr"),
    )
    return SeenEnded(seq, attempt, ending)


def set_aside(folder: str) -> None:
    """Gives the folder a name under which no attempt is looked for. Raises OSError."""
    spool, name = os.path.split(folder)
    for number in range(1000):
        aside = f"{spool}/stray-{name}" + (f"-{number}" if number else "")
        if not os.path.lexists(aside):
            os.rename(folder, aside)
            return


def sweep_aside(spool: str, identifier: proc.Identifier) -> None:
    """Removes folders that were put aside and have nothing more to tell."""
    for entry in os.scandir(spool):
        if entry.name.startswith("stray-") and entry.is_dir(follow_symlinks=False):
            finding = look(entry.path, identifier)
            if finding.pidfd is not None:
                os.close(finding.pidfd)
            if finding.fate == "done":
                remove(entry.path)


class _Marks(NamedTuple):
    """What a job's processes have in their environment: request, attempt (a request that was lost runs again,
    and its folders are swept while it does; none, where a former release has started it) and home."""

    request: bytes
    attempt: bytes
    home: str

    def on(self, pid: int) -> bool:
        """Whether a process has them."""
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            return False
        if b"NQSPY_HOME=" + os.fsencode(self.home) not in variables:
            return False
        attempts = [each for each in variables if each.startswith(b"NQSPY_ATTEMPT=")]
        return attempts in ([], [self.attempt]) and any(each.startswith(self.request) for each in variables)


def end_remains(folder: str, home: str, identifier: proc.Identifier) -> None:
    """Kills what still runs of a job whose shepherd was killed: a lost request may be started anew, and two
    must not run side by side."""
    record = records.read(folder, "pid")
    leader = None
    if record is not None:
        leader = proc.Identity.parse(record["leader"]) if record["leader"] else None
        if leader is not None and leader.boot != identifier.boot:
            return
        cage.kill_remains(*record["cage"], *record.get("controls", ()))
    seq, _, attempt = os.path.basename(folder).partition(".")
    marks = _Marks(f"QSUB_REQID={seq}.".encode("ascii"), f"NQSPY_ATTEMPT={attempt}".encode("ascii"), home)
    for _ in range(_LOOKS):  # some may fork while they are looked for
        found = list(_remains(leader, marks))
        if not found:
            return
        proc.send(found, signal.SIGKILL, list(_remains(leader, marks)))
        proc.await_ends(found, _DYING)


def _remains(leader: proc.Identity | None, marks: _Marks) -> Iterator[int]:
    """Processes of the job: in the leader's session and not older than it, or with the job's marks in their
    environment."""
    first = proc.stat(leader.pid) if leader is not None else None
    if leader is not None and first is not None and first.start != leader.start:
        leader = None  # its number was given away, and so nothing is left of its session
    for pid in proc.all_pids():
        seen = proc.stat(pid)
        if seen is None or seen.state in "ZX" or pid == os.getpid():
            continue
        if leader is not None and seen.start < leader.start:
            continue
        if (leader is not None and seen.session == leader.pid) or marks.on(pid):
            yield pid


def attempts(spool: str) -> Iterator[tuple[str, int, int]]:
    """Folders of attempts in the spool: path, request, attempt."""
    for entry in os.scandir(spool):
        seq, dot, attempt = entry.name.partition(".")
        if dot and seq.isdigit() and attempt.isdigit() and entry.is_dir(follow_symlinks=False):
            yield entry.path, int(seq), int(attempt)


def remove(folder: str) -> None:
    """Removes an attempt's folder, unless output had to stay in it."""
    done = records.read(folder, "done")
    if done is not None and done.get("kept"):
        return
    try:
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:
        pass  # it is tried again after the next restart
