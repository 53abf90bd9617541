"""Events: frozen dataclasses, one per kind. Kinds are only added; a field added later has a default.
Journaled as ``(n, at, kind, version, JSON of its fields)``; in order of ``n`` they give the same state."""

import re
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct, field

from nqspy.model.actions import ExitFailure
from nqspy.model.cause import Caused
from nqspy.model.consumables import Units
from nqspy.model.health import Health, Level
from nqspy.model.ids import Instant, Seq
from nqspy.model.indices import Runs
from nqspy.model.machine import Device
from nqspy.model.requests import AfterWord, EndReason, Prerequisite, Reservation, Retry, Spec, Used
from nqspy.model.shapes import Lacked

KINDS: dict[str, type["Event"]] = {}
"""Every kind of event by its name in the journal."""


def written_name(cls: type) -> str:
    """Return the name of a class as journal and wire write it: ``dependency_met`` of ``DependencyMet``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


class Event(Struct, frozen=True, omit_defaults=True):
    """Base of all events. ``kind``: its name in the journal, by default that of its class; ``version`` rises
    with a field's meaning. The journal leaves out fields at their defaults: a default never changes."""

    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__name__.endswith("Event"):  # a base of several kinds
            cls.kind = vars(cls).get("kind") or written_name(cls)
            KINDS[cls.kind] = cls


class Recorded(Struct, frozen=True):
    """An event with its number (from 1, without gaps) and the instant at which it happened."""

    n: int
    at: Instant
    event: Event


class Change(Struct, frozen=True):
    """A change of the settings. ``op`` create|set|add|remove|delete, ``path`` as in `tree`, ``value``
    JSON-able. create: value is a dict of settings by path below the object; add/remove: a list of names."""

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
    """A request was accepted into a queue. ``key`` and ``digest`` make a repeated submission recognisable."""

    spec: Spec
    queue: str
    state: Literal["waiting", "held", "queued"]
    key: str = ""
    digest: str = ""


class Routed(RequestEvent, frozen=True):
    """A pipe queue passed a request on."""

    queue: str
    former: str


class Eligible(RequestsEvent, frozen=True):
    """The date of these waiting requests has come: they are queued from now on."""


class Starting(AttemptEvent, frozen=True):
    """A decision to start an attempt on these PEs and units; the executor may once it is committed.
    ``until``: the end of its hole (`Spec.contract`); ``passing``, ``lacked``: as in `actions.Start`."""

    pes: tuple[int, ...]
    forced: bool = False
    units: Units = ()
    until: Instant | None = None
    passing: bool = False
    lacked: Lacked = ()


class Started(AttemptEvent, frozen=True):
    """The executor started an attempt; ``began``: when, where they could only tell of its end."""

    pes: tuple[int, ...]
    began: Instant | None = None


class Suspended(Event, Caused, frozen=True):
    """An attempt was stopped by ``by``, for ``text``. ``parked``, ``leaving``: as `requests.Pause` has it."""

    seq: Seq
    attempt: int
    by: str
    parked: bool = False
    text: str = ""
    leaving: bool = False


class Resumed(Event, Caused, frozen=True):
    """A suspended attempt goes on; ``pes``: the PEs it has from now on, none: those it had."""

    seq: Seq
    attempt: int
    by: str
    pes: tuple[int, ...] = ()


class Exiting(AttemptEvent, frozen=True):
    """An attempt's processes have ended, its PEs are free; its output is still delivered, ``text``: why."""

    used: Used = Used()
    text: str = ""


class Ended(AttemptEvent, frozen=True):
    """An attempt ended, and the request with it. ``stdout`` and ``stderr``: where its output lies."""

    end_reason: EndReason
    exit_status: int | None = None
    exit_signal: int | None = None
    used: Used = Used()
    text: str = ""
    stdout: str | None = None
    stderr: str | None = None


class Requeued(AttemptEvent, frozen=True):
    """An attempt ended, its request waits again, dated as before. ``losses``, ``retry``: as in `Request`;
    ``stdout``, ``stderr``: where its output lies, as in `AttemptOutput`; None: it never ran."""

    text: str
    used: Used = Used()
    losses: int = 0
    stdout: str | None = None
    stderr: str | None = None
    retry: Retry | None = None


class Held(Event, Caused, frozen=True):
    """Waiting requests were held; ``letter`` u (owner), o (operator), s (system). ``indices``, here and
    below: of an array, those that it is about, if not all."""

    seqs: tuple[Seq, ...]
    letter: str
    who: str
    text: str = ""
    indices: Runs = ()


class Released(RequestsEvent, frozen=True):
    """Holds were taken off; ``letters`` are those taken. ``aging``: age counts from now on (`age_from`)."""

    letters: str
    who: str
    aging: bool = False
    indices: Runs = ()


class Redated(RequestsEvent, frozen=True):
    """Waiting requests got a new date in queue, one event however many. ``place`` as in `Redating`."""

    date: Instant
    cause: Seq | None
    who: str
    place: Seq | None = None


class DependencyMet(RequestsEvent, frozen=True):
    """The wait of these requests for ``prerequisite`` (``words``) is over, or counts as over; one that awaits
    nothing more is queued. ``aging`` as in `Released`; ``what``: what became of it."""

    prerequisite: Seq
    words: tuple[AfterWord, ...]
    text: str = ""
    aging: bool = False
    indices: Runs = ()
    what: Prerequisite | None = None


class DependencyFailed(RequestsEvent, frozen=True):
    """Requests that wait for ``prerequisite`` (``words``) in vain: an operator releases them."""

    prerequisite: Seq
    words: tuple[AfterWord, ...]
    text: str = ""
    indices: Runs = ()


class Ranked(RequestEvent, frozen=True):
    """``schedule request``: rank 0 system, 1 first (of its queue), 2 next (of all), 3 now."""

    rank: int
    who: str


class Moved(RequestsEvent, frozen=True):
    """Waiting requests were moved into another queue by a person."""

    queue: str
    who: str


class Modified(RequestEvent, frozen=True):
    """A request asks for something else; ``spec`` is the whole new specification."""

    spec: Spec
    who: str


class Deleting(Event, Caused, frozen=True):
    """A started request is ordered to end, or to run again (``rerun``); ``text``: why."""

    seq: Seq
    attempt: int
    who: str
    rerun: bool = False
    text: str = ""


class Deleted(RequestEvent, frozen=True):
    """A waiting request was deleted: it has ended without having run."""

    who: str
    text: str = ""
    indices: Runs = ()


class Decided(Event, frozen=True):
    """A pass acted: its input, and failures of exits; its starts follow as events. ``samples`` are charged;
    ``short_of_pes``: one waited only for a PE; ``wait``: why those looked at do, ``(seq, code, source,
    text)``; ``ready``: ``("GROUP:OWNER", PEs)``, see `balance`; ``exits``: hooks asked, ``asked``: when."""

    as_of: int
    samples: tuple[tuple[Seq, Used], ...] = ()
    failures: tuple[ExitFailure, ...] = ()
    short_of_pes: bool = False
    wait: tuple[tuple[Seq, str, str, str], ...] = ()
    ready: tuple[tuple[str, int], ...] = ()
    exits: tuple[str, ...] | None = None
    asked: Instant | None = None


class Reserved(Event, frozen=True):
    """Waiting requests were promised a start, or an earlier one, or it is told why that could not be kept;
    None: the promise is taken back, for a cause in ``causes``. ``as_of``: the number of the event by which
    something had become free when all promises were last gone through."""

    starts: dict[Seq, Reservation | None]
    as_of: int = 0
    causes: dict[Seq, str] = field(default_factory=dict)

    @property
    def seqs(self) -> tuple[Seq, ...]:
        """The requests."""
        return tuple(self.starts)


class Parted(RequestEvent, frozen=True):
    """Indices of an array became requests of their own before they began: something concerns them alone."""

    indices: Runs


class MovedOut(AttemptEvent, frozen=True):
    """A suspended attempt has left its PEs: others may have them. ``took``: how long that took, ms;
    ``paged``: bytes that left the memory meanwhile."""

    took: int = 0
    paged: int = 0


class Promised(Event, frozen=True):
    """A feature has promised ``value`` under ``key``, or taken it back (null)."""

    feature: str
    key: str
    value: Any = None


class ShiftChanged(Event, frozen=True):
    """Another shift is in force. ``fired``: the firing this belongs to; ``manual``: an operator switched."""

    shift: str | None
    former: str | None
    fired: Instant | None
    manual: bool = False
    until: Instant | None = None


class ShiftFailed(Event, frozen=True):
    """Entering a shift failed: the former settings stay; it is tried again."""

    shift: str
    text: str


class SettingsChanged(Event, frozen=True):
    """Settings were changed, all of these or none."""

    changes: tuple[Change, ...]
    who: str = ""
    source: str = ""


class UsageCorrected(Event, frozen=True):
    """A manager set the decayed use (ms) of a group and those below it from ``former`` to ``value``."""

    group: str
    former: int
    value: int
    who: str


class MachineFound(Event, frozen=True):
    """Machine as found at start, or when CPUs went or came: the CPUs that PEs stand for, in order;
    ``offline``: PEs without their CPU; ``devices``: what can be given out by the unit."""

    cpus: tuple[int, ...]
    memory: int
    host: str
    zone: str = "UTC"
    offline: tuple[int, ...] = ()
    devices: tuple[Device, ...] = ()


class FilesApplied(Event, frozen=True):
    """Files of ``queues.d`` were applied: content hashes by name."""

    files: tuple[tuple[str, str], ...]


class LoadedExits(Event, frozen=True):
    """User exits were loaded and replace all former ones: content hashes by name. `Journal.blob` has them."""

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
    """State of the memory: requests give way (``high``), may come back (``calm``) or neither (``tight``).
    ``used``: per cent of ``total`` bytes; ``resident``: bytes by request; ``people``: some are at work."""

    kind: ClassVar[str] = "pressure"
    level: Level
    used: float = 0.0
    text: str = ""
    resident: tuple[tuple[Seq, int], ...] = ()
    total: int = 0
    people: bool = False


class Restored(Event, frozen=True):
    """A backup was restored. ``next_seq``: the first number never given out; ``attempts``: the last since."""

    text: str
    next_seq: Seq
    attempts: tuple[tuple[Seq, int], ...] = ()


class Alarm(Event, frozen=True):
    """Something the managers must know. ``since``: when it began, if earlier; ``failures``: no pass's."""

    who: str
    text: str
    since: Instant | None = None
    failures: tuple[ExitFailure, ...] = ()


class DaemonStarted(Event, frozen=True):
    """A daemon took the installation over. ``last``: instant of the last event; ``clean``: it was stopped."""

    last: Instant
    clean: bool


class Reported(Event, frozen=True):
    """The report of the night that began on ``day`` (YYYY-MM-DD) was made: from the events up to number
    ``as_of``, at instant ``taken``; ``mails`` go out from here on. What was known then beside the journal is
    kept with it: ``samples`` (use of running requests), ``own`` and ``closing`` (why requests and queues
    waited: sequence number or queue, code, source, text)."""

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
    """JSON of an event's fields."""
    return _encoder.encode(event)


def decode(kind: str, fields: bytes | str) -> Event:
    """The event of that kind with those fields. Raises KeyError, ValidationError for bad fields."""
    event: Event = _decoders[kind].decode(fields)
    return event
