"""Reasons why candidates did not start. They are set at the end of a pass and describe the state after it."""

from msgspec.structs import replace

from nqspy.core.asked import too_wide
from nqspy.core.draft import Draft
from nqspy.core.fallback.offers import Offers
from nqspy.core.fallback.policy import Skip
from nqspy.core.gate.gate import Gate, Which
from nqspy.core.gate.rule import wider
from nqspy.core.order.candidates import Candidates
from nqspy.core.placement.placements import size_of
from nqspy.model.columns import Columns
from nqspy.model.ids import Seq
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request

(STOPPED,) = reason_kinds(ReasonCode.STOPPED, stopped="{who} is stopped")
(LINE_CLOSED,) = reason_kinds(
    ReasonCode.LINE_CLOSED, line_closed="waits behind {request}; an exit closed queue {queue} there: {text}"
)
BOUNDED, FREED = reason_kinds(
    ReasonCode.LATER,
    offers_bounded="one pass offers {most} requests to user exits (global offers_per_pass); it comes later",
    freed="nothing blocks it any more; the next pass examines it at once",
)
(IN_LINE,) = reason_kinds(
    ReasonCode.RESERVED,
    "the request in front must start",
    in_line="waits behind {request}, which no request of queue {queue} may pass (backfill=none)",
)
(_BEHIND,) = reason_kinds(
    ReasonCode.RESERVED, kept_ahead="requests ahead of it would delay the reserved start of {request}"
)
_CHANGING = (
    ReasonCode.LIMIT, ReasonCode.NO_PES, ReasonCode.NO_UNITS, ReasonCode.SHIFT, ReasonCode.RESERVED
)  # fmt: skip
"""Codes of reasons that a start of another request may change."""


class Explanation:
    """Collector of the reasons of one pass: the `Chooser` reports to it, and `finish` puts the final reasons
    into the draft. ``freed``: a refused candidate could start by now, so the next pass comes at once."""

    def __init__(self, draft: Draft, gate: Gate, offers: Offers) -> None:
        self._draft, self._gate, self._offers = draft, gate, offers
        self._blocked: dict[Seq, tuple[Request, bool, int]] = {}
        self._closed: list[tuple[Candidates, Skip]] = []
        self._by_class: list[Candidates] = []
        self._policies: dict[str, Skip] = {}
        self._holders: dict[str, tuple[Request, int]] = {}
        self._short_queues: set[str] = set()
        self.freed = False

    def say_never(self, queue: Queue, columns: Columns) -> None:
        """Set the reason of the requests of a queue that ask for more PEs than its domain has, of
        ``offers_per_pass`` at most."""
        site = self._draft.site
        rows = wider(columns, size_of(site, queue.name))
        for row in (
            () if rows is None else rows.nonzero()[0][: site.settings.global_.offers_per_pass].tolist()
        ):
            request = columns.request(row)
            if (never := too_wide(site, queue.name, request.spec.ask.pes)) is not None:
                self._draft.reasons[request.seq] = never

    def blocked(self, request: Request, reason: Reason, forced: bool) -> None:
        """Record that a candidate does not start, and why; ``forced``: it was to start past the limits."""
        self._draft.reasons[request.seq] = reason
        self._blocked[request.seq] = request, forced, self._draft.proposals
        if reason.code is ReasonCode.NO_PES:
            self._draft.say_short(request.queue)

    def hold_line(self, candidates: Candidates, request: Request) -> None:
        """Record that an exit closed a queue at this candidate, so that all behind it wait."""
        self._holders[candidates.queue.name] = request, candidates.ahead

    def close(self, candidates: Candidates, policy: Skip, shut_out: Reason | None) -> None:
        """Record the candidates and the policy of a queue with no row left to examine, for `finish`.
        ``shut_out``: why a prime request lets none of them start; None: their own reasons count."""
        self._policies |= dict.fromkeys(candidates.names, policy)
        if shut_out is not None:
            self._draft.closing |= dict.fromkeys(candidates.names, shut_out)
        elif policy.explained:
            self._closed.append((candidates, policy))
        else:
            self._by_class.append(candidates)

    # ------------------------------------------------------------ after the last start

    def finish(self) -> None:
        """Set the final reasons of the examined candidates and of the queues."""
        draft, offers = self._draft, self._offers
        waiting = {
            seq: each
            for seq, each in self._blocked.items()
            if seq in draft.reasons and each[0].slot not in draft.removed(each[0].queue)
        }
        for seq, (request, forced, proposals) in waiting.items():
            if proposals != draft.proposals and draft.reasons[seq].code in _CHANGING:
                reason = self._gate.limit(request, forced) or self._gate.room.refuses(request)
                draft.reasons[seq] = reason or draft.reasons[seq]
        self._say_short([request for request, _, _ in waiting.values()])
        for request in offers.ask_again() if offers.asking else ():
            refused = self._policies[request.queue].refuses(request, False)
            self.freed = self.freed or refused is None
            draft.reasons[request.seq] = refused or FREED("scheduler")
        draft.reach += [reach for reach in offers.reach if reach is not None]
        for candidates, policy in self._closed:
            closing = self._closing(candidates, policy)
            if closing is not None:
                draft.closing[candidates.queue.name] = closing
        for candidates in self._by_class:
            if (ended := self._line_closed(candidates) or self._bounded(candidates)) is not None:
                draft.closing = dict.fromkeys(candidates.names, ended) | draft.closing

    def _say_short(self, blocked: list[Request]) -> None:
        """Record domains in which some request lacks only PEs; ``blocked``: examined candidates that wait."""
        draft, offers = self._draft, self._offers
        queues = [candidates.queue.name for candidates, _ in self._closed]
        draft.short_domains -= {draft.board(queue).domain.name for queue in queues}
        if offers.asking:  # exits may refuse the others: only those that were offered count
            draft.short_domains |= offers.assumed
            for request in blocked:
                if draft.reasons[request.seq].code is ReasonCode.NO_PES:
                    draft.say_short(request.queue)
            return
        for candidates, _ in self._closed:
            name, columns = candidates.queue.name, candidates.columns
            waiting, limited = candidates.waiting(), self._gate.mask(name, columns, Which.LIMITS)
            if limited is not None:
                waiting &= ~limited
            if self._gate.closed(name) is None and (waiting & (columns.pes > draft.room(name))).any():
                self._short_queues.add(name)
                draft.say_short(name)

    def _line_closed(self, candidates: Candidates) -> Reason | None:
        """Return the reason of candidates behind one at which an exit closed the queue; None: no exit did."""
        if candidates.queue.name not in self._holders:
            return None
        request, ahead = self._holders[candidates.queue.name]
        site, own = self._draft.site, self._draft.reasons[request.seq]
        return replace(LINE_CLOSED(own.who, site.id_of(request.seq), request.queue, own.text), ahead=ahead)

    def _bounded(self, candidates: Candidates) -> Reason | None:
        """Return the reason of candidates not offered to exits, as offers ran out; None: they did not."""
        walk = self._offers.walks.get(candidates.queue.name)
        if walk is None or not walk.cut:
            return None
        return BOUNDED("global", self._draft.site.settings.global_.offers_per_pass)

    def _closing(self, candidates: Candidates, policy: Skip) -> Reason | None:
        """Return the reason for the candidates of a queue that have none of their own, mostly that of the
        first of them; None: no reason is known."""
        draft, gate, name, ahead = self._draft, self._gate, candidates.queue.name, candidates.ahead
        if (held := self._line_closed(candidates)) is not None:
            return held
        if (closed := gate.closed(name)) is not None:
            return replace(closed, ahead=ahead)
        if policy.blocker is not None:
            own_reason = draft.reasons.get(policy.blocker.seq)
            if own_reason is not None and own_reason.code is not ReasonCode.RESERVED:
                own_reason = IN_LINE("scheduler", draft.site.id_of(policy.blocker.seq), name)
            return own_reason and replace(own_reason, ahead=ahead)
        if (bounded := self._bounded(candidates)) is not None:
            return bounded
        if name in self._short_queues if not self._offers.asking else draft.is_short(name):
            row = candidates.oldest(gate.mask(name, candidates.columns, Which.LIMITS))
            if row is not None:
                request = candidates.columns.request(row)
                draft.reasons.setdefault(request.seq, gate.refuses(request) or gate.room.lack(name, request))
                ahead += not self._offers.asking
            return replace(gate.room.lack(name), ahead=ahead)
        # A limit may be that of one owner: it is the reason of others only if limits hold all of them.
        row = candidates.oldest(gate.mask(name, candidates.columns, Which.LIMITS))
        row = candidates.oldest() if row is None else row
        if row is None:
            return None
        request = candidates.columns.request(row)
        refused = gate.refuses(request)
        if refused is None:
            return None
        draft.reasons.setdefault(request.seq, refused)
        return replace(refused, ahead=ahead)


def behind(closing: Reason) -> Reason:
    """Return the reason of requests behind a candidate that would delay a reservation: ``closing``, its
    reason, without its wall limit. If a blocker closed the queue, ``closing`` is returned unchanged."""
    if closing.kind == IN_LINE.name:
        return closing
    return _BEHIND(closing.who, closing.values[-1], until=closing.until)
