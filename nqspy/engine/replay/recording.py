"""A part of a journal to replay (`Recording`), and the journal of the replay (`ReplayJournal`)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from nqspy.core.depend import WHO
from nqspy.engine.lifecycle import apply
from nqspy.engine.virtual.ahead import Unwritten
from nqspy.model import events as ev
from nqspy.model.cause import Caused
from nqspy.model.events import Event, Promised, Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site
from nqspy.model.site_copy import copy_site
from nqspy.ports import Batch, EndedRow

CALENDAR = "calendar"
"""Source of a shift's commands (`handlers.shifts`)."""


@dataclass(frozen=True)
class Recording:
    """Part of a journal, ``events``, to be replayed. ``begin``: returns a new copy of the site before the
    first; ``ended``: reads requests that had ended before; ``after``: later events, only for run times."""

    begin: Callable[[], Site]
    events: Sequence[Recorded]
    ended: Callable[[Sequence[Seq]], Iterator[EndedRow]]
    after: Sequence[Recorded] = ()

    @cached_property
    def start_loads(self) -> set[int]:
        """Numbers of events that are loads of exits by a start of the daemon (`loads_at_start`)."""
        return loads_at_start(self.events)

    @cached_property
    def passes(self) -> dict[int, list[int]]:
        """Places in ``events`` of passes (`Decided`), by the number of the last event that each pass saw."""
        found: dict[int, list[int]] = {}
        for place, recorded in enumerate(self.events):
            if isinstance(recorded.event, ev.Decided):
                found.setdefault(recorded.event.as_of, []).append(place)
        return found


def loads_at_start(events: Iterable[Recorded]) -> set[int]:
    """Return the numbers of the events that are the first load of exits after a start of the daemon, without
    a pass between. The start made such a load if the files differ from those loaded before, else a person."""
    found, starting = set[int](), False
    for each in events:
        if isinstance(each.event, ev.DaemonStarted):
            starting = True
        elif isinstance(each.event, ev.LoadedExits | ev.Decided):
            if starting and isinstance(each.event, ev.LoadedExits):
                found.add(each.n)
            starting = False
    return found


def rebuilt(site: Site, events: Iterable[Recorded]) -> Site:
    """Return the site after these events. It is another object if the daemon was started among them."""
    for recorded in events:
        if isinstance(recorded.event, ev.DaemonStarted):
            site = reloaded(site)
        apply(site, recorded)
    site.touched.clear()
    return site


def reloaded(site: Site) -> Site:
    """Return a copy of the site as a start of the daemon reads it from rows, without computed values."""
    made = copy_site(site)
    made.files, made.lifetimes = dict(site.files), site.lifetimes.copy()
    made.writers = {file: dict(theirs) for file, theirs in site.writers.items()}
    return made


def by_clock(event: Event) -> bool:
    """True if time alone may have caused an event; a person's switch of the shift looks the same."""
    if isinstance(event, ev.SettingsChanged):
        return event.who == CALENDAR
    return isinstance(event, ev.Eligible | ev.ShiftChanged | ev.ShiftFailed)


def follows(event: Event) -> bool:
    """True if the engine derives an event from others, without a pass (dependencies, ends of arrays)."""
    if isinstance(event, ev.Ended):
        return event.attempt == 0
    if isinstance(event, ev.Deleted):
        return event.who == WHO
    return isinstance(event, ev.DependencyMet | ev.DependencyFailed)


def of_pass(event: Event) -> bool:
    """True if only a pass can have decided an event. A pass may also cause routings and alarms."""
    if isinstance(event, ev.Starting | ev.Migrated | ev.Reserved | Promised | ev.Decided):
        return True
    if isinstance(event, ev.Redated):
        return event.cause is not None
    if not isinstance(event, Caused):
        return False
    cause = event.because()
    return cause.kind in ("feature", "exit", "probe", "shift") or cause.name == "scheduler"


def is_input(event: Event) -> bool:
    """True if the engine gets an event as input; it must derive all other events itself."""
    return not (of_pass(event) or follows(event) or by_clock(event))


Ended = Callable[[Sequence[Seq]], Iterator[EndedRow]]


class ReplayJournal(Unwritten):
    """Journal of a replay, in memory. ``before``: reads requests that had ended by the instant ``since``."""

    remembers = True

    def __init__(self, before: Ended, since: Instant) -> None:
        super().__init__()
        self._before, self._since = before, since
        self._ended: dict[Seq, EndedRow] = {}

    def commit(self, batch: Batch, site: Site) -> None:
        """Store the requests that have ended; drop all else."""
        if site.touched.ended:
            instants = {id(recorded.event): recorded.at for recorded in batch.events}
            for seq, (request, event) in site.touched.ended.items():
                self._ended[seq] = EndedRow(
                    seq=seq, spec=request.spec, queue=request.queue, submitted=request.submitted,
                    ended=event, at=instants.get(id(event), site.at), request=request,
                )  # fmt: skip
        site.touched.clear()

    def copy(self) -> "ReplayJournal":
        """Return an independent copy."""
        made = ReplayJournal(self._before, self._since)
        made._ended = dict(self._ended)
        return made

    def ended(self, seqs: Sequence[Seq]) -> Iterator[EndedRow]:
        """Return the rows of those requests that have ended by now, in the given order."""
        others = [seq for seq in seqs if seq not in self._ended]
        found = self._before(others) if others else ()
        former = {row["seq"]: row for row in found if row["at"] <= self._since}
        rows = (self._ended.get(seq) or former.get(seq) for seq in seqs)
        return (row for row in rows if row is not None)
