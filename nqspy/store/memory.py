"""Journals without a disk, for simulations and tests: one in memory, and one that only reports events."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import attrgetter

from nqspy.engine import lifecycle
from nqspy.engine.virtual.ahead import Unwritten
from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site
from nqspy.ports import Batch, CommitFailed, EndedRow
from nqspy.store.rows import ended_in, keys_in

_number = attrgetter("n")


class MemoryJournal(Unwritten):
    """Stores events and ended requests in memory; `load` replays the events. ``failpoint`` is called in each
    commit just before it counts; an exception of it undoes the commit (an OSError becomes CommitFailed)."""

    remembers = True

    def __init__(self) -> None:
        super().__init__()
        self.failpoint: Callable[[], None] | None = None
        self._events: list[ev.Recorded] = []
        self._blobs: dict[str, bytes] = {}
        self._keys: dict[tuple[str, str], tuple[str, tuple[Seq, ...]]] = {}
        self._ended: dict[Seq, EndedRow] = {}

    def commit(self, batch: Batch, site: Site) -> None:
        """Store the batch and clear ``site.touched``. Raises CommitFailed: then nothing of it is stored."""
        try:
            if self.failpoint is not None:
                self.failpoint()
        except OSError as error:
            raise CommitFailed(f"nothing was kept: {error}") from error
        self._events += batch.events
        for digest, body in batch.blobs.items():
            self._blobs.setdefault(digest, body)
        self._keys |= {name: (digest, tuple(seqs)) for name, (digest, seqs) in keys_in(batch.events).items()}
        self._ended |= {each["seq"]: each for each in ended_in(batch.events, site)}
        site.touched.clear()

    def load(self) -> Site:
        """Return the site as of the last commit, by a replay of all events."""
        site = Site()
        for recorded in self._events:
            lifecycle.apply(site, recorded)
        site.touched.clear()
        return site

    def find_key(self, owner: str, key: str) -> tuple[str, tuple[Seq, ...]] | None:
        """Return digest and request numbers of the owner's earlier submission with this key, or None."""
        return self._keys.get((owner, key))

    def blob(self, digest: str) -> bytes:
        """Return the script, environment or exit with this digest. Raises KeyError if it is not stored."""
        return self._blobs[digest]

    def ended(self, seqs: Sequence[Seq]) -> Iterator[EndedRow]:
        """Return the records of these requests in the order given, without those that have not ended."""
        return (self._ended[seq] for seq in seqs if seq in self._ended)

    def events(
        self, after: int = 0, since: Instant | None = None, limit: int | None = None
    ) -> Iterator[ev.Recorded]:
        """Yield the events with numbers above ``after`` and instants from ``since`` on, at most ``limit``."""
        first = bisect_right(self._events, after, key=_number)
        found: Iterator[ev.Recorded] = islice(self._events, first, len(self._events))
        if since is not None:
            found = (each for each in found if each.at >= since)
        return islice(found, limit)

    def close(self) -> None:
        """Do nothing: a journal in memory has nothing to close."""


class PassingJournal(MemoryJournal):
    """Calls ``report`` with the events of each commit and stores nothing: no event, ended request or script.
    A simulation on it cannot be restarted, and no request can wait for an ended request."""

    remembers = False

    def __init__(self, report: Callable[[Sequence[ev.Recorded]], None] = lambda events: None) -> None:
        super().__init__()
        self._report = report
        self._used = False

    def commit(self, batch: Batch, site: Site) -> None:
        """Pass the events to ``report``, and clear ``site.touched``."""
        self._used = True
        self._report(batch.events)
        site.touched.clear()

    def load(self) -> Site:
        """Return an empty site. Raises RuntimeError once something was committed."""
        if self._used:
            raise RuntimeError("a journal in memory has no state to restart from")
        return super().load()
