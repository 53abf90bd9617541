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
    Raises OSError when it cannot be told, as no descriptor is to be had.
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
    try:
        return _read(folder, pidfd, rebooted)
    except BaseException:
        if pidfd is not None:
            os.close(pidfd)
        raise


def _read(folder: str, pidfd: int | None, rebooted: bool) -> Finding:
    """What the records of a claimed attempt say; ``pidfd``: of its living shepherd."""
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


def stayed(folder: str) -> dict[str, str]:
    """The streams that have output in the spool, and where."""
    found = {}
    for name in ("stdout", "stderr"):
        try:
            if os.stat(f"{folder}/{name}").st_size:
                found[name] = f"{folder}/{name}"
        except OSError:
            continue  # it was brought to its place, or never written
    return found


def give_up_delivery(folder: str, ending: dict[str, Any]) -> dict[str, Any]:
    """Completes the story of an attempt whose output is not tried to be brought any more: what is there stays
    in the spool. Raises OSError when that cannot be written down."""
    found = stayed(folder)
    text = f"its output stays in {folder}" if found else ""
    story = ending | found | {"text": "; ".join(filter(None, (ending["text"], text))), "kept": bool(found)}
    records.add(folder, "done", story)
    return story


def keep_lost(folder: str) -> bool:
    """Has the output of an attempt without an end stay in the spool; False when it cannot be marked so."""
    try:
        if records.holder(folder) not in (None, records.VOID) and stayed(folder):
            records.add(folder, "kept", {})
    except OSError:
        return False
    return True


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
    and its folders are swept while it does; none, where a former release has started it) and home. And the
    attempt's folder, where their output goes."""

    request: bytes
    attempt: bytes
    home: str
    folder: str

    def on(self, pid: int) -> bool:
        """Whether a process has them, or writes the attempt's output."""
        if any(_leads(f"/proc/{pid}/fd/{fd}").startswith(f"{self.folder}/std") for fd in (1, 2)):
            return True
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError as error:
            if error.errno in proc.SHORT:
                raise
            return False
        if b"NQSPY_HOME=" + os.fsencode(self.home) not in variables:
            return False
        attempts = [each for each in variables if each.startswith(b"NQSPY_ATTEMPT=")]
        return attempts in ([], [self.attempt]) and any(each.startswith(self.request) for each in variables)


def _leads(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def end_remains(folder: str, home: str, identifier: proc.Identifier) -> None:
    """Kills what still runs of a job whose shepherd was killed: a lost request may be started anew, and two
    must not run side by side. Raises OSError when that cannot be seen, as no descriptor is to be had."""
    record = records.read(folder, "pid")
    leader = None
    if record is not None:
        leader = proc.Identity.parse(record["leader"]) if record["leader"] else None
        if leader is not None and leader.boot != identifier.boot:
            return
        cage.kill_remains(*record["cage"], *record.get("controls", ()))
    seq, _, attempt = os.path.basename(folder).partition(".")
    marks = _Marks(
        f"QSUB_REQID={seq}.".encode("ascii"),
        f"NQSPY_ATTEMPT={attempt}".encode("ascii"),
        home,
        os.path.realpath(folder),
    )
    born = leader.start if leader is not None else 0
    first = _stat(leader.pid) if leader is not None else None
    # Without its leader a session cannot be told from one that was given its number later.
    session = leader.pid if leader is not None and first is not None and first.start == born else 0
    for _ in range(_LOOKS):  # some may fork while they are looked for
        found = list(_remains(born, session, marks))
        if not found:
            return
        proc.send(found, signal.SIGKILL, list(_remains(born, session, marks)))
        proc.await_ends(found, _DYING)


def _remains(born: int, session: int, marks: _Marks) -> Iterator[int]:
    """Processes of the job: not older than its leader (``born``), and in its session (0: that is not known
    any more) or with the job's marks."""
    for pid in proc.all_pids():
        seen = _stat(pid)
        if seen is None or seen.state in "ZX" or pid == os.getpid() or seen.start < born:
            continue
        if (session and seen.session == session) or marks.on(pid):
            yield pid


def _stat(pid: int) -> proc.Stat | None:
    try:
        return proc.Stat(pid)
    except OSError as error:
        if error.errno in proc.SHORT:
            raise
        return None


def attempts(spool: str) -> Iterator[tuple[str, int, int]]:
    """Folders of attempts in the spool: path, request, attempt."""
    for entry in os.scandir(spool):
        seq, dot, attempt = entry.name.partition(".")
        if dot and seq.isdigit() and attempt.isdigit() and entry.is_dir(follow_symlinks=False):
            yield entry.path, int(seq), int(attempt)


def remove(folder: str) -> None:
    """Removes an attempt's folder, unless output had to stay in it."""
    try:
        done = records.read(folder, "done")
        if (done is not None and done.get("kept")) or os.path.lexists(f"{folder}/kept"):
            return
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:
        pass  # it is tried again after the next restart
