"""Progress of attempts on the simulated machine. With `Processors` no attempt slows another down.
`TimeShared` is the Y-MP of seed 003: fewer CPUs than requests, a memory too small for all, and waits for the
disk in which another attempt may use the CPU."""

from collections.abc import Sequence
from typing import Protocol

from nqspy.model.ids import Instant, Seq

Key = tuple[Seq, int]
"""An attempt: request and number."""


class Load(Protocol):
    """An attempt as the processors see it, as long as it lasts the same object.

    ``demand``: CPUs that it keeps busy at full speed (0.95 for a request of one CPU that waits for the disk 5
    % of its time); ``memory``: bytes; ``runs``: False while it is suspended.
    """

    demand: float
    memory: int
    runs: bool


class Processors:
    """Speed of each attempt on the simulated machine: here always full. ``apart``: True if no rate depends on
    other attempts, so that `rates` is asked about changed attempts only."""

    apart = True

    def rates(self, loads: Sequence[Load], now: Instant) -> Sequence[float]:
        """Return, in order, the rate at which each attempt progresses from now on: 1.0 is full speed, 0 if
        suspended. ``loads``: all attempts in the order of their starts, or with ``apart`` some."""
        return [float(each.runs) for each in loads]


class TimeShared(Processors):
    """``cpus`` processors and ``memory`` bytes, shared by all attempts that run.

    In the order of their starts attempts get memory while there is enough; the others are swapped out and
    make no progress. With demands d1 .. dk in memory each progresses at min(1, cpus / (d1 + .. + dk)): k
    requests of one CPU that wait for their disk a part ``io`` of the time, at min(1, cpus / (k (1 - io))).

    ``swaps``: how often a started attempt moved into memory or out of it; ``swapped_bytes``: bytes moved by
    that.
    """

    apart = False

    def __init__(self, cpus: int, memory: int) -> None:
        self.cpus = cpus
        self.memory = memory
        self.swaps = 0
        self.swapped_bytes = 0
        self._inside: set[Load] = set()
        self._known: set[Load] = set()
        self._outside = 0
        self._out_ms = 0
        self._last = Instant(0)

    def rates(self, loads: Sequence[Load], now: Instant) -> Sequence[float]:
        """Return one rate for all attempts in memory, and 0 for the others."""
        self._out_ms, self._last = self.swapped_out(now), now
        room, inside, known = self.memory, set[Load](), set(loads)
        for each in loads:
            if each.runs and each.memory <= room:
                room -= each.memory
                inside.add(each)
        self._outside = sum([each.runs for each in loads]) - len(inside)
        for each in (inside ^ self._inside) & self._known & known:
            self.swaps += 1
            self.swapped_bytes += each.memory
        self._known, self._inside = known, inside
        demand = sum([each.demand for each in loads if each in inside])
        rate = min(1.0, self.cpus / demand) if demand > 0 else 1.0
        return [rate if each in inside else 0.0 for each in loads]

    def swapped_out(self, now: Instant) -> int:
        """Return the time (ms, summed over attempts) in which running attempts were swapped out so far."""
        return self._out_ms + self._outside * (now - self._last)
