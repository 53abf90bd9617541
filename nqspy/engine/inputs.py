"""Inputs of the engine, and the result of a call for its driver."""

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
    """A command with its caller's identity. The reply comes back with ``handle`` (None: no caller waits)."""

    command: cm.Command
    caller: Caller
    handle: Any = None


class Decision(Struct, frozen=True):
    """A plan sent by a decider in another process; None: there is none, and it must be asked again."""

    plan: Plan | None


class Between(Struct, frozen=True):
    """State of an engine between two passes beside its site. ``due``: a pass is due or under way.
    ``wake_at``: when the last plan wants a pass; ``woken``: the last such instant that was handled.
    ``short_of_pes``: as in `Plan`. ``samples``: use of running attempts. ``moved``: how far (ms) the clock
    was set while attempts ran."""

    due: bool = True
    wake_at: Instant | None = None
    woken: Instant | None = None
    short_of_pes: bool = False
    samples: tuple[tuple[Seq, Used], ...] = ()
    moved: tuple[tuple[Seq, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """Recorded events, which happen again with all that follows. No person or exit is asked again, and
    nothing is refused."""

    events: tuple[ev.Event, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """Use of many running attempts so far, by request, with the number of the attempt."""

    uses: Mapping[Seq, tuple[int, Used]]


class PassDue(Struct, frozen=True):
    """Order to run a pass now, for drivers that determine when (`Engine.by_hand`)."""


Input = CommandAsked | Decision | Observation | SiteObservation | Observed | Use | PassDue


def noted(asked: Iterable[Input], received: list[Input]) -> Iterator[Input]:
    """Yield inputs, and append each to ``received`` when it is yielded."""
    for each in asked:
        received.append(each)
        yield each


class Outcome(Struct):
    """Result of a call of `Engine.feed` for its driver: replies and notices to send, and when to call again.

    ``again``: at once (a pass is due). ``wake_at``: at that instant at the latest. ``pending``: applied
    events for which no caller waits are not committed yet: call `Engine.flush` soon unless more inputs come.
    ``happened``: what was committed.
    """

    replies: list[tuple[Any, Reply]] = []
    notices: list[Notify] = []
    again: bool = False
    wake_at: Instant | None = None
    pending: bool = False
    happened: Sequence[ev.Recorded] = ()
