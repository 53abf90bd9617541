"""Actions: each names request and attempt, so that doing it twice is harmless."""

from dataclasses import dataclass, field

from msgspec import Struct

from nqspy.model.cause import SCHEDULER, Cause
from nqspy.model.consumables import Units
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason, Reasons
from nqspy.model.requests import Reservation, Used
from nqspy.model.shapes import Lacked


@dataclass(frozen=True, slots=True)
class Action:
    """Base of all actions. ``by``: the feature that proposed it in a pass."""

    by: str = field(default="", kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OfAttempt(Action):
    """Base of those on an attempt of a request."""

    seq: Seq
    attempt: int


@dataclass(frozen=True, slots=True)
class Start(OfAttempt):
    """Start this attempt of a request on these PEs, with these ``units`` of consumables. ``forced``: an exit
    or an operator asked for it past the limits; ``until``: it is ended then (`Spec.contract`); ``passing``:
    it passes a request that was promised a start at an unknown time; ``lacked``: of one that has several
    sizes those on which it would have ended sooner, each with why it could not start on it; ``cleared``: a
    block of PEs was cleared for it, so it may delay reserved starts."""

    pes: tuple[int, ...]
    forced: bool = False
    units: Units = ()
    until: Instant | None = None
    passing: bool = False
    lacked: Lacked = ()
    cleared: bool = False


@dataclass(frozen=True, slots=True)
class Suspend(OfAttempt):
    """Stop the processes of an attempt; its PEs stay its own unless it is ``parked``. ``page_out``: its
    memory shall be given back to the system where the kernel can. ``leaving``: its PEs are others' once it
    has moved out, which is to be told (`observations.ObservedMovedOut`)."""

    cause: Cause = SCHEDULER
    text: str = ""
    parked: bool = False
    page_out: bool = False
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class Resume(OfAttempt):
    """Let a suspended attempt go on: on these PEs, none: on those it had."""

    cause: Cause = SCHEDULER
    pes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Requeue(OfAttempt):
    """End an attempt and let its request wait again."""

    cause: Cause
    text: str


@dataclass(frozen=True, slots=True)
class Signal(OfAttempt):
    """Send a signal to all processes of an attempt."""

    signal: int


@dataclass(frozen=True, slots=True)
class WriteOutput(OfAttempt):
    """Add a line to outputs of an attempt (``stdout``, ``stderr``), as its owner."""

    text: str
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Adjust(OfAttempt):
    """Keep an attempt to its request's present wall time, and send its output to the present place."""


@dataclass(frozen=True, slots=True)
class SetAside(OfAttempt):
    """Take the records of an attempt that the database does not know out of the way of later ones."""


@dataclass(frozen=True, slots=True)
class Kill(OfAttempt):
    """End an attempt: TERM, after ``grace`` ms of real time KILL; ``reason`` becomes its end reason."""

    reason: str
    grace: int
    signal: int = 15


@dataclass(frozen=True, slots=True)
class Redate(Action):
    """Set the date in queue of these waiting requests, with the start of ``cause``: both or neither."""

    seqs: tuple[Seq, ...]
    date: Instant
    cause: Seq
    who: str


@dataclass(frozen=True, slots=True)
class Reserving(Action):
    """Promise these waiting requests a start, or take that back (None); see `events.Reserved`."""

    starts: dict[Seq, Reservation | None]
    as_of: int = 0
    causes: dict[Seq, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hold(Action):
    """Hold a waiting request on behalf of the system."""

    seq: Seq
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class Move(Action):
    """Route a request into another queue."""

    seq: Seq
    queue: str


@dataclass(frozen=True, slots=True)
class Notify(Action):
    """Send a notice after the commit: mail to an owner, an alarm to the managers (``to`` empty)."""

    to: str
    subject: str
    text: str
    seq: Seq | None = None


@dataclass(frozen=True, slots=True)
class Forget(OfAttempt):
    """An ended attempt's spool may be removed: its end is committed."""


class ExitFailure(Struct, frozen=True):
    """Failure of an exit in a pass: which exit, on which request (None: not about one), what it said;
    ``off``: it is switched off; ``rests``: an owner, and until when it is not asked about that owner's
    requests, on which it failed in a row: what follows "exit NAME failed"; ``lost``: so was its process."""

    exit: str
    seq: Seq | None
    text: str
    traceback: str = ""
    off: bool = False
    rests: str = ""
    lost: bool = False


class Plan(Struct, frozen=True):
    """Decision of a pass: the actions in their order, why the others wait, when to look again at the latest.
    ``as_of``: number of the last event the pass saw. ``short_of_pes``: some request waits only for a PE.
    ``samples``: use of running requests the pass took into account, by sequence number. ``ready``: what could
    start after it, where that has changed (`events.Decided`)."""

    actions: tuple[Action, ...] = ()
    reasons: Reasons = Reasons()
    wake_at: Instant | None = None
    as_of: int = 0
    short_of_pes: bool = False
    samples: tuple[tuple[Seq, Used], ...] = ()
    failures: tuple[ExitFailure, ...] = ()
    ready: tuple[tuple[str, int], ...] = ()

    @property
    def starts(self) -> list[Seq]:
        """Sequence numbers of the requests it starts, in order."""
        return [action.seq for action in self.actions if isinstance(action, Start)]

    def reason(self, seq: Seq, queue: str) -> Reason | None:
        """Return why that request waits."""
        return self.reasons.of(seq, queue)
