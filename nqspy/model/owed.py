"""What the accounts of the deficit rule are made of (`balance`): an entry of one group or user, the terms,
what one does, and how an even use fades."""

from dataclasses import dataclass
from functools import lru_cache
from math import expm1, log

import msgspec
from msgspec.structs import force_setattr

from nqspy.model.ids import HOUR, Instant

PE = 1000
"""The rate of one PE: ms charged in a second."""

UNKNOWN_RUN = HOUR
"""Mean run time before any request has ended, ms."""

SHORTEST = 1_000
"""The mean run time is taken for so long at least, ms: the bound must not become 0."""


@dataclass(slots=True)
class Entry:
    """Both accounts of one group, or of one user in a group, in the unit that is charged (ms). (No Struct:
    it is written to whenever time passes, which takes a Struct twice as long.)

    ``past`` (L) and ``present`` (S) as of ``asof``, both frozen while it is away; ``away``: since when it is
    not in W, None while it is; ``ready``: PEs for which its requests could start (users only). ``entitled``,
    ``got`` and ``whole``: what it was entitled to, was charged, and all were charged while it was in W, since
    the present shift began; ``left``: what all had been charged ever when it left W (groups only).
    """

    past: float = 0.0
    present: float = 0.0
    asof: Instant = Instant(0)
    away: Instant | None = Instant(0)
    ready: int = 0
    entitled: float = 0.0
    got: float = 0.0
    whole: float = 0.0
    left: float = 0.0

    def copy(self) -> "Entry":
        """A copy of its own."""
        made = Entry.__new__(Entry)  # a pass copies many
        made.past, made.present, made.asof, made.away = self.past, self.present, self.asof, self.away
        made.ready, made.entitled, made.got = self.ready, self.entitled, self.got
        made.whole, made.left = self.whole, self.left
        return made


class Terms(msgspec.Struct, frozen=True):
    """What the rule depends on: PEs, half-life (ms), ``payback`` p (a fraction), ``run``: mean run time of
    the last requests that ended (ms), ``machine``: PEs of all domains (0: these)."""

    pes: int = 1
    half_life: int = 24 * HOUR
    payback: float = 0.2
    run: float = UNKNOWN_RUN
    machine: int = 0
    bound: float = 0.0
    """b: what all PEs do in the time of a mean run; asked for with each event, as is ``hour``."""
    hour: float = 0.0
    """What all PEs do in an hour: of so long a past x is 1."""

    def __post_init__(self) -> None:
        pes = max(1, self.pes)
        force_setattr(self, "bound", pes * max(self.run, SHORTEST))
        force_setattr(self, "hour", float(pes * HOUR))

    def clipped(self, present: float) -> float:
        """Within b."""
        return min(max(present, -self.bound), self.bound)


@lru_cache(256)  # what ran over one span is told of at one instant
def faded(span: float, half_life: int) -> float:
    """What is left at the end of a span of a use that was 1 in all and even over it: less the longer it
    took (the integral of 2^(-t/h) over the span, divided by the span)."""
    x = span / half_life * log(2)
    return -expm1(-x) / x if x > 1e-6 else 1.0


class Work(msgspec.Struct):
    """What one of a level does: charged at ``rate`` (thousandths of a PE), running on ``pes`` PEs, startable
    on ``ready`` more."""

    rate: int = 0
    pes: int = 0
    ready: int = 0

    def add(self, more: "Work") -> None:
        """Both together."""
        self.rate += more.rate
        self.pes += more.pes
        self.ready += more.ready
