"""Why requests wait that a later one of their own list is started before: journaled with the pass, so that
the night report can tell whether a list's order was kept (semantics.md 1)."""

from nqspy.core.passes import explain
from nqspy.core.placement import POLICIES
from nqspy.model.actions import Plan
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request
from nqspy.model.site import Site

MOST = 1_000
"""Reasons journaled with one pass at most."""

Kept = tuple[Seq, str, str, str]
"""A request with what keeps it back: code, who, text."""


def passed_over(site: Site, plan: Plan) -> tuple[Kept, ...]:
    """The requests of the lists (queue and group) that a plan starts something of, which stand before what
    it starts; to be asked before the plan is carried out."""
    latest: dict[tuple[str, str], Request] = {}
    for seq in plan.starts:
        request = site.requests.get(seq)
        if request is not None and request.slot >= 0:
            key = (request.queue, request.group)
            latest[key] = max(latest.get(key, request), request, key=_place)
    starts = set(plan.starts)
    seqs = [seq for last in latest.values() for seq in _earlier(site, last) if seq not in starts]
    if not seqs:
        return ()
    found = explain(site, seqs[:MOST], plan.reasons)
    return tuple((seq, *_in_its_turn(site, plan, site.requests[seq], why)) for seq, why in found.items())


def _in_its_turn(site: Site, plan: Plan, request: Request, why: Reason) -> tuple[str, str, str]:
    """What kept a request back when its turn came: too few PEs, where the limit that keeps it back after the
    pass was reached by those that are started past it."""
    if why.code is ReasonCode.LIMIT and request.spec.ask.pes > (room := _room(site, plan, request)):
        text = f"it asks for {request.spec.ask.pes} PEs, {room} could be given"
        return ReasonCode.NO_PES.value, why.who, text
    return why.code.value, why.who, why.text


def _room(site: Site, plan: Plan, request: Request) -> int:
    """PEs that a request could be given beside what is started before it: all but those of its list behind
    it."""
    board = site.board(site.domain_of(request.queue).name)
    started = [site.requests[seq] for seq in plan.starts if seq in site.requests]
    taken = sum(
        each.spec.ask.pes
        for each in started
        if site.domain_of(each.queue).name == board.domain.name
        and ((each.queue, each.group) != (request.queue, request.group) or _place(each) < _place(request))
    )
    return min(POLICIES[board.domain.placement].room(board), max(0, board.free - taken))


def _place(request: Request) -> tuple[Instant, Seq]:
    return request.date_in_queue, request.seq


def _earlier(site: Site, last: Request) -> list[Seq]:
    """Queued requests of the same list that stand before one, a bounded number of them."""
    columns, group = site.columns(last.queue), site.numbers.groups.known(last.group)
    date, seq = columns.date, columns.seq
    before = (date < last.date_in_queue) | ((date == last.date_in_queue) & (seq < last.seq))
    found: list[Seq] = seq[before & (columns.group == group)][: 2 * MOST].tolist()
    return found
