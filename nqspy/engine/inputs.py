"""Inputs of the engine, and what a call leaves for its driver."""

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
    """A command with the caller's identity; the reply comes back with ``handle`` (None: no caller waits)."""

    command: cm.Command
    caller: Caller
    handle: Any = None


class Decision(Struct, frozen=True):
    """A plan that a decider in another process sent; None: there will be none, it is to be asked again."""

    plan: Plan | None


class Between(Struct, frozen=True):
    """Knowledge of an engine between two passes beside its site: whether one is due or under way; when the
    last one asked for another look (``woken``: the last such instant seen to) and whether it had too few PEs
    (`Plan`); use of running attempts; ``moved``: how far (ms) the clock was set while attempts ran."""

    due: bool = True
    wake_at: Instant | None = None
    woken: Instant | None = None
    short_of_pes: bool = False
    samples: tuple[tuple[Seq, Used], ...] = ()
    moved: tuple[tuple[Seq, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """Events of a journal: they happen again, as they did, with all that follows. A person or exit that was
    asked then is not asked again, and nothing is refused."""

    events: tuple[ev.Event, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """Use of many running attempts so far, by request with the number of the attempt."""

    uses: Mapping[Seq, tuple[int, Used]]


class PassDue(Struct, frozen=True):
    """A pass is asked for now, for drivers that say when (`Engine.by_hand`)."""


Input = CommandAsked | Decision | Observation | SiteObservation | Observed | Use | PassDue


def noted(asked: Iterable[Input], received: list[Input]) -> Iterator[Input]:
    """Yield what is asked, and note each as it is taken."""
    for each in asked:
        received.append(each)
        yield each


class Outcome(Struct):
    """Result of a call of `Engine.feed` for its driver: replies to send, notices to give, and when to
    call again.

    ``again``: at once (a pass is due); ``wake_at``: at that instant at the latest; ``pending``: events that
    no caller waits for are applied and not yet committed, call `Engine.flush` soon unless more comes in;
    ``happened``: what was committed.
    """

    replies: list[tuple[Any, Reply]] = []
    notices: list[Notify] = []
    again: bool = False
    wake_at: Instant | None = None
    pending: bool = False
    happened: Sequence[ev.Recorded] = ()
