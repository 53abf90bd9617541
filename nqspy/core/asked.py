"""The requests that a queue and its domain take: limits for one request, PEs, and the rules of the domain
(size, user, Unix group, account, batch or interactive). They apply where a request enters a queue; one that
is in it already stays there when these settings change."""

from collections.abc import Callable, Collection, Iterator

from nqspy.core.placement.placements import PLACEMENTS, size_of
from nqspy.model.domains import Domain
from nqspy.model.people import lets_in
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Ask, Spec, finite
from nqspy.model.site import Site
from nqspy.model.specs import on_size
from nqspy.model.units import UNLIMITED, format_exact, format_size

_ABOVE_MACHINE, _ABOVE_DOMAIN, _ABOVE_BLOCK = reason_kinds(
    ReasonCode.NEVER,
    above_machine="needs {pes:1 PE|* PEs}, the machine has {size}",
    above_domain="needs {pes:1 PE|* PEs}, {who} has {size}",
    above_block="needs {pes:1 PE|* PEs} in one block, the largest block of {who} has {size}",
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
    """Return why a queue, or its domain, can never take this request, in a line; None: it can. An amount
    asked for as ``unlimited`` fits only if the queue does not limit it. A moldable request fits if one of its
    sizes does; the reason is that of the smallest."""
    if spec.mold is None:
        return excess(site, spec, queue)
    reasons = [excess(site, on_size(spec, pes), queue) for pes in spec.mold.sizes]
    return None if None in reasons else reasons[0]


def excess(site: Site, spec: Spec, queue: Queue) -> str | None:
    """Return why a queue, or its domain, can never take a request of this size, in one line; None: it can.
    Other sizes of a moldable request are not tried."""
    ask = spec.ask
    for path, asked in _asked(ask):
        branch, _, name = path.partition("/")
        limit = None if asked is None else finite(getattr(getattr(queue, branch, None), name, None))
        if asked is not None and limit is not None and (asked == UNLIMITED or asked > limit):
            show: Callable[[int], str] = str if path.endswith(("pe_limit", "process_limit")) else format_size
            if path.endswith(("cpu_limit", "wall_limit", "cpu_warning")):
                show = format_exact
            words = _WORDS.get(path) or name.removesuffix("_limit").replace("_", " ")
            wanted = "unlimited" if asked == UNLIMITED else show(asked)
            return f"{queue.name}: {words} {wanted} is above the limit of {show(limit)}"
    if queue.per_request.pe_limit is not None and ask.pes > queue.per_request.pe_limit:
        return f"{queue.name}: {ask.pes} PEs are above the limit of {queue.per_request.pe_limit}"
    if (wrong := misfit(site.domain_of(queue.name), spec)) is not None:
        return f"{queue.name}: {wrong}"
    wide = too_wide(site, queue.name, ask.pes)
    return None if wide is None else wide.text


def too_wide(site: Site, queue: str | None, pes: int) -> Reason | None:
    """Return why a request of ``pes`` PEs can never start in a queue's domain (``queue`` None: on the
    machine); None: it can."""
    size = site.pes() if queue is None else size_of(site, queue)
    if pes <= size:
        return None
    if queue is None or not site.is_divided():
        return _ABOVE_MACHINE("machine", pes, site.pes())
    domain = site.domain_of(queue)
    kind = _ABOVE_BLOCK if PLACEMENTS[domain.placement].in_a_row else _ABOVE_DOMAIN
    return kind(f"domain {domain.name}", pes, size)


def _asked(ask: Ask) -> Iterator[tuple[str, int | None]]:
    """Yield the path of each limit of a queue with the amount that a request asks for under it (None: it asks
    for none). A limit given only for a process counts as one for the request."""
    yield from ask.limits().items()
    if ask.cpu is None:
        yield "per_request/cpu_limit", ask.cpu_process
    if ask.memory is None:
        yield "per_request/memory_limit", ask.memory_process
    yield from ask.others


# ---------------------------------------------------------------- domains


def turned_away(domain: Domain, owner: str, groups: Collection[str]) -> str | None:
    """Return, in a line, why a domain's lists of users and Unix groups exclude a user; None: they do not."""
    if lets_in(domain.users, domain.groups, owner, groups):
        return None
    return f"domain {domain.name} takes no requests of {owner}: {'; '.join(_people(domain))}"


def misfit(domain: Domain, spec: Spec) -> str | None:
    """Return why a domain does not take a request by its size, account or kind (batch, interactive), in a
    line; None: it takes it. `turned_away` has the rules about its owner."""
    if not domain.smallest <= spec.ask.pes <= (domain.largest or spec.ask.pes):
        return f"domain {domain.name} takes {_sizes(domain)}, not of {spec.ask.pes}"
    if domain.accounts and not {spec.group, spec.account} & {*domain.accounts}:
        asked = spec.account or spec.group
        return f"domain {domain.name} takes requests of accounts {', '.join(domain.accounts)}, not of {asked}"
    # A person waits at a terminal for a session of `qsub -I`, or an application begun outside of requests.
    at_terminal = "interactive:true" in spec.attributes or (spec.caller is not None and not spec.within)
    kind = "interactive" if at_terminal else "batch"
    if domain.takes not in ("all", kind):
        this = "an interactive" if at_terminal else "a batch"
        return f"domain {domain.name} takes {domain.takes} requests, this is {this} one"
    return None


def rules(domain: Domain) -> str:
    """Return the rules of a domain in words: ``batch requests of 16 to 256 PEs; users anne, ben``."""
    kind = "" if domain.takes == "all" else f"{domain.takes} "
    bounded = domain.smallest > 1 or domain.largest is not None
    parts = [f"{kind}{_sizes(domain) if bounded else 'requests'}", *_people(domain)]
    if domain.accounts:
        parts.append(f"accounts {', '.join(domain.accounts)}")
    return "; ".join(parts) if kind or bounded or len(parts) > 1 else "all requests"


def _sizes(domain: Domain) -> str:
    least, most = domain.smallest, domain.largest
    if most is None:
        return f"requests of {least} PEs and more"
    return f"requests of {f'{least} to ' if least < most else ''}{most} PE{'s' if most > 1 else ''}"


def _people(domain: Domain) -> Iterator[str]:
    for word, named in (("users", domain.users), ("Unix groups", domain.groups)):
        if named:
            yield f"{word} {', '.join(named)}"
