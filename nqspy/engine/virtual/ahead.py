"""Simulation from the present site, with what runs and is reserved: the same engine, passes, shifts and
limits as in other simulations, and a journal that stores nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from nqspy.core.passes import run_pass
from nqspy.engine.inputs import Between
from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.driver import VirtualRun
from nqspy.engine.virtual.moves import StateMoves
from nqspy.model.actions import Plan
from nqspy.model.events import Recorded, Starting
from nqspy.model.ids import DAY, Instant, Seq, array_of
from nqspy.model.requests import Request, Used
from nqspy.model.settings import Settings
from nqspy.model.site import Site
from nqspy.ports import Batch, EndedRow, Exits

Lengths = Callable[[Settings, Request], Run]
"""Function that returns the run of a request (its length) under these settings."""
HORIZON = 366 * DAY
"""Longest simulated time, ms."""
PATIENCE = 40 * DAY
"""Simulated time (ms) with nothing but shifts after which a run stops: long enough for a shift each month."""


class AheadRun(VirtualRun):
    """Simulation from the present on; it changes ``site``, so that must be a copy (`site_copy.copy_site`).
    ``between``: state of the engine that it continues; ``lengths``: run times of attempts, running ones
    included; ``moves``: times to leave PEs. ``starts``: instants at which requests started so far, arrays
    with their first index; ``count``: number of starts."""

    def __init__(
        self,
        site: Site,
        lengths: Lengths,
        now: Instant,
        exits: Exits,
        between: Between,
        moves: StateMoves | None = None,
    ) -> None:
        self.starts: dict[Seq, Instant] = {}
        self.count = 0
        self._begin = now
        decider, sampled = Passes(exits), bool(between.samples)
        super().__init__(
            Unwritten(self._begun), lambda r: lengths(site.settings, r), now, exits, decider,
            sampled=sampled, moves=moves,
        )  # fmt: skip
        self.silence = PATIENCE
        for seq, by in between.moved:  # if the clock was set, attempts have run as long as they really did
            if (request := site.started.get(seq)) is not None:
                run, pause = request.run, request.pause
                pause = pause and replace(pause, at=Instant(pause.at + by))
                request.attempt = replace(run, started=Instant(run.started + by), pause=pause)
        self.make(site)
        self.engine.go_on(between)
        self.executor.adopt(site, dict(between.samples), now)
        self.feed(())

    def _begun(self, seq: Seq, at: Instant) -> None:
        self.count += 1
        self.starts.setdefault(seq, at)
        array = array_of(seq)
        if array is not None:
            self.starts.setdefault(array, at)

    def go_on_while(self, wanted: Callable[[], bool]) -> bool:
        """Let time pass while ``wanted`` returns True. Return True once it returns False; False if nothing
        more can happen before `HORIZON`."""
        while wanted():
            if not self.step() or self.now > self._begin + HORIZON:
                return False
        return True


class Passes:
    """Decider that runs each pass in this process when it is asked for."""

    def __init__(self, exits: Exits) -> None:
        self._exits = exits

    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """Run a pass over the present site."""
        return run_pass(site, now, self._exits, samples)

    def follow(self, events: Sequence[Recorded]) -> None:
        """Do nothing: passes read the site itself."""

    def reset(self, site: Site) -> None:
        """Do nothing: no copy of the site exists."""

    def forecast(
        self, site: Site, request: Request, now: Instant, samples: Mapping[Seq, Used]
    ) -> Callable[[float], Any]:
        """Return a function without a result: nothing is submitted in such a run."""
        return lambda seconds: None


class Unwritten:
    """Journal that writes nothing (`ports.Journal`); ``begun`` is called for each start."""

    remembers = False

    def __init__(self, begun: Callable[[Seq, Instant], None] = lambda seq, at: None) -> None:
        self._begun = begun

    def commit(self, batch: Batch, site: Site) -> None:
        """Report starts to ``begun``, and drop the batch."""
        for recorded in batch.events:
            if isinstance(recorded.event, Starting):
                self._begun(recorded.event.seq, recorded.at)
        site.touched.clear()

    def load(self) -> Site:
        """Raise RuntimeError: there is nothing to begin again from."""
        raise RuntimeError("there is nothing to begin again from")

    def find_key(self, owner: str, key: str) -> tuple[str, tuple[Seq, ...]] | None:
        return None

    def blob(self, digest: str) -> bytes:
        raise KeyError(digest)

    def ended(self, seqs: Sequence[Seq]) -> Iterator[EndedRow]:
        """Return no rows: requests that waited for others were told when these ended."""
        return iter(())

    def stored_bytes(self, owner: str) -> int:
        return 0

    def has_blob(self, owner: str, digest: str) -> bool:
        return True

    def capacity(self) -> int | None:
        return None

    def low(self) -> bool:
        return False
