"""A part of a journal to be gone through again (`Recording`), and the journal of that (`ReplayJournal`)."""

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
from nqspy.model.twin import twin_of
from nqspy.ports import Batch, EndedRow

CALENDAR = "calendar"
"""Who carries out a shift's commands (`handlers.shifts`)."""


@dataclass(frozen=True)
class Recording:
    """``begin``: makes the site as it was before the first of ``events``, anew each time; ``ended``: asks for
    requests that had ended before; ``after``: later events, which only tell how long requests ran."""

    begin: Callable[[], Site]
    events: Sequence[Recorded]
    ended: Callable[[Sequence[Seq]], Iterator[EndedRow]]
    after: Sequence[Recorded] = ()

    @cached_property
    def passes(self) -> dict[int, list[int]]:
        """The places of passes (`Decided`) by the number of the last event that they saw."""
        found: dict[int, list[int]] = {}
        for place, recorded in enumerate(self.events):
            if isinstance(recorded.event, ev.Decided):
                found.setdefault(recorded.event.as_of, []).append(place)
        return found


def rebuilt(site: Site, events: Iterable[Recorded]) -> Site:
    """The site after these events: another one where a daemon has loaded it anew."""
    for recorded in events:
        if isinstance(recorded.event, ev.DaemonStarted):
            site = reloaded(site)
        apply(site, recorded)
    site.touched.clear()
    return site


def reloaded(site: Site) -> Site:
    """The site as a start reads it from the rows, which do not have all that is reckoned meanwhile."""
    made = twin_of(site)
    made.files, made.lifetimes = dict(site.files), site.lifetimes.copy()
    made.writers = {file: dict(theirs) for file, theirs in site.writers.items()}
    return made


def by_clock(event: Event) -> bool:
    """True if it may have come about by time alone. A shift that a person switched to looks the same."""
    if isinstance(event, ev.SettingsChanged):
        return event.who == CALENDAR
    return isinstance(event, ev.Eligible | ev.ShiftChanged | ev.ShiftFailed)


def follows(event: Event) -> bool:
    """True if it only follows from others, and from no pass."""
    if isinstance(event, ev.Ended):
        return event.attempt == 0
    if isinstance(event, ev.Deleted):
        return event.who == WHO
    return isinstance(event, ev.DependencyMet | ev.DependencyFailed)


def of_pass(event: Event) -> bool:
    """True if only a pass can have decided it. What else may come of one: what it routes, alarms."""
    if isinstance(event, ev.Starting | ev.Reserved | Promised | ev.Decided):
        return True
    if isinstance(event, ev.Redated):
        return event.cause is not None
    if not isinstance(event, Caused):
        return False
    cause = event.because()
    return cause.kind in ("feature", "exit", "probe", "shift") or cause.name == "scheduler"


def is_input(event: Event) -> bool:
    """True if it is given to the engine as it is; all others it must find out itself."""
    return not (of_pass(event) or follows(event) or by_clock(event))


Ended = Callable[[Sequence[Seq]], Iterator[EndedRow]]


class ReplayJournal(Unwritten):
    """``before``: asks for requests that had ended by ``since``."""

    remembers = True

    def __init__(self, before: Ended, since: Instant) -> None:
        super().__init__()
        self._before, self._since = before, since
        self._ended: dict[Seq, EndedRow] = {}

    def commit(self, batch: Batch, site: Site) -> None:
        """Keep what has ended."""
        if site.touched.ended:
            instants = {id(recorded.event): recorded.at for recorded in batch.events}
            for seq, (request, event) in site.touched.ended.items():
                self._ended[seq] = EndedRow(
                    seq=seq, spec=request.spec, queue=request.queue, submitted=request.submitted,
                    ended=event, at=instants.get(id(event), site.at), request=request,
                )  # fmt: skip
        site.touched.clear()

    def copy(self) -> "ReplayJournal":
        """Return another one that knows the same."""
        made = ReplayJournal(self._before, self._since)
        made._ended = dict(self._ended)
        return made

    def ended(self, seqs: Sequence[Seq]) -> Iterator[EndedRow]:
        """Return those that have ended by now, in the order given."""
        left = [seq for seq in seqs if seq not in self._ended]
        known = {row["seq"]: row for row in self._before(left) if row["at"] <= self._since} if left else {}
        found = (self._ended.get(seq) or known.get(seq) for seq in seqs)
        return (row for row in found if row is not None)
