"""Read a time from a home's journal: the site at the beginning, and all events."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path

from nqspy.engine.handlers.exits import digest_of
from nqspy.engine.replay.recording import Recording, loads_at_start, rebuilt, reloaded
from nqspy.model.actions import ExitFailure
from nqspy.model.events import Alarm, DaemonStarted, Decided, LoadedExits, Recorded, Submitted
from nqspy.model.ids import Instant, Seq, array_key, number_of
from nqspy.model.site import Site
from nqspy.ports import EndedRow
from nqspy.report.time_text import Zone, zone_of
from nqspy.sim.replay.exits import ExitVersions, Files
from nqspy.sim.replay.isolated import NotReplayed
from nqspy.store.errors import StoreError
from nqspy.store.reader import Reader, latest_before
from nqspy.userexit.loader import Source

NEAR = 100_000
"""Number of events within which the plan of a pass under way arrives."""


class HomeJournal:
    """The journal of a home, read beside its daemon or without a daemon."""

    def __init__(self, home: Path) -> None:
        """Open the journal of the home. Raises NotReplayed without one."""
        database = home / "nqs.db"
        if not database.exists():
            raise NotReplayed(f"{database} does not exist: there is nothing to replay")
        try:
            self.reader = Reader(database)
        except (StoreError, OSError) as error:
            raise NotReplayed(f"{error}; only its owner and root can replay it") from error
        self.home = home
        self.now_site = self.reader.site()
        if self.now_site.n == 0:
            raise NotReplayed(f"the journal of {home} has no events: there is nothing to replay")
        self.last = self.now_site.at

    @property
    def zone(self) -> Zone:
        """Return the site's time zone."""
        return zone_of(self.now_site.timezone)

    def recording(self, since: Instant | None = None, until: Instant | None = None) -> Recording:
        """Read the journal from ``since`` (None: the beginning) to before ``until`` (None: the end), a little
        longer if a pass was under way. The recording needs no journal afterwards. Its first ``begin`` returns
        the site itself, later ones copies without computed values. Raises NotReplayed."""
        n = 0 if since is None else self._before(since)
        events = list(self.reader.events(after=n))
        if not events or (until is not None and events[0].at >= until):
            raise NotReplayed("the journal has no events in that time: there is nothing to replay")
        if events[-1].n - events[0].n != len(events) - 1:
            last, next_ = next((a.n, b.n) for a, b in pairwise(events) if b.n != a.n + 1)
            raise NotReplayed(
                f"the journal was altered: it has no events between {last} and {next_}; "
                "choose another time with --since and --until"
            )
        late = (n for n, each in enumerate(events) if until is not None and each.at >= until)
        count = next(late, len(events))
        former = latest_before(self.reader, n) if n > NEAR else None
        site = Site() if former is None else former
        oldest = next(self.reader.events(after=site.n, limit=1), None)
        if oldest is not None and oldest.n != site.n + 1:
            raise NotReplayed(f"the journal begins with event {oldest.n}: earlier events are missing")
        first = rebuilt(site, islice(self.reader.events(after=site.n), n - site.n))
        spare, sites = reloaded(first), [first]

        def begin() -> Site:
            return sites.pop() if sites else reloaded(spare)

        # The ended requests on which others depend.
        submitted = (each.event.spec for each in events[:count] if isinstance(each.event, Submitted))
        named = {dependency.seq for spec in submitted for dependency in spec.after}
        wanted = sorted({*named, *(array_key(number_of(seq)) for seq in named)})
        rows = {row["seq"]: row for row in self.reader.ended(seqs=wanted)} if wanted else {}

        def ended(seqs: Sequence[Seq]) -> Iterator[EndedRow]:
            return (rows[seq] for seq in seqs if seq in rows)

        return Recording(begin, events[:count], ended, events[count:])

    def failures(self, n: int, since: Instant) -> list[tuple[Instant, ExitFailure]]:
        """Return failures of user exits since ``since``, with the time of their pass, that count after event
        ``n``: a reload forgets all, a load at a start those of exits with another file."""
        kinds = (Decided.kind, Alarm.kind, DaemonStarted.kind, LoadedExits.kind)
        every = self.reader.kinds(kinds, after=max(0, n - NEAR), upto=n)
        near = [each for each in every if each.at >= since]
        found, at_start = list[tuple[Instant, ExitFailure]](), loads_at_start(near)
        former = self._loads_before(near[0].n if near else n)
        files: Files = former[-1][1] if former else None
        for each in near:
            event = each.event
            if isinstance(event, LoadedExits):
                was, files = files, dict(event.files)
                start = each.n in at_start and files != was
                same = {name for name in files if start and (was is None or files[name] == was.get(name))}
                found = [(at, failure) for at, failure in found if failure.exit in same]
            elif isinstance(event, Decided | Alarm):
                at = each.at if isinstance(event, Alarm) or event.asked is None else event.asked
                found += [(at, failure) for failure in event.failures]
        return found

    def exit_versions(self, events: Sequence[Recorded], now: Sequence[Source]) -> ExitVersions:
        """Return the user exits that were loaded while these events happened; ``now``: those of the home."""
        former = self._loads_before(events[0].n)
        loads: list[tuple[Instant | None, Files]] = [(None, former[-1][1] if former else None)]
        lost: dict[tuple[str, str | None, Seq | None], str] = {}
        for each in events:
            if isinstance(each.event, LoadedExits):
                loads.append((each.at, dict(each.event.files)))
            for one in each.event.failures if isinstance(each.event, Alarm) else ():
                if one.lost:
                    digest = (loads[-1][1] or {}).get(one.exit)
                    lost[one.exit, digest, one.seq] = one.text
        copies = {digest_of(each.text): each.text for each in now}
        for digest in {digest for _, files in loads for digest in (files or {}).values()}:
            with suppress(KeyError):  # it is named as missing
                copies[digest] = self.reader.blob(digest)
        passes = (each for each in events if isinstance(each.event, LoadedExits | Decided))
        unknown = not former and isinstance(next(passes, events[0]).event, Decided)
        until = (loads[1][0] if loads[1:] else Instant(events[-1].at + 1)) if unknown else None
        return ExitVersions(self.home / "exits", copies, now, loads, until, lost)

    def _loads_before(self, n: int) -> list[tuple[Instant, Files]]:
        """Return the loads of exits before event ``n``: instant, and content hashes of the files by name."""
        decided = self.reader.kinds((LoadedExits.kind,), upto=n - 1)
        return [(each.at, dict(each.event.files)) for each in decided if isinstance(each.event, LoadedExits)]

    def _before(self, since: Instant) -> int:
        """Return the number of the last event before an instant at which no plan was under way."""
        first = next(self.reader.events(since=since, limit=1), None)
        if first is None:
            raise NotReplayed("the journal has no events since then: there is nothing to replay")
        n = first.n - 1
        near = self.reader.kinds((Decided.kind,), after=max(0, n - NEAR), upto=n + NEAR)
        passes = [(each.n, each.event.as_of) for each in near if isinstance(each.event, Decided)]
        while (earlier := min((saw for came, saw in passes if came > n and saw < n), default=n)) < n:
            n = earlier
        return n
