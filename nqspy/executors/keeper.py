"""The starter's knowledge of its shepherds, and what it does for one that was killed.

The starter is the subreaper above its shepherds (each is the one of its job). So whoever is left of a job
whose shepherd was killed, in a session of his own and without a mark, comes to the starter as a child. All
its children that are no shepherds are such: they are killed, and that nothing is left is noted in the
attempt's folder (``swept``). For that it stays after its daemon, as long as it has shepherds. Standard
library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket

from nqspy.executors import cage, forks, proc, records
from nqspy.executors.control import rmdir

_HURRIED = 50
_PAUSE = 0.02
_PATIENCE = 1.0


class Keeper:
    """Shepherds by pid, and attempts whose shepherd was killed and whose remains are being ended."""

    def __init__(self, spool: str, reports: socket.socket, seat: cage.Seat, others: set[int]) -> None:
        """``others``: children of the starter that are neither shepherds nor remains; those that have ended
        are taken out, and what one that was killed leaves is ended. Raises OSError where it cannot become a
        subreaper."""
        self._spool = spool
        self._reports = reports
        self._seat = seat
        self._shepherds: dict[int, str] = {}
        self._births: dict[int, str] = {}
        self._others = others
        self._lost: list[str] = []
        self._rounds = 0
        forks.become_subreaper()
        _tend(spool, seat.name, seat.bases())

    def keeps(self) -> bool:
        """True if there is something to stay for."""
        return bool(self._shepherds or self._lost)

    def wait(self) -> float | None:
        """Real seconds after which it wants to look again, None: when a child ends."""
        if not self._lost:
            return None
        return _PAUSE if self._rounds < _HURRIED else _PATIENCE

    def add(self, pid: int, name: str) -> None:
        """A shepherd was forked for the attempt ``name``."""
        self._shepherds[pid] = self._births[pid] = name

    def turn(self, pid: int, name: str) -> None:
        """A shepherd who was spare has the attempt ``name`` now."""
        self._shepherds[pid] = name

    def rest(self, pids: list[int]) -> None:
        """Note that these have seen theirs to its end."""
        for pid in pids:
            if pid in self._shepherds:
                self._shepherds[pid] = ""

    def look(self) -> None:
        """Waits for the children that have ended. A shepherd that did not leave by itself was killed."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if pid in self._others:
                    self._others.remove(pid)
                    self._lost += [""] if status else []
                name = self._shepherds.pop(pid, None)
                if name is not None:
                    if status:
                        self._lost += [name] if name else []
                        self._rounds = 0
                    self._seat.leave_birthplace(self._births.pop(pid), killed=bool(status))
        if self._lost:
            self._sweep()

    def leave(self) -> None:
        """Takes this home's cgroups away, unless another starter has them: a job may be about to enter one,
        which is empty until then."""
        with contextlib.suppress(OSError), open(f"{self._spool}/starter.lock", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._seat.leave()
            _tend(self._spool, self._seat.name, self._seat.bases())

    def _sweep(self) -> None:
        """Kill in one round what came to us; when nothing is left for sure that is noted and told."""
        self._rounds += 1
        left = self._strangers()
        if left:
            before = _trees(left)
            # Who is stopped forks no more: then all can be found.
            proc.send(before, signal.SIGSTOP, _trees(left))
            before = _trees(self._strangers())
            proc.send(before, signal.SIGKILL, before)
        elif not self._strangers():  # a list that is read while somebody ends may miss others
            lost, self._lost = self._lost, []
            for name in filter(None, lost):
                with contextlib.suppress(OSError):  # no folder any more, or no room: then it is not known
                    records.add(f"{self._spool}/{name}", "swept", {})
                seq, attempt = records.attempt_named(name) or (0, 0)
                message = {"k": "end", "s": seq, "a": attempt, "u": None}
                with contextlib.suppress(OSError):
                    self._reports.sendto(json.dumps(message).encode("ascii"), f"{self._spool}/reports.sock")

    def _strangers(self) -> list[int]:
        known = self._others.union(self._shepherds)
        return [pid for pid in proc.children(os.getpid()) if pid not in known]


def _trees(roots: list[int]) -> list[int]:
    return [pid for root in roots for pid in (root, *proc.descendants(root))]


def _tend(spool: str, name: str, own: list[str]) -> None:
    """Keep the list of this home's cgroups (``cgroups`` in the spool, one path a line): a starter in another
    login session has its own elsewhere. Remove what is empty of the places noted that are not ``own``, and
    note those that are there.

    ``name``: of this home's directory among the cgroups; what does not end in it is not touched. The
    starter's lock must be held. Where the list cannot be read or written it stays as it was.
    """
    path, noted = f"{spool}/cgroups", list[str]()
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileNotFoundError):
            noted = proc.contents(path).decode("utf-8", "surrogateescape").split("\n")[:-1]
        for folder in noted:
            if folder not in own and _is_ours(folder, name):
                cage.sweep(folder)
                rmdir(folder)
        places = dict.fromkeys((*noted, *own))
        there = [each for each in places if _is_ours(each, name) and os.path.isdir(each)]
        if there and there != noted:
            data = "".join(f"{each}\n" for each in there).encode("utf-8", "surrogateescape")
            proc.replace(path, data, durable=True)
        elif there != noted:
            os.unlink(path)


def _is_ours(folder: str, name: str) -> bool:
    plain = os.path.isabs(folder) and os.path.normpath(folder) == folder and "\n" not in folder
    return plain and os.path.basename(folder) == name and os.path.realpath(folder) == folder
