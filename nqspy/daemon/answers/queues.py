"""qstat's views of queues, complexes and limits, and the counts they show."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nqspy.report import tables

if TYPE_CHECKING:
    from nqspy.daemon.main import Daemon


def counts(daemon: "Daemon") -> dict[str, dict[str, int]]:
    """How many requests each queue holds, by state word."""
    found: dict[str, dict[str, int]] = {name: {} for name in daemon.engine.site.settings.queues}
    tally = Counter((r.queue, r.state.value) for r in daemon.engine.site.requests.values())
    for (queue, state), number in tally.items():
        found.setdefault(queue, {})[state] = number
    return found


def _summary(render: Callable[..., str]) -> Callable[["Daemon", dict[str, Any]], str]:
    def answer(daemon: "Daemon", message: dict[str, Any]) -> str:
        site = daemon.engine.site
        return render(site, counts(daemon))

    return answer


FORMS: dict[str, Callable[["Daemon", dict[str, Any]], str]] = {
    "queues": _summary(tables.nqs_batch_summary),
    "pipes": _summary(tables.pipe_summary),
    "complexes": _summary(tables.complexes),
    "limits": _summary(tables.limits),
    "mpp": _summary(tables.mpp),
    "posix_queues": _summary(tables.queues_posix),
}
"""Forms of ``qstat`` that are about queues."""
