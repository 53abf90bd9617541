"""Caps of groups (``set group d3 limit=20%``): how much of the machine a group, with all groups below it,
holds and uses at most.

It never holds more than that part of the PEs at a time, rounded up to whole PEs, and is not started further
while its decayed use, committed use included, is at or above that part of what the machine gives in the same
measure: PEs x half-life / ln 2 (`people.capped_use`). A forced request goes past both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2

from nqspy.core.ledger import Ledger
from nqspy.model.ids import Instant
from nqspy.model.people import capped_pes, capped_use, lineage
from nqspy.model.reasons import CAPPED, DECAY, Reason, ReasonCode
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.model.units import format_time


@dataclass(frozen=True, slots=True)
class Cap:
    """One group's cap: ``percent`` as it was set, ``pes`` and decayed ``use`` (ms) that come to it."""

    group: str
    percent: float
    pes: int
    use: float

    @property
    def who(self) -> str:
        """Who refuses."""
        return f"group {self.group}"

    def __str__(self) -> str:
        return f"limit {self.percent:g}% of group {self.group}"


class Caps:
    """The caps of a site with what their groups hold: starts of a pass are added as they are decided.

    ``ledger``: use by group, asked for only where there are caps; whoever decides a start commits it there.
    """

    def __init__(self, site: Site, ledger: Callable[[], Ledger]) -> None:
        self._site, self._ask = site, ledger
        self._caps = _caps(site)
        self._held = dict.fromkeys(self._caps, 0)
        self._over: dict[str, list[Cap]] = {}

    @cached_property
    def _ledger(self) -> Ledger:
        return self._ask()

    def add(self, request: Request) -> None:
        """Counts a request as running from now on."""
        for cap in self._of(request.group) if self._caps else ():
            self._held[cap.group] += request.spec.ask.pes

    def _of(self, group: str) -> list[Cap]:
        """The caps that hold for a group: its own first, then those of the groups above it."""
        if group not in self._over:
            names = lineage(self._site.settings.groups, group)
            self._over[group] = [self._caps[name] for name in names if name in self._caps]
        return self._over[group]

    def _left(self, cap: Cap) -> int:
        return 0 if self._spent(cap) else max(0, cap.pes - self._held[cap.group])

    def _spent(self, cap: Cap) -> bool:
        return self._ledger.use(cap.group) >= cap.use

    def room(self) -> tuple[tuple[str, int], ...]:
        """PEs left to each group that a cap holds for."""
        if not self._caps:
            return ()
        return self._least({name: self._left(cap) for name, cap in self._caps.items()})

    def most(self) -> tuple[tuple[str, int], ...]:
        """PEs that each group that a cap holds for has at most, whatever runs."""
        return self._least({name: cap.pes for name, cap in self._caps.items()})

    def _least(self, pes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
        held_for = ((name, self._of(name)) for name in self._site.settings.groups)
        return tuple((name, min(pes[cap.group] for cap in caps)) for name, caps in held_for if caps)

    def never(self, request: Request) -> Reason | None:
        """The cap under which a request can never start; None where none is narrower than it."""
        asked = request.spec.ask.pes
        for cap in self._of(request.group) if self._caps else ():
            if asked > cap.pes:
                return Reason(ReasonCode.LIMIT, cap.who, self._of_pes(cap, asked))
        return None

    def keeping(self, request: Request) -> Reason | None:
        """The cap that keeps a request back; None where none does."""
        for cap in self._of(request.group) if self._caps else ():
            if request.spec.ask.pes > cap.pes - self._held[cap.group]:
                return Reason(ReasonCode.LIMIT, cap.who, self._of_pes(cap, request.spec.ask.pes))
            if self._spent(cap):
                return Reason(ReasonCode.LIMIT, cap.who, *self._of_use(cap))
        return None

    def _of_pes(self, cap: Cap, asked: int) -> str:
        held, whole = self._held[cap.group], self._site.pes()
        text = f"{cap} is {cap.pes} of {whole} PEs, it holds {held}, this asks for {asked}"
        if asked > cap.pes:
            return f"{text}: {CAPPED}"
        return f"{text}: {held + asked - cap.pes} must become free"

    def _of_use(self, cap: Cap) -> tuple[str, Instant | None]:
        used, most = format_time(_seconds(self._ledger.use(cap.group))), format_time(_seconds(cap.use))
        charge = "CPU time" if self._site.settings.usage.charge == "cpu" else "PE time"
        text, until = f"{cap} is {most} of decayed {charge}, it has {used} with what runs", self._opens(cap)
        return f"{text}: {DECAY if until else 'some of what runs must end'}", until

    def opens(self) -> Instant | None:
        """When the first group that its past use keeps back will have forgotten enough of it; None where only
        the end of what runs can help."""
        return min((at for cap in self._caps.values() if (at := self._opens(cap)) is not None), default=None)

    def _opens(self, cap: Cap) -> Instant | None:
        lasting, use = self._ledger.lasting(cap.group), self._ledger.use(cap.group)
        if use < cap.use or lasting >= cap.use:
            return None
        half_lives = log2((use - lasting) / (cap.use - lasting))
        return Instant(self._ledger.now + ceil(half_lives * self._site.settings.usage.half_life) + 1)


def _caps(site: Site) -> dict[str, Cap]:
    pes, half_life = site.pes(), site.settings.usage.half_life
    return {
        group.name: Cap(
            group.name, group.limit, capped_pes(group.limit, pes), capped_use(group.limit, pes, half_life)
        )
        for group in site.settings.groups.values()
        if group.limit is not None
    }


def _seconds(ms: float) -> int:
    return ceil(ms / 1000) * 1000
