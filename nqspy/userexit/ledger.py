"""What is remembered of the exits: how often and how long they ran, what they answered, where they failed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nqspy.model.ids import Instant

RETRY = 5 * 60_000
"""ms of the site's time after which an exit is asked again about a request it failed on."""

IN_A_ROW = 5
"""Failures on so many different requests, without an answer between them, switch an exit off where they are
of at least two owners; where they are of one alone it is not asked about theirs for RETRY."""

KEPT = 10_000
"""Latest answers that are kept for `Trace.of`, of all exits together."""

Subject = object
"""What a call is about: a sequence number, or (owner, group) for shrpri; None: nothing that comes again."""


LONGEST_TEXT = 500
"""Characters of an answer or an error that are remembered."""


@dataclass(slots=True)
class Record:
    """One hook of one exit. Times in ns of real time; ``changes``: how often its row of failures became
    another one."""

    calls: int = 0
    failures: int = 0
    total: int = 0
    longest: int = 0
    changes: int = 0
    _row: list[tuple[Subject, str]] = field(default_factory=list)
    _spared: dict[Subject, tuple[Instant, str]] = field(default_factory=dict)
    _resting: dict[str, Instant] = field(default_factory=dict)

    def took(self, ns: int) -> None:
        """A call took so long."""
        self.calls += 1
        self.total += ns
        if ns > self.longest:
            self.longest = ns

    def resume(self, figures: Mapping[str, Any]) -> None:
        """Goes on counting from figures as a listing shows them."""
        self.calls, self.failures = figures["calls"], figures["failures"]
        self.total, self.longest = round(figures["total_ms"] * 1e6), round(figures["longest_ms"] * 1e6)

    def answered(self) -> None:
        """A call came back with an answer: the row of failures is broken."""
        if self._row:
            self._row.clear()
            self.changes += 1

    def failed(self, subject: Subject, owner: str, now: Instant, text: str) -> bool:
        """A call failed. True: this was the fifth different request in a row, and they are of two owners or
        more. Where all are of ``owner`` that one rests from now on: nobody has an exit switched off alone."""
        self.failures += 1
        self.changes += 1
        if subject is None or (subject, owner) not in self._row:
            self._row = [*self._row, (subject, owner)][-IN_A_ROW:]
        if subject is not None:
            self.spare(subject, now, text)
        if len(self._row) < IN_A_ROW:
            return False
        if len({who for _, who in self._row if who}) > 1:  # of older rows the owners are not known
            return True
        self.rest(owner, now)
        return False

    def rest(self, owner: str, now: Instant) -> None:
        """It is not asked about anything of this owner for a while."""
        self._resting = {who: at for who, at in self._resting.items() if 0 <= now - at < RETRY}
        self._resting[owner] = now

    def rests(self, owner: str, now: Instant) -> Instant | None:
        """Until when it is not asked about anything of this owner; None: it is."""
        since = self._resting.get(owner)
        return Instant(since + RETRY) if since is not None and 0 <= now - since < RETRY else None

    @property
    def has_resting(self) -> bool:
        """Whether `rests` needs to be asked at all."""
        return bool(self._resting)

    def spare(self, subject: Subject, now: Instant, text: str) -> None:
        """It is not asked about this subject for a while: what it failed with counts."""
        self._spared = {s: why for s, why in self._spared.items() if 0 <= now - why[0] < RETRY}
        self._spared[subject] = (now, text)

    def spared(self, subject: Subject, now: Instant) -> str | None:
        """What it failed with on this subject, while it is not asked about it again; else None."""
        if not self._spared or (why := self._spared.get(subject)) is None:
            return None
        return why[1] if 0 <= now - why[0] < RETRY else None

    def row(self) -> list[tuple[Any, str]]:
        """What it failed on in a row, each with its owner."""
        return list(self._row)

    def resting(self) -> list[tuple[str, int]]:
        """Whose requests it is not asked about, and since when."""
        return [(owner, int(at)) for owner, at in self._resting.items()]

    def spares(self) -> list[tuple[Any, int, str]]:
        """What it is not asked about, since when and why."""
        return [(subject, int(at), text[:LONGEST_TEXT]) for subject, (at, text) in self._spared.items()]

    def take_over(self, row: Iterable[tuple[Subject, str]]) -> None:
        """It failed on these in a row before, each with its owner."""
        self._row = list(row)[:IN_A_ROW]

    def forgive(self) -> None:
        """Forgets where it failed: the file or its settings are others now."""
        self._row.clear()
        self._spared.clear()
        self._resting.clear()


class Trace:
    """The latest answer of each hook of each exit about each request, the last KEPT of them."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str, str], tuple[Instant, Any, str | None]] = {}

    def note(self, seq: int, exit: str, hook: str, now: Instant, answer: Any, error: str | None) -> None:
        """An exit answered (or failed) about a request."""
        key = (seq, exit, hook)
        last = self._last
        last.pop(key, None)
        last[key] = (now, answer, error)
        if len(last) > KEPT:
            del last[next(iter(last))]

    def dump(self) -> list[tuple[int, str, str, int, str | None, str | None]]:
        """All of them, earliest first, as texts."""
        return [
            (seq, exit, hook, int(at), _cut(_shown(answer)), _cut(error))
            for (seq, exit, hook), (at, answer, error) in self._last.items()
        ]

    def load(self, rows: Iterable[tuple[int, str, str, int, str | None, str | None]]) -> None:
        """Answers from before, as `dump` gave them."""
        for seq, exit, hook, at, answer, error in rows:
            self.note(seq, exit, hook, Instant(at), None if answer is None else Told(answer), error)

    def of(self, seq: int) -> list[dict[str, Any]]:
        """The answers about one request, earliest first: ``at exit hook answer error``."""
        return [
            {"at": int(at), "exit": exit, "hook": hook, "answer": _shown(answer), "error": error}
            for (who, exit, hook), (at, answer, error) in self._last.items()
            if who == seq
        ]


class Told(str):
    """An answer of an earlier process, as it was shown."""

    __slots__ = ()


def _cut(text: str | None) -> str | None:
    return text if text is None else text[:LONGEST_TEXT]


def _shown(answer: Any) -> str | None:
    if answer is None:
        return None
    if type(answer) is Told:
        return str(answer)
    if hasattr(answer, "verdict"):
        return f"{answer.verdict}({answer.text!r})" if answer.text else f"{answer.verdict}()"
    if hasattr(answer, "fields"):
        return f"changes({', '.join(f'{name}={value!r}' for name, value in answer.fields.items())})"
    if isinstance(answer, tuple) and answer and hasattr(answer[0], "seqs"):
        return ", ".join(f"redate of {len(action.seqs)} requests" for action in answer)
    return repr(answer)
