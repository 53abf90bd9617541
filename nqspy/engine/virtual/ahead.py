"""A run from a site as it is on, with what runs on it and what is promised: the same engine, passes, shifts
and limits as a simulation's, and a journal in which nothing is kept."""

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
"""How long a request runs under these settings."""
HORIZON = 366 * DAY
"""How far ahead is looked at most, ms."""


class AheadRun(VirtualRun):
    """Simulate ``site`` ahead, a copy (`site_copy.copy_site`). ``between``: where its engine is;
    ``lengths``: run times of attempts, running ones included; ``moves``: time to leave the PEs.

    ``starts``: when requests start, of arrays their first index too; ``count``: how many starts there were.
    """

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
        """Lets time pass as long as that is so; False: nothing more is to come before `HORIZON`."""
        while wanted():
            if not self.step() or self.now > self._begin + HORIZON:
                return False
        return True


class Passes:
    """Asks are answered with a plan immediately."""

    def __init__(self, exits: Exits) -> None:
        self._exits = exits

    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """Runs a pass over the site as it is."""
        return run_pass(site, now, self._exits, samples)

    def follow(self, events: Sequence[Recorded]) -> None:
        """Do nothing: passes look at the site itself."""

    def reset(self, site: Site) -> None:
        """Do nothing: nothing of a site is kept."""

    def foresee(
        self, site: Site, request: Request, now: Instant, samples: Mapping[Seq, Used]
    ) -> Callable[[float], Any]:
        """Foresee nothing: in such a run nothing is submitted."""
        return lambda seconds: None


class Unwritten:
    """`ports.Journal` in which nothing is written; ``begun`` is told of starts."""

    remembers = False

    def __init__(self, begun: Callable[[Seq, Instant], None] = lambda seq, at: None) -> None:
        self._begun = begun

    def commit(self, batch: Batch, site: Site) -> None:
        """Forgets it."""
        for recorded in batch.events:
            if isinstance(recorded.event, Starting):
                self._begun(recorded.event.seq, recorded.at)
        site.touched.clear()

    def load(self) -> Site:
        """Raises RuntimeError: there is nothing to begin again from."""
        raise RuntimeError("there is nothing to begin again from")

    def find_key(self, owner: str, key: str) -> tuple[str, tuple[Seq, ...]] | None:
        return None

    def blob(self, digest: str) -> bytes:
        raise KeyError(digest)

    def ended(self, seqs: Sequence[Seq]) -> Iterator[EndedRow]:
        """None: whoever waits for one that has ended was told when it did."""
        return iter(())

    def stored_bytes(self, owner: str) -> int:
        return 0

    def has_blob(self, owner: str, digest: str) -> bool:
        return True

    def capacity(self) -> int | None:
        return None

    def low(self) -> bool:
        return False
