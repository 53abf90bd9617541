"""Factors of intra-queue priority that are computed from columns: time in queue, requested CPU time and
memory.

``P = S*share + C*cpu + M*memory + T*time`` with every factor in [0,1] (semantics.md 1, after seed 003, 6.1).
time = time in queue / longest time in queue; cpu = 1 - requested / largest requested; memory likewise. An
unlimited or omitted value counts as the queue's limit if finite, else as the largest finite value in the
queue. A factor with the divisor 0 is 0 for all.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec import Struct

from nqspy.core.runtime import cpu_of, memory_of
from nqspy.model.columns import Columns, Floats, Ints
from nqspy.model.ids import Instant
from nqspy.model.queues import Queue, Weights

INFINITE = float("inf")

BLOCK = 16_000
"""Rows that are computed at once: small enough that intermediate results stay in the processor's cache."""


def blocks(count: int) -> Iterable[slice]:
    """Return slices of at most `BLOCK` rows that together cover ``count`` rows."""
    if 0 < count <= BLOCK:
        return (slice(0, count),)
    return (slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))


class Scale(Struct, frozen=True):
    """Scale that makes factors of a column: the divisor ``largest``, and the value ``instead`` of infinite
    ones (None: the column has none)."""

    largest: float
    instead: float | None = None


def _scale(columns: Columns, name: str, limit: int | None) -> Scale:
    largest = columns.most(name)
    if largest != INFINITE:
        return Scale(largest)
    values = getattr(columns, name)
    finite = values[values != INFINITE]
    largest = float(finite.max()) if len(finite) else 0.0
    instead = largest if limit is None else float(limit)
    return Scale(max(largest, instead), instead)


class FactorTerms:
    """Time, CPU and memory factors (0 to 1) of a queue at ``now``, with the divisors as the pass began."""

    def __init__(self, queue: Queue, columns: Columns, redated: Ints | None, now: Instant) -> None:
        """Compute the divisors. ``redated``: the dates of all rows if this pass has changed some."""
        self._columns, self._now = columns, int(now)
        earliest = columns.least("date") if redated is None else redated.min()
        latest = columns.most("date") if redated is None else redated.max()
        self._longest = max(0, self._now - int(earliest))
        self._future = int(latest) > self._now
        self._cpu = _scale(columns, "cpu", cpu_of(queue))
        self._memory = _scale(columns, "memory", memory_of(queue))

    def time(self, dates: Ints, weight: float = 1.0) -> Any:
        """Return ``weight`` times the time factor; a date in the future counts as no time in queue."""
        if not self._longest:
            return np.zeros(len(dates))
        waited = np.subtract(float(self._now), dates, dtype=np.float64)
        if self._future:
            np.maximum(waited, 0.0, out=waited)
        if weight != 1.0:
            waited *= weight / self._longest
        else:
            waited /= self._longest
        return waited

    def cpu(self, rows: Ints | slice = slice(None), weight: float = 1.0) -> Any:
        """Return ``weight`` times the CPU factor of these rows."""
        return _factor(self._columns.cpu[rows], self._cpu, weight)

    def memory(self, rows: Ints | slice = slice(None), weight: float = 1.0) -> Any:
        """Return ``weight`` times the memory factor of these rows."""
        return _factor(self._columns.memory[rows], self._memory, weight)

    def weighted(self, weights: Weights, dates: Ints, rows: Ints | slice = slice(None)) -> Floats:
        """Return the weighted sum of the three factors of these rows; ``dates`` are their dates."""
        if isinstance(rows, slice) and len(dates) > BLOCK:
            sums = np.empty(len(dates))
            for block in blocks(len(dates)):
                sums[block] = self.weighted(weights, dates[block], block)
            return sums
        parts = []
        if weights.time:
            parts.append(self.time(dates, weights.time))
        if weights.cpu and self._cpu.largest:
            parts.append(self.cpu(rows, weights.cpu))
        if weights.memory and self._memory.largest:
            parts.append(self.memory(rows, weights.memory))
        total: Floats = parts[0] if parts else np.zeros(len(dates))
        for part in parts[1:]:
            total += part
        return total


def _factor(values: Floats, scale: Scale, weight: float) -> Any:
    if not scale.largest:
        return np.zeros(len(values))
    if scale.instead is not None:
        values = np.where(values == INFINITE, scale.instead, values)
    factor = values * (-weight / scale.largest)
    factor += weight
    return factor
