"""Caps of groups (``set group d3 limit=20%``): the most of the machine that a group, with all groups below
it, holds and uses.

- PEs: the group never holds more than that part of the PEs at a time, rounded up.
- Use: no request of the group starts while its decayed use, with committed use, is at least that part of the
  machine's: PEs x half-life / ln 2 (`people.capped_use`).

A forced request passes both.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from math import ceil

from msgspec import Struct

from nqspy.core.gate.rule import IN_A_SHIFT, INFINITE, LESS, Claim, Mask, Rule, gravest, table
from nqspy.model.accounts import span_to
from nqspy.model.columns import Columns
from nqspy.model.ids import Instant
from nqspy.model.people import capped_pes, capped_use, lineage
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.shifts import values_by_shifts
from nqspy.model.site import Site
from nqspy.shares import FairShare

_PES = "limit {percent:g}% of {who} is {pes} of {whole} PEs, {held} {held:is|are} in use, it needs {asked}: "
_USE = "limit {percent:g}% of {who} is {most:time} of decayed {charge}, {used:time} are used or running: "
_SHORT, _RUNS = reason_kinds(
    ReasonCode.LIMIT,
    cap_short=_PES + "{short} more must become free",
    cap_runs=_USE + "a running job must end",
)
_TOO_FEW = _PES + "the limit is too low"
(_NEVER,) = reason_kinds(ReasonCode.NEVER, LESS, cap_never=_TOO_FEW)
(_NOT_NOW,) = reason_kinds(ReasonCode.LIMIT, IN_A_SHIFT, cap_never_now=_TOO_FEW)
(_DECAYS,) = reason_kinds(
    ReasonCode.LIMIT,
    "past use of the group must decay, or the limit must be raised",
    cap_decays=_USE + "past use must decay",
)


class Cap(Struct, frozen=True):
    """Cap of one group: ``percent`` as set, and the ``pes`` and decayed ``use`` (ms) that follow from it."""

    group: str
    percent: float
    pes: int
    use: float

    @property
    def who(self) -> str:
        """Name of the cap as the source of reasons: ``group d3``."""
        return f"group {self.group}"


class Caps(Rule):
    """Rule for the caps of groups: counts the PEs that the groups hold, with the starts of a pass. ``ledger``
    returns use by group; it is called only if there are caps. ``bound``: there are caps."""

    def __init__(self, site: Site, ledger: Callable[[], FairShare]) -> None:
        self._site, self._ask = site, ledger
        pes, half_life = site.pes(), site.settings.usage.half_life
        limits = {name: each.limit for name, each in site.settings.groups.items() if each.limit is not None}
        self._caps = {
            name: Cap(name, most, capped_pes(most, pes), capped_use(most, pes, half_life))
            for name, most in limits.items()
        }
        self.bound = bool(self._caps)
        self._held = dict.fromkeys(self._caps, 0)
        self._over: dict[str, list[Cap]] = {}

    @cached_property
    def _ledger(self) -> FairShare:
        return self._ask()

    def _of(self, group: str) -> list[Cap]:
        """Return the caps that apply to a group: its own first, then those of the groups above it."""
        if group not in self._over:
            names = lineage(self._site.settings.groups, group) if self._caps else ()
            self._over[group] = [self._caps[name] for name in names if name in self._caps]
        return self._over[group]

    def add(self, request: Request) -> None:
        """Count the PEs of a request, which runs from now on, under the caps of its groups."""
        for cap in self._of(request.group):
            self._held[cap.group] += self._site.held_by(request)

    def claims(self, request: Request) -> Iterable[Claim]:
        pes = self._site.held_by(request)
        return [(("cap", cap.group), pes, cap.pes) for cap in self._of(request.group)]

    def _spent(self, cap: Cap) -> bool:
        return self._ledger.use(cap.group) >= cap.use

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        holds = self._site.domain_of(queue).held_by(1)
        remaining = self._left_to_groups(ever)
        if not remaining or columns.most("pes") * holds <= min(remaining.values()):
            return None
        above: Mask = columns.pes * holds > table(self._site, "group", INFINITE, remaining)[columns.group]
        return above

    def spent(self, queue: str, columns: Columns) -> Mask | None:
        """Return the rows of groups to which a cap leaves no PE at all: only these count as without work."""
        holds = self._site.domain_of(queue).held_by(1)
        rows: Mask = table(self._site, "group", INFINITE, self._left_to_groups(False))[columns.group] < holds
        return rows

    def _left_to_groups(self, ever: bool) -> dict[str, int]:
        """Return the PEs left to each group under its own cap and those of groups above it; groups without a
        cap are left out. ``ever``: as if nothing ran. -1: its cap of use lets no request start."""
        pes = {name: cap.pes for name, cap in self._caps.items()}
        for name, cap in () if ever else self._caps.items():
            # -1: a group at the cap of its use starts no request, not even one without PEs.
            pes[name] = -1 if self._spent(cap) else max(0, cap.pes - self._held[name])
        bound = ((name, self._of(name)) for name in self._site.settings.groups)
        return {name: min(pes[cap.group] for cap in caps) for name, caps in bound if caps}

    def never(self, request: Request) -> Reason | None:
        """Return the reason of a cap of fewer PEs than a request asks for; None: no cap is so low."""
        asked = self._site.held_by(request)
        return gravest(self._of_pes(cap, asked) for cap in self._of(request.group) if asked > cap.pes)

    def refuses(self, request: Request) -> Reason | None:
        asked = self._site.held_by(request)
        for cap in self._of(request.group):
            if asked > cap.pes - self._held[cap.group]:
                return self._of_pes(cap, asked)
            if self._spent(cap):
                used, until = _seconds(self._ledger.use(cap.group)), self._opens(cap)
                charge = "CPU time" if self._site.settings.usage.charge == "cpu" else "PE time"
                values = cap.percent, _seconds(cap.use), charge, used
                return (_DECAYS if until else _RUNS)(cap.who, *values, until=until)
        return None

    def _of_pes(self, cap: Cap, asked: int) -> Reason:
        held = self._held[cap.group]
        values = cap.percent, cap.pes, self._site.pes(), held, asked
        if asked > cap.pes:
            by_shifts = values_by_shifts(self._site.settings.shifts.values(), f"group/{cap.group}/limit")
            is_raised = any(each is None or asked <= capped_pes(each, self._site.pes()) for each in by_shifts)
            return (_NOT_NOW if is_raised else _NEVER)(cap.who, *values)
        return _SHORT(cap.who, *values, held + asked - cap.pes)

    def opens(self) -> Instant | None:
        """Return the first instant at which the past use of a group at its cap will have decayed enough for a
        start; None: no group waits only for decay."""
        return min((at for cap in self._caps.values() if (at := self._opens(cap)) is not None), default=None)

    def _opens(self, cap: Cap) -> Instant | None:
        lasting, use = self._ledger.lasting(cap.group), self._ledger.use(cap.group)
        if use < cap.use or lasting >= cap.use:
            return None
        span = span_to((use - lasting) / (cap.use - lasting), self._site.settings.usage.half_life)
        return Instant(self._ledger.now + ceil(span) + 1)


def _seconds(ms: float) -> int:
    return ceil(ms / 1000) * 1000
