"""Reasons of requests that wait while a later request of the same queue and group starts. The journal stores
them with the pass, so that the night report can check the order within a queue and group (semantics.md 1)."""

from collections import defaultdict, deque
from collections.abc import Iterable

from nqspy.core import Gate, empty_gate
from nqspy.core.passes import explain, of_itself
from nqspy.model.actions import Plan, Start
from nqspy.model.columns import turn_of
from nqspy.model.ids import Instant, Seq, array_of
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import Request
from nqspy.model.site import Site
from nqspy.model.specs import sized

MOST = 1_000
"""Most reasons recorded with one pass."""

Blocked = tuple[Seq, str, str, str]
"""A request with the reason why it waits: number, code, source, text."""
_CHANGED_BY_STARTS = (ReasonCode.LIMIT, ReasonCode.NO_PES)
_List = tuple[str, str]
_Place = tuple[Instant, Seq]


def passed_over(site: Site, plan: Plan) -> tuple[Blocked, ...]:
    """Return the requests that wait ahead of one of a plan's starts in the same queue and the same group,
    each with its reason; `MOST` at most."""
    latest: dict[_List, Request] = {}
    starts = dict.fromkeys(plan.starts)
    for seq in starts:
        request = _in_line(site, seq)
        if request is not None and request.slot >= 0:
            last = latest.get(_list(request))
            if last is None or _place(last) < _place(request):
                latest[_list(request)] = request
    seqs = [seq for last in latest.values() for seq in _earlier(site, last) if seq not in starts][:MOST]
    if not seqs:
        return ()
    # Their reasons. What runs is counted only if it matters to one of them.
    requests, turns = site.requests, dict[Seq, tuple[str, str, str]]()
    found = {seq: of_itself(empty_gate(site), requests[seq], plan.reasons) for seq in seqs}
    others = [seq for seq, why in found.items() if why is None]
    given = {id(why): why for why in found.values() if why is not None}  # many may share one
    changed = {key for key, why in given.items() if why.code in _CHANGED_BY_STARTS}
    unsure = {seq for seq, why in found.items() if id(why) in changed}
    if others or unsure:
        gate = Gate(site)
        more = explain(site, others, plan.reasons, gate)
        unsure.update(seq for seq, why in more.items() if why.code in _CHANGED_BY_STARTS)
        found |= more
        given |= {id(why): why for why in more.values()}
        turns = _in_their_turns(site, plan, [requests[seq] for seq in unsure], gate) if unsure else turns
    words = {key: (str(why.code), why.who, why.text) for key, why in given.items()}
    return tuple(
        [(seq, *(turns.get(seq) or words[id(why)])) for seq, why in found.items() if why is not None]
    )


def _in_their_turns(
    site: Site, plan: Plan, passed: Iterable[Request], gate: Gate
) -> dict[Seq, tuple[str, str, str]]:
    """Return code, source and text of the reason of each request in ``passed`` (too few PEs, or a limit) at
    the moment when the plan chose the first request behind it. Later reasons could name a limit that only
    those starts reached."""
    lists: dict[_List, deque[Request]] = defaultdict(deque)
    for request in sorted(passed, key=_place):
        lists[_list(request)].append(request)
    found = dict[Seq, tuple[str, str, str]]()
    for action in plan.actions:
        if not isinstance(action, Start) or (chosen := _in_line(site, action.seq)) is None:
            continue
        waiting = lists[_list(chosen)]
        while waiting and _place(waiting[0]) < _place(chosen):
            one = waiting.popleft()
            reason = gate.room.refuses(one) or gate.limit(one)
            if reason is not None:
                found[one.seq] = reason.code.value, reason.who, reason.text
        gate.count(sized(site.to_be(action.seq) or chosen, len(action.pes)))
        gate.room.hold(chosen.queue, action.pes)
    return found


def _in_line(site: Site, seq: Seq) -> Request | None:
    """Return the request with this number; its array, if it is an index not yet begun; None: it has ended."""
    return site.requests.get(seq) or site.requests.get(array_of(seq) or 0)


def _list(request: Request) -> _List:
    return request.queue, request.spec.group


def _place(request: Request) -> _Place:
    return request.date_in_queue, turn_of(request)


def _earlier(site: Site, last: Request) -> list[Seq]:
    """Return the queued requests ahead of ``last`` in its queue and group, in order; 2 * `MOST` at most."""
    columns, group = site.columns(last.queue), site.numbers.groups.known(last.spec.group)
    date, turn = columns.date, columns.turn
    # Dates are whole numbers: of those with a smaller turn an equal date is early enough, too.
    before = date < last.date_in_queue + (turn < turn_of(last))
    [rows] = (before & (columns.group == group)).nonzero()
    if not rows.size:
        return []
    places = sorted(zip(date[rows].tolist(), turn[rows].tolist(), columns.seq[rows].tolist(), strict=True))
    return [seq for _, _, seq in places[: 2 * MOST]]
