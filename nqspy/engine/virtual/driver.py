"""Simulation drivers: an engine fed from a heap under a virtual clock (architecture.md 1.5)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nqspy.core import move_rank
from nqspy.engine import restart
from nqspy.engine.inputs import CommandAsked, Outcome, Use
from nqspy.engine.loop import Engine
from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.executor import Recent, VirtualExecutor
from nqspy.engine.virtual.heap import Heap
from nqspy.engine.virtual.moves import StateMoves
from nqspy.engine.virtual.processors import Key, Processors
from nqspy.model.ids import DAY, Instant
from nqspy.model.machine import Found
from nqspy.model.observations import ObservedEnded
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.ports import Decider, Exits, Journal

SILENCE = 8 * DAY
"""Time (ms) without events other than shifts after which a run without an end stops."""


def end(error: Exception) -> None:
    """Raise an error inside the engine again, so that it ends the simulation: later results would be
    wrong."""
    raise error


class VirtualRun:
    """Simulation driver: feeds an engine the inputs of each instant from a heap, and jumps to the next
    instant. At one instant all observations come first, then commands, then a pass. ``replies``: last replies
    to commands; ``notices``, ``log``: last mails and log lines of the engine (`Recent`). A subclass or user
    sets the ``engine`` (`make`), and ``silence``, if another time (ms) than `SILENCE` without events other
    than shifts ends the run.

    ``processors``: how CPUs are shared (None: all at full speed); ``moves``: times to leave PEs and come back
    (None: none); ``migration``: as in `VirtualExecutor`; ``sampled``: True if running attempts report their
    use at each instant (else only at their ends, and are charged by estimates until then); ``failed``: gets
    errors inside the engine; ``patient``: as in `Engine`.
    """

    engine: Engine

    def __init__(
        self,
        journal: Journal,
        lengths: Callable[[Request], Run],
        start: Instant,
        exits: Exits,
        decider: Decider,
        *,
        processors: Processors | None = None,
        moves: StateMoves | None = None,
        migration: int = 0,
        sampled: bool = True,
        failed: Callable[[Exception], None] = end,
        patient: bool = False,
    ) -> None:
        self.heap = Heap()
        self.executor = VirtualExecutor(self.heap, lengths, processors, moves, migration)
        self.journal = journal
        self.now = start
        self.replies = Recent[Any]()
        self.notices = Recent[Any]()
        self.log = Recent[str]()
        self.exits, self._decider, self._sampled, self._failed = exits, decider, sampled, failed
        self._patient = patient
        self._tick: Instant | None = None
        self._sampled_at, self._samples = start, set[Key]()
        self._busy, self.silence = start, SILENCE

    @property
    def site(self) -> Site:
        """The engine's site."""
        return self.engine.site

    def make(self, site: Site) -> None:
        """Make a new engine with this site; the former one is dropped with all that it was about to do."""
        self._samples.clear()
        self.engine = Engine(
            site, self.journal, self.executor, self.exits, self._decider, self.log.append, self._failed,
            self._patient,
        )  # fmt: skip

    # ------------------------------------------------------------ time

    def run(self, until: Instant | None = None) -> Instant:
        """Let time pass to ``until`` (None: until nothing is left to happen); return the clock's instant."""
        self._busy = self.now
        while self.step(until):
            pass
        if until is not None:
            self.now = max(self.now, until)
            self.feed([])
        return self.now

    def step(self, until: Instant | None = None) -> bool:
        """Jump to the next instant with an input and process it. Return False, and do nothing, if it is after
        ``until``, or if without ``until`` the run is over."""
        at = self.heap.next_at()
        if self.is_over() if at is None or until is None else at > until:
            return False
        self.now, items = self.heap.pop()
        inputs: list[Any] = []
        for item in items:
            if callable(item):  # it returns the observations of its instant
                inputs += item(self.now)
            elif item is not None:
                inputs.append(item)
        if len(inputs) > 1:
            inputs.sort(key=lambda each: isinstance(each, CommandAsked))
        self._busy = self.now if inputs else self._busy
        self.feed(inputs)
        return True

    def is_over(self) -> bool:
        """True if nothing is left to happen, or nothing but shifts for ``silence`` ms."""
        at = self.heap.next_at()
        alive = self.heap.sure > 0 or (bool(self.site.requests) and (at or 0) - self._busy < self.silence)
        return at is None or not alive

    def feed(self, inputs: Sequence[Any], asked: Iterable[Any] = ()) -> None:
        """Give the engine the inputs of this instant with the use of running attempts, then those of
        ``asked``, each read when it is processed; then call it until nothing more is due at this instant."""
        ends = [item for item in inputs if isinstance(item, ObservedEnded)]
        if ends:
            self.executor.ended(ends, self.now)
        if self._sampled:
            if self._sampled_at != self.now:  # each attempt is reported once an instant
                self._sampled_at = self.now
                self._samples.clear()
            running = self.executor.use(self.now, self._samples)
            self._samples.update([(seq, number) for seq, (number, _) in running.items()])
            inputs = (Use(running), *inputs)
        self._settle(self.engine.feed(inputs, self.now, asked))

    def _settle(self, outcome: Outcome) -> None:
        self._collect(outcome)
        while outcome.again or outcome.pending:
            outcome = self.engine.feed((), self.now) if outcome.again else self.engine.flush(self.now)
            self._collect(outcome)
        self.executor.order_moves(lambda key: move_rank(self.site, key[0]), self.now)
        wake = outcome.wake_at
        if wake is not None and wake != self._tick:
            self._tick = wake
            self.heap.push(wake, None)

    def _collect(self, outcome: Outcome) -> None:
        if outcome.replies:
            self.replies.extend(outcome.replies)
        if outcome.notices:
            self.notices.extend(outcome.notices)


class VirtualDriver(VirtualRun):
    """Virtual run with an engine that begins from a journal, like the daemon's; a journal with a history is
    continued. ``found``, ``host``, ``zone``: the machine at each start; ``more``: for `VirtualRun`."""

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
        **more: Any,
    ) -> None:
        super().__init__(journal, lengths, start, exits, decider, **more)
        self._found, self._host, self._zone = found, host, zone
        self.restart()

    def restart(self, later: restart.Later | None = None) -> None:
        """Simulate a restart of the daemon: drop the engine with all that it was about to do, and begin a new
        one from the journal. Attempts go on meanwhile. ``later``: facts that a restored journal lacks."""
        self.make(self.journal.load())
        self._settle(restart.begin(self.engine, self._found, self._host, self._zone, self.now, later))
