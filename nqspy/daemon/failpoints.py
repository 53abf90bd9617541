"""Failures on demand, for tests and drills; the one module that reads ``NQSPY_FAILPOINTS``.

``commit=kill@17;commit=EIO@30x5;clock=FILE``: at the 17th commit the daemon dies as by ``kill -9``, the
commits 30 to 34 fail as on a broken disk, and the clock is wrong by the ms in FILE. ``foreign=FILE``: scans
for foreign jobs see only the processes in FILE, and all below them. Each process counts from
1 how often it reaches each of the `POINTS`. Actions: ``kill``, ``stop`` (SIGSTOP), and for ``commit`` only:
``EIO`` and ``ENOSPC``, errors instead of the commit; ``unsynced``: from then on the kernel refuses every sync
of the engine's thread."""

import ctypes
import errno
import os
import platform
import re
import signal
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from nqspy.daemon.clock import Clock
from nqspy.daemon.log import LOG
from nqspy.executors import proc
from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant
from nqspy.model.observations import Observation
from nqspy.store.journal import SqliteJournal

VARIABLE = "NQSPY_FAILPOINTS"

POINTS = {
    "row": "a statement of the store is about to be carried out",
    "commit": "a transaction is written and not yet durable",
    "committed": "it is durable; nothing was done or told yet",
    "hand": "before an order to the executor",
    "handed": "the order is given: a shepherd is about to be forked",
    "reply": "before the replies of a group",
    "replied": "the replies are on their way",
    "sighted": "shepherds have reported, nothing of it is taken yet",
    "scan": "a restart is about to look for what runs",
    "scanned": "it has looked, and claimed what was never begun",
    "backup": "a backup is about to be made",
    "copied": "it is made and checked, and those too many are removed",
}
"""Names of the points, and where in the daemon each of them is."""

OF_COMMIT = ("EIO", "ENOSPC", "unsynced")
_ACTIONS = "|".join(("kill", "stop", *OF_COMMIT))
_RULE = re.compile(rf"(?P<point>[a-z]+)=(?P<action>{_ACTIONS})@(?P<first>\d+)(x(?P<times>\d+))?")


class FailpointRule(Struct, frozen=True):
    """Rule: carry out ``action`` from the ``first``-th time on that ``point`` is reached, ``times`` times."""

    point: str
    action: str
    first: int
    times: int = 1


def parse(text: str) -> tuple[tuple[FailpointRule, ...], Path | None, Path | None]:
    """Return the rules in a text (`VARIABLE`), the file of the clock's error and that of the processes which
    scans see, or None. Raises BadValue."""
    rules, files = [], dict[str, Path]()
    for part in filter(None, text.split(";")):
        name, _, file = part.partition("=")
        if name in ("clock", "foreign"):
            files[name] = Path(file)
            continue
        match = _RULE.fullmatch(part)
        fits = match is not None and match["point"] in POINTS
        if match is None or not fits or (match["action"] in OF_COMMIT and match["point"] != "commit"):
            raise BadValue(f"{VARIABLE}: {part!r} is not a failpoint; points: {', '.join(POINTS)}")
        first, times = int(match["first"]), int(match["times"] or 1)
        rules.append(FailpointRule(match["point"], match["action"], first, times))
    return tuple(rules), files.get("clock"), files.get("foreign")


@dataclass(slots=True)
class Failpoints:
    """Failures on demand in this process, by ``rules``; ``passed``: how often each point was reached;
    ``file``: with the error of the clock in ms, or None; ``seen``: with pids for scans, or None."""

    rules: tuple[FailpointRule, ...] = ()
    file: Path | None = None
    seen: Path | None = None
    passed: Counter[str] = field(default_factory=Counter)

    @classmethod
    def here(cls, environment: Mapping[str, str] = os.environ) -> "Failpoints":
        """Return the failures that the environment asks for. Raises BadValue."""
        return cls(*parse(environment.get(VARIABLE, "")))

    def clock(self, clock: Clock) -> Clock:
        """Return ``clock``, or with a ``file`` one that is wrong by the ms in that file."""
        return clock if self.file is None else SteppedClock(**asdict(clock), file=self.file)

    def pids(self) -> list[int]:
        """Return the processes that a scan for foreign jobs sees: all, or those that the file names."""
        if self.seen is None:
            return proc.all_pids()
        named = map(int, self.seen.read_text().split()) if self.seen.exists() else ()
        return [pid for root in named for pid in (root, *proc.descendants(root))]

    def arm(
        self, journal: SqliteJournal, executor: object, upkeep: object, front: object, loop: object
    ) -> None:
        """Make these parts call `hit` at the points that have rules. ``upkeep``: makes backups; ``front``:
        sends replies; ``loop``: the daemon."""
        wanted = {rule.point for rule in self.rules}
        if "commit" in wanted:
            journal.failpoint = lambda: self.hit("commit")
        if "row" in wanted:
            journal.trace(lambda statement: self.hit("row"))
        for room, method, before, after in (
            (journal, "commit", "", "committed"),
            (upkeep, "copy", "backup", "copied"),
            (executor, "do", "hand", "handed"),
            (executor, "scan", "scan", "scanned"),
            (front, "reply", "reply", "replied"),
        ):
            if wanted & {before, after}:
                setattr(room, method, self._around(getattr(room, method), before, after))
        if "sighted" in wanted:
            turn: Callable[[list[Any]], None] = getattr(loop, "turn")  # noqa: B009 - any object

            def with_observations(items: list[Any]) -> None:
                if any(isinstance(item, Observation) for item in items):
                    self.hit("sighted")
                turn(items)

            setattr(loop, "turn", with_observations)  # noqa: B010 - any object

    def hit(self, point: str) -> None:
        """Count that a point is reached, and carry out its rule's action. An error action raises OSError."""
        self.passed[point] += 1
        count = self.passed[point]
        for rule in self.rules:
            if rule.point == point and rule.first <= count < rule.first + rule.times:
                LOG.warning("failpoint %s %d: %s", point, count, rule.action)
                if rule.action == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                elif rule.action == "stop":
                    os.kill(os.getpid(), signal.SIGSTOP)
                elif rule.action == "unsynced":
                    refuse_syncs()
                else:
                    number = getattr(errno, rule.action)
                    raise OSError(number, os.strerror(number))

    def _around(self, call: Callable[..., Any], before: str, after: str) -> Callable[..., Any]:
        def around(*arguments: Any, **named: Any) -> Any:
            if before:
                self.hit(before)
            result = call(*arguments, **named)
            if after:
                self.hit(after)
            return result

        return around


_NO_NEW_PRIVILEGES, _SECCOMP = 38, 22
_SYNCS = {"x86_64": (74, 75), "aarch64": (82, 83)}
"""Numbers of the system calls fsync and fdatasync, by machine."""


def refuse_syncs() -> None:
    """Have the kernel refuse from now on every fsync and fdatasync of this thread and its children with EIO,
    for good: files have what was written, but the disk does not confirm it. Raises OSError; KeyError if this
    machine's numbers are unknown."""
    load, equal, answer, allow, refuse = 0x20, 0x15, 0x06, 0x7FFF_0000, 0x0005_0000
    fsync, fdatasync = _SYNCS[platform.machine()]
    steps = ((load, 0, 0, 0), (equal, 2, 0, fsync), (equal, 1, 0, fdatasync), (answer, 0, 0, allow),
             (answer, 0, 0, refuse | errno.EIO))  # fmt: skip
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(steps), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value, argument in ((_NO_NEW_PRIVILEGES, 1, None), (_SECCOMP, 2, program)):
        if libc.prctl(option, value, argument, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp is not to be had")


class SteppedClock(Clock, frozen=True):
    """A clock that is wrong: ``file`` has the error in ms, read each time; without the file it is right."""

    file: Path = Path()

    def step(self) -> int:
        """Return the clock's present error in ms, read from the file."""
        try:
            return int(self.file.read_text())
        except (OSError, ValueError):
            return 0

    def now(self) -> Instant:
        """Return the site's time plus the error."""
        return Instant(Clock.now(self) + self.step())

    def real_of(self, at: Instant) -> float:
        """Return the real seconds since the epoch at which the clock shows ``at``, if the error stays."""
        return Clock.real_of(self, Instant(at - self.step()))
