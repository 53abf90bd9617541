"""Context of a handler: site, instant, and functions to emit events, order actions, find requests."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, field

from nqspy.engine import lifecycle
from nqspy.engine.handlers.people import may_see
from nqspy.model.actions import Action, ExitFailure, Notify
from nqspy.model.errors import Refusal
from nqspy.model.events import Alarm, Event, Recorded
from nqspy.model.ids import Instant, Seq, array_key, number_of, parse_named, request_named
from nqspy.model.observations import Observation, SiteObservation
from nqspy.model.people import Caller
from nqspy.model.requests import Request, Used
from nqspy.model.site import Site
from nqspy.ports import Batch, Decider, EndedRow, Exits, Journal


class _WouldChange(Exception):
    """Raised instead of a change while a handler is only tried."""


class LateValue(Struct, frozen=True):
    """A value that takes long to compute. ``make`` gets the real seconds that it may take; it may run outside
    the engine's thread, because it reads only data that the engine does not change."""

    make: Callable[[float], Any]


class Reply(Struct, frozen=True):
    """Reply to a command: a value (JSON data, or a `LateValue`), or the refusal if it is not None."""

    value: Any = None
    refusal: Refusal | None = None


class StoredBlobs(Struct):
    """Sizes of new scripts and environments of an owner by content hash, each once, and their sum (bytes)."""

    sizes: dict[str, int] = {}
    total: int = 0

    def add(self, digest: str, size: int) -> None:
        """Count a script or environment of ``size`` bytes, unless it is counted already."""
        if digest not in self.sizes:
            self.sizes[digest] = size
            self.total += size


class CommitGroup(Struct):
    """Events and actions that are committed together or not at all: those of one call of `Engine.feed`, and
    of earlier calls for which no caller waited.

    ``observations``: sources of its events, to be applied again if the commit fails. ``keys``: digest of the
    content, and requests, of submissions by (owner, key). ``alarms``: lines for the log after the commit.
    ``settled``: number of events examined for dependencies. ``ended_rows``: rows of ended requests read so
    far; None: there is none. ``stored_blobs``: scripts and environments of its submissions, by owner.
    """

    batch: Batch = field(default_factory=Batch)
    actions: list[Action] = []
    replies: list[tuple[Any, Reply]] = []
    keys: dict[tuple[str, str], tuple[str, tuple[Seq, ...]]] = {}
    observations: list[Observation | SiteObservation] = []
    alarms: list[str] = []
    settled: int = 0
    ended_rows: dict[Seq, EndedRow | None] = {}
    stored_blobs: dict[str, StoredBlobs] = {}


class Transaction(Struct):
    """Context of a handler of a command or observation: the engine's site, and the group to which it adds.
    ``dirty`` asks for a pass. ``samples``: last reported use of running attempts, by request. ``parts``:
    number of indices that the command made requests of their own."""

    site: Site
    now: Instant
    group: CommitGroup
    exits: Exits
    journal: Journal
    dirty: Callable[[], None]
    decider: Decider
    samples: dict[Seq, Used] = {}
    parts: int = 0
    _trying: bool = False

    def would(self, act: Callable[[], object]) -> bool:
        """True if ``act`` would change anything; it is stopped before it does. Raises its Refusal."""
        self._trying = True
        try:
            act()
        except _WouldChange:
            return True
        finally:
            self._trying = False
        return False

    def emit(self, event: Event) -> None:
        """Apply an event to the site at once; it is committed with the group."""
        if self._trying:
            raise _WouldChange
        site = self.site
        recorded, misfits = Recorded(site.n + 1, self.now, event), site.misfits
        lifecycle.apply(site, recorded)
        if site.misfits != misfits:
            self.group.alarms.append(site.misfit)
        self.group.batch.events.append(recorded)
        self.decider.follow((recorded,))

    def act(self, action: Action) -> None:
        """Order an action for the executor, or a mail; it is carried out after the commit."""
        if self._trying:
            raise _WouldChange
        self.group.actions.append(action)

    def alarm(
        self, who: str, text: str, subject: str, more: str = "", failures: tuple[ExitFailure, ...] = ()
    ) -> None:
        """Report to the managers: an event of this source (with these failures of exits), a line ``text`` in
        the log, and a mail with ``subject``, ``text`` and ``more``."""
        self.emit(Alarm(who, text, failures=failures))
        self.group.alarms.append(text)
        self.act(Notify("", f"nqspy: {subject}", f"{text}\n{more}" if more else text))

    def store(self, digest: str, body: bytes) -> None:
        """Store a script or an environment under its content hash, in the transaction of the group."""
        self.group.batch.blobs[digest] = body

    def find(self, text: str, caller: Caller) -> Request:
        """Return the request with that identifier that has not ended. Raises Refusal, also if the caller may
        not see it."""
        seq = request_named(text, self.site.names)
        request = None if seq is None else self.site.requests.get(self.site.named(seq))
        if request is not None and may_see(self.site.settings, caller, request.spec):
            return request
        if seq is None:
            if not text[:1].isdigit() or ("[" in text and parse_named(text, self.site.names) is None):
                raise Refusal("bad_id", text=text)
            raise Refusal("unknown_request", id=text)
        for each in (seq, array_key(seq)) if seq == number_of(seq) else (seq,):
            if each not in self.site.requests and self.known(each, caller):
                raise Refusal("has_ended", id=self.site.id_of(each))
        raise Refusal("unknown_request", id=self.site.id_of(seq))

    def known(self, seq: Seq, caller: Caller) -> bool:
        """True if there is or was a request with this number that the caller may see."""
        request, _ = self.past(seq)
        return request is not None and may_see(self.site.settings, caller, request.spec)

    def look_up(self, seqs: Iterable[Seq]) -> None:
        """Read these ended requests from the store into the group, all at once (faster than one by one)."""
        ended_rows, requests = self.group.ended_rows, self.site.requests
        missing = [seq for seq in seqs if seq not in ended_rows and seq not in requests]
        if missing:
            ended_rows |= dict.fromkeys(missing)
            ended_rows |= {row["seq"]: row for row in self.journal.ended(missing)}

    def past(self, seq: Seq) -> tuple[Request | None, Event | None]:
        """Return a request, as it is or was at its end, and the event that ended it (None: it has not ended);
        twice None: there never was such a request."""
        site = self.site
        if seq in site.touched.ended:
            return site.touched.ended[seq]
        if seq in site.requests:
            return site.requests[seq], None
        self.look_up((seq,))
        row = self.group.ended_rows.get(seq)
        return (None, None) if row is None else (row["request"], row["ended"])

    def look_up_named(self, ids: Iterable[str]) -> None:
        """Read the ended requests that these identifiers name from the store into the group (`look_up`)."""
        names, requests = self.site.names, self.site.requests
        named = (request_named(text, names) for text in ids)
        missing = (seq for seq in named if seq is not None and seq not in requests)
        self.look_up(key for seq in missing for key in (seq, array_key(number_of(seq))))


Handler = Callable[[Transaction, Any, Caller], Any]
