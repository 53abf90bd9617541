"""Inputs of the engine (`Engine.feed`), and the result of a call for its driver (`Outcome`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from nqspy.engine.handlers.context import Reply
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Notify, Plan
from nqspy.model.ids import Instant, Seq
from nqspy.model.observations import Observation, SiteObservation
from nqspy.model.people import Caller
from nqspy.model.requests import Used


class CommandAsked(Struct, frozen=True):
    """Input: a command with its caller's identity. Its reply has the same ``handle``, any object by which the
    driver finds the caller (None: no caller waits)."""

    command: cm.Command
    caller: Caller
    handle: Any = None


class Decision(Struct, frozen=True):
    """Input: a plan made in another process; None: that pass failed, and another must be asked for."""

    plan: Plan | None


class Between(Struct, frozen=True):
    """State of an engine between two passes that is not in its site. ``due``: True if a pass is due or under
    way. ``wake_at``: instant of the next pass by the last plan; ``woken``: the last such instant for which a
    pass was made due. ``short_of_pes``: as in `Plan`. ``samples``: last reported use of running attempts, by
    request. ``moved``: how far (ms) the clock was set while an attempt ran, by request."""

    due: bool = True
    wake_at: Instant | None = None
    woken: Instant | None = None
    short_of_pes: bool = False
    samples: tuple[tuple[Seq, Used], ...] = ()
    moved: tuple[tuple[Seq, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """Input: recorded events to be applied again, in a replay, with all that follows from them. No user exit
    is asked again, no right is checked, and nothing is refused."""

    events: tuple[ev.Event, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """Input: use of running attempts since their starts, by request, each with the number of the attempt."""

    uses: Mapping[Seq, tuple[int, Used]]


class PassDue(Struct, frozen=True):
    """Input: order to run a pass now, from a driver that decides when passes run (`Engine.by_hand`)."""


Input = CommandAsked | Decision | Observation | SiteObservation | Observed | Use | PassDue


def noted(asked: Iterable[Input], received: list[Input]) -> Iterator[Input]:
    """Yield the inputs of ``asked`` one by one, and append each to ``received`` when it is yielded."""
    for each in asked:
        received.append(each)
        yield each


class Outcome(Struct):
    """Result of a call of `Engine.feed` for its driver: replies and mails to send, and when to call again.

    ``again``: True: call at once, because a pass or a retry is due. ``wake_at``: call at that instant at the
    latest; None: only for new inputs. ``pending``: True: applied events are not committed yet, as no caller
    waits: call `Engine.flush` soon unless more inputs come. ``replies``: each with the handle of its command.
    ``happened``: the events that this call has committed.
    """

    replies: list[tuple[Any, Reply]] = []
    notices: list[Notify] = []
    again: bool = False
    wake_at: Instant | None = None
    pending: bool = False
    happened: Sequence[ev.Recorded] = ()
