"""Messages between the daemon and its worker: msgpack of plain data, a length before each message.

Nothing that comes from the worker is trusted: answers are decoded into these types and no others, and
whatever does not fit counts as a failure of the worker."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar

import msgspec

from nqspy.engine.inputs import Between
from nqspy.engine.look_ahead import Foreseen, Outlook
from nqspy.model import events as ev
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reach, Reason
from nqspy.model.requests import Request, Used
from nqspy.model.shifts import UpcomingStop

LARGEST = 64 << 20
"""Bytes of what may wait to be written to the worker."""
LARGEST_ANSWER = 16 << 20
"""Bytes of one answer: the reasons of 100,000 requests take less."""
MOST = 200_000
"""Actions, reasons and starts in one answer."""
FEW = 1_000
"""Exits, and what an answer says of one of them."""
LARGEST_STATE = 8 << 20
"""Bytes of what is remembered over a process: 10,000 answers are about one MB."""
LARGEST_TRACE = 1 << 20
"""Bytes of what exits answered about one request."""

K = TypeVar("K")
Samples = tuple[tuple[Seq, Used], ...]


class HookFigures(TypedDict):
    """Calls of a hook, and the time they took."""

    calls: int
    failures: int
    total_ms: float
    longest_ms: float


class ExitRow(TypedDict):
    """Row of an exit in a listing (`userexit.hooks.entry`)."""

    name: str
    doc: str
    enabled: bool
    budget_ms: int
    hooks: Annotated[list[str], msgspec.Meta(max_length=FEW)]
    settings: Annotated[dict[str, dict[str, str]], msgspec.Meta(max_length=FEW)]
    calls: int
    failures: int
    total_ms: float
    longest_ms: float
    by_hook: dict[str, HookFigures]


Listing = list[dict[str, Any]]
"""Rows as `Row` has them."""
if TYPE_CHECKING:
    Rows = Listing
else:
    Rows = Annotated[list[ExitRow], msgspec.Meta(max_length=FEW)]
Failures = Annotated[tuple[ExitFailure, ...], msgspec.Meta(max_length=MOST)]
Why = Annotated[dict[K, Reason], msgspec.Meta(max_length=MOST)]
Pes = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
Starts = Annotated[dict[Seq, Instant], msgspec.Meta(max_length=MOST)]


class BadWorkerMessage(Exception):
    """The worker said something that is no answer."""


# ---------------------------------------------------------------- what the daemon says


class Order(msgspec.Struct, tag_field="kind"):
    """Base of what the daemon says. ``id``: the answer's; ``n``: number of the last event."""

    id: int
    n: int


class FollowEvents(Order, tag="events"):
    """Apply these events: number, instant, kind and fields of each."""

    rows: list[tuple[int, int, str, bytes]]


class AskPass(Order, tag="ask"):
    """Run a pass."""

    now: Instant
    samples: Samples
    upcoming_stops: dict[str, UpcomingStop]
    closings: dict[str, Instant]


class AskSubmit(Order, tag="submit"):
    """Ask the submit exits about this request (its fields as exits see them)."""

    now: Instant
    request: dict[str, Any]


class AskRoute(Order, tag="route"):
    """Which destinations are to be tried, in which order?"""

    now: Instant
    request: dict[str, Any]
    destinations: tuple[str, ...]


class AskShares(Order, tag="shares"):
    """Ask the shrpri exit for the share term of each of these owners in their groups."""

    now: Instant
    samples: Samples
    pairs: list[tuple[str, str]]


class AskOutlooks(Order, tag="start"):
    """Ask when these requests (None: all that wait), or one to be submitted, would start (`Outlook`)."""

    now: Instant
    between: Between
    seqs: tuple[Seq, ...] | None
    request: Request | None = None


class AskStarts(Order, tag="outlook"):
    """Ask when the waiting requests would probably start, as it is and with these changes of the settings."""

    now: Instant
    between: Between
    changes: tuple[ev.Change, ...]


class AskTrace(Order, tag="trace"):
    """Ask what the exits answered about this request."""

    seq: Seq


class AskState(Order, tag="memory"):
    """Ask what is to be remembered over this process."""


class GiveNotice(Order, tag="tell"):
    """A notice: call this hook of all exits with these arguments."""

    hook: str
    arguments: dict[str, Any]


# ---------------------------------------------------------------- what the worker says


class WorkerMessage(msgspec.Struct, tag_field="kind", forbid_unknown_fields=True):
    """Base of what the worker says; ``id``: of what it answers."""

    id: int


class ExitsLoaded(WorkerMessage, tag="loaded"):
    """The files are loaded, but for those with a problem. ``unfit``: values in force that they would not
    take; ``units``: exit -> setting -> unit."""

    problems: list[str]
    unfit: list[str]
    listing: Rows
    units: dict[str, dict[str, str]]


class PlanMade(WorkerMessage, tag="planned"):
    """A pass has been run."""

    actions: Annotated[list[tuple[str, msgspec.Raw]], msgspec.Meta(max_length=MOST)]
    own: Why[int]
    closing: Why[str]
    wake_at: int | None
    short: bool
    failures: Failures
    listing: Rows
    ready: Annotated[tuple[tuple[str, Pes], ...], msgspec.Meta(max_length=MOST)] = ()
    reach: Annotated[tuple[Reach, ...], msgspec.Meta(max_length=MOST)] = ()
    stamp: int = 0


class SubmitAnswered(WorkerMessage, tag="submitted"):
    """``fields`` None: nothing to say; ``listing``: figures, where something failed."""

    refusal: str | None
    who: str
    fields: dict[str, str | int | bool | tuple[str, ...]] | None
    failures: Failures
    stamp: int = 0
    listing: Rows = msgspec.field(default_factory=list)


class RouteAnswered(WorkerMessage, tag="routed"):
    """The destinations to try; ``listing``: figures, where something failed."""

    destinations: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST)]
    failures: Failures
    stamp: int = 0
    listing: Rows = msgspec.field(default_factory=list)


class SharesAnswered(WorkerMessage, tag="shared"):
    """Share terms, in the order of the pairs."""

    values: Annotated[list[float | None], msgspec.Meta(max_length=MOST)]


_Basis = tuple[str, tuple[Seq, ...]]


class OutlooksMade(WorkerMessage, tag="begins"):
    """Start of each request, at the latest and probably: its instants, and the places of what they rest on
    among ``bases``."""

    bases: Annotated[list[_Basis], msgspec.Meta(max_length=MOST)]
    rows: Annotated[dict[int, tuple[int | None, int, int | None, int]], msgspec.Meta(max_length=MOST)]
    """Of each its instant and the place of its basis, at the latest, then probably."""

    def read(self) -> dict[Seq, Outlook]:
        """Return the same as the engine has it."""
        bases = [*self.bases, ("?", ())]
        return {
            seq: Outlook(_foreseen(latest, bases[a % len(bases)]), _foreseen(probably, bases[b % len(bases)]))
            for seq, (latest, a, probably, b) in self.rows.items()
        }


def outlooks_made(id: int, outlooks: Mapping[Seq, Outlook]) -> OutlooksMade:
    """The answer: what many starts rest on is said once."""
    places: dict[_Basis, int] = {}
    rows: dict[int, tuple[int | None, int, int | None, int]] = {}
    for seq, each in outlooks.items():
        latest, probably = (
            places.setdefault((foreseen.basis, foreseen.by), len(places))
            for foreseen in (each.latest, each.probably)
        )
        rows[seq] = (each.latest.start, latest, each.probably.start, probably)
    return OutlooksMade(id, list(places), rows)


def _foreseen(at: int | None, basis: _Basis) -> Foreseen:
    return Foreseen(None if at is None else Instant(at), *basis)


class StartsMade(WorkerMessage, tag="outlooks"):
    """Starts as it is, and as it would be."""

    before: Starts
    then: Starts


class TraceAnswered(WorkerMessage, tag="traced"):
    """Answers of the exits about a request, packed: they may be anything."""

    rows: msgspec.Raw

    def read(self) -> list[dict[str, Any]]:
        """The rows; none where they cannot be read, or are larger than `LARGEST_TRACE`."""
        try:
            return _rows.decode(self.rows) if len(bytes(self.rows)) <= LARGEST_TRACE else []
        except (msgspec.DecodeError, RecursionError):
            return []


class StateAnswered(WorkerMessage, tag="remembered"):
    """State for the next process: packed, and read by that process only."""

    body: Annotated[bytes, msgspec.Meta(max_length=LARGEST_STATE)]


class NoticeGiven(WorkerMessage, tag="told"):
    """A notice has been given."""

    failures: Failures
    listing: Rows


class ExitsTried(WorkerMessage, tag="tried"):
    """Result of work on a copy of the site with exits on trial: packed, and read by the caller."""

    body: Annotated[bytes, msgspec.Meta(max_length=LARGEST_ANSWER)]


class OrderFailed(WorkerMessage, tag="failed"):
    """Report that an order could not be answered: a traceback of our own code."""

    text: str


class OutOfStep(WorkerMessage, tag="behind"):
    """Report that the worker does not know the same events as the daemon."""

    text: str


_encoder = msgspec.msgpack.Encoder()
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(reduce(or_, Order.__subclasses__()))
_messages: msgspec.msgpack.Decoder[WorkerMessage] = msgspec.msgpack.Decoder(
    reduce(or_, WorkerMessage.__subclasses__())
)
_rows = msgspec.msgpack.Decoder(list[dict[str, Any]])


def packed(value: Any) -> msgspec.Raw:
    """A value that the daemon decodes later, if at all."""
    return msgspec.Raw(_encoder.encode(value))


def encode(message: Order | WorkerMessage) -> bytes:
    """A message with its length before it."""
    body = _encoder.encode(message)
    return len(body).to_bytes(4, "big") + body


def order_of(body: bytes) -> Order:
    """Return what the daemon said."""
    return _orders.decode(body)


def message_of(body: bytes) -> WorkerMessage:
    """Return what the worker said. Raises BadWorkerMessage."""
    try:
        return _messages.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadWorkerMessage(f"its answer cannot be read: {error}") from None


def follow_events(events: Sequence[ev.Recorded]) -> FollowEvents:
    """Events as they are sent."""
    rows = [(each.n, int(each.at), each.event.kind, ev.encode(each.event)) for each in events]
    return FollowEvents(0, events[-1].n, rows)


def events_in(rows: Sequence[tuple[int, int, str, bytes]]) -> list[ev.Recorded]:
    """Events as they were sent."""
    return [ev.Recorded(n, Instant(at), ev.decode(kind, fields)) for n, at, kind, fields in rows]


def why(answer: WorkerMessage) -> str:
    """Return why an answer is none, in a line."""
    text = (
        answer.text.strip() if isinstance(answer, OrderFailed | OutOfStep) else "it answered something else"
    )
    return text.splitlines()[-1][:300] if text else "it failed"
