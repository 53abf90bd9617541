"""Actions that passes decide and the daemon does. Each on an attempt names it: repeating is harmless."""

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
    """Base of the actions on an attempt of a request."""

    seq: Seq
    attempt: int


@dataclass(frozen=True, slots=True)
class Start(OfAttempt):
    """Start this attempt of a request on these PEs, with these ``units`` of consumables. ``forced``: an exit
    or operator wants it past limits. ``until``: it is ended then (`Spec.contract`). ``passing``: it starts
    past a reservation of unknown time. ``lacked``: sizes on which it would have ended sooner, each with the
    code of why it could not. ``cleared``: PEs were cleared for it, so it may delay reservations."""

    pes: tuple[int, ...]
    forced: bool = False
    units: Units = ()
    until: Instant | None = None
    passing: bool = False
    lacked: Lacked = ()
    cleared: bool = False


@dataclass(frozen=True, slots=True)
class Suspend(OfAttempt):
    """Stop the processes of an attempt. It keeps its PEs unless ``parked``. ``page_out``: its memory is given
    back to the system if the kernel can. ``leaving``: its PEs become free only when the executor reports that
    it has moved out (`observations.ObservedMovedOut`)."""

    cause: Cause = SCHEDULER
    text: str = ""
    parked: bool = False
    page_out: bool = False
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class Resume(OfAttempt):
    """Let a suspended attempt go on, on these PEs; empty: on those it had."""

    cause: Cause = SCHEDULER
    pes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Migrate(OfAttempt):
    """Let a running attempt go on, on these other PEs, without stopping it."""

    pes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Requeue(OfAttempt):
    """End an attempt by TERM (then KILL), and let its request wait again."""

    cause: Cause
    text: str


@dataclass(frozen=True, slots=True)
class TakeTurns(OfAttempt):
    """Let an attempt run in its slots only, by the slot table of its domain (`model.slots`); without one, all
    the time."""


@dataclass(frozen=True, slots=True)
class Signal(OfAttempt):
    """Send a signal to all processes of an attempt."""

    signal: int


@dataclass(frozen=True, slots=True)
class WriteOutput(OfAttempt):
    """Write a line into outputs of an attempt (``stdout``, ``stderr``), as its owner."""

    text: str
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Adjust(OfAttempt):
    """Apply a request's new wall limit and output place to its running attempt."""


@dataclass(frozen=True, slots=True)
class SetAside(OfAttempt):
    """Move the records of an attempt that the database does not know out of the way of later attempts."""


@dataclass(frozen=True, slots=True)
class Kill(OfAttempt):
    """End an attempt: send ``signal``, and KILL after ``grace`` ms (real time); ``reason``: end reason."""

    reason: str
    grace: int
    signal: int = 15


@dataclass(frozen=True, slots=True)
class Redate(Action):
    """Set the date in queue of these waiting requests, as an exit asked, in one commit with the start of
    ``cause``. If that start fails, it is dropped."""

    seqs: tuple[Seq, ...]
    date: Instant
    cause: Seq
    who: str


@dataclass(frozen=True, slots=True)
class Reserving(Action):
    """Reserve a start for these waiting requests, or take it back (None); see `events.Reserved`."""

    starts: dict[Seq, Reservation | None]
    as_of: int = 0
    causes: dict[Seq, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hold(Action):
    """Set the hold ``s`` (system) on a waiting request; ``text``: why."""

    seq: Seq
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class Move(Action):
    """Move a waiting request to another queue, as routing or an exit decided."""

    seq: Seq
    queue: str


@dataclass(frozen=True, slots=True)
class Notify(Action):
    """Send a message after the commit: mail to an owner, or an alarm to the managers (``to`` empty)."""

    to: str
    subject: str
    text: str
    seq: Seq | None = None


@dataclass(frozen=True, slots=True)
class Forget(OfAttempt):
    """Remove the spool of an ended attempt after its end was committed."""


class ExitFailure(Struct, frozen=True):
    """Failure of a user exit: which exit, on which request (None: on no single one), and the error. ``off``:
    the exit is switched off. ``rests``: if it is not asked about an owner's requests for a while, text on
    that behind "exit NAME failed"; empty: it is asked. ``lost``: the exit's process died, and ``rests`` is
    only the name of that owner."""

    exit: str
    seq: Seq | None
    text: str
    traceback: str = ""
    off: bool = False
    rests: str = ""
    lost: bool = False


class Plan(Struct, frozen=True):
    """Decision of a pass: actions in order, why the other requests wait, and when the next pass is due at the
    latest. ``as_of``: number of the last event that the pass saw. ``short_of_pes``: some request waits only
    for PEs. ``samples``: use of running requests that the pass counted, by sequence number. ``ready``: work
    that could start after it, where that changed (`events.Decided`)."""

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
        """Sequence numbers of the requests that the plan starts, in order."""
        return [action.seq for action in self.actions if isinstance(action, Start)]

    def reason(self, seq: Seq, queue: str) -> Reason | None:
        """Return the plan's reason for which a queued request of a queue waits; None: not known."""
        return self.reasons.of(seq, queue)
