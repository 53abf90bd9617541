"""The four doors of the engine: Journal, Executor, Exits, Decider. Rooms on either side know only
these."""

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
    """Content of one transaction: events, and blobs (scripts, environments) they name by content hash."""

    events: list[Recorded] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)


class EndedRow(TypedDict):
    """A request that has ended. ``ended`` is the event that ended it, at instant ``at``; ``request`` has
    the rest: where it stood then (state ENDED; its last attempt, PEs and start)."""

    seq: Seq
    spec: Spec
    queue: str
    submitted: Instant
    ended: Ended | Deleted
    at: Instant
    request: Request


class CommitFailed(Exception):
    """The transaction could not be made durable (disk full, I/O error): nothing of the batch exists. Its
    text is one line. ``passing``: another program has the database for now; whoever asked may ask again."""

    def __init__(self, text: str, passing: bool = False) -> None:
        super().__init__(text)
        self.passing = passing


class Journal(Protocol):
    """The store as the engine sees it. ``remembers``: events can be read afterwards; what is only told for
    that need not be found out where they cannot."""

    @property
    def remembers(self) -> bool:
        """Return True if events can be read afterwards."""

    def commit(self, batch: Batch, site: Site) -> None:
        """Makes the batch's events durable, with the rows of everything in ``site.touched``, and clears
        that. Raises CommitFailed."""

    def load(self) -> Site:
        """The site as of the last commit, from the rows (not from the history)."""

    def find_key(self, owner: str, key: str) -> tuple[str, tuple[Seq, ...]] | None:
        """Digest and sequence numbers of an earlier submission with this key, None if there is none."""

    def blob(self, digest: str) -> bytes:
        """A script or environment. Raises KeyError."""

    def ended(self, seqs: Sequence[Seq]) -> Iterator[EndedRow]:
        """Return those of these requests that have ended, in the order given."""

    def stored_bytes(self, owner: str) -> int:
        """Bytes of a user's stored scripts and environments, those of ended requests included."""

    def has_blob(self, owner: str, digest: str) -> bool:
        """Return True if that script or environment is among them."""

    def capacity(self) -> int | None:
        """Bytes of the disk it lies on, None where there is none."""

    def low(self) -> bool:
        """Return True if there is room for nothing but what makes room."""


# ---------------------------------------------------------------- Executor


class Executor(Protocol):
    """Spawner and watcher of attempts. Its observations come back as inputs of the engine."""

    def do(self, action: Action, request: Request | None, site: Site, now: Instant) -> None:
        """Carries one action out, soon and without blocking; doing it twice is harmless.

        For a Start the request is given; for actions on attempts that no longer exist nothing happens.
        """

    def scan(self, expected: Mapping[Seq, int]) -> Sequence[Observation]:
        """After a restart: what became of each expected attempt (request -> attempt), exactly one observation
        each; then a ObservedStray for each attempt that was found and not expected.

        Before it returns, every attempt that was not begun is claimed as void, so that it can never start
        later.
        """


# ---------------------------------------------------------------- Exits


class Selection(Protocol):
    """Requests chosen by a view, read only, in the order of their dates; made without looking at each one."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator["RequestView"]: ...
    def seqs(self) -> tuple[Seq, ...]:
        """Their sequence numbers."""

    def reach(self) -> tuple[Seq, ...]:
        """Return the requests that a re-dating of the selection reaches: they, and those chosen by the same
        words that wait for other requests."""


class RequestView(Protocol):
    """A request as a user exit sees it: read only. Sizes in bytes, None = unlimited or not given; times in
    ms; ``project``: as its owner named it (``-P``); ``started``: None as long as it waits; ``priority``: as
    its owner gave it; ``consumables``: units it asks for, by name. ``array``: identifier of the array that
    it is, or is one index of (``index``); ``count``: how many indices of an array could still start, else
    1."""

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
    """The site as a user exit sees it in this pass, with what the pass has decided so far (interfaces.md
    8)."""

    now: Instant
    shift: str | None

    @property
    def site(self) -> Site:
        """The site itself: what the clock and the shifts are read from."""

    @property
    def version(self) -> object:
        """Changes whenever anything visible here changes, except the order of candidates."""

    def queue(self, name: str) -> Any:
        """The settings of a queue. Raises KeyError."""

    def waiting(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Selection:  # fmt: skip
        """Requests in state queued that this pass has not chosen, narrowed by what is given."""

    def running(self, *, queue: str | None = None, owner: str | None = None, group: str | None = None,
                name: str | None = None) -> Sequence[RequestView]:  # fmt: skip
        """Started requests, and those this pass has chosen."""

    def ahead(self, request: RequestView) -> Sequence[tuple[RequestView, "Answer | None"]]:
        """The candidates of its queue offered before it in this pass, with their answers."""

    def usage(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Decayed use as a fraction of the whole, running and committed use included."""

    def share(self, *, group: str | None = None, owner: str | None = None) -> float:
        """Entitlement as a fraction of the whole."""

    def stock_shrpri(self, owner: str | None, group: str) -> float:
        """Return what the stock share rule (``set global share_rule``) gives a user in a group, in [0, 1];
        without a user the group."""


class Answer(Struct, frozen=True):
    """Answer of jobselect: ``force``, ``refuse``, ``never`` or ``hold_line`` with a text, and the exit
    ``who``. None: the standard rules. ``alike``: fields in which others of its queue are alike that the
    refusal reaches too (`reasons.ALIKE`; none of them: all), those of them whose numbers lie ``within`` these
    bounds; None: it reaches no other request. ``until``: the instant from which the exit may answer
    otherwise; a pass asks again then. (A Struct: a pass makes dozens.)"""

    verdict: str
    text: str = ""
    who: str = ""
    alike: tuple[str, ...] | None = None
    within: tuple[Bounds, ...] = ()
    until: Instant | None = None

    def holds(self, now: Instant) -> bool:
        """True if it need not be asked for again at ``now``."""
        return self.until is None or now < self.until


class OfferRound(Struct, frozen=True):
    """Offers of a queue that take several passes. ``since``: `Site.changed` when the first of them was made;
    ``refused``: the candidates refused so far."""

    since: int
    refused: Mapping[Seq, Answer]


class ChangedFields(TypedDict, total=False):
    """Fields of a submission that a submit exit may change, as it writes them; None: it stays as it is."""

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
"""Options that a submit exit may change, by its name for them."""
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
"""The type of a changed option by its unit, and what an exit may write, in words."""


def is_change(name: str, value: object) -> bool:
    """True if a submit exit may change that option to a value of this type."""
    kind = CHANGED[CHANGEABLE[name].unit][0] if name in CHANGEABLE else None
    if kind is tuple and isinstance(value, tuple):
        return all(type(word) is str for word in value)
    return type(value) is kind


class SubmitAnswer(Struct, frozen=True):
    """Answer of the submit exit: a refusal text, or changed fields (`CHANGEABLE`) of the submission."""

    refusal: str | None = None
    who: str = ""
    changes: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Exits(Protocol):
    """The site's user exits behind their guard: no call raises or runs long; failures are collected."""

    def begin(self, site: Site) -> None:
        """Called before a pass or a submission: takes over the settings of the exits, forgets the overruns
        of the last pass."""

    def has(self, hook: str) -> bool:
        """Return True if any exit that is switched on implements that hook."""

    def jobselect(self, request: RequestView, view: PassView) -> Answer | None:
        """Refusing beats forcing, else the first answer in file-name order; a failure refuses."""

    def elected(self, request: RequestView, view: PassView) -> Sequence[Action]:
        """Actions of all exits after a request was chosen."""

    def shrpri(self, owner: str, group: str, view: PassView) -> float | None:
        """The share term before normalising; None: the stock rule."""

    def shrpris(self, pairs: Sequence[tuple[str, str]], view: PassView) -> Sequence[float | None]:
        """Return the same of many owners, each in a group, while nothing changes."""

    def submit(self, request: RequestView, view: PassView) -> SubmitAnswer | None:
        """Return what the exits say of a submission."""

    def route(self, request: RequestView, destinations: Sequence[str], view: PassView) -> Sequence[str]:
        """The destinations to try, in order."""

    def forces(self) -> bool:
        """Return True if any exit that is switched on may force."""

    def rounds(self, site: Site) -> Mapping[str, OfferRound]:
        """Return the rounds of offers that the last pass over a site did not finish, by queue."""

    def store(self, site: Site, rounds: Mapping[str, OfferRound]) -> bool:
        """Keep the rounds of offers that a pass over a site did not finish. Return False where none are
        kept."""

    def asks_again(self) -> Instant | None:
        """Return when an exit is asked again about an owner whose requests were left out of this pass, as it
        had failed on five of them; None: there is none."""

    def rehearsal(self, now: Instant) -> AbstractContextManager[None]:
        """While it lasts, questions leave no mark (no statistics, no trace, no failure in a row): for looks
        ahead from ``now``."""

    def failures(self) -> tuple[ExitFailure, ...]:
        """Failures since `begin`; taking them forgets them."""

    def declared(self) -> Mapping[str, Mapping[str, str]]:
        """Loaded exits: name -> setting -> unit (``memory``, ``time``, ``count``, ``text`` ...)."""

    def check_setting(self, exit: str, setting: str, text: str) -> None:
        """Raises BadValue when the loaded exit has no such setting or the text is no value for it."""

    def reload(self) -> str:
        """Loads the files again, all or none; a sentence for the person that asked, empty while they are
        still being loaded. Raises Refusal with file and line."""

    def files(self) -> Mapping[str, bytes]:
        """Return the text of each loaded exit, by name."""

    def listing(self) -> list[dict[str, Any]]:
        """For ``show exits``: name, doc, enabled, hooks, settings, calls, failures, total and longest
        time."""


# ---------------------------------------------------------------- Decider


class Decider(Protocol):
    """The door behind which passes run: at once in this process, or in a child that follows the same
    events."""

    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """Asks for a pass over the site as it is. Returns its plan at once, or None and it comes later as
        an input."""

    def follow(self, events: Sequence[Recorded]) -> None:
        """Tells what was just applied to the site, in order and once: a decider elsewhere applies it too."""

    def reset(self, site: Site) -> None:
        """The site is another one now, as after a commit that failed: what was followed so far is void."""

    def foresee(
        self, site: Site, request: Request, now: Instant, samples: Mapping[Seq, Used]
    ) -> Callable[[float], Any]:
        """Tells when a request that may be submitted would start, and what that rests on
        (`look_ahead.Outlook`); ``samples`` as there. The site is looked at now; what it gives may be asked in
        any thread, and waits at most so many real seconds."""
