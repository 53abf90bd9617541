"""What a home's journal has of a time: the site as it was at the beginning, and all that happened."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from nqspy.engine.replay.recording import Recording, rebuilt
from nqspy.model.event import Recorded
from nqspy.model.events import Decided
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.report.time_text import Zone, zone_of
from nqspy.sim.replay.wrong import NotReplayed
from nqspy.store.errors import StoreError
from nqspy.store.former_sites import latest_before
from nqspy.store.reader import Reader

NEAR = 100_000
"""A pass that was under way at an instant has come within so many events."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The journal up to event ``n`` leads to the site: from the beginning, or from a backup's."""

    reader: Reader
    n: int
    backup: bool = True

    def __call__(self) -> Site:
        """That site, made anew. Raises NotReplayed where the journal does not reach back so far."""
        former = latest_before(self.reader, self.n) if self.backup and self.n > NEAR else None
        site = Site() if former is None else former
        first = next(self.reader.events(after=site.n, limit=1), None)
        if first is not None and first.n != site.n + 1:
            raise NotReplayed(f"the journal begins with event {first.n}: what was before nobody knows")
        return rebuilt(site, islice(self.reader.events(after=site.n), self.n - site.n))


class Past:
    """The journal of a home, read beside its daemon or without one."""

    def __init__(self, home: Path) -> None:
        """Raises NotReplayed."""
        database = home / "nqs.db"
        if not database.exists():
            raise NotReplayed(f"{database} does not exist: there is nothing to replay")
        try:
            self.reader = Reader(database)
        except (StoreError, OSError) as error:
            raise NotReplayed(f"{error}; its owner or root can replay it") from error
        self.home = home
        last = self._last()
        if last is None:
            raise NotReplayed(f"the journal of {home} has no events: there is nothing to replay")
        self.last = last.at
        self.now_site = self._settings()

    def _last(self) -> Recorded | None:
        """The last event: numbers have no gaps, and grow with what is looked for."""
        low, high = 0, 1
        while next(self.reader.events(after=high, limit=1), None) is not None:
            low, high = high, 2 * high
        while low < high:
            middle = (low + high) // 2
            if next(self.reader.events(after=middle, limit=1), None) is None:
                high = middle
            else:
                low = middle + 1
        return next(self.reader.events(after=low - 1, limit=1), None) if low else None

    def _settings(self) -> Site:
        """Settings and machine as they are at the end."""
        from nqspy.report import site_then

        site = Site()
        for recorded in self.reader.kinds(site_then.KINDS):
            site_then.follow(site, recorded.event)
        return site

    @property
    def zone(self) -> Zone:
        """The site's."""
        return zone_of(self.now_site.timezone)

    def recording(self, since: Instant | None = None, until: Instant | None = None) -> Recording:
        """From ``since`` (None: the beginning) to before ``until`` (None: the end), a little longer where a
        pass was under way. Raises NotReplayed."""
        n = 0 if since is None else self._before(since)
        events = list(self.reader.events(after=n))
        if not events or (until is not None and events[0].at >= until):
            raise NotReplayed("nothing happened in that time: there is nothing to replay")
        count = len(events) if until is None else _count(events, until)
        begin = Beginning(self.reader, n)
        return Recording(begin, events[:count], self._ended, events[count:])

    def _ended(self, seqs: Sequence[int]) -> Iterator:  # type: ignore[type-arg]
        return self.reader.ended(seqs=seqs)

    def _before(self, since: Instant) -> int:
        """The number of the last event before an instant at which no plan was under way."""
        first = next(self.reader.events(since=since, limit=1), None)
        if first is None:
            raise NotReplayed("nothing has happened since then: there is nothing to replay")
        n = first.n - 1
        near = self.reader.kinds((Decided.kind,), after=max(0, n - NEAR), upto=n + NEAR)
        passes = [(each.n, each.event.as_of) for each in near if isinstance(each.event, Decided)]
        while (earlier := min((saw for came, saw in passes if came > n and saw < n), default=n)) < n:
            n = earlier
        return n


def _count(events: Sequence[Recorded], until: Instant) -> int:
    return next((place for place, each in enumerate(events) if each.at >= until), len(events))
