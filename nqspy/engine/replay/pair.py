"""A night and its other course, side by side: so it can be said of each start that moved why it could not be
when it is in the other one."""

from collections.abc import Callable
from dataclasses import dataclass, field

from nqspy.engine.explain import reasons_of
from nqspy.engine.replay.course import OtherCourse
from nqspy.engine.replay.follow import Follower
from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason

MOST = 1_000
"""Starts of which it is asked why they moved."""


@dataclass(slots=True)
class Moves:
    """Why requests waited in one course when they were started in the other: ``kept`` in the other course
    when they had been started in the night, ``kept_then`` in the night when they are started in the other."""

    kept: dict[Seq, Reason] = field(default_factory=dict)
    kept_then: dict[Seq, Reason] = field(default_factory=dict)


def run(was: Follower, would: OtherCourse, far: Callable[[int], None] = lambda done: None) -> Moves:
    """Lets both go to their end; ``far`` is told how many events have been gone through. Raises Refusal where
    the change cannot be made."""
    moves = Moves()
    while (at := would.next_at) is not None:
        before, together = len(would.made), would.left is None
        if together:
            was.follow(would.place)
        else:
            _follow(was, would, at, moves)
        would.step()
        far(was.place)
        if would.left is not None:
            # What the night said at this very instant counts.
            _follow(was, would, Instant((would.left if together else at) + 1), moves)
            for recorded in would.made[before:]:
                if isinstance(recorded.event, ev.Starting):
                    _ask(was, recorded.event, moves.kept_then)
    _follow(was, would, None, moves)
    return moves


def _follow(was: Follower, would: OtherCourse, at: Instant | None, moves: Moves) -> None:
    """The night goes on to an instant, None: to its end."""
    while was.place < len(was.events) and (at is None or was.events[was.place].at < at):
        before = was.place
        was.step()
        for recorded in was.events[before : was.place]:
            if isinstance(recorded.event, ev.Starting) and would.left is not None:
                _ask(would, recorded.event, moves.kept)


def _ask(other: Follower, event: ev.Starting, kept: dict[Seq, Reason]) -> None:
    """Why a request that is started here does not start there."""
    there = other.site.to_be(event.seq)
    if there is None or there.attempt is not None or event.seq in kept or len(kept) == MOST:
        return
    reason = reasons_of(other.engine, (event.seq,)).get(event.seq)
    if reason is not None:
        kept[event.seq] = reason
