"""Run of a pass: from a site and an instant to a plan, by the features of `features.FEATURES` in turn. Also
the reasons for which requests wait (`explain`)."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from nqspy.core import alike, depend, features, startable
from nqspy.core.asked import too_wide
from nqspy.core.draft import SHUT_OUT, Draft
from nqspy.core.explain import behind
from nqspy.core.gate.gate import Gate
from nqspy.core.gate.room import asking
from nqspy.core.runtime import goes_since
from nqspy.core.variants.sizes import first_fit, variants_of, waits_for
from nqspy.model.actions import Plan
from nqspy.model.arrays import HeldIndices
from nqspy.model.ids import Instant, Seq, array_of, index_of
from nqspy.model.indices import has
from nqspy.model.reasons import Reason, ReasonCode, Reasons, quoted, reason_kinds
from nqspy.model.requests import PRIME, Request, State, Used
from nqspy.model.site import Site
from nqspy.model.specs import sized
from nqspy.ports import Exits


def run_pass(site: Site, now: Instant, exits: Exits, samples: Mapping[Seq, Used] | None = None) -> Plan:
    """Return the plan of a pass at ``now``: actions, reasons, and when to run the next. The site is not
    changed. ``samples``: use so far of running attempts, as last reported."""
    samples = samples or {}
    exits.begin(site)
    draft = Draft(site, now, exits, samples)
    dues = [*features.propose(draft, now), exits.asks_again()]
    plan = Plan(
        actions=(*draft.before, *draft.after),
        reasons=Reasons(draft.reasons, draft.closing, tuple(draft.reach)),
        wake_at=min((due for due in dues if due is not None), default=None),
        as_of=site.n,
        short_of_pes=bool(draft.short_domains),
        samples=tuple(samples.items()),
        failures=exits.failures(),
        ready=startable.changes(draft),
    )
    draft.close()
    return plan


# ---------------------------------------------------------------- why


def explain(site: Site, seqs: Iterable[Seq], reasons: Reasons, gate: Gate | None = None) -> dict[Seq, Reason]:
    """Return why each of these requests does not start now, by number: its own reason of the last pass, else
    the limit that holds it, else why its queue was closed.

    The reason of a running request is the coming action of a feature. Running requests without one, and
    unknown numbers, are left out. ``gate``: the gate of the site, if the caller has one already.
    """
    gate = Gate(site) if gate is None else gate
    reasons_by_seq: dict[Seq, Reason] = {}
    for seq in seqs:
        request = explained(site, seq)
        if request is not None and (reason := _explain(site, request, reasons, gate)) is not None:
            reasons_by_seq[seq] = reason
    return reasons_by_seq


def explained(site: Site, seq: Seq) -> Request | None:
    """Return the request with the reason for ``seq``: that request itself, a held index of an array, or, for
    another index that has not begun, its array; None: it is unknown."""
    request = site.requests.get(seq)
    array = site.requests.get(array_of(seq) or 0) if request is None else None
    if array is None or array.array is None or not (array.array.held or array.array.awaiting):
        return request or array
    index = site.to_be(seq)
    return index if index is not None and index.state is State.HELD else array


def _explain(site: Site, request: Request, reasons: Reasons, gate: Gate) -> Reason | None:
    array = request.array
    if request.state is State.BEGUN and array is not None:
        if array.left:
            return depend.reason(site, request) if array.awaiting else reason_of_held(array.held[0])
        first = next(waiting_indices(site, request), None)
        return None if first is None else _explain(site, first, reasons, gate)
    if request.state is State.HELD:
        if request.unmet and not request.holds:
            return depend.reason(site, request)
        of = site.requests.get(array_of(request.seq) or 0)  # it may be an index that is no request yet
        for held in of.array.held if of is not None and of.array is not None else ():
            if held.never and has(held.indices, index_of(request.seq) or 0):
                return reason_of_held(held)
        return quoted(ReasonCode.HELD, _HOLDERS.get(request.holds[:1], "system"), request.hold_text)
    if request.state is State.WAITING:
        retry, until = request.retry, request.eligible
        if retry is not None and retry.at == until:
            return _RETRIED("system", retry.text, until=until)
        return _WAITS_FOR_DATE("owner", until=until)
    if request.state is State.SUSPENDED:
        reason, pause = reasons.own.get(request.seq) or features.why_held(site, request), request.pause
        if reason is None and pause is not None:
            who = str(pause.cause)
            reason = quoted(pause.cause.code, who, pause.text or f"suspended by {who}")
        return reason
    if request.state is State.RUNNING:
        return features.next_action(site, request, goes_since(request))
    if request.state is not State.QUEUED:
        return None
    reason = of_itself(gate, request, reasons)
    closing = reasons.closing.get(request.queue)
    if reason is None and closing is not None and closing.kind == SHUT_OUT.name and request.rank != PRIME:
        return closing
    if reason is None and _is_served(site, request):
        reason = gate.limit(request)
        # With backfill=none none passes the blocker, whether it would delay its reservation or not.
        if closing is None or request.reservation or site.settings.queues[request.queue].backfill != "none":
            reason = reason or gate.reserved.delaying(request)
    if reason is not None:
        return reason
    if request.reservation is not None and (closing is None or closing.code in _OF_OTHERS):
        reason = _of_reserved(gate, request)
        if reason is not None or closing is None or request.spec.mold is not None:
            return reason or _NOTHING_FREED("scheduler")
    if closing is None:
        return _NOT_YET("scheduler")
    # Requests with a reservation were examined before the others.
    ahead = 0 if request.reservation is not None else closing.ahead
    return replace(_behind(gate, request, closing), ahead=ahead)


_OF_OTHERS = (ReasonCode.NO_PES, ReasonCode.LIMIT, ReasonCode.RESERVED)
"""Codes of reasons that close a queue and say nothing of a request with a reservation: it is examined before
the others, or not at all while nothing becomes free."""


def _of_reserved(gate: Gate, request: Request) -> Reason | None:
    """Return why a request with a reservation does not start now, on any of its sizes; None: it could."""
    site, reservation = gate.site, request.reservation
    fit = first_fit(variants_of(site, request), gate.refuses)
    at = None if reservation is None else reservation.at
    if fit.ask is not None and reservation is not None and at is not None and request.spec.mold is not None:
        return waits_for(site, gate.now, fit.ask, (sized(request, reservation.pes), at))
    return fit.why


def of_itself(gate: Gate, request: Request, reasons: Reasons) -> Reason | None:
    """Return why a queued request is blocked whatever runs: its own reason of the last pass, or one for which
    running requests are not counted; None: no such reason."""
    own, site = reasons.own.get(request.seq), gate.site
    if own is not None or not _is_served(site, request):
        return own
    return (
        too_wide(site, request.queue, request.spec.ask.pes)
        or gate.never(request)
        or features.why_held(site, request)
        or alike.reason_of(reasons, request)
    )


def _is_served(site: Site, request: Request) -> bool:
    queue = site.settings.queues.get(request.queue)
    return queue is not None and queue.kind == "batch" and queue.started


def _behind(gate: Gate, request: Request, closing: Reason) -> Reason:
    """Return the reason of a request that was not examined in a closed queue. It is ``closing``, the reason
    of the queue, with figures of this request in place of another's."""
    if closing.code is ReasonCode.NO_PES:
        fits = gate.room.refuses(request) is None
        return (gate.reserved.delaying(request) if fits else None) or asking(request, closing)
    if closing.code is ReasonCode.RESERVED:
        return gate.room.refuses(request) or behind(closing)
    return closing


def reason_of_held(held: HeldIndices) -> Reason:
    """Return the reason of held indices: their holder, or a dependency that can never be met."""
    holder = _HOLDERS.get(held.letters[:1], "system")
    return depend.hopeless(held.never) if held.never else quoted(ReasonCode.HELD, holder, held.text)


def waiting_indices(site: Site, array: Request) -> Iterator[Request]:
    """Yield the indices of an array that wait as requests of their own."""
    own = (site.requests[seq] for seq in site.members.get(array.seq, ()))
    return (each for each in own if each.state in (State.QUEUED, State.HELD, State.WAITING))


_HOLDERS = {"u": "owner", "o": "operator", "s": "system"}
_NOT_YET, _NOTHING_FREED = reason_kinds(
    ReasonCode.LATER,
    not_yet="no scheduling pass has examined it yet",
    nothing_freed="its start is reserved; it starts earlier if something that it needs becomes free",
)
(_WAITS_FOR_DATE,) = reason_kinds(ReasonCode.DATE, waits_for_date="waits for its start date")
(_RETRIED,) = reason_kinds(
    ReasonCode.DATE, "nothing: it is tried again by itself", retried="{why}; it is tried again later"
)
