"""The virtual driver: the same engine, fed from a heap under a virtual clock (architecture.md 1.5)."""

from collections.abc import Callable, Sequence
from typing import Any

from nqspy.core.plain import NoExits
from nqspy.engine import restart
from nqspy.engine.decider import AtOnce
from nqspy.engine.inputs import CommandAsked, Outcome
from nqspy.engine.loop import Engine
from nqspy.model.commands import Command
from nqspy.model.ids import DAY, Instant
from nqspy.model.machine import Found
from nqspy.model.people import Caller
from nqspy.model.requests import Request
from nqspy.model.sightings import SeenEnded, SeenUse, SiteObservation
from nqspy.model.site import Site
from nqspy.ports import Decider, Exits, Journal
from nqspy.sim.heap import Heap
from nqspy.sim.machine import Run, VirtualMachine
from nqspy.sim.processors import Processors
from nqspy.sim.resources import results

OPERATOR = Caller("operator", 0, 0, (), True)

SILENCE = 8 * DAY
"""`Simulation.run` without an end gives up when for so long nothing has happened but shifts."""


class Simulation:
    """A site under a virtual clock. ``replies`` holds what commands were answered; ``journal`` what
    happened; ``log`` the engine's lines.

    ``pes`` is how many CPUs are found; ``processors`` how they are shared (None: all at full speed). A
    journal that has a history already is gone on with.
    """

    def __init__(
        self,
        journal: Journal,
        lengths: Callable[[Request], Run],
        start: Instant,
        *,
        pes: int = 2,
        zone: str = "UTC",
        exits: Exits | None = None,
        decider: Decider | None = None,
        host: str = "sim",
        processors: Processors | None = None,
    ) -> None:
        self.heap = Heap()
        self.machine = VirtualMachine(self.heap, lengths, processors)
        self.journal = journal
        self.now = start
        self.replies: list[Any] = []
        self.notices: list[Any] = []
        self.log: list[str] = []
        self._found, self._host, self._zone = Found(tuple(range(pes)), 0), host, zone
        self._exits: Exits = exits or NoExits()
        self._decider: Decider = decider or AtOnce(self._exits)
        self._tick: Instant | None = None
        self.restart()

    @property
    def site(self) -> Site:
        """The engine's site."""
        return self.engine.site

    def restart(self, later: restart.Later | None = None) -> None:
        """Throws the engine away, whatever it was about to do, and begins a new one from the journal; the
        machine goes on meanwhile. ``later``: what the journal does not know, for it was put back."""
        self.engine = Engine(
            self.journal.load(), self.journal, self.machine, self._exits, self._decider, self.log.append
        )
        self._settle(restart.begin(self.engine, self._found, self._host, self._zone, self.now, later))

    # ------------------------------------------------------------ asking

    def ask(self, command: Command, caller: Caller = OPERATOR) -> Any:
        """Has a command done now; returns its value or raises its refusal."""
        handle = object()
        self.feed([CommandAsked(command, caller, handle)])
        reply = next(reply for got, reply in reversed(self.replies) if got is handle)
        if reply.refusal is not None:
            raise reply.refusal
        return reply.value

    def at(self, at: Instant, command: Command, caller: Caller = OPERATOR) -> None:
        """Has a command done at an instant to come."""
        self.heap.push(at, CommandAsked(command, caller))

    def see(self, at: Instant, news: SiteObservation) -> None:
        """Has something be seen of the machine or the site at an instant to come."""
        self.heap.push(at, news)

    def watch(self, resource: str, until: Instant, well: Callable[[Instant], bool]) -> None:
        """Has a resource of the settings be tried from now on to an instant; it is well when ``well`` says
        so."""
        for at, seen in results(self.site.settings, resource, self.now, until, well):
            self.see(at, seen)

    # ------------------------------------------------------------ time

    def run(self, until: Instant | None = None) -> Instant:
        """Lets time pass to ``until``, or until nothing is left to happen; returns where the clock stands."""
        busy = self.now
        while (at := self.heap.next_at()) is not None and (until is None or at <= until):
            if until is None and not self._alive(at - busy):
                break
            self.now, items = self.heap.pop()
            inputs = [each for item in items for each in self._told(item)]
            busy = self.now if inputs else busy
            self.feed(inputs)
        if until is not None:
            self.now = max(self.now, until)
            self.feed([])
        return self.now

    def _told(self, item: Any) -> Sequence[Any]:
        """What an item of the heap tells: itself, or what is seen when it is called at its instant."""
        if callable(item):
            return tuple(item(self.now))
        return () if item is None else (item,)

    def _alive(self, silence: int) -> bool:
        if any(not (item is None or callable(item)) for _, _, item in self.heap.entries()):
            return True
        return bool(self.site.requests) and silence < SILENCE

    def feed(self, inputs: Sequence[Any]) -> None:
        """Gives the engine what happens now, with what running attempts have used; and whatever follows
        from it at once."""
        ends = [item for item in inputs if isinstance(item, SeenEnded)]
        if ends:
            self.machine.ended(ends, self.now)
        uses = [SeenUse(seq, attempt, used) for seq, (attempt, used) in self.machine.use(self.now).items()]
        self._settle(self.engine.feed([*uses, *inputs], self.now))

    def _settle(self, outcome: Outcome) -> None:
        self._take(outcome)
        while outcome.again or outcome.pending:
            outcome = self.engine.feed((), self.now) if outcome.again else self.engine.flush(self.now)
            self._take(outcome)
        wake = outcome.wake_at
        if wake is not None and wake != self._tick:
            self._tick = wake
            self.heap.push(wake, None)

    def _take(self, outcome: Outcome) -> None:
        self.replies += outcome.replies
        self.notices += outcome.notices
