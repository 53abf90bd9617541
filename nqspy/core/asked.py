"""What one request may ask for: the limits of a queue, and how many PEs there are."""

from collections.abc import Callable, Iterator

from nqspy.core.entry import misfit
from nqspy.core.placement.placements import PLACEMENTS, size_of
from nqspy.model.molded import on_size
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Ask, Spec, finite
from nqspy.model.site import Site
from nqspy.model.units import UNLIMITED, format_seconds, format_size

_ABOVE_MACHINE, _ABOVE_DOMAIN, _ABOVE_BLOCK = reason_kinds(
    ReasonCode.NEVER,
    above_machine="{pes} PEs are more than the machine's {size}",
    above_domain="{pes} PEs are more than the {size} of {who}",
    above_block="{pes} PEs are more than the {size} of the largest block of {who}",
)
_WORDS = {
    "per_request/cpu_limit": "CPU time",
    "per_process/cpu_limit": "CPU time of a process",
    "per_request/wall_limit": "wall time",
    "per_request/memory_limit": "memory",
    "per_process/memory_limit": "memory of a process",
    "per_request/process_limit": "number of processes",
}


def violation(site: Site, spec: Spec, queue: Queue) -> str | None:
    """Why a queue, or its domain, can never take this request: one line naming the limit and the greatest
    value allowed; None when it can. An explicit ``unlimited`` fits only where the queue has no such limit. It
    takes one that may run on several numbers of PEs when it takes one of them; the reason is that of the
    least."""
    if spec.mold is None:
        return excess(site, spec, queue)
    found = [excess(site, on_size(spec, pes), queue) for pes in spec.mold.sizes]
    return None if None in found else found[0]


def excess(site: Site, spec: Spec, queue: Queue) -> str | None:
    """The same of what a request asks for, whatever else would do."""
    ask = spec.ask
    for path, asked in _asked(ask):
        limit = None if asked is None else _limit_at(queue, path)
        if asked is not None and limit is not None and (asked == UNLIMITED or asked > limit):
            show = _shower(path)
            words = _WORDS.get(path) or path.rpartition("/")[2].removesuffix("_limit").replace("_", " ")
            wanted = "unlimited" if asked == UNLIMITED else show(asked)
            return f"{queue.name}: {words} {wanted} is above the limit of {show(limit)}"
    if queue.per_request.pe_limit is not None and ask.pes > queue.per_request.pe_limit:
        return f"{queue.name}: {ask.pes} PEs are above the limit of {queue.per_request.pe_limit}"
    if (wrong := misfit(site.domain_of(queue.name), spec)) is not None:
        return f"{queue.name}: {wrong}"
    wide = too_wide(site, queue.name, ask.pes)
    return None if wide is None else wide.text


def too_wide(site: Site, queue: str | None, pes: int) -> Reason | None:
    """Why a request of that many PEs can never start in a queue's domain (None: in none at all); None when it
    can."""
    size = site.pes() if queue is None else size_of(site, queue)
    if pes <= size:
        return None
    if queue is None or not site.is_divided():
        return _ABOVE_MACHINE("machine", pes, site.pes())
    domain = site.domain_of(queue)
    kind = _ABOVE_BLOCK if PLACEMENTS[domain.placement].in_a_row else _ABOVE_DOMAIN
    return kind(f"domain {domain.name}", pes, size)


def _asked(ask: Ask) -> Iterator[tuple[str, int | None]]:
    """What is asked for, by the path of the limit; where only a process has a limit it counts for all."""
    yield from ask.limits().items()
    if ask.cpu is None:
        yield "per_request/cpu_limit", ask.cpu_process
    if ask.memory is None:
        yield "per_request/memory_limit", ask.memory_process
    yield from ask.others


def _limit_at(queue: Queue, path: str) -> int | None:
    branch, _, name = path.partition("/")
    found: int | None = getattr(getattr(queue, branch, None), name, None)
    return finite(found)


def _shower(path: str) -> Callable[[int], str]:
    if path.endswith(("cpu_limit", "wall_limit", "cpu_warning")):
        return format_seconds
    return str if path.endswith(("pe_limit", "process_limit")) else format_size
