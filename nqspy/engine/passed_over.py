"""Why requests wait that a later one of their own list is started before: journaled with the pass, so that
the night report can tell whether a list's order was kept (semantics.md 1)."""

from bisect import bisect
from collections import defaultdict
from itertools import accumulate

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
_List = tuple[str, str]
_Place = tuple[Instant, Seq]


def passed_over(site: Site, plan: Plan) -> tuple[Kept, ...]:
    """The requests of the lists (queue and group) that a plan starts something of, which stand before what
    it starts; to be asked before the plan is carried out."""
    latest: dict[_List, Request] = {}
    for seq in plan.starts:
        request = site.requests.get(seq)
        if request is not None and request.slot >= 0:
            latest[_list(request)] = max(latest.get(_list(request), request), request, key=_place)
    starts = set(plan.starts)
    seqs = [seq for last in latest.values() for seq in _earlier(site, last) if seq not in starts]
    if not seqs:
        return ()
    found = explain(site, seqs[:MOST], plan.reasons)
    given = _Given(site, plan)
    return tuple((seq, *_in_its_turn(given, site.requests[seq], why)) for seq, why in found.items())


def _in_its_turn(given: "_Given", request: Request, why: Reason) -> tuple[str, str, str]:
    """What kept a request back when its turn came: too few PEs, where the limit that keeps it back after the
    pass was reached by those that are started past it."""
    if why.code is ReasonCode.LIMIT and request.spec.ask.pes > (room := given.room_for(request)):
        text = f"it asks for {request.spec.ask.pes} PEs, {room} could be given"
        return ReasonCode.NO_PES.value, why.who, text
    return why.code.value, why.who, why.text


class _Given:
    """The PEs that a plan gives away, added up once for all that it passes over."""

    def __init__(self, site: Site, plan: Plan) -> None:
        self.site = site
        self.left: dict[str, tuple[int, int]] = {}
        self.lists: dict[_List, list[_Place]] = defaultdict(list)
        sizes: dict[_List, list[int]] = defaultdict(list)
        started = (site.requests[seq] for seq in plan.starts if seq in site.requests)
        for request in sorted(started, key=_place):
            self.lists[_list(request)].append(_place(request))
            sizes[_list(request)].append(request.spec.ask.pes)
        self.sums = {key: list(accumulate(each, initial=0)) for key, each in sizes.items()}

    def room_for(self, request: Request) -> int:
        """PEs that a request could be given beside what is started before it: all but those of its list
        behind it."""
        name = self.site.domain_of(request.queue).name
        if name not in self.left:
            self.left[name] = self._left(name)
        room, left = self.left[name]
        return min(room, max(0, left + self._behind(request)))

    def _left(self, name: str) -> tuple[int, int]:
        """What one request could be given in a domain before the plan, and what it leaves free."""
        board = self.site.board(name)
        given = sum(sums[-1] for key, sums in self.sums.items() if self.site.domain_of(key[0]).name == name)
        return POLICIES[board.domain.placement].room(board), board.free - given

    def _behind(self, request: Request) -> int:
        """What those of its list that stand behind it are given."""
        places, sums = self.lists.get(_list(request), []), self.sums.get(_list(request), [0])
        return sums[-1] - sums[bisect(places, _place(request))]


def _list(request: Request) -> _List:
    return request.queue, request.group


def _place(request: Request) -> _Place:
    return request.date_in_queue, request.seq


def _earlier(site: Site, last: Request) -> list[Seq]:
    """Queued requests of the same list that stand before one, a bounded number of them."""
    columns, group = site.columns(last.queue), site.numbers.groups.known(last.group)
    date, seq = columns.date, columns.seq
    before = (date < last.date_in_queue) | ((date == last.date_in_queue) & (seq < last.seq))
    found: list[Seq] = seq[before & (columns.group == group)][: 2 * MOST].tolist()
    return found
