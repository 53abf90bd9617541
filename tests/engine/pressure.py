"""The invented machine's memory: what running requests and people hold of it, told as the daemon tells it."""

from collections.abc import Callable, Mapping, Sequence

from nqspy.core import swap
from nqspy.model.ids import Instant, Seq
from nqspy.model.observations import ObservedPressure
from nqspy.sim.main import Simulation

EVERY = 5_000
"""Between two readings, ms."""


class SimulatedMemory:
    """``total`` bytes, of which people hold ``demand``: (from when on, bytes), in order. A request holds its
    `Run.memory` from its start on; one that gave way holds nothing, unless there is no ``swap``.

    ``people``: whether somebody works at a terminal at an instant. Readings go through the simulation's heap
    every ``every`` ms and are told as the daemon does.
    """

    def __init__(
        self,
        sim: Simulation,
        total: int,
        demand: Sequence[tuple[Instant, int]] = (),
        *,
        swap: bool = True,
        people: Callable[[Instant], bool] = lambda now: False,
        every: int = EVERY,
    ) -> None:
        self._sim = sim
        self._total = total
        self._demand = demand
        self._swap = swap
        self._people = people
        self._every = every
        self._most: dict[tuple[Seq, int], int] = {}
        sim.heap.push(sim.now, self)

    def __call__(self, now: Instant) -> Sequence[ObservedPressure]:
        """What a reading tells; the next one comes by itself."""
        self._sim.heap.push(Instant(now + self._every), self)
        site = self._sim.site
        control, known = swap.CONTROL.one(site.settings), site.pressure
        away = any(True for _ in swap.suspended(site))
        if not control.enabled or (not site.started and known.level == "calm"):
            return ()
        resident = self.resident(now)
        used = 100 * (self.demanded(now) + sum(resident.values())) / self._total
        people = control.interactive and self._people(now)
        level, text = swap.judge(control, swap.Reading(used, people=people), known.level)
        if level == known.level == "calm" and not away:
            return ()
        held = tuple(sorted(resident.items()))
        return (ObservedPressure(level, round(used, 1), text, held, self._total, people),)

    def demanded(self, now: Instant) -> int:
        """Bytes that people hold."""
        return next((size for at, size in reversed(self._demand) if at <= now), 0)

    def resident(self, now: Instant) -> Mapping[Seq, int]:
        """Bytes in memory by request."""
        for seq, (attempt, used) in self._sim.executor.use(now).items():
            self._most[seq, attempt] = used.memory
        return {
            request.seq: 0 if self._swap and swap.gave_way(request) else size
            for request in self._sim.site.started.values()
            if (size := self._most.get((request.seq, request.attempts), 0))
        }
