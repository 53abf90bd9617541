"""Looks ahead under other settings: by the worker where exits run there, else on a copy of the site, in the
thread of whoever waits. The engine is not kept waiting but for the copy."""

from collections.abc import Callable, Mapping

from nqspy.core.no_exits import NoExits
from nqspy.decider import messages
from nqspy.decider.client import SILENT, DeciderClient
from nqspy.decider.orders import answer_within
from nqspy.decider.worker import LOOK_AHEAD, part_of
from nqspy.engine.inputs import Between
from nqspy.engine.look_ahead import LookAhead
from nqspy.model.errors import Refusal
from nqspy.model.events import Change
from nqspy.model.ids import Instant, Seq

PATIENCE = 5.0
"""Real seconds that a look ahead may take in the worker, with what it does before."""

Starts = Mapping[Seq, Instant]


def starts(
    client: DeciderClient, now: Instant, between: Between, changes: tuple[Change, ...]
) -> Callable[[float], tuple[Starts, Starts]]:
    """Return when the waiting requests would probably start, as it is and after these changes. What it gives
    raises Refusal where nothing can be said."""
    if not client.needed:
        looks = [LookAhead(client.site, now, between, changes=each) for each in ((), changes)]

        def look(seconds: float) -> tuple[Starts, Starts]:
            before, then = (each.starts(NoExits(), part_of(LOOK_AHEAD)) for each in looks)
            return before, then

        return look
    answer = client.start_query(messages.AskStarts(0, 0, now, between, changes))
    silent = messages.StartsMade(0, {}, {})

    def wait(seconds: float) -> tuple[Starts, Starts]:
        found = answer_within(answer, silent, seconds)
        if found is silent:
            raise Refusal("no_estimate", said=SILENT)
        return _instants(found.before), _instants(found.then)

    return wait


def _instants(starts: Mapping[int, int]) -> Starts:
    return {seq: Instant(at) for seq, at in starts.items()}
