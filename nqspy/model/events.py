"""Events: facts that changed the site, one Struct a kind. Kinds are only added; a later field has a default.
The journal holds ``(n, at, kind, version, JSON of its fields)``; by ``n`` they give the same site again."""

import re
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct, field

from nqspy.model.actions import ExitFailure
from nqspy.model.cause import Cause, Caused
from nqspy.model.consumables import Units
from nqspy.model.health import Health, Level
from nqspy.model.ids import Instant, Seq
from nqspy.model.indices import Runs
from nqspy.model.machine import Device, ForeignJob
from nqspy.model.requests import AfterWord, EndReason, Prerequisite, Reservation, Retry, Spec, Used
from nqspy.model.shapes import Lacked

KINDS: dict[str, type["Event"]] = {}
"""Every kind of event by its name in the journal."""


def written_name(cls: type) -> str:
    """Return the name of a class in journal and on the wire: ``dependency_met`` of ``DependencyMet``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


class Event(Struct, frozen=True, omit_defaults=True):
    """Base of all events. ``kind``: its name in the journal, by default derived from its class. ``version``
    rises when a field changes meaning. The journal leaves out default values, so a default never changes."""

    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__name__.endswith("Event"):  # a base of several kinds
            cls.kind = vars(cls).get("kind") or written_name(cls)
            KINDS[cls.kind] = cls


class Recorded(Struct, frozen=True):
    """An event as the journal holds it: with its number (from 1, without gaps) and its instant."""

    n: int
    at: Instant
    event: Event


class Change(Struct, frozen=True):
    """Change of a setting or object. ``op``: what is done; ``path``: as in `tree`; ``value``: JSON data: for
    create a dict of settings by path below the object, for add and remove a list of names."""

    op: Literal["create", "set", "add", "remove", "delete"]
    path: str
    value: Any = None


class RequestEvent(Event, frozen=True):
    """Base of events that happen to one request."""

    seq: Seq


class AttemptEvent(RequestEvent, frozen=True):
    """Base of events that happen to an attempt of a request."""

    attempt: int


class RequestsEvent(Event, frozen=True):
    """Base of events that happen to several requests."""

    seqs: tuple[Seq, ...]


class Submitted(RequestEvent, frozen=True):
    """A request was accepted into a queue. ``key``: given by the user; with ``digest`` of the whole
    submission, it identifies a repeated one."""

    spec: Spec
    queue: str
    state: Literal["waiting", "held", "queued"]
    key: str = ""
    digest: str = ""


class Routed(RequestEvent, frozen=True):
    """A pipe queue (``former``) passed a request on to another queue."""

    queue: str
    former: str


class Eligible(RequestsEvent, frozen=True):
    """The dates of these waiting requests have come: they are queued from now on."""


class Starting(AttemptEvent, frozen=True):
    """A pass decided to start an attempt on these PEs and units; the executor starts it after the commit.
    ``until``: end of its hole (`Spec.contract`); the other fields as in `actions.Start`."""

    pes: tuple[int, ...]
    forced: bool = False
    units: Units = ()
    until: Instant | None = None
    passing: bool = False
    lacked: Lacked = ()


class Started(AttemptEvent, frozen=True):
    """The executor started an attempt. ``began``: when, if it was reported only after the end (None: now)."""

    pes: tuple[int, ...]
    began: Instant | None = None


class Suspended(Event, Caused, frozen=True):
    """An attempt was suspended. ``by``: name of the cause; ``text``: why. ``parked``, ``leaving``: as
    ``pes_released`` and ``leaving`` in `requests.Pause`."""

    seq: Seq
    attempt: int
    by: str
    parked: bool = False
    text: str = ""
    leaving: bool = False


class Resumed(Event, Caused, frozen=True):
    """A suspended attempt goes on; ``pes``: the PEs that it has from now on, empty: those it had."""

    seq: Seq
    attempt: int
    by: str
    pes: tuple[int, ...] = ()


class Migrated(AttemptEvent, frozen=True):
    """A pass moved a running attempt to these PEs; its processes are bound to them after the commit."""

    pes: tuple[int, ...]


class PauseChanged(Event, Caused, frozen=True):
    """A person (``by``) changed why a suspended attempt is away, to another cause: with a person it stays
    away until a person resumes it, with a feature until its turn comes. ``text``: why it is away."""

    seq: Seq
    attempt: int
    by: str
    to: Cause
    text: str = ""


class Exiting(AttemptEvent, frozen=True):
    """The processes of an attempt have ended and its PEs are free; its output is being delivered. ``used``:
    its whole use; ``text``: why the output cannot be delivered yet."""

    used: Used = Used()
    text: str = ""


class Ended(AttemptEvent, frozen=True):
    """An attempt ended, and the request with it. ``stdout``, ``stderr``: paths of its output."""

    end_reason: EndReason
    exit_status: int | None = None
    exit_signal: int | None = None
    used: Used = Used()
    text: str = ""
    stdout: str | None = None
    stderr: str | None = None


class Requeued(AttemptEvent, frozen=True):
    """An attempt ended and its request waits again, with its old date in queue. ``losses``, ``retry``: as in
    `Request`. ``stdout``, ``stderr``: paths of its output, as in `AttemptOutput`; None: it never ran."""

    text: str
    used: Used = Used()
    losses: int = 0
    stdout: str | None = None
    stderr: str | None = None
    retry: Retry | None = None


class Held(Event, Caused, frozen=True):
    """Waiting requests were held. ``letter``: u (owner), o (operator), s (system). ``indices``, also in
    events below: indices of an array to which the event is limited; empty: all."""

    seqs: tuple[Seq, ...]
    letter: str
    who: str
    text: str = ""
    indices: Runs = ()


class Released(RequestsEvent, frozen=True):
    """Hold ``letters`` were removed. ``aging``: the age in the queue counts from now on (`age_from`)."""

    letters: str
    who: str
    aging: bool = False
    indices: Runs = ()


class Redated(RequestsEvent, frozen=True):
    """Waiting requests got a new date in queue, all in one event. ``cause``, ``place``: as in `Redating`."""

    date: Instant
    cause: Seq | None
    who: str
    place: Seq | None = None


class DependencyMet(RequestsEvent, frozen=True):
    """End of these requests' wait for ``prerequisite`` (conditions ``words``); one that waits for nothing
    more is queued. ``aging``: as in `Released`; ``what``: how the prerequisite ended."""

    prerequisite: Seq
    words: tuple[AfterWord, ...]
    text: str = ""
    aging: bool = False
    indices: Runs = ()
    what: Prerequisite | None = None


class DependencyFailed(RequestsEvent, frozen=True):
    """Requests wait in vain for ``prerequisite`` (conditions ``words``), until an operator releases them."""

    prerequisite: Seq
    words: tuple[AfterWord, ...]
    text: str = ""
    indices: Runs = ()


class Ranked(RequestEvent, frozen=True):
    """``schedule request`` or ``set request`` set a rank: 0 system, 1 first (of its queue), 2 next (of all),
    3 now, 4 prime."""

    rank: int
    who: str


class Moved(RequestsEvent, frozen=True):
    """A person moved waiting requests into another queue."""

    queue: str
    who: str


class Modified(RequestEvent, frozen=True):
    """A request asks for something else; ``spec`` is its whole new specification."""

    spec: Spec
    who: str


class Deleting(Event, Caused, frozen=True):
    """A started request got the order to end, or to run again (``rerun``); ``text``: why."""

    seq: Seq
    attempt: int
    who: str
    rerun: bool = False
    text: str = ""


class Deleted(RequestEvent, frozen=True):
    """A waiting request was deleted: it ended without having run."""

    who: str
    text: str = ""
    indices: Runs = ()


class Decided(Event, frozen=True):
    """A pass decided: its input, and failures of exits; its starts follow as events. ``as_of``: last event
    that it saw; ``asked``: when it was asked for. ``samples``: use, which is charged. ``short_of_pes``: some
    request waited only for PEs. ``wait``: why examined requests wait (seq, code, source, text). ``ready``:
    (``GROUP:OWNER``, PEs that could start), where that changed. ``exits``: hooks that were called."""

    as_of: int
    samples: tuple[tuple[Seq, Used], ...] = ()
    failures: tuple[ExitFailure, ...] = ()
    short_of_pes: bool = False
    wait: tuple[tuple[Seq, str, str, str], ...] = ()
    ready: tuple[tuple[str, int], ...] = ()
    exits: tuple[str, ...] | None = None
    asked: Instant | None = None


class Reserved(Event, frozen=True):
    """Waiting requests got a reserved start, an earlier one, or the cause of a delay; None: the reservation
    is taken back, for the reason in ``causes``. ``as_of``: value for `Site.swept`."""

    starts: dict[Seq, Reservation | None]
    as_of: int = 0
    causes: dict[Seq, str] = field(default_factory=dict)

    @property
    def seqs(self) -> tuple[Seq, ...]:
        """Sequence numbers of the requests."""
        return tuple(self.starts)


class Parted(RequestEvent, frozen=True):
    """Indices of an array became requests of their own before they began: something concerns only them."""

    indices: Runs


class MovedOut(AttemptEvent, frozen=True):
    """A suspended attempt has left its PEs, which are free now. ``took``: time since its suspension (ms);
    ``paged``: bytes that left the memory meanwhile."""

    took: int = 0
    paged: int = 0


class Promised(Event, frozen=True):
    """A feature stored ``value`` under ``key`` for later passes, or deleted it (null); see `model.facts`."""

    feature: str
    key: str
    value: Any = None


class ShiftChanged(Event, frozen=True):
    """Another shift is in force (None: no shift). ``fired``: instant of the firing that caused it;
    ``manual``: an operator switched, until the instant ``until`` if given."""

    shift: str | None
    former: str | None
    fired: Instant | None
    manual: bool = False
    until: Instant | None = None


class ShiftFailed(Event, frozen=True):
    """A shift could not be put in force: the former settings stay, and it is tried again."""

    shift: str
    text: str


class SettingsChanged(Event, frozen=True):
    """Settings were changed, by all of these changes. ``source``: where these come from, such as a file."""

    changes: tuple[Change, ...]
    who: str = ""
    source: str = ""


class UsageCorrected(Event, frozen=True):
    """A manager changed the decayed use (ms) of a group and those below it, from ``former`` to ``value``."""

    group: str
    former: int
    value: int
    who: str


class MachineFound(Event, frozen=True):
    """The machine as found at the start, or after CPUs went or came. ``cpus``: the CPUs of the PEs, in order;
    ``memory``: bytes; ``offline``: PEs without their CPU; ``devices``: those that can be given out."""

    cpus: tuple[int, ...]
    memory: int
    host: str
    zone: str = "UTC"
    offline: tuple[int, ...] = ()
    devices: tuple[Device, ...] = ()


class ForeignChanged(Event, frozen=True):
    """Foreign jobs came, ended, or use other PEs: all that there are now, in the order of their pids."""

    kind: ClassVar[str] = "foreign"
    jobs: tuple[ForeignJob, ...] = ()


class FilesApplied(Event, frozen=True):
    """Changed files of ``queues.d`` were applied: content hashes by name."""

    files: tuple[tuple[str, str], ...]


class LoadedExits(Event, frozen=True):
    """User exits were loaded in place of all former ones: content hashes by name; see `Journal.blob`."""

    kind: ClassVar[str] = "exits_loaded"
    files: tuple[tuple[str, str], ...]


class ExitOff(Event, frozen=True):
    """An exit was switched off after failures on five different requests in a row."""

    exit: str
    text: str


class ResourceChanged(Event, frozen=True):
    """A probe found its resource broken, or well again."""

    kind: ClassVar[str] = "probe"
    name: str
    state: Health
    text: str = ""


class PressureChanged(Event, frozen=True):
    """The state of the memory: requests give way (``high``), return (``calm``) or neither (``tight``).
    ``used``: per cent of ``total`` bytes; ``resident``: bytes in memory by request; ``people``: True if
    people work at a terminal."""

    kind: ClassVar[str] = "pressure"
    level: Level
    used: float = 0.0
    text: str = ""
    resident: tuple[tuple[Seq, int], ...] = ()
    total: int = 0
    people: bool = False


class Restored(Event, frozen=True):
    """A backup was restored. ``next_seq``: first number never given out; ``attempts``: last attempt of each
    request that was started after the backup was made."""

    text: str
    next_seq: Seq
    attempts: tuple[tuple[Seq, int], ...] = ()


class Alarm(Event, frozen=True):
    """Something that managers must know. ``since``: instant at which it began, if before the event;
    ``failures``: of user exits."""

    who: str
    text: str
    since: Instant | None = None
    failures: tuple[ExitFailure, ...] = ()


class DaemonStarted(Event, frozen=True):
    """A daemon started. ``last``: instant of the event before; ``clean``: False if the former one crashed."""

    last: Instant
    clean: bool


class Reported(Event, frozen=True):
    """The report of the night that began on ``day`` (YYYY-MM-DD) was made at instant ``taken``, from events
    up to number ``as_of``; ``mails``: number of its mails, which are sent after this event. What the journal
    lacks is kept here: ``samples`` (use of running requests), ``own`` (why requests waited: sequence number,
    code, source, text) and ``closing`` (why queues started no more: queue, code, source, text)."""

    day: str
    as_of: int
    taken: Instant
    files: tuple[str, ...] = ()
    mails: int = 0
    samples: tuple[tuple[Seq, Used], ...] = ()
    own: tuple[tuple[Seq, str, str, str], ...] = ()
    closing: tuple[tuple[str, str, str, str], ...] = ()


_encoder = msgspec.json.Encoder()
_decoders = {kind: msgspec.json.Decoder(cls) for kind, cls in KINDS.items()}


def encode(event: Event) -> bytes:
    """Return the fields of an event as JSON."""
    return _encoder.encode(event)


def decode(kind: str, fields: bytes | str) -> Event:
    """Return the event of a kind with these fields (JSON). Raises KeyError, ValidationError (bad fields)."""
    event: Event = _decoders[kind].decode(fields)
    return event
