"""Plans from the worker: built from its message action by action, and checked, since it is not trusted."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TypeGuard, TypeVar

import msgspec
from msgspec.structs import replace

from nqspy.core.alike import is_sound
from nqspy.decider.messages import BadWorkerMessage, Listing, PlanMade, Samples, packed
from nqspy.model.actions import (
    Action,
    ExitFailure,
    Hold,
    Migrate,
    Move,
    Plan,
    Redate,
    Requeue,
    Reserving,
    Resume,
    Start,
    Suspend,
)
from nqspy.model.facts import Promise
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reach, Reason, Reasons, are_sound
from nqspy.userexit.answers import LATEST

K = TypeVar("K")
_PROPOSED = (Start, Suspend, Resume, Migrate, Requeue, Redate, Reserving, Hold, Move, Promise)
"""Actions that a pass may propose; the worker can cause no others."""
_ACTIONS = {kind.__name__: msgspec.msgpack.Decoder(kind) for kind in _PROPOSED}


def plan_made(id: int, plan: Plan, listing: Listing, stamp: int = 0, state: bytes = b"") -> PlanMade:
    """Return the message with which a worker answers order ``id`` by a plan; others: as in `PlanMade`."""
    actions = [(type(action).__name__, packed(action)) for action in plan.actions]
    return PlanMade(
        id, actions, dict(plan.reasons.own), dict(plan.reasons.closing),
        plan.wake_at, plan.short_of_pes, plan.failures, listing, plan.ready, plan.reasons.reach, stamp, state,
    )  # fmt: skip


def plan_of(answer: PlanMade, as_of: int, samples: Samples, exits: Collection[str]) -> Plan:
    """Return the plan in a worker's message; ``as_of`` and ``samples`` are the daemon's own, and failures of
    exits that are not in ``exits`` are left out. Raises BadWorkerMessage."""
    return Plan(
        actions=tuple(_action(kind, fields) for kind, fields in answer.actions),
        reasons=Reasons(_in_time(answer.own), _in_time(answer.closing), tuple(_known(answer.reach))),
        wake_at=Instant(answer.wake_at) if _is_moment(answer.wake_at) else None,
        as_of=as_of,
        short_of_pes=answer.short,
        samples=samples,
        failures=known_failures(answer.failures, exits),
        ready=answer.ready,
    )


def _is_moment(at: int | None) -> TypeGuard[int]:
    return at is not None and 0 <= at <= LATEST


def _in_time(reasons: dict[K, Reason]) -> dict[K, Reason]:
    """Return the reasons, without ``until`` where it is too late for a date. Raises BadWorkerMessage."""
    _check(reasons.values())
    bad = [key for key, each in reasons.items() if each.until is not None and not _is_moment(each.until)]
    return reasons | {key: replace(reasons[key], until=None) for key in bad} if bad else reasons


def _check(reasons: Iterable[Reason]) -> None:
    if not are_sound(reasons):
        raise BadWorkerMessage("its plan holds a reason that says nothing")


def _known(reach: Sequence[Reach]) -> Iterator[Reach]:
    """Yield the entries with fields that exist, without ``until`` if too late. Raises BadWorkerMessage."""
    _check(each.reason for each in reach)
    for each in reach:
        if is_sound(each):
            timeless = _is_moment(each.reason.until) or each.reason.until is None
            yield each if timeless else replace(each, reason=replace(each.reason, until=None))


def known_failures(failures: Sequence[ExitFailure], exits: Collection[str]) -> tuple[ExitFailure, ...]:
    """Return the failures without those of exits that are not in ``exits``, the loaded ones."""
    return tuple(failure for failure in failures if failure.exit in exits)


_GREATEST = 1 << 53


def _action(kind: str, fields: msgspec.Raw) -> Action:
    if kind not in _ACTIONS:
        raise BadWorkerMessage(f"its plan holds {kind!r}, which is not an action of a pass")
    try:
        action: Action = _ACTIONS[kind].decode(fields)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadWorkerMessage(f"its plan holds a {kind} that is none: {error}") from None
    numbers = [value for value in asdict(action).values() if isinstance(value, int)]
    if any(abs(number) > _GREATEST for number in numbers):
        raise BadWorkerMessage(f"its plan holds a {kind} with a number out of all bounds")
    return action
