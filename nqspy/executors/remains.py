"""Remains of a job whose shepherd was killed: found, ended, and whether that is certain."""

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any, NamedTuple

from nqspy.executors import cage, proc, records
from nqspy.model.keys import name_of

_LOOKS = 5


class _Marks(NamedTuple):
    """Marks that a job's processes have in their environment: request, attempt (a request that was lost runs
    again, and its folders are swept while it does; none, where a former release has started it) and home. And
    the attempt's folder, where their output goes."""

    request: bytes
    attempt: bytes
    home: str
    folder: str

    def on(self, pid: int) -> bool:
        """True if a process has them, or writes the attempt's output, or is its shepherd: stands in its
        folder and was forked by a starter, so it is no job, nor an operator's shell."""
        if _leads(f"/proc/{pid}/cwd") in (self.folder, f"{self.folder} (deleted)"):
            with contextlib.suppress(OSError):
                if b"/starter.py" in proc.contents(f"/proc/{pid}/cmdline"):
                    return True
        if any(_leads(f"/proc/{pid}/fd/{fd}").startswith(f"{self.folder}/std") for fd in (1, 2)):
            return True
        try:
            variables = proc.contents(f"/proc/{pid}/environ").split(b"\0")
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


def end_remains(folder: str, home: str, identifier: proc.Identifier) -> bool:
    """Kills what still runs of a job whose shepherd was killed: a lost request may be started anew, and two
    must not run side by side. Whether it is certain that nothing is left: its cgroup says so, or the starter
    that has inherited it, or it was of a former boot. Raises OSError when that cannot be seen, as no
    descriptor is to be had."""
    record = records.read(folder, "pid")
    with contextlib.suppress(ValueError):
        if proc.Identity.parse(records.holder(folder) or "").boot != identifier.boot:
            return True
    caged = record["cage"] if record is not None else records.claimed_with(folder).get("cage")
    controls = record.get("controls", ()) if record is not None else ()
    emptied = cage.kill_remains(*caged, *controls) if caged is not None else False
    _end_marked(folder, home, record)
    return emptied or os.path.lexists(f"{folder}/swept")


def inherited(folder: str, identifier: proc.Identifier) -> bool:
    """True if the starter is alive that inherits what is left of that job, ends it, and then says so."""
    try:
        fd = identifier.reopen(proc.Identity.parse(records.claimed_with(folder)["keeper"]))
    except (ValueError, KeyError, AttributeError):
        return False
    if fd is not None:
        os.close(fd)
    return fd is not None


def _end_marked(folder: str, home: str, record: dict[str, Any] | None) -> None:
    """Kills what the job's session and marks tell of."""
    leader = None
    if record is not None and record["leader"]:
        leader = proc.Identity.parse(record["leader"])
    seq, attempt = records.attempt_named(folder) or (0, 0)
    marks = _Marks(
        f"QSUB_REQID={name_of(seq)}.".encode("ascii"),
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
        proc.await_ends(found, cage.DYING)


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
