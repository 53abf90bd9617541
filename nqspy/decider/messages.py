"""Messages between the daemon and its worker: each is its length, then msgpack of plain data. The worker is
not trusted: its answers are decoded into these types only; anything else is the worker's failure."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar

import msgspec

from nqspy.engine.inputs import Between
from nqspy.engine.look_ahead import Forecast, StartEstimate
from nqspy.model import events as ev
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reach, Reason
from nqspy.model.requests import Request, Used
from nqspy.model.shifts import UpcomingStop

LARGEST = 64 << 20
"""Most bytes of orders that may wait to be written to the worker; with more it is killed."""
LARGEST_ANSWER = 16 << 20
"""Most bytes of one answer: the reasons of 100,000 requests take less."""
MOST = 200_000
"""Most actions, reasons and starts in one answer."""
FEW = 1_000
"""Most exits in an answer, and most rows, texts or the like for one of them."""
LARGEST_STATE = 8 << 20
"""Most bytes of a worker's saved state: 10,000 answers take about 1 MB."""
LARGEST_TRACE = 1 << 20
"""Most bytes of the exits' answers about one request."""

K = TypeVar("K")
Samples = tuple[tuple[Seq, Used], ...]


class HookFigures(TypedDict):
    """Figures of a hook: numbers of calls and of failures, total and longest real time (ms) of a call."""

    calls: int
    failures: int
    total_ms: float
    longest_ms: float


class ExitRow(TypedDict):
    """Row of an exit in a listing (`userexit.hooks.entry`): its settings and the figures of its calls."""

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
"""Rows of exits as dictionaries, as `userexit.hooks.entry` makes them."""
if TYPE_CHECKING:
    Rows = Listing
else:
    Rows = Annotated[list[ExitRow], msgspec.Meta(max_length=FEW)]
State = Annotated[bytes, msgspec.Meta(max_length=LARGEST_STATE)]
Failures = Annotated[tuple[ExitFailure, ...], msgspec.Meta(max_length=MOST)]
Why = Annotated[dict[K, Reason], msgspec.Meta(max_length=MOST)]
Pes = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
Starts = Annotated[dict[Seq, Instant], msgspec.Meta(max_length=MOST)]


class BadWorkerMessage(Exception):
    """The worker sent something that is no valid answer."""


# ---------------------------------------------------------------- what the daemon says


class Order(msgspec.Struct, tag_field="kind"):
    """Base of all orders from the daemon to its worker. ``id``: comes back in the answer; ``n``: number of
    the last event sent before, which the worker must have applied."""

    id: int
    n: int


class FollowEvents(Order, tag="events"):
    """Order to apply these events, without an answer: number, instant, kind and encoded fields of each."""

    rows: list[tuple[int, int, str, bytes]]


class AskPass(Order, tag="ask"):
    """Order to run a pass. ``samples``: last reported use of running attempts; ``upcoming_stops``,
    ``closings``: stops of queues by shifts, as in the daemon's site."""

    now: Instant
    samples: Samples
    upcoming_stops: dict[str, UpcomingStop]
    closings: dict[str, Instant]


class AskSubmit(Order, tag="submit"):
    """Order to call the submit exits for a submission, ``request`` (its fields as exits see them)."""

    now: Instant
    request: dict[str, Any]


class AskRoute(Order, tag="route"):
    """Order to call the route exits for ``request``: which destinations to try, and in which order."""

    now: Instant
    request: dict[str, Any]
    destinations: tuple[str, ...]


class AskShares(Order, tag="shares"):
    """Order to call the shrpri exit: the share term of each of these owners in their groups."""

    now: Instant
    samples: Samples
    pairs: list[tuple[str, str]]


class AskForecasts(Order, tag="start"):
    """Order to estimate when these requests (None: all that wait) would start (`Forecast`); ``request``: one
    of them that is not submitted yet, or None."""

    now: Instant
    between: Between
    seqs: tuple[Seq, ...] | None
    request: Request | None = None


class AskStarts(Order, tag="outlook"):
    """Order to estimate probable starts of all waiting requests, now and after ``changes`` of settings."""

    now: Instant
    between: Between
    changes: tuple[ev.Change, ...]


class AskTrace(Order, tag="trace"):
    """Order to return the exits' last answers about this request."""

    seq: Seq


class AskState(Order, tag="memory"):
    """Order to return the exits' state (`SavedMemory`); the daemon stores it for a next worker."""


class GiveNotice(Order, tag="tell"):
    """Order to call this notice hook of all exits with these arguments."""

    hook: str
    arguments: dict[str, Any]


# ---------------------------------------------------------------- what the worker says


class WorkerMessage(msgspec.Struct, tag_field="kind", forbid_unknown_fields=True):
    """Base of all messages of a worker to the daemon; ``id``: of the order that it answers, 0: of none."""

    id: int


class ExitsLoaded(WorkerMessage, tag="loaded"):
    """Report that the files are loaded, except those with a problem. ``unfit``: present settings that they do
    not accept; ``units``: exit -> setting -> unit; ``state``: failures that count on (`SavedMemory`)."""

    problems: list[str]
    unfit: list[str]
    listing: Rows
    units: dict[str, dict[str, str]]
    state: State = b""


class PlanMade(WorkerMessage, tag="planned"):
    """Answer with the plan of a pass. ``own``, ``closing``, ``reach``: reasons, as in `Reasons`; ``short``:
    `Plan.short_of_pes`; ``listing``: figures of exits; ``stamp``: changes when stored failures of exits do;
    ``state``: these failures if they changed, else empty; other fields as in `Plan`."""

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
    state: State = b""


class SubmitAnswered(WorkerMessage, tag="submitted"):
    """Answer of the submit exits. ``refusal``: text, None: accepted; ``who``: exits that refuse or change it;
    ``fields``: changed ones with new values, None: no change; ``listing``: figures, if an exit failed."""

    refusal: str | None
    who: str
    fields: dict[str, str | int | bool | tuple[str, ...]] | None
    failures: Failures
    stamp: int = 0
    listing: Rows = msgspec.field(default_factory=list)


class RouteAnswered(WorkerMessage, tag="routed"):
    """Answer of the route exits: destinations to try; ``listing``: figures of exits, if one failed."""

    destinations: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST)]
    failures: Failures
    stamp: int = 0
    listing: Rows = msgspec.field(default_factory=list)


class SharesAnswered(WorkerMessage, tag="shared"):
    """Answer with the share terms, in the order of the pairs."""

    values: Annotated[list[float | None], msgspec.Meta(max_length=MOST)]


_Basis = tuple[str, tuple[Seq, ...]]


class ForecastsMade(WorkerMessage, tag="begins"):
    """Answer with the latest and the probable start of each request. The text on which a start is based is in
    ``bases`` once, because many share one; ``rows`` have its place."""

    bases: Annotated[list[_Basis], msgspec.Meta(max_length=MOST)]
    rows: Annotated[dict[int, tuple[int | None, int, int | None, int]], msgspec.Meta(max_length=MOST)]
    """By request: instant and place of the basis, of the latest start, then of the probable one."""

    def read(self) -> dict[Seq, Forecast]:
        """Return the forecasts by request."""
        bases = [*self.bases, ("?", ())]
        return {
            seq: Forecast(
                _estimate(latest, bases[a % len(bases)]), _estimate(probably, bases[b % len(bases)])
            )
            for seq, (latest, a, probably, b) in self.rows.items()
        }


def forecasts_made(id: int, forecasts: Mapping[Seq, Forecast]) -> ForecastsMade:
    """Return the answer with these forecasts; a basis that many share is in it once."""
    places: dict[_Basis, int] = {}
    rows: dict[int, tuple[int | None, int, int | None, int]] = {}
    for seq, each in forecasts.items():
        latest, probably = (
            places.setdefault((estimate.basis, estimate.by), len(places))
            for estimate in (each.latest, each.probably)
        )
        rows[seq] = (each.latest.start, latest, each.probably.start, probably)
    return ForecastsMade(id, list(places), rows)


def _estimate(at: int | None, basis: _Basis) -> StartEstimate:
    return StartEstimate(None if at is None else Instant(at), *basis)


class StartsMade(WorkerMessage, tag="outlooks"):
    """Answer with probable starts (ms) by request: under the present settings, and after the changes."""

    before: Starts
    then: Starts


class TraceAnswered(WorkerMessage, tag="traced"):
    """Answer with the exits' last answers about a request, packed, because they may be any data."""

    rows: msgspec.Raw

    def read(self) -> list[dict[str, Any]]:
        """Return the rows; none if they cannot be read or are larger than `LARGEST_TRACE`."""
        try:
            return _rows.decode(self.rows) if len(bytes(self.rows)) <= LARGEST_TRACE else []
        except (msgspec.DecodeError, RecursionError):
            return []


class StateAnswered(WorkerMessage, tag="remembered"):
    """Answer with the exits' state for the next worker, packed; only that worker decodes it."""

    body: State


class NoticeGiven(WorkerMessage, tag="told"):
    """Report that a notice was given to all exits with its hook; ``failures``: of these exits."""

    failures: Failures
    listing: Rows


class ExitsTried(WorkerMessage, tag="tried"):
    """Result of a trial of exits on a copy of the site: packed, decoded by the command that tries them."""

    body: Annotated[bytes, msgspec.Meta(max_length=LARGEST_ANSWER)]


class OrderFailed(WorkerMessage, tag="failed"):
    """Report that an order failed by an error of our own code, with its traceback."""

    text: str


class OutOfStep(WorkerMessage, tag="behind"):
    """Report that the worker has applied other events than the daemon, so that it must be replaced."""

    text: str


_encoder = msgspec.msgpack.Encoder()
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(reduce(or_, Order.__subclasses__()))
_messages: msgspec.msgpack.Decoder[WorkerMessage] = msgspec.msgpack.Decoder(
    reduce(or_, WorkerMessage.__subclasses__())
)
_rows = msgspec.msgpack.Decoder(list[dict[str, Any]])


def packed(value: Any) -> msgspec.Raw:
    """Return a packed value that the daemon decodes later, if at all."""
    return msgspec.Raw(_encoder.encode(value))


def encode(message: Order | WorkerMessage) -> bytes:
    """Return a message as bytes, its length first."""
    body = _encoder.encode(message)
    return len(body).to_bytes(4, "big") + body


def order_of(body: bytes) -> Order:
    """Return the order in a message of the daemon."""
    return _orders.decode(body)


def message_of(body: bytes) -> WorkerMessage:
    """Return the answer in a message of the worker. Raises BadWorkerMessage."""
    try:
        return _messages.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadWorkerMessage(f"its answer cannot be read: {error}") from None


def follow_events(events: Sequence[ev.Recorded]) -> FollowEvents:
    """Return the order to apply these events."""
    rows = [(each.n, int(each.at), each.event.kind, ev.encode(each.event)) for each in events]
    return FollowEvents(0, events[-1].n, rows)


def events_in(rows: Sequence[tuple[int, int, str, bytes]]) -> list[ev.Recorded]:
    """Return the events of a `FollowEvents` order."""
    return [ev.Recorded(n, Instant(at), ev.decode(kind, fields)) for n, at, kind, fields in rows]


def why(answer: WorkerMessage) -> str:
    """Return in one line why an answer is not of the type asked for."""
    text = (
        answer.text.strip() if isinstance(answer, OrderFailed | OutOfStep) else "it answered something else"
    )
    return text.splitlines()[-1][:300] if text else "it failed"
