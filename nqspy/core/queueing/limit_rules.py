"""The rules of what may run at a time, a class for each: what is left under it, which rows that masks, and
what is said to one request. Groups' caps are in `caps`.

Counting is by *requested* memory and PEs, from start to end of a request (nqs.md 4.1).
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nqspy.core.runtime import memory_counted, wall_limit
from nqspy.model.columns import Columns, Floats
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason, ReasonCode, ReasonKind, reason_kinds
from nqspy.model.requests import Ask, Request
from nqspy.model.shifts import values_by_shifts
from nqspy.model.site import Settings, Site

Mask = npt.NDArray[np.bool_]
INFINITE = float("inf")
_NOTHING = Ask()

_REACHED, _NO_MEMORY, _NO_PES = reason_kinds(
    ReasonCode.LIMIT,
    limit_reached="{word} limit {most}{of: of *} is reached{name: for *}",
    memory_short="{word} limit {most:size}{of: of *} leaves {left:size}, it counts {asked:size}",
    pes_short="{word} limit {most}{of: of *} leaves {left}, it asks for {asked}",
)
RAISED = "the limit must be raised"
(_SHUT,) = reason_kinds(
    ReasonCode.LIMIT,
    RAISED,
    limit_shut="{word} limit {most}{of: of *} lets nothing run",
)
LESS = "the limit must be raised, or it must ask for less"
"""What must happen where one asks for more than a limit leaves when nothing runs."""
_LARGE = (
    "{word} limit {most:size}{of: of *} leaves {most:size} even when nothing runs, it counts {asked:size}"
)
_WIDE = "{word} limit {most}{of: of *} leaves {most} even when nothing runs, it asks for {asked}"
_TOO_LARGE, _TOO_WIDE = reason_kinds(ReasonCode.NEVER, LESS, too_large=_LARGE, too_wide=_WIDE)
IN_A_SHIFT = "a shift that raises the limit must come, or it must ask for less"
"""What must happen where a limit leaves too little when nothing runs, and another shift has a greater one."""
_LARGE_NOW, _WIDE_NOW = reason_kinds(ReasonCode.LIMIT, IN_A_SHIFT, too_large_now=_LARGE, too_wide_now=_WIDE)
(_TOO_LONG,) = reason_kinds(
    ReasonCode.SHIFT,
    too_long="its wall limit of {asked:time} goes beyond {clock}, when {who} stops queue {queue}; "
    "it may start after that, or with a shorter limit",
)


def gravest(reasons: Iterable[Reason]) -> Reason | None:
    """Return the first reason that says never, else the first of all; None where there is none."""
    first = None
    for reason in reasons:
        if reason.code is ReasonCode.NEVER:
            return reason
        first = first or reason
    return first


Claim = tuple[Hashable, int, int]
"""What is counted, how much of it one takes, and how much there may be taken in all."""


class ScopeCount:
    """What runs under one scope. ``runs``: how many, by the column that they are told apart by and the name
    in it (all together under the empty name); ``wall`` stays 0: what runs takes no time from others."""

    def __init__(self) -> None:
        self.memory = self.pes = self.wall = 0
        self.runs: dict[str, dict[str, int]] = {"": {}, "owner": {}, "group": {}}

    def add(self, request: Request) -> None:
        """Counts a request as running from now on, its memory apart."""
        spec = request.spec
        self.pes += spec.ask.pes
        for runs, name in zip(self.runs.values(), ("", spec.owner, spec.group), strict=True):
            runs[name] = runs.get(name, 0) + 1


@dataclass(slots=True)
class Left:
    """What rules leave to those ``named``, and to all others; infinite: as much as they want."""

    others: float = INFINITE
    named: dict[str, float] = field(default_factory=dict)

    def full(self, least: int = 1) -> set[str]:
        """Those named to whom less than that is left."""
        return {name for name, left in self.named.items() if left < least}

    def least(self) -> float:
        """What is left to whom least is left."""
        return min(self.others, *self.named.values()) if self.named else self.others

    def narrowed(self, by: "Left") -> "Left":
        """What is left under other rules besides."""
        if not self.named and not by.named:
            return Left(min(self.others, by.others))
        named = {name: min(left, by.named.get(name, by.others)) for name, left in self.named.items()}
        more = {name: min(left, self.others) for name, left in by.named.items() if name not in named}
        return Left(min(self.others, by.others), named | more)

    def table(self, site: Site, whose: str) -> Floats:
        """What is left by the numbers of the names in a column."""
        numbers = dict(site.numbers.by_column())[whose]
        table = np.full(len(numbers), self.others)
        for name, left in self.named.items():
            if (number := numbers.known(name)) is not None:
                table[number] = left
        return table


class LimitRule(ABC):
    """One limit with what runs under it, of those in the same ``whose`` (a column; empty: of all together).

    The rows that `mask` gives for what all rules of a class leave together are those of the requests to which
    one of these rules gives a `reason`. ``for_forced``: it holds for forced requests too. ``shared``: it
    counts what is taken from all others, such as memory: who waits for it may have a start reserved.
    ``kept_on``: it counts one who is suspended and gave back his PEs, too.
    """

    whose: ClassVar[str] = ""
    for_forced: ClassVar[bool] = False
    shared: ClassVar[bool] = False
    kept_on: ClassVar[bool] = False

    @abstractmethod
    def left(self, ever: bool) -> Left | None:
        """What it leaves now, None where it bounds nobody; ``ever``: what it would leave if nothing ran."""

    @classmethod
    @abstractmethod
    def mask(cls, site: Site, left: Left, queue: str, columns: Columns) -> Mask | None:
        """Rows of a queue that need more than is left; None if no row does."""

    @abstractmethod
    def reason(self, request: Request) -> Reason | None:
        """Why it keeps a request back now; None when it lets it start."""

    def claims(self, request: Request) -> Iterable[Claim]:
        """What a request takes of it while it runs: what will be free later is reckoned by that."""
        return ()


Headroom = dict[type[LimitRule], Left]
"""What is left for one queue under the rules of each class; classes that bound nobody left out."""


def path_of(who: str, setting: str) -> str:
    """Return the path of a scope's limit: ``queue/night/user_limit`` of ``queue night``."""
    return f"{who.replace(' ', '/', 1)}/{setting}"


class _ScopeRule(LimitRule):
    """A limit of ``most`` in one scope (a queue, a complex, the whole site), ``who`` in reasons."""

    word: ClassVar[str]
    setting: ClassVar[str] = ""

    def __init__(self, settings: Settings, who: str, most: int, count: ScopeCount) -> None:
        self._settings, self._who, self._most, self._count = settings, who, most, count
        self._runs = count.runs[self.whose]

    def _told(self, kind: ReasonKind, *values: int | str) -> Reason:
        word, of = (f"global {self.word}", None) if self._who == "global" else (self.word, self._who)
        return kind(self._who, word, self._most, of, *values)


# ---------------------------------------------------------------- how many run


class _NumberRule(_ScopeRule):
    def left(self, ever: bool) -> Left | None:
        full = {} if ever else {name: 0.0 for name, runs in self._runs.items() if runs >= self._most}
        return Left(INFINITE if self._most else 0, full) if full or not self._most else None

    @classmethod
    def mask(cls, site: Site, left: Left, queue: str, columns: Columns) -> Mask | None:
        if left.others < 1:
            return np.ones(len(columns), dtype=bool)
        full: Mask = (left.table(site, cls.whose) < 1)[getattr(columns, cls.whose)]
        return full

    def reason(self, request: Request) -> Reason | None:
        name = getattr(request, self.whose) if self.whose else ""
        return self.reached(name) if self._runs.get(name, 0) >= self._most else None

    def claims(self, request: Request) -> Iterable[Claim]:
        name = getattr(request, self.whose) if self.whose else ""
        return (((self.word, self._who, name), 1, self._most),)

    def reached(self, name: str = "") -> Reason | None:
        """That no more may run (of ``name``); None while more may."""
        if self._runs.get(name, 0) < self._most:
            return None
        return self._told(_REACHED, name) if self._most else self._told(_SHUT)


class RunLimit(_NumberRule):
    """Requests running at a time. One that is reached closes a whole queue (`reached`); it masks no row, but
    where it is 0 and asked what is left ``ever``."""

    word = "run"

    def left(self, ever: bool) -> Left | None:
        return super().left(ever) if ever else None


class UserLimit(_NumberRule):
    """Requests of one user running at a time."""

    word, whose = "user", "owner"


class GroupLimit(_NumberRule):
    """Requests of one group running at a time."""

    word, whose = "group", "group"


# ---------------------------------------------------------------- how much they hold, and how long


class _AmountRule(_ScopeRule):
    column: ClassVar[str]
    short: ClassVar[ReasonKind]
    never: ClassVar[ReasonKind]
    not_now: ClassVar[ReasonKind]

    @staticmethod
    @abstractmethod
    def _asked(settings: Settings, queue: str, ask: Ask) -> int | None:
        """What one that asks for this in a queue needs; None: never too much."""

    def left(self, ever: bool) -> Left:
        return Left(self._most if ever else self._most - getattr(self._count, self.column))

    @classmethod
    def mask(cls, site: Site, left: Left, queue: str, columns: Columns) -> Mask | None:
        most = columns.most(cls.column)
        if most <= left.others:
            return None
        asked = getattr(columns, cls.column)
        above: Mask = asked > left.others
        default = cls._asked(site.settings, queue, _NOTHING) if most == INFINITE else most
        return above if default is not None and default > left.others else above & (asked != INFINITE)

    def reason(self, request: Request) -> Reason | None:
        asked = self._asked(self._settings, request.queue, request.spec.ask)
        left = self._most - getattr(self._count, self.column)
        return self._too_much(asked, max(0, left)) if asked is not None and asked > left else None

    def claims(self, request: Request) -> Iterable[Claim]:
        asked = self._asked(self._settings, request.queue, request.spec.ask)
        return () if asked is None else (((self.word, self._who), asked, self._most),)

    def _too_much(self, asked: int, left: int) -> Reason:
        if asked <= self._most:
            return self._told(self.short, left, asked)
        path = path_of(self._who, self.setting)
        raised = values_by_shifts(self._settings.shifts.values(), path)
        later = any(most is None or asked <= most for most in raised)
        return self._told(self.not_now if later else self.never, asked)


class MemoryLimit(_AmountRule):
    """Requested memory of all running requests."""

    word, column, setting, short = "memory", "memory", "memory_limit", _NO_MEMORY
    never, not_now = _TOO_LARGE, _LARGE_NOW
    shared = kept_on = True
    _asked = staticmethod(memory_counted)


class PeLimit(_AmountRule):
    """PEs of all running requests."""

    word, column, setting, short = "PE", "pes", "pe_limit", _NO_PES
    never, not_now = _TOO_WIDE, _WIDE_NOW
    for_forced = shared = True

    @staticmethod
    def _asked(settings: Settings, queue: str, ask: Ask) -> int:
        return ask.pes


class ShiftDrain(_AmountRule):
    """A shift that stops a queue and wants nothing to run by then (``spill=drain``): time is left, and a wall
    limit is asked for."""

    column, for_forced = "wall", True
    _asked = staticmethod(wall_limit)

    def __init__(self, site: Site, queue: str, now: Instant) -> None:
        self._queue, self._closing = queue, site.upcoming_stops[queue]
        super().__init__(site.settings, f"shift {self._closing.shift}", self._closing.at - now, ScopeCount())

    def claims(self, request: Request) -> Iterable[Claim]:
        return ()

    def _too_much(self, asked: int, left: int) -> Reason:
        closing = self._closing
        return _TOO_LONG(self._who, asked, closing.clock, self._queue, until=closing.at)


LIMITS: tuple[type[_ScopeRule], ...] = (RunLimit, UserLimit, GroupLimit, MemoryLimit, PeLimit)
"""The rules of the settings in `RunningLimits`, in the same order, in which reasons are looked for."""
