"""Who was looked at in a pass and not started, which queues were closed, and why: put into words at the end,
as it stands after all that the pass proposed."""

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from nqspy.core.draft import Draft
from nqspy.core.queueing import words
from nqspy.core.queueing.candidate_order import NOW
from nqspy.core.queueing.limits import RunningCounts, too_wide
from nqspy.core.queueing.offers import Offers
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import Request


class _Kept(Struct, frozen=True):
    """A request that was looked at and not started, and how much the pass had proposed then; ``narrow``: only
    for want of PEs."""

    request: Request
    forced: bool
    narrow: bool
    proposals: int


class Closed(Struct, frozen=True):
    """Why a queue was closed, and how many that wait were ahead; ``of``: the request whose reason it is,
    ``barring``: which lets nobody pass by the queue's rule."""

    queue: Queue
    reason: Reason
    ahead: int
    of: Request | None
    barring: bool


class KeptBack:
    """``closed``: queues of which nothing more starts, by name; ``assumed``: domains in which one is taken to
    wait only for a PE; ``freed``: somebody could start now by what the pass itself proposed."""

    def __init__(self, draft: Draft, tally: RunningCounts, offers: Offers) -> None:
        self._draft, self._tally, self._offers = draft, tally, offers
        self._kept: list[_Kept] = []
        self.closed: dict[str, Closed] = {}
        self.assumed: set[str] = set()
        self.freed = False

    def limited(self, request: Request, forced: bool) -> Reason | None:
        """The limit that keeps one back; whoever shall start at once lacks units at most."""
        now = request.rank == NOW
        return self._tally.lacking(request) if now else self._tally.keeping(request, forced)

    def keeping(self, request: Request) -> Reason | None:
        """What keeps back one that is not forced: a limit, a want of PEs, what is kept for others. One that
        may run on several numbers of PEs is kept back as it was, until a pass looks at all of them again."""
        if request.spec.mold is not None and (own := self._draft.own.get(request.seq)) is not None:
            return own
        kept = self.limited(request, False)
        if kept is None and request.spec.ask.pes > self._draft.room(request.queue):
            self._draft.say_short(request.queue)
            kept = words.too_few(self._draft, request)
        return kept or self._tally.reservations.delaying(request)

    def keep(self, request: Request, reason: Reason, forced: bool = False, narrow: bool = False) -> None:
        """It does not start, for this reason."""
        self._draft.own[request.seq] = reason
        self._kept.append(_Kept(request, forced, narrow, self._draft.proposals))

    def of(self, queue: str) -> list[Request]:
        """Those of a queue who were looked at and wait still."""
        gone = set(self._draft.gone(queue))
        found = {each.request.seq: each.request for each in self._kept if each.request.queue == queue}
        return [request for request in found.values() if request.slot not in gone]

    def forget(self, requests: Collection[Request]) -> None:
        """They are to be looked at again."""
        seqs = {request.seq for request in requests}
        self._kept = [each for each in self._kept if each.request.seq not in seqs]
        for seq in seqs:
            self._draft.own.pop(seq, None)

    def refuse_what_never_fits(self, queue: Queue) -> None:
        """Says of those who ask for more PEs than their queue's domain has that they can never start."""
        site = self._draft.site
        columns = site.waiting[queue.name]
        if columns.most("pes") > (size := site.size(queue.name)):
            wide = (columns.pes > size).nonzero()[0][: site.settings.global_.offers_per_pass]
            for row in wide.tolist():
                request = columns.request(row)
                never = too_wide(site, queue.name, request.spec.ask.pes)
                if never is not None:
                    self._draft.own[request.seq] = never

    def close(
        self, queue: Queue, reason: Reason, ahead: int = 0, of: Request | None = None, barring: bool = False
    ) -> None:
        """Nothing more of a queue starts."""
        self.closed[queue.name] = Closed(queue, reason, ahead, of, barring)

    def held_by(self, queue: Queue, request: Request, own: Reason) -> Reason:
        """The reason of a queue whose line one has closed."""
        return words.LINE_CLOSED(own.who, self._draft.site.id_of(request.seq), queue.name, own.text)

    def put_into_words(self) -> None:
        """The reasons, after all that the pass proposed."""
        draft = self._draft
        draft.short = set(self.assumed)
        for each in self._kept:
            if self._is_narrow_still(each):
                self._draft.say_short(each.request.queue)
        for request in self._offers.ask_again() if self._offers.asking else ():
            self._let_pass(request)
        draft.reach += [reach for reach in self._offers.reach if reach is not None]
        for name, closed in self.closed.items():
            reason = self._closing(closed)
            draft.closing[name] = (
                reason if reason.ahead == closed.ahead else replace(reason, ahead=closed.ahead)
            )

    def _is_narrow_still(self, each: _Kept) -> bool:
        """Whether one waits only for PEs: a start after it was looked at may have used up a limit."""
        draft, request = self._draft, each.request
        if each.proposals == draft.proposals or draft.own[request.seq].code not in _CHANGING:
            return each.narrow
        kept = self.limited(request, each.forced)
        if kept is not None:
            draft.own[request.seq] = kept
        elif each.narrow or draft.own[request.seq].code is ReasonCode.NO_PES:
            draft.own[request.seq] = words.too_few(draft, request)
        return kept is None and each.narrow

    def _let_pass(self, request: Request) -> None:
        """What kept it back has gone by something that this pass proposed."""
        kept = self.keeping(request)
        if kept is None:
            self.freed = True
            kept = words.FREED("scheduler")
        self._draft.own[request.seq] = kept

    def _closing(self, closed: Closed) -> Reason:
        own = self._draft.own.get(closed.of.seq) if closed.of is not None else None
        if own is not None and closed.of is not None:
            if closed.barring and own.code is not ReasonCode.RESERVED:
                return words.IN_LINE("scheduler", self._draft.site.id_of(closed.of.seq), closed.queue.name)
            is_line = closed.reason.code is ReasonCode.LINE_CLOSED and own.code is ReasonCode.EXIT
            return self.held_by(closed.queue, closed.of, own) if is_line else own
        is_narrow = closed.reason.code is ReasonCode.NO_PES
        return words.no_pes(self._draft, closed.queue.name) if is_narrow else closed.reason


_CHANGING = (ReasonCode.LIMIT, ReasonCode.NO_PES, ReasonCode.NO_UNITS, ReasonCode.SHIFT)
"""Reasons with figures that another start changes."""
