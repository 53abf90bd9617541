"""The virtual driver: the same engine, fed from a heap under a virtual clock (architecture.md 1.5)."""

from collections.abc import Callable, Sequence
from typing import Any

from nqspy.core.plain import NoExits
from nqspy.engine.decider import AtOnce
from nqspy.engine.loop import Asked, Engine, Outcome
from nqspy.model.commands import Command
from nqspy.model.events import Event, MachineFound, Recorded
from nqspy.model.ids import Instant
from nqspy.model.lifecycle import apply
from nqspy.model.people import Caller
from nqspy.model.requests import Request
from nqspy.model.sightings import SeenEnded, SeenUse
from nqspy.model.site import Site
from nqspy.ports import Exits, Journal
from nqspy.sim.heap import Heap
from nqspy.sim.machine import Machine, Run

OPERATOR = Caller("operator", 0, 0, (), True)


class Simulation:
    """A site under a virtual clock. ``replies`` holds what commands were answered; ``journal`` what
    happened."""

    def __init__(
        self,
        journal: Journal,
        lengths: Callable[[Request], Run],
        start: Instant,
        *,
        pes: int = 2,
        zone: str = "UTC",
        exits: Exits | None = None,
    ) -> None:
        self.heap = Heap()
        self.machine = Machine(self.heap, lengths)
        self.now = start
        self.replies: list[Any] = []
        self.notices: list[Any] = []
        self._tick: Instant | None = None
        exits = exits or NoExits()
        site = Site()
        _record(site, MachineFound(tuple(range(pes)), 0, "sim", zone), start)
        exits.begin(site)
        self.engine = Engine(site, journal, self.machine, exits, AtOnce(exits))

    @property
    def site(self) -> Site:
        """The engine's site."""
        return self.engine.site

    def ask(self, command: Command, caller: Caller = OPERATOR) -> Any:
        """Has a command done now; returns its value or raises its refusal."""
        self._feed([Asked(command, caller, len(self.replies))])
        reply = self.replies[-1][1]
        if reply.refusal is not None:
            raise reply.refusal
        return reply.value

    def at(self, at: Instant, command: Command, caller: Caller = OPERATOR) -> None:
        """Has a command done at an instant to come."""
        self.heap.push(at, Asked(command, caller))

    def run(self, until: Instant | None = None) -> Instant:
        """Lets time pass until nothing is left to happen, or to ``until``; returns where the clock stands."""
        while (at := self.heap.next_at()) is not None and (until is None or at <= until):
            self.now, items = self.heap.pop()
            self._feed([item for item in items if item is not None])
            if until is None and not self._alive():
                break
        if until is not None:
            self.now = max(self.now, until)
            self._feed([])
        return self.now

    def _alive(self) -> bool:
        site = self.site
        return bool(site.requests) or any(item[2] is not None for item in self.heap.entries())

    def _feed(self, inputs: Sequence[Any]) -> None:
        for item in inputs:
            if isinstance(item, SeenEnded):
                self.machine.ended(item.seq)
        started = self.site.started
        using = self.machine.use(self.now).items()
        uses = [SeenUse(seq, started[seq].attempt, used) for seq, used in using if seq in started]
        outcome = self._take(self.engine.feed([*uses, *inputs], self.now))
        while outcome.again or outcome.pending:
            again = self.engine.feed((), self.now) if outcome.again else self.engine.flush(self.now)
            outcome = self._take(again)
        wake = outcome.wake_at
        if wake is not None and wake != self._tick:
            self._tick = wake
            self.heap.push(wake, None)

    def _take(self, outcome: Outcome) -> Outcome:
        self.replies += outcome.replies
        self.notices += outcome.notices
        return outcome


def _record(site: Site, event: Event, at: Instant) -> None:
    apply(site, Recorded(site.n + 1, at, event))
