"""What happened at a site, as a test asks for it: who started, ran and ended, in its own words."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nqspy.model import events as ev
from nqspy.model.domains import spans
from nqspy.model.endings import End
from nqspy.model.ids import Instant, Seq, index_of, number_of

LINES = 30
"""Lines of the story that a failed assertion shows."""


@dataclass(slots=True)
class Stretch:
    """A time in which one ran; ``end`` None: it does."""

    seq: Seq
    begin: Instant
    end: Instant | None = None


@dataclass
class StoryRecord:
    """Follows the journal. ``labels``: what the test calls each request, by its number; ``starts`` in the
    order in which it was decided; ``ends`` in theirs; ``lines``: the story, each with its instant."""

    labels: dict[int, str] = field(default_factory=dict)
    starts: list[Stretch] = field(default_factory=list)
    ends: dict[Seq, ev.Ended | ev.Deleted] = field(default_factory=dict)
    lines: list[tuple[Instant, str]] = field(default_factory=list)

    def take(self, happened: Iterable[ev.Recorded]) -> None:
        """These happened."""
        for recorded in happened:
            self._follow(recorded.event, recorded.at)
            self.lines += [(recorded.at, text) for text in self._told(recorded.event)]

    def label(self, seq: Seq) -> str:
        """What the test calls a request; an index of an array: ``a[3]``."""
        name = self.labels.get(number_of(seq), f"request {number_of(seq)}")
        index = index_of(seq)
        return name if index is None else f"{name}[{index}]"

    def stretches(self, number: int) -> list[Stretch]:
        """When a request ran, its indices too."""
        return [each for each in self.starts if number_of(each.seq) == number]

    def _follow(self, event: ev.Event, at: Instant) -> None:
        if isinstance(event, ev.Starting):
            self.starts.append(Stretch(event.seq, at))
        elif isinstance(event, (ev.Ended, ev.Requeued)):
            for each in reversed(self.starts):
                if each.seq == event.seq:
                    each.end = at
                    break
        if isinstance(event, (ev.Ended, ev.Deleted)):
            self.ends[event.seq] = event

    def _told(self, event: ev.Event) -> Iterator[str]:
        match event:
            case ev.Submitted():
                yield f"{self.label(event.seq)} is submitted to {event.queue} by {event.spec.owner}"
            case ev.Routed():
                yield f"{self.label(event.seq)} is passed on to {event.queue}"
            case ev.Starting():
                yield f"{self.label(event.seq)} starts on PEs {','.join(spans(sorted(event.pes)))}"
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
                named = ", ".join(self.label(seq) for seq in event.seqs[:3])
                more = f" and {len(event.seqs) - 3} more" if len(event.seqs) > 3 else ""
                yield f"{event.kind} by {event.who}: {named}{more}"
            case ev.ShiftChanged():
                yield f"shift {event.shift} is in force"
            case ev.Alarm():
                yield f"ALARM {event.text}"
