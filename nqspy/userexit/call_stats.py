"""Memory of exits: figures, answers, failures, back-offs; and what outlives their process (`SavedMemory`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec import Struct

from nqspy.model.ids import Instant
from nqspy.model.texts import counted

RETRY = 5 * 60_000
"""Time (ms) after a failure on a request until the exit is asked about it again."""

IN_A_ROW = 5
"""Failures in a row, on as many different requests, that switch an exit off if these have two owners or more.
If all have one owner, the exit is only not asked about that owner's requests for RETRY."""

TRACED = 10_000
"""Number of latest answers stored for `Trace.of`, of all exits together."""

Subject = object
"""Subject of a call: a request's number, or (owner, group) for shrpri; None: without back-off (submit)."""


LONGEST_TEXT = 500
"""Most characters of an answer or an error that are stored."""


class Mark(Struct, frozen=True):
    """Begin ``at`` of an exit's back-off on a subject or owner, with the error's text. ``lost``: its process
    was lost, which the daemon remembers; else the exit failed, which its process remembers."""

    at: Instant
    text: str = ""
    lost: bool = False

    @property
    def until(self) -> Instant:
        """Instant from which the exit is asked again."""
        return Instant(self.at + RETRY)

    def holds(self, now: Instant, really: Instant | None = None) -> bool:
        """True if the back-off still lasts at ``now``. ``really``: in a simulation ahead the present instant,
        by which back-offs after lost processes are judged; else None."""
        return 0 <= (really if self.lost and really is not None else now) - self.at < RETRY


@dataclass(slots=True)
class Record:
    """Figures and failures of one hook of an exit (`Hook.record`). Times in ns of real time. ``changes``: how
    often its failures in a row changed; ``marked``: there may be back-offs (`back_off_of`, `skipped`)."""

    calls: int = 0
    failures: int = 0
    total: int = 0
    longest: int = 0
    changes: int = 0
    marked: bool = False
    _row: list[tuple[Subject, str]] = field(default_factory=list)
    _skipped: dict[Subject, Mark] = field(default_factory=dict)
    _backed_off: dict[str, Mark] = field(default_factory=dict)

    def took(self, ns: int) -> None:
        """Count a call that took so long (ns)."""
        self.calls += 1
        self.total += ns
        if ns > self.longest:
            self.longest = ns

    def resume(self, figures: Mapping[str, Any]) -> None:
        """Continue counting from the figures of a hook in `hooks.entry`."""
        self.calls, self.failures = figures["calls"], figures["failures"]
        self.total, self.longest = round(figures["total_ms"] * 1e6), round(figures["longest_ms"] * 1e6)

    def answered(self, ns: int) -> None:
        """Count a call with an answer after so long (ns); failures in a row count from 0 again."""
        self.took(ns)
        if self._row:
            self._row.clear()
            self.changes += 1

    def failed(self, subject: Subject, owner: str, now: Instant, text: str) -> bool:
        """Count a failed call, and begin a back-off for its subject. Return True at the fifth different
        request in a row, if these have two owners or more: the exit is switched off. If all are of ``owner``,
        a back-off begins for that owner too."""
        self.failures += 1
        self.changes += 1
        if subject is None or (subject, owner) not in self._row:
            self._row = [*self._row, (subject, owner)][-IN_A_ROW:]
        self._skipped = {subject: mark for subject, mark in self._skipped.items() if mark.holds(now)}
        self._backed_off = {owner: mark for owner, mark in self._backed_off.items() if mark.holds(now)}
        if subject is not None:
            self._skipped[subject] = Mark(now, text)
        off = False
        if len(self._row) == IN_A_ROW:
            off = len({who for _, who in self._row if who}) > 1  # of older rows the owners are not known
            if not off:
                self._backed_off[owner] = Mark(now)
        self.marked = bool(self._skipped or self._backed_off)
        return off

    def back_off(self, owner: str, mark: Mark) -> None:
        """Begin a back-off for this owner's requests; the latest mark counts."""
        _later(self._backed_off, owner, mark)
        self.marked = True

    def back_off_of(self, owner: str, now: Instant, really: Instant | None = None) -> Mark | None:
        """Return the mark of a back-off for this owner at ``now``, or None. ``really``: as in `Mark`."""
        mark = self._backed_off.get(owner)
        return mark if mark is not None and mark.holds(now, really) else None

    def skip(self, subject: Subject, mark: Mark) -> None:
        """Begin a back-off for this subject: the failure counts as the answer. The latest mark counts."""
        _later(self._skipped, subject, mark)
        self.marked = True

    def skipped(self, subject: Subject, now: Instant, really: Instant | None = None) -> str | None:
        """Return the error on this subject while its back-off lasts; None: there is no back-off."""
        mark = self._skipped.get(subject)
        return mark.text if mark is not None and mark.holds(now, really) else None

    def row(self) -> list[tuple[Any, str]]:
        """Return (subject, owner) of the last failures in a row."""
        return list(self._row)

    def backed_off(self) -> list[tuple[str, int]]:
        """Return (owner, begin in ms) of the back-offs after failures, not of those after lost processes."""
        return [(owner, int(mark.at)) for owner, mark in self._backed_off.items() if not mark.lost]

    def skips(self) -> list[tuple[Any, int, str]]:
        """Return (subject, begin in ms, error) of the back-offs after failures, not after lost processes."""
        return [
            (s, int(mark.at), mark.text[:LONGEST_TEXT]) for s, mark in self._skipped.items() if not mark.lost
        ]

    def take_over(self, row: Iterable[tuple[Subject, str]]) -> None:
        """Set the failures in a row to those of an earlier process, as (subject, owner)."""
        self._row = list(row)[:IN_A_ROW]

    def forgive(self) -> None:
        """Drop all failures and back-offs, because its file or its settings changed."""
        self.changes += bool(self._row or self.marked)
        self._row.clear()
        self._skipped.clear()
        self._backed_off.clear()
        self.marked = False


K = TypeVar("K")


def _later(marks: dict[K, Mark], key: K, mark: Mark) -> None:
    if key not in marks or marks[key].at <= mark.at:
        marks[key] = mark


class Trace:
    """Latest answer of each hook of each exit about each request; the oldest are dropped beyond TRACED."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str, str], tuple[Instant, Any, str | None]] = {}

    def note(self, seq: int, exit: str, hook: str, now: Instant, answer: Any, error: str | None) -> None:
        """Record the answer (or error) of an exit about a request."""
        key = (seq, exit, hook)
        last = self._last
        last.pop(key, None)
        last[key] = (now, answer, error)
        if len(last) > TRACED:
            del last[next(iter(last))]

    def dump(self) -> list[tuple[int, str, str, int, str | None, str | None]]:
        """Return all answers, earliest first: (request, exit, hook, ms, answer as text, error)."""
        return [
            (seq, exit, hook, int(at), _cut(_shown(answer)), _cut(error))
            for (seq, exit, hook), (at, answer, error) in self._last.items()
        ]

    def load(self, rows: Iterable[tuple[int, str, str, int, str | None, str | None]]) -> None:
        """Add the answers of an earlier process, as `dump` returned them."""
        for seq, exit, hook, at, answer, error in rows:
            self.note(seq, exit, hook, Instant(at), None if answer is None else ShownAnswer(answer), error)

    def of(self, seq: int) -> list[dict[str, Any]]:
        """Return the answers about one request, earliest first: ``at exit hook answer error``."""
        return [
            {"at": int(at), "exit": exit, "hook": hook, "answer": _shown(answer), "error": error}
            for (who, exit, hook), (at, answer, error) in self._last.items()
            if who == seq
        ]


class ShownAnswer(str):
    """Text of an answer from an earlier process."""

    __slots__ = ()


def _cut(text: str | None) -> str | None:
    return text if text is None else text[:LONGEST_TEXT]


def _shown(answer: Any) -> str | None:
    if answer is None:
        return None
    if type(answer) is ShownAnswer:
        return str(answer)
    if hasattr(answer, "verdict"):
        return f"{answer.verdict}({answer.text!r})" if answer.text else f"{answer.verdict}()"
    if hasattr(answer, "fields"):
        return f"changes({', '.join(f'{name}={value!r}' for name, value in answer.fields.items())})"
    if isinstance(answer, tuple) and answer and hasattr(answer[0], "seqs"):
        return ", ".join(f"redate of {counted(len(action.seqs), 'request')}" for action in answer)
    return repr(answer)


Named = int | tuple[str, str] | None
"""A subject as it is stored."""


class SavedMemory(Struct):
    """Memory of exits for their next process. ``files``: content hash of each exit at that time. ``rows``:
    failures in a row (``[exit, hook, subjects]``), ``owners``: of these subjects. ``spared``: subjects in
    back-off (``[exit, hook, subject, at, text]``); ``resting``: owners in back-off (``[exit, hook, owner,
    at]``). ``answers``: the latest (``[request, exit, hook, at, answer, error]``)."""

    files: dict[str, str]
    rows: list[tuple[str, str, list[Named]]]
    spared: list[tuple[str, str, Named, int, str]]
    answers: list[tuple[int, str, str, int, str | None, str | None]]
    owners: list[list[str]]
    resting: list[tuple[str, str, str, int]]


class Skipped(Struct, frozen=True):
    """Subject of a call that ended the process of an exit, with the instant at which its back-off began."""

    exit: str
    hook: str
    subject: Named
    at: Instant
    text: str


class OwnerBackoff(Struct, frozen=True):
    """Back-off of an exit for an owner with requests that ended the exits' process more than once."""

    exit: str
    owner: str
    at: Instant


class CallWatch:
    """Observer that is called before and after each piece of site code; this one does nothing."""

    def enter(self, exit: str, hook: str, subject: Subject, owner: str = "") -> None:
        """Report that code of this exit will run: its hook (or ``load``), about a subject of this owner."""

    def leave(self) -> None:
        """Report that the code has returned."""


UNWATCHED = CallWatch()
