"""Interfaces ("doors") between the engine and its surroundings: Journal, Executor, Exits, Decider, with the
types that cross them. The code on both sides depends on this file only."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

import msgspec
from msgspec import Struct

from nqspy.model.actions import Action, ExitFailure, Plan
from nqspy.model.events import Deleted, Ended, Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.observations import Observation
from nqspy.model.options import OPTIONS, Option
from nqspy.model.reasons import Bounds
from nqspy.model.requests import Request, Spec, Used
from nqspy.model.site import Site

# ---------------------------------------------------------------- Journal


@dataclass(slots=True)
class Batch:
    """Content of one transaction: events, and the blobs (scripts, environments) that they name, by digest."""

    events: list[Recorded] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)


class EndedRow(TypedDict):
    """Stored row of a request that has ended (`Journal.ended`). ``ended``: the event of its end, at instant
    ``at``; ``request``: its other data as they were then (state ENDED; last attempt, PEs and start)."""

    seq: Seq
    spec: Spec
    queue: str
    submitted: Instant
    ended: Ended | Deleted
    at: Instant
    request: Request


class CommitFailed(Exception):
    """Raised by `Journal.commit` if nothing of its batch could be stored (disk full, I/O error); has one
    line. ``passing``: True if only a lock on the database is the cause: a client may repeat the command."""

    def __init__(self, text: str, passing: bool = False) -> None:
        super().__init__(text)
        self.passing = passing


class Journal(Protocol):
    """The store of events, rows and blobs, as the engine sees it."""

    @property
    def remembers(self) -> bool:
        """True if committed events can be read later; if False, events that only report need not be made."""

    def commit(self, batch: Batch, site: Site) -> None:
        """Write the batch's events and blobs durably, with the rows of everything in ``site.touched``; then
        empty ``site.touched``. Raises CommitFailed."""

    def load(self) -> Site:
        """Return the site as of the last commit, read from the rows (not from the history)."""

    def find_key(self, owner: str, key: str) -> tuple[str, tuple[Seq, ...]] | None:
        """Return content digest and requests of the owner's earlier submission with this key (a client's, to
        submit only once); None: there is none."""

    def blob(self, digest: str) -> bytes:
        """Return the script or environment with this digest. Raises KeyError if none is stored."""

    def ended(self, seqs: Sequence[Seq]) -> Iterator[EndedRow]:
        """Yield the stored row of each of these requests that has ended, in the order given."""

    def stored_bytes(self, owner: str) -> int:
        """Return the bytes of a user's stored scripts and environments, those of ended requests included."""

    def has_blob(self, owner: str, digest: str) -> bool:
        """True if the script or environment with this digest is stored for a request of this user."""

    def capacity(self) -> int | None:
        """Return the size (bytes) of the store's file system; None: unknown, or it has none."""

    def low(self) -> bool:
        """True if the disk is so full that only commits that free room are accepted."""


# ---------------------------------------------------------------- Executor


class Executor(Protocol):
    """Starts, stops and watches attempts; it reports what happens to them as inputs of the engine."""

    def do(self, action: Action, request: Request | None, site: Site, now: Instant) -> None:
        """Carry out one action, soon and without blocking; to repeat it is harmless. ``request``: the
        action's request (None: it has ended). An action on an attempt that no longer exists does nothing."""

    def scan(self, expected: Mapping[Seq, int]) -> Sequence[Observation]:
        """Return what became of each expected attempt (request -> attempt) after a restart: exactly one
        observation each, then an ObservedStray for each other attempt that had begun, and for each attempt
        that runs under a later nqspy.

        Before it returns, every attempt that has not begun is claimed as void, or removed if it was not
        expected, so that it can never start later."""


# ---------------------------------------------------------------- Exits


class Selection(Protocol):
    """Waiting requests that `PassView.waiting` chose, in order of their date in queue; read only. Only
    iterating visits the requests; making the selection does not."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator["RequestView"]: ...
    def seqs(self) -> tuple[Seq, ...]:
        """Return the numbers of these requests, in the same order."""

    def reach(self) -> tuple[Seq, ...]:
        """Return the requests that a redating of the selection changes: its own, and those with the same
        queue, owner, group and name (as given to `waiting`) that still wait for prerequisites."""


class RequestView(Protocol):
    """A request as a user exit sees it: read only. Sizes in bytes, None = unlimited or not given; times in
    ms; ``project``: as its owner named it (``-P``); ``started``: None before its start; ``priority``: as its
    owner gave it; ``consumables``: units it asks for, by name. ``array``: identifier of the array that it is,
    or of which it is index ``index``; ``count``: indices of an array that could still start, else 1."""

    id: str
    seq: Seq
    name: str
    name_given: bool
    owner: str
    group: str
    account: str | None
    project: str | None
    queue: str
    state: str
    date_in_queue: Instant
    submitted: Instant
    started: Instant | None
    cpu: int | None
    memory: int | None
    pes: int
    wall: int | None
    consumables: Mapping[str, int]
    priority: int | None
    attributes: tuple[str, ...]
    arguments: tuple[str, ...]
    array: str | None
    index: int | None
    count: int


class PassView(Protocol):
    """The site as a user exit sees it in a pass, with that pass's decisions so far (interfaces.md 8).
    ``now``: instant of the pass; ``shift``: name of the shift in force, None: none."""

    now: Instant
    shift: str | None

    @property
    def site(self) -> Site:
        """Return the site, from which the clock and the shifts are read."""

    @property
    def version(self) -> object:
        """Return a value that changes with anything that this view shows, except the order of candidates."""

    def queue(self, name: str) -> Any:
        """Return the settings of a queue. Raises KeyError."""

    def waiting(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Selection:  # fmt: skip
        """Return the queued requests with all given values that this pass has not chosen to start."""

    def running(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Sequence[RequestView]:  # fmt: skip
        """Return the requests with all given values that have started or were chosen by this pass."""

    def ahead(self, request: RequestView) -> Sequence[tuple[RequestView, "Answer | None"]]:
        """Return the candidates of the request's queue that this pass offered to the exits before it, each
        with the exits' answer; None: the standard rules decided."""

    def usage(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Return decayed use of a group or owner as a fraction of all use, running and committed included."""

    def share(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Return the entitlement of a group (or an owner, a part of its group's) as a fraction of all."""

    def stock_shrpri(self, owner: str | None, group: str) -> float:
        """Return the share term by the stock rule (``set global share_rule``), from 0 to 1: of a user in a
        group, or of the group if ``owner`` is None."""


class Answer(Struct, frozen=True):
    """Answer of jobselect: ``force``, ``refuse``, ``never`` or ``hold_line`` with a text, and the exit
    ``who`` that gave it (empty until that is known). A refusal may also reach other requests of the queue:
    those equal in the fields ``alike`` (`reasons.ALIKE`; no field: all of them) with numbers within the
    bounds ``within``; None: no other. ``until``: the instant from which the exit may answer otherwise, so
    that a pass asks again; None: no such instant. (A Struct: a pass makes dozens.)"""

    verdict: str
    text: str = ""
    who: str = ""
    alike: tuple[str, ...] | None = None
    within: tuple[Bounds, ...] = ()
    until: Instant | None = None

    def holds(self, now: Instant) -> bool:
        """True if the answer is still valid at ``now``, so that the exit need not be asked again."""
        return self.until is None or now < self.until


class OfferRound(Struct, frozen=True):
    """Offers of a queue's candidates to jobselect that a pass did not finish; the next pass continues them.
    ``since``: counter `Site.changed` at the first offer; ``refused``: answers so far, by candidate."""

    since: int
    refused: Mapping[Seq, Answer]


class ChangedFields(TypedDict, total=False):
    """Keyword arguments of `userexit.answers.changes`: the fields of a submission that a submit exit may
    change, in the exit's own form; None: unchanged."""

    queue: str | None
    priority: int | None
    group: str | None
    account: str | None
    name: str | None
    shell: str | None
    date: Instant | None
    hold: bool | None
    cpu: int | str | None
    memory: int | str | None
    wall: int | str | None
    pes: int | None
    attributes: Iterable[str] | None
    output: str | None
    error: str | None


CHANGEABLE: Mapping[str, Option] = {option.changes: option for option in OPTIONS if option.changes}
"""Options that a submit exit may change, by the name that the exit uses."""
CHANGED: Mapping[str, tuple[type, str]] = {
    "name": (str, "a text"),
    "path": (str, "a path as a text"),
    "number": (int, "a whole number"),
    "count": (int, "a whole number"),
    "time": (int, 'a whole number of ms or a text like "10:00"'),
    "size": (int, 'a whole number of bytes or a text like "8mw"'),
    "date": (int, "an instant, such as now"),
    "flag": (bool, "True or False"),
    "names": (tuple, "a list of texts"),
}
"""Python type of a changed option by its unit, and what an exit may write, in words."""


def is_change(name: str, value: object) -> bool:
    """True if a submit exit may change the option that it calls ``name`` to a value of this type. False too
    if no option has that name."""
    kind = CHANGED[CHANGEABLE[name].unit][0] if name in CHANGEABLE else None
    if kind is tuple and isinstance(value, tuple):
        return all(type(word) is str for word in value)
    return type(value) is kind


class SubmitAnswer(Struct, frozen=True):
    """Answer of the submit exits. ``refusal``: text that refuses the submission, None: accepted; ``who``:
    exits that refuse or change it; ``changes``: new values of its fields (`CHANGEABLE`)."""

    refusal: str | None = None
    who: str = ""
    changes: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Exits(Protocol):
    """The site's user exits, guarded: no call raises or runs long; failures are collected."""

    def begin(self, site: Site) -> None:
        """Apply the exits' settings, and call failed exits again; called before a pass or submission."""

    def has(self, hook: str) -> bool:
        """True if any exit that is switched on implements that hook."""

    def jobselect(self, request: RequestView, view: PassView) -> Answer | None:
        """Return the exits' answer on a candidate: a refusal before a force, else the first answer in
        file-name order; None: no exit answers. A failure of an exit refuses."""

    def elected(self, request: RequestView, view: PassView) -> Sequence[Action]:
        """Return the actions (redate, hold, move) that all exits ask for after a pass chose a request."""

    def shrpri(self, owner: str, group: str, view: PassView) -> float | None:
        """Return the exits' share term of an owner in a group, not yet normalised; None: the stock rule."""

    def shrpris(self, pairs: Sequence[tuple[str, str]], view: PassView) -> Sequence[float | None]:
        """Return what `shrpri` returns for each (owner, group); the view must not change meanwhile."""

    def submit(self, request: RequestView, view: PassView) -> SubmitAnswer | None:
        """Return the submit exits' answer to a submission: the first refusal, or all changes; else None."""

    def route(self, request: RequestView, destinations: Sequence[str], view: PassView) -> Sequence[str]:
        """Return which destinations of a pipe queue to try for a request, in order; no exit answers: all."""

    def forces(self) -> bool:
        """True if any exit that is switched on may answer force()."""

    def rounds(self, site: Site) -> Mapping[str, OfferRound]:
        """Return, by queue, the rounds of offers that the last pass over this site object did not finish."""

    def store(self, site: Site, rounds: Mapping[str, OfferRound]) -> bool:
        """Store unfinished rounds of offers, by queue; return False if this object stores none."""

    def asks_again(self) -> Instant | None:
        """Return the instant at which the first back-off met in this pass ends; None: none was met. In a
        back-off an exit is not asked about the requests of an owner."""

    def rehearsal(self, now: Instant) -> AbstractContextManager[None]:
        """Ask exits in the block for a simulation from ``now`` on, without statistics, traces or failures."""

    def failures(self) -> tuple[ExitFailure, ...]:
        """Return the failures since `begin` or the last call, and forget them."""

    def declared(self) -> Mapping[str, Mapping[str, str]]:
        """Return the unit of each setting (``memory``, ``time``, ``count`` ...), by exit and setting."""

    def check_setting(self, exit: str, setting: str, text: str) -> None:
        """Raise BadValue if the loaded exit has no such setting, or if ``text`` is no value for it."""

    def reload(self) -> str:
        """Load the files again, all or none; return a sentence for the caller, empty if they are still being
        loaded. Raises Refusal with file and line."""

    def files(self) -> Mapping[str, bytes]:
        """Return the source text of each loaded exit, by its name."""

    def listing(self) -> list[dict[str, Any]]:
        """Return the rows of ``show exits``: name, doc, enabled, hooks, settings, calls, failures, times."""


# ---------------------------------------------------------------- Decider


class Decider(Protocol):
    """Runs passes for the engine: in this process, or in a child with a copy of the site."""

    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """Ask for a pass over the site at ``now``; ``samples``: last reported use of running attempts. Return
        its plan, or None if that comes later as an input (`inputs.Decision`)."""

    def follow(self, events: Sequence[Recorded]) -> None:
        """Note the events just applied to the site, each once and in order, for a child's copy."""

    def reset(self, site: Site) -> None:
        """Use another site object from now on (after a failed commit); forget the former one's events."""

    def forecast(
        self, site: Site, request: Request, now: Instant, samples: Mapping[Seq, Used]
    ) -> Callable[[float], Any]:
        """Return a function that returns when a request, not submitted yet, would start and why
        (`look_ahead.Forecast`); ``samples`` as for `ask`. The site is read now; the function may be called in
        any thread, and waits at most as many real seconds as it is given."""
