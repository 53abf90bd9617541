"""A rule: one cause for which a request may not start now. Each rule is a class, in a file of its subject."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from nqspy.model.columns import Columns, Floats
from nqspy.model.queues import RunningLimits
from nqspy.model.reasons import Reason, ReasonCode, ReasonKind, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.model.tree import Declared, Unit, add_setting

Mask = npt.NDArray[np.bool_]
"""Array with a truth value for each row of a queue: True for the rows that are meant."""
Claim = tuple[Hashable, int, int]
"""Key of a counted amount (such as PEs of a domain), the part that a request takes, and the most in all."""
INFINITE = float("inf")

RAISED = "the limit must be raised"
LESS = "the limit must be raised, or the request must ask for less"
"""Text for people if a request asks for more than a limit leaves when nothing runs."""
IN_A_SHIFT = "a shift with a higher limit must begin, or the request must ask for less"
"""Text for people if a limit leaves too little when nothing runs, and another shift has a greater one."""

(_REACHED,) = reason_kinds(
    ReasonCode.LIMIT, limit_reached="{word} limit {most}{of: of *} is reached{name: for *}"
)
(_SHUT,) = reason_kinds(ReasonCode.LIMIT, RAISED, limit_shut="{word} limit {most}{of: of *} lets nothing run")


class Rule(ABC):
    """Cause for which a request may not start now.

    A rule answers for one request (`refuses`), for all rows of a queue at once (`mask`), and for later times
    (`claims`); `add` counts what runs. The rows of `mask` are those of the requests that it refuses.
    ``shared``: it counts something taken from all, such as memory; a start may be reserved for a request that
    it refuses. ``holds_forced``: it applies to forced requests too. ``counts_suspended``: a suspended request
    that released its PEs counts. ``whole_queue``: it refuses all rows alike.
    """

    shared: ClassVar[bool] = False
    holds_forced: ClassVar[bool] = False
    counts_suspended: ClassVar[bool] = False
    whole_queue: ClassVar[bool] = False

    @abstractmethod
    def refuses(self, request: Request) -> Reason | None:
        """Return why a request may not start now; None: this rule lets it start."""

    @abstractmethod
    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        """Return the mask of the rows that it refuses now (``ever``: even if nothing ran); None: no row."""

    def spent(self, queue: str, columns: Columns) -> Mask | None:
        """Return the rows that quotas do not count as work: the rule leaves their owners nothing now."""
        return self.mask(queue, columns)

    def claims(self, request: Request) -> Iterable[Claim]:
        """Return the amounts that a request takes while it runs; reservations are calculated from them."""
        return ()

    def add(self, request: Request) -> None:  # noqa: B027 (a drain counts nothing)
        """Count a request as running from now on."""


class ScopeLimit(Rule):
    """A limit that queues, complexes and the whole site have in a ``setting``. What runs is counted for each
    value of the column ``per`` (empty: for all together). Reasons name the limit by its ``word``."""

    per: ClassVar[str] = ""
    word: ClassVar[str]
    setting: ClassVar[str]

    @classmethod
    @abstractmethod
    def of(cls, site: Site, who: str, value: Any) -> Self | None:
        """Return the limit of a scope (``queue night``) by this value of its setting; None: no limit."""

    def _name(self, request: Request) -> str:
        return getattr(request, self.per) if self.per else ""


def is_set(value: Any) -> bool:
    """Return True if this value of a limit's setting limits something: it is neither None nor empty."""
    return value is not None and value != ()


def limit_setting(name: str, unit: Unit, sentence: str) -> str:
    """Declare the setting of a limit, which is unlimited by default. Return its name."""
    return add_setting(RunningLimits, Declared(unit, None, sentence, name=name))


class CountLimit(ScopeLimit):
    """Limit of ``most`` at a time: of requests, unless a derived class counts another amount."""

    @classmethod
    def of(cls, site: Site, who: str, value: int) -> Self | None:
        return cls(site, who, value)

    def __init__(self, site: Site, who: str, most: int) -> None:
        self._site, self._who, self._most = site, who, most
        self._used: dict[str, int] = {}

    def asked(self, request: Request) -> int:
        return 1

    def column(self, queue: str, columns: Columns) -> Floats | None:
        """Return how much each row of a queue takes of what is limited; None: each takes 1."""
        return None

    def reason(self, asked: int, remaining: int, name: str) -> Reason:
        """Return why a request that asks for so much must wait. ``remaining``: what is left under the limit,
        for the user or group ``name`` (empty: for all)."""
        return self._say(_REACHED, name) if self._most else self._say(_SHUT)

    def remaining(self, name: str = "") -> int:
        return self._most - self._used.get(name, 0)

    def refuses(self, request: Request) -> Reason | None:
        name, asked = self._name(request), self.asked(request)
        remaining = self.remaining(name)
        return self.reason(asked, remaining, name) if asked > max(0, remaining) else None

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        used = {} if ever else self._used
        asked = self.column(queue, columns)
        greatest = 1 if asked is None else asked.max(initial=0)
        if greatest <= max(0, self._most - max(used.values(), default=0)):
            return None
        free: Floats | int = self._most - used.get("", 0)
        if self.per:
            named = {name: self._most - count for name, count in used.items()}
            by_name, names = table(self._site, self.per, self._most, named), getattr(columns, self.per)
            if asked is None:  # to gather truth values is cheaper than to gather numbers
                full: Mask = (by_name < 1)[names]
                return full
            free = by_name[names]
        above: Mask = np.broadcast_to((1 if asked is None else asked) > np.maximum(free, 0), len(columns))
        return above

    def claims(self, request: Request) -> Iterable[Claim]:
        return (((self.word, self._who, self._name(request)), self.asked(request), self._most),)

    def add(self, request: Request) -> None:
        name = self._name(request)
        self._used[name] = self._used.get(name, 0) + self.asked(request)

    def _say(self, kind: ReasonKind, *values: int | str) -> Reason:
        word, of = (f"global {self.word}", None) if self._who == "global" else (self.word, self._who)
        return kind(self._who, word, self._most, of, *values)


def table(site: Site, column: str, others: float, named: Mapping[str, float]) -> Floats:
    """Return the amounts left to the names in a column, such as ``group``, as an array indexed by a name's
    number: its amount in ``named``, else ``others``."""
    numbers = dict(site.numbers.by_column())[column]
    found = np.full(len(numbers), float(others))
    for name, remaining in named.items():
        if (number := numbers.known(name)) is not None:
            found[number] = remaining
    return found


def wider(columns: Columns, pes: int) -> Mask | None:
    """Return the rows that ask for more than so many PEs; None: no row."""
    if columns.most("pes") <= pes:
        return None
    rows: Mask = np.asarray(columns.pes > pes)
    return rows


def any_of(masks: Iterable[Mask | None]) -> Mask | None:
    """Return a mask of the rows that are True in at least one of these masks; None: all masks are None."""
    found = [mask for mask in masks if mask is not None]
    return reduce(np.logical_or, found) if found else None


def gravest(reasons: Iterable[Reason]) -> Reason | None:
    """Return the first reason of code NEVER, else the first reason; None: there are no reasons."""
    first = None
    for reason in reasons:
        if reason.code is ReasonCode.NEVER:
            return reason
        first = first or reason
    return first


def path_of(who: str, setting: str) -> str:
    """Return the path of a scope's setting: ``queue/night/user_limit`` for ``queue night``."""
    return f"{who.replace(' ', '/', 1)}/{setting}"
