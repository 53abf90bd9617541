"""Looks ahead for people who ask: by the child where exits run there, without keeping the engine waiting."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from nqspy.core.plain import NoExits
from nqspy.daemon.deciding import words
from nqspy.daemon.deciding.parent import SILENT, Parent
from nqspy.engine import whatif
from nqspy.engine.whatif import Estimate
from nqspy.model.configure import apply_changes, copy_of
from nqspy.model.errors import Refusal
from nqspy.model.events import Change
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request

PATIENCE = 5.0
"""Real seconds that a look ahead may take in the child."""

Foresight = Callable[[float], Estimate]
"""Gives the estimate; waits at most so many seconds for it. In any thread."""
Starts = Mapping[Seq, Instant]


def start(parent: Parent, request: Request, now: Instant) -> Foresight:
    """When a request that waits would start. To be called in the engine's thread."""
    if not parent.needed:
        found = whatif.estimate_on(parent.site, NoExits(), request, now)
        return lambda seconds: found
    future = parent.later(words.AskStart(0, 0, now, request.seq))

    def wait(seconds: float) -> Estimate:
        word = _result(future, seconds)
        if not isinstance(word, words.Begins):
            return None, SILENT
        return (None if word.at is None else Instant(word.at)), word.basis

    return wait


def outlook(
    parent: Parent, now: Instant, changes: tuple[Change, ...]
) -> Callable[[float], tuple[Starts, Starts]]:
    """When the waiting requests would start, as it is and after these changes. What it gives raises Refusal
    where nothing can be said."""
    if not parent.needed:
        after = copy_of(parent.site.settings)
        apply_changes(after, changes)
        exits = NoExits()
        starts = whatif.outlook(parent.site, exits, now), whatif.outlook(parent.site, exits, now, after)
        return lambda seconds: starts
    future = parent.later(words.AskOutlook(0, 0, now, changes))

    def wait(seconds: float) -> tuple[Starts, Starts]:
        word = _result(future, seconds)
        if not isinstance(word, words.Outlooks):
            raise Refusal(SILENT, "no_estimate")
        return _instants(word.before), _instants(word.then)

    return wait


def _result(future: "Future[Any] | None", seconds: float) -> Any:
    try:
        return future.result(seconds) if future is not None else None
    except TimeoutError:
        return None


def _instants(starts: Mapping[int, int]) -> Starts:
    return {seq: Instant(at) for seq, at in starts.items()}
