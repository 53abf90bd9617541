"""What a desk works with: the site, the instant, and ways to say what happened, what to do and what to
answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nqspy.model import lifecycle
from nqspy.model.actions import Action, Notify
from nqspy.model.errors import Refusal
from nqspy.model.events import Alarm, Event, Recorded
from nqspy.model.ids import Instant, Seq, parse_id
from nqspy.model.people import Caller
from nqspy.model.requests import Request, Used
from nqspy.model.sightings import News, Sighting
from nqspy.model.site import Site
from nqspy.ports import Batch, Decider, Exits, Journal


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command is answered with: a value (JSON-able), or the refusal."""

    value: Any = None
    refusal: Refusal | None = None


@dataclass(slots=True)
class Group:
    """What is committed together or not at all: what one call of `Engine.feed` gathers, and what earlier
    calls left because nobody waited for it.

    ``sightings``: those its events come from, to be taken again when the commit fails; ``keys``: digest and
    requests of its submissions by (owner, key); ``alarms``: lines for the log once it is committed;
    ``settled``: how many of its events were looked at for requests that wait for others.
    """

    batch: Batch = field(default_factory=Batch)
    actions: list[Action] = field(default_factory=list)
    replies: list[tuple[Any, Reply]] = field(default_factory=list)
    keys: dict[tuple[str, str], tuple[str, tuple[Seq, ...]]] = field(default_factory=dict)
    sightings: list[Sighting | News] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    settled: int = 0


@dataclass(slots=True)
class Desk:
    """One command's (or sighting's) view of the engine. ``emit`` applies an event at once; the commit comes
    later. ``dirty`` asks for a pass; ``samples``: use of running attempts as last told."""

    site: Site
    now: Instant
    group: Group
    exits: Exits
    journal: Journal
    dirty: Callable[[], None]
    decider: Decider
    samples: dict[Seq, Used] = field(default_factory=dict)

    def emit(self, event: Event) -> None:
        """Something happened: applied at once, committed with the group."""
        recorded = Recorded(self.site.n + 1, self.now, event)
        lifecycle.apply(self.site, recorded)
        self.group.batch.events.append(recorded)
        self.decider.follow((recorded,))

    def act(self, action: Action) -> None:
        """Something shall be done, after the commit."""
        self.group.actions.append(action)

    def alarm(self, who: str, text: str, subject: str, more: str = "") -> None:
        """Something the managers must know: an event, a line in the log and a mail."""
        self.emit(Alarm(who, text))
        self.group.alarms.append(text)
        self.act(Notify("", f"nqspy: {subject}", f"{text}\n{more}" if more else text))

    def keep(self, digest: str, body: bytes) -> None:
        """Keeps a script or an environment under its content hash, in the group's transaction."""
        self.group.batch.blobs[digest] = body

    def find(self, text: str) -> Request:
        """The request that has not ended of that identifier. Raises Refusal."""
        seq = parse_id(text, self.site.name)
        request = self.site.requests.get(seq) if seq is not None else None
        if request is None:
            raise self.unknown(text, seq)
        return request

    def unknown(self, text: str, seq: Seq | None) -> Refusal:
        """Why an identifier names no request that has not ended."""
        if seq is None:
            if not text[:1].isdigit():
                return Refusal(f"illegally formed job identifier: {text}", "bad_id")
            return Refusal(f"Unknown Job Id {text}", "unknown_request", 153)
        name = self.site.id_of(seq)
        if self.end_of(seq) is not None:
            return Refusal(f"Job has finished {name}", "has_ended", 35)
        return Refusal(f"Unknown Job Id {name}", "unknown_request", 153)

    def end_of(self, seq: Seq) -> Event | None:
        """The event that ended a request, None while it has not ended or when there never was one."""
        if seq in self.site.touched.ended:
            event: Event = self.site.touched.ended[seq][1]
            return event
        return next((row["ended"] for row in self.journal.ended((seq,))), None)

    def each(self, ids: Sequence[str], do: Callable[[Request], Any]) -> dict[str, Any]:
        """Does something for each identifier, as far as possible: what was done, and each failure with its
        text."""
        done: list[str] = []
        failed: list[dict[str, Any]] = []
        for text in ids:
            try:
                request = self.find(text)
                do(request)
                done.append(self.site.id_of(request.seq))
            except Refusal as refusal:
                failed.append(
                    {"id": text, "text": str(refusal), "code": refusal.code, "status": refusal.status}
                )
        return {"done": done, "failed": failed}


Handler = Callable[[Desk, Any, Caller], Any]
