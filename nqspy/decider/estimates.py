"""Looks ahead for people who ask: by the worker where exits run there, without keeping the engine waiting."""

from collections.abc import Callable, Mapping

from nqspy.core.no_exits import NoExits
from nqspy.decider import messages
from nqspy.decider.client import SILENT, DeciderClient
from nqspy.decider.orders import answer_within
from nqspy.engine import whatif
from nqspy.engine.whatif import Estimate
from nqspy.model.configure import apply_changes, copy_of
from nqspy.model.errors import Refusal
from nqspy.model.events import Change
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request

PATIENCE = 5.0
"""Real seconds that a look ahead may take in the worker."""

LateEstimate = Callable[[float], Estimate]
"""Gives the estimate; waits at most so many seconds for it. In any thread."""
Starts = Mapping[Seq, Instant]


def start(client: DeciderClient, request: Request, now: Instant) -> LateEstimate:
    """When a request that waits would start. To be called in the engine's thread."""
    if not client.needed:
        found = whatif.estimate(client.site, NoExits(), request, now)
        return lambda seconds: found
    answer = client.start_query(messages.AskStart(0, 0, now, request.seq))
    silent = messages.StartEstimated(0, None, SILENT)
    return lambda seconds: answer_within(answer, silent, seconds).read()


def outlook(
    client: DeciderClient, now: Instant, changes: tuple[Change, ...]
) -> Callable[[float], tuple[Starts, Starts]]:
    """When the waiting requests would start, as it is and after these changes. What it gives raises Refusal
    where nothing can be said."""
    if not client.needed:
        after = copy_of(client.site.settings)
        apply_changes(after, changes)
        exits = NoExits()
        starts = whatif.outlook(client.site, exits, now), whatif.outlook(client.site, exits, now, after)
        return lambda seconds: starts
    answer = client.start_query(messages.AskOutlook(0, 0, now, changes))
    silent = messages.OutlookEstimated(0, {}, {})

    def wait(seconds: float) -> tuple[Starts, Starts]:
        found = answer_within(answer, silent, seconds)
        if found is silent:
            raise Refusal("no_estimate", said=SILENT)
        return _instants(found.before), _instants(found.then)

    return wait


def _instants(starts: Mapping[int, int]) -> Starts:
    return {seq: Instant(at) for seq, at in starts.items()}
