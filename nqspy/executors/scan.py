"""The fate of an attempt, by its records in the spool and the processes that are there."""

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from nqspy.executors import proc, records, scratch
from nqspy.model.observations import (
    Observation,
    ObservedEnded,
    ObservedLost,
    ObservedNotStarted,
    ObservedVoid,
)
from nqspy.model.requests import Ending, Used

Fate = Literal["unclaimed", "void", "alive", "undelivered", "done", "lost", "later"]


@dataclass(slots=True)
class Finding:
    """Finding of a look at one attempt. ``pidfd``: of its living shepherd, the finder's to close; ``record``:
    its story as far as it is known; ``rebooted``: it was of a former boot of the machine; ``over``: its job
    has ended, its output is still to be delivered."""

    fate: Fate
    pidfd: int | None = None
    record: dict[str, Any] = field(default_factory=dict)
    rebooted: bool = False
    over: bool = False

    @property
    def used(self) -> Used:
        """Use that was last written down."""
        return Used(*self.record.get("used", ()))


def look(folder: str, identifier: proc.Identifier) -> Finding:
    """Return what became of the attempt in that folder.

    The shepherd's pidfd is opened before the records are read, so that an end in between is not missed.
    Raises OSError when it cannot be told, as no descriptor is to be had.
    """
    story = records.story(folder)
    if story is not None:
        return Finding("done", record=story)
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
    """Return what the records of a claimed attempt say; ``pidfd``: of its living shepherd."""
    if records.protocol(folder) > records.PROTOCOL:
        return Finding("later", pidfd)
    done = records.read(folder, "done")
    if done is not None:
        if pidfd is not None:
            os.close(pidfd)
        return Finding("done", record=done)
    last = {"used": records.noted_use(folder)}
    ended = records.read(folder, "exit")
    if ended is None and pidfd is None:
        # After a power cut its name may be missing while its line is there.
        ended = records.read(folder, "exit", within="claim")
    if ended is not None:
        fate: Fate = "undelivered" if pidfd is None else "alive"
        return Finding(fate, pidfd, ended["ending"], over=True)
    if pidfd is not None:
        return Finding("alive", pidfd, last)
    return Finding("lost", record=last, rebooted=rebooted)


BRIEF = 60.0
"""Real seconds within which the loss of an attempt is one soon after its start."""


def brief(folder: str) -> bool:
    """True if an attempt that was lost just now was claimed no longer ago than that."""
    try:
        now = time.time()  # noqa: TID251 - compared with the time of a file
        return now - os.stat(f"{folder}/claim").st_mtime <= BRIEF
    except OSError:
        return False


def claim_void(folder: str) -> bool:
    """Claims an attempt so that it can never begin; False when somebody was quicker. Raises OSError."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return records.claim(folder, records.VOID)


def observation(seq: int, attempt: int, record: dict[str, Any]) -> Observation:
    """The end that a ``done`` record tells."""
    if record.get("again"):
        return ObservedVoid(seq, attempt, record["text"], record.get("unknown", False))
    if record["reason"] == "not_started" and record.get("status") is None:
        return ObservedNotStarted(seq, attempt, record["text"])
    ending = Ending(
        record["reason"],
        record["status"],
        record["signal"],
        Used(*record["used"]),
        record["text"],
        record.get("stdout"),
        record.get("stderr"),
    )
    return ObservedEnded(seq, attempt, ending)


def loss(
    key: tuple[int, int], folder: str, used: Used, text: str = "", *, sure: bool, brief: bool
) -> ObservedLost:
    """Tell that the end of an attempt was lost, and what it has left in the spool."""
    left = stayed(folder)
    return ObservedLost(
        *key, used, text, unsure=not sure, brief=brief, stdout=left.get("stdout"), stderr=left.get("stderr")
    )


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
    text = f"its output stays in {folder} ({records.shown_by(folder, *list(found)[:1])})" if found else ""
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


def go_on(folder: str, identifier: proc.Identifier) -> None:
    """Has the shepherd of a stray go on, should somebody have stopped it. Raises OSError."""
    finding = look(folder, identifier)
    if finding.pidfd is not None:
        proc.send_by(finding.pidfd, signal.SIGCONT)
        os.close(finding.pidfd)


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


def attempts(spool: str) -> Iterator[tuple[str, int, int]]:
    """Folders of attempts in the spool: path, request, attempt."""
    for entry in os.scandir(spool):
        named = records.attempt_named(entry.name)
        if named is not None and entry.is_dir(follow_symlinks=False):
            yield entry.path, *named


def remove(folder: str) -> None:
    """Removes an attempt's folder, unless output had to stay in it, and what a shepherd that was killed left
    of its scratch folder."""
    with contextlib.suppress(OSError):  # it is tried again after the next restart
        left = records.claimed_with(folder).get("scratch")
        if left:
            scratch.clear(*left)
        done = records.read(folder, "done")
        if (done is not None and done.get("kept")) or os.path.lexists(f"{folder}/kept"):
            return
        for entry in os.scandir(folder):
            os.unlink(entry.path)
        os.rmdir(folder)


QUIET = 5.0
"""Real seconds without a new folder before clearing begins."""
_MOST = 20_000
"""Folders that may lie about; beyond, the oldest are cleared at once."""
_STEP = 20


class SpoolCleaner:
    """Removes the folders of attempts whose end is committed: later, when nothing is going on. Some file
    systems avoid inodes that were freed a moment ago, so that making files gets slow after deletions
    (measured: an ext4 without journal, a fifth of a short job's whole cost).

    A thread that sleeps until there is something to remove; what it leaves, the next scan finds."""

    def __init__(self, quiet: float = QUIET) -> None:
        """``quiet``: real seconds without a new folder before clearing begins."""
        self._quiet = quiet
        self._folders: deque[str] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def add(self, folder: str) -> None:
        """Has a folder removed at some time, unless output had to stay in it."""
        self._folders.append(folder)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="broom", daemon=True)
            self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Ends the thread."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait()
            self._wake.clear()
            # Whether to stop is looked at after each clear: the word for it may just have been cleared.
            while self._folders and not self._stopping:
                if len(self._folders) > _MOST or not self._wake.wait(self._quiet):
                    left = _STEP  # until a new one comes, at least so many
                    while self._folders and (left > 0 or not self._wake.is_set()):
                        remove(self._folders.popleft())
                        left -= 1
                self._wake.clear()
