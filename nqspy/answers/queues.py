"""qstat's views of queues, complexes and limits, and the counts they show."""

from collections import Counter
from collections.abc import Callable, Mapping

from nqspy.answers.serving import Serving
from nqspy.model.requests import State
from nqspy.model.site import Site
from nqspy.report import summaries


def counts(serving: Serving) -> dict[str, dict[str, int]]:
    """Count the requests of each queue, by state word."""
    found: dict[str, dict[str, int]] = {name: {} for name in serving.engine.site.settings.queues}
    for (queue, state), number in _tally(serving.engine.site).items():
        found.setdefault(queue, {})[state.value] = number
    return found


def _tally(site: Site) -> Counter[tuple[str, State]]:
    """Count requests by queue and state; those that are queued are not walked one by one."""
    tally = Counter((r.queue, r.state) for r in [r for r in site.requests.values() if r.slot < 0])
    for queue, columns in site.waiting.items():
        if columns:
            tally[queue, State.QUEUED] = len(columns)
    return tally


Summary = Callable[[Site, Mapping[str, Mapping[str, int]]], str]

FORMS: dict[str, Summary] = {
    "queues": summaries.nqs_batch_summary, "pipes": summaries.pipe_summary,
    "complexes": summaries.complexes, "limits": summaries.limits, "mpp": summaries.mpp,
}  # fmt: skip
"""NQS's forms of ``qstat`` that are about queues."""


def by_state(site: Site) -> dict[str, int]:
    """Count requests by state word."""
    tally = Counter[str]()
    for (_, state), number in _tally(site).items():
        tally[state.value] += number
    return tally


def state_of(serving: Serving) -> str:
    """The state of this server in PBS's words."""
    return "Terminating" if serving.engine.resting else "Active"


def server_text(serving: Serving) -> str:
    """``qstat -B``: the server in one row."""
    site = serving.engine.site
    row = (site.name, site.settings.global_.run_limit, len(site.requests), state_of(serving))
    return summaries.server_posix(*row, by_state(site))
