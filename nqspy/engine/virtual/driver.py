"""The virtual driver: an engine fed from a heap under a virtual clock (architecture.md 1.5)."""

from collections.abc import Callable, Sequence
from typing import Any

from nqspy.engine import restart
from nqspy.engine.inputs import Outcome
from nqspy.engine.loop import Engine
from nqspy.engine.virtual.executor import Run, VirtualExecutor
from nqspy.engine.virtual.heap import Heap
from nqspy.engine.virtual.processors import Processors
from nqspy.model.ids import DAY, Instant
from nqspy.model.machine import Found
from nqspy.model.observations import ObservedEnded, ObservedUse
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.ports import Decider, Exits, Journal

SILENCE = 8 * DAY
"""`VirtualDriver.run` without an end gives up when for so long nothing has happened but shifts."""


class VirtualDriver:
    """Feeds an engine what its heap has for each instant, and jumps to the next. ``replies`` holds what
    commands were answered; ``log`` the engine's lines.

    ``found``, ``host`` and ``zone``: what is found of the machine at a start; ``processors``: how its CPUs
    are shared (None: all at full speed). A journal that has a history already is gone on with.
    """

    def __init__(
        self,
        journal: Journal,
        lengths: Callable[[Request], Run],
        start: Instant,
        exits: Exits,
        decider: Decider,
        *,
        found: Found,
        host: str,
        zone: str = "UTC",
        processors: Processors | None = None,
    ) -> None:
        self.heap = Heap()
        self.executor = VirtualExecutor(self.heap, lengths, processors)
        self.journal = journal
        self.now = start
        self.replies: list[Any] = []
        self.notices: list[Any] = []
        self.log: list[str] = []
        self._found, self._host, self._zone = found, host, zone
        self._exits, self._decider = exits, decider
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
            self.journal.load(), self.journal, self.executor, self._exits, self._decider, self.log.append
        )
        self._settle(restart.begin(self.engine, self._found, self._host, self._zone, self.now, later))

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
        ends = [item for item in inputs if isinstance(item, ObservedEnded)]
        if ends:
            self.executor.ended(ends, self.now)
        uses = [
            ObservedUse(seq, attempt, used) for seq, (attempt, used) in self.executor.use(self.now).items()
        ]
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
