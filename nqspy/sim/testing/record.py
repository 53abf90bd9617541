"""The record of a site for a test: what started, ran and ended, by the test's names; times as a test writes
them; and errors, which are failed assertions except `Refusal`, as a site too may refuse a submission."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta

from nqspy.model import events as ev
from nqspy.model.domains import spans
from nqspy.model.endings import End
from nqspy.model.errors import BadValue
from nqspy.model.errors import Refusal as Refusal
from nqspy.model.ids import Instant, Seq, index_of, number_of
from nqspy.model.texts import some_of
from nqspy.model.units import UNLIMITED, parse_time
from nqspy.report.time_text import Zone

LINES = 30
"""Lines of the story that a failed assertion shows."""


@dataclass(slots=True)
class Stretch:
    """Run of a request from start to end or requeueing, pauses included; ``end`` None: it has no end yet."""

    seq: Seq
    begin: Instant
    end: Instant | None = None


@dataclass
class StoryRecord:
    """Record of what happened on a test's site, from its events. ``labels``: the test's names of requests, by
    number; ``starts``: their runs, in the order in which starts were decided; ``ends``: their last events, in
    their order; ``lines``: the story for people, each line with its instant."""

    labels: dict[int, str] = field(default_factory=dict)
    starts: list[Stretch] = field(default_factory=list)
    ends: dict[Seq, ev.Ended | ev.Deleted] = field(default_factory=dict)
    lines: list[tuple[Instant, str]] = field(default_factory=list)

    def add(self, happened: Iterable[ev.Recorded]) -> None:
        """Add these events to the record."""
        for recorded in happened:
            event, at = recorded.event, recorded.at
            if isinstance(event, ev.Starting):
                self.starts.append(Stretch(event.seq, at))
            elif isinstance(event, (ev.Ended, ev.Requeued)):
                for each in reversed(self.starts):
                    if each.seq == event.seq:
                        each.end = at
                        break
            if isinstance(event, (ev.Ended, ev.Deleted)):
                self.ends[event.seq] = event
            self.lines += [(at, text) for text in self._texts(event)]

    def label(self, seq: Seq) -> str:
        """Return the test's name for a request; an index of an array: ``a[3]``."""
        name = self.labels.get(number_of(seq), f"request {number_of(seq)}")
        index = index_of(seq)
        return name if index is None else f"{name}[{index}]"

    def stretches(self, number: int) -> list[Stretch]:
        """Return the runs of a request, or of all indices of an array, in the order of their starts."""
        return [each for each in self.starts if number_of(each.seq) == number]

    def _texts(self, event: ev.Event) -> Iterator[str]:
        match event:
            case ev.Submitted():
                yield f"{self.label(event.seq)} is submitted to {event.queue} by {event.spec.owner}"
            case ev.Routed():
                yield f"{self.label(event.seq)} is passed on to {event.queue}"
            case ev.Starting():
                yield f"{self.label(event.seq)} starts on PEs {','.join(spans(sorted(event.pes)))}"
            case ev.Migrated():
                yield f"{self.label(event.seq)} moves to PEs {','.join(spans(sorted(event.pes)))}"
            case ev.Ended():
                status = End.of(event).shown_status
                how = "" if status is None else f" {status}"
                yield f"{self.label(event.seq)} ends ({event.end_reason}{how})"
            case ev.Requeued() | ev.Suspended():
                yield f"{self.label(event.seq)} is {event.kind}: {event.text}"
            case ev.Resumed():
                yield f"{self.label(event.seq)} goes on"
            case ev.Deleted():
                yield f"{self.label(event.seq)} is deleted by {event.who}"
            case ev.Held() | ev.Released() | ev.Redated():
                yield f"{event.kind} by {event.who}: {some_of(event.seqs, 3, self.label)}"
            case ev.ShiftChanged():
                yield f"shift {event.shift} is in force"
            case ev.Alarm():
                yield f"ALARM {event.text}"


_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def moment(text: str, zone: Zone, now: Instant) -> Instant:
    """Return the next instant of ``03:00`` or ``tue 03:00`` in ``zone`` (``now``, if it is that), or that of
    a date with a time. Raises BadStory for other texts, and for a date before ``now``."""
    day, _, clock = text.strip().lower().rpartition(" ")
    try:
        if day in ("", *_DAYS) and "-" not in clock:
            return _next(day, time.fromisoformat(clock), zone, now)
        found = zone.instant(datetime.fromisoformat(text))
    except ValueError:
        wrong = f"{text!r} is not a moment; write it like 03:00, tue 03:00 or 2026-03-03 21:00"
        raise BadStory(wrong) from None
    if found < now:
        raise BadStory(f"{text} has gone by: it is {shown(zone, now)}")
    return found


def _next(day: str, clock: time, zone: Zone, now: Instant) -> Instant:
    today = zone.local(now).date()
    for later in range(9):
        date = today + timedelta(days=later)
        for at in zone.shown(datetime.combine(date, clock)):
            if at >= now and day in ("", _DAYS[date.weekday()]):
                return at
    raise BadStory(f"{clock:%H:%M} does not come within a week")


def span(text: str | float) -> int:
    """Return the ms of ``30min``, ``1:00:00`` or a number of seconds. Raises BadStory (``unlimited`` too)."""
    try:
        found = parse_time(str(text))
    except BadValue as error:
        raise BadStory(str(error)) from None
    if found == UNLIMITED:
        raise BadStory(f"{text!r} never ends; write a time like 2h")
    return found


def shown(zone: Zone, at: Instant) -> str:
    """Return an instant in the zone's time as a test writes it: ``2026-03-02 20:00:00``, ms if not 0."""
    local = zone.local(at)
    return f"{local:%Y-%m-%d %H:%M:%S}" + (f".{at % 1000:03d}" if at % 1000 else "")


class BadExit(AssertionError):
    """Raised if a file cannot be loaded as an exit; its text has a line for each mistake in it."""


class ExitFailed(AssertionError):
    """Raised if an exit raised an error, gave an invalid answer or took too long; has the traceback."""


class BadStory(AssertionError):
    """Raised if the test asks for something that does not exist: a request, a time that is past."""
