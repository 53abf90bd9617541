"""One pass: state and time in, a plan out. It reads no clock, disk, network, environment or random source.

`features.FEATURES` is all that a pass does, in this order.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from weakref import proxy

from msgspec.structs import replace

from nqspy.core import alike, features
from nqspy.core.draft import Draft
from nqspy.core.queueing import depend, startable, words
from nqspy.core.queueing.limits import RunningCounts, never, too_wide
from nqspy.core.runtime import goes_since
from nqspy.core.timeline.layout import holds
from nqspy.model.actions import Plan, Start
from nqspy.model.arrays import HeldIndices
from nqspy.model.board import Board
from nqspy.model.ids import Instant, Seq, array_of
from nqspy.model.reasons import Reason, ReasonCode, Reasons, reason_kinds, told
from nqspy.model.requests import Request, State, Used
from nqspy.model.site import Site
from nqspy.ports import Exits


def run_pass(site: Site, now: Instant, exits: Exits, samples: Mapping[Seq, Used] | None = None) -> Plan:
    """Decides what shall be done at ``now``. The site is not changed.

    ``samples``: use of running attempts so far, where the executor has told of it since it was last charged.
    """
    samples = samples or {}
    exits.begin(site)
    draft = Draft(site, now, exits, samples)
    known = proxy(draft)  # no circle: it goes with the pass
    draft.tally = lambda: RunningCounts(site, lambda: known.ledger, now=now)
    dues = [*[feature.propose(draft, now) for feature in features.FEATURES], exits.asks_again()]
    plan = Plan(
        actions=(*draft.before, *draft.after),
        reasons=Reasons(draft.own, draft.closing, tuple(draft.reach)),
        wake_at=min((due for due in dues if due is not None), default=None),
        as_of=site.n,
        short_of_pes=bool(draft.short),
        samples=tuple(samples.items()),
        failures=exits.failures(),
        ready=startable.changes(draft),
        still=frozenset(draft.still),
        plain=draft.plain,
    )
    draft.close()
    return plan


class PassRunner:
    """Passes over one site, one after the other. ``exits``: its user exits.

    Where one has found that nobody who comes can start (`Plan.still`), the next, for those who came, decides
    the same again: it only counts what could start.
    """

    def __init__(self, exits: Exits) -> None:
        self._exits = exits
        self._last: Plan | None = None
        self._stirs = self._news = 0

    def run(self, site: Site, now: Instant, samples: Mapping[Seq, Used] | None = None) -> Plan:
        """Decides what shall be done at ``now``, as `run_pass` does."""
        samples = samples or {}
        plan = self.again(site, now, samples) or run_pass(site, now, self._exits, samples)
        self.note(plan, site)
        return plan

    def forget(self) -> None:
        """The site is another one now, or was changed otherwise than by events."""
        self._last = None

    def note(self, plan: Plan, site: Site) -> None:
        """That was decided for the site as it is."""
        stands_still = plan.still and all(isinstance(action, Start) for action in plan.actions)
        self._last = plan if stands_still else None
        self._stirs, self._news = site.stirs + len(plan.actions), site.news.count

    def again(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """What a pass decides since which nothing has happened but the last one's starts, all of them, and
        submissions to queues that stand still; None where more has happened, or time has come."""
        last = self._last
        if last is None or site.stirs != self._stirs or (last.wake_at is not None and last.wake_at <= now):
            return None
        if site.reserved and not holds(site, now):  # who is promised when may be another matter by now
            return None
        if any(stop.spill == "drain" for stop in site.upcoming_stops.values()):  # less time is left by now
            return None
        came = [queue for queue, n in site.came.items() if n > last.as_of]
        if any(map(self._exits.has, _ASKED)) or not last.still.issuperset(came):
            return None
        if any(site.columns(queue).prioritised for queue in came):  # who came may stand before others
            return None
        dates = (last.wake_at, site.next_date())
        return Plan(
            reasons=last.reasons,
            wake_at=min((date for date in dates if date is not None), default=None),
            as_of=site.n,
            short_of_pes=last.short_of_pes,
            samples=tuple(samples.items()),
            ready=self._startable(last, site, now, samples),
            still=last.still,
            plain=last.plain,
        )

    def _startable(
        self, last: Plan, site: Site, now: Instant, samples: Mapping[Seq, Used]
    ) -> tuple[tuple[str, int], ...]:
        known = site.balance.startable()
        told = last.plain and all(known.get(name) == pes for name, pes in last.ready)
        came = site.news.since(self._news) if told else None
        if came is not None and all(columns.most("count") <= 1 for columns in site.waiting.values()):
            return startable.of_those(site, {f"{group}:{owner}" for _, _, owner, group, _ in came})
        draft = Draft(site, now, self._exits, samples)
        startable.tallied(draft)
        return startable.changes(draft)


_ASKED = ("jobselect", "elected", "shrpri")
"""Hooks of exits that passes ask."""


# ---------------------------------------------------------------- why


def explain(
    site: Site, seqs: Iterable[Seq], reasons: Reasons, tally: RunningCounts | None = None
) -> dict[Seq, Reason]:
    """Why each of these requests does not start now: its own reason of the last pass, else the limit that
    keeps it back, else why its queue was closed; of one that runs, what a feature will do to it. Other
    requests that run, and those that do not exist, are left out. ``tally``: what runs, if it is counted."""
    tally = RunningCounts(site) if tally is None else tally
    found: dict[Seq, Reason] = {}
    boards = cache(lambda queue: site.board(site.domain_of(queue).name))
    for seq in seqs:
        request = explained(site, seq)
        if request is not None:
            reason = _explain(site, request, reasons, tally, boards)
            if reason is not None:
                found[seq] = reason
    return found


def explained(site: Site, seq: Seq) -> Request | None:
    """Return the request whose reason is that of ``seq``: an index that has not begun waits for what its
    array waits for, unless the index is held."""
    request = site.requests.get(seq)
    array = site.requests.get(array_of(seq) or 0) if request is None else None
    if array is None or array.array is None or not (array.array.held or array.array.awaiting):
        return request or array
    index = site.to_be(seq)
    return index if index is not None and index.state is State.HELD else array


def _explain(
    site: Site, request: Request, reasons: Reasons, tally: RunningCounts, boards: Callable[[str], Board]
) -> Reason | None:
    if request.state is State.BEGUN and request.array is not None:
        waiting = (each for each in waiting_indices(site, request) if not request.array.left)
        first = next(waiting, None)
        return _of_array(site, request) if first is None else _explain(site, first, reasons, tally, boards)
    if request.state is State.HELD:
        if request.unmet and not request.holds:
            return depend.reason(site, request)
        return told(ReasonCode.HELD, _HOLDERS.get(request.holds[:1], "system"), request.hold_text)
    if request.state is State.WAITING:
        retry, until = request.retry, request.eligible
        if retry is not None and retry.at == until:
            return _RETRIED("system", retry.text, until=until)
        return _WAITS_FOR_DATE("owner", until=until)
    if request.state is State.SUSPENDED:
        return reasons.own.get(request.seq) or features.keeping(site, request) or _suspended(request)
    if request.state is State.RUNNING:
        return features.outlook(site, request, goes_since(request))
    if request.state is not State.QUEUED:
        return None
    kept = of_itself(site, request, reasons)
    if kept is None and _is_served(site, request):
        kept = tally.keeping(request) or tally.reservations.delaying(request)
    closing = reasons.closing.get(request.queue)
    if kept is None and closing is not None:
        return _of_its_queue(site, request, closing, boards)
    if kept is None and request.reservation is not None:
        # It was looked at; those behind it had their turn since.
        kept = words.lacking(site, boards(request.queue), request)
    return kept or _NOT_YET("scheduler")


def of_itself(site: Site, request: Request, reasons: Reasons) -> Reason | None:
    """What keeps back a queued request whatever runs: its own reason of the last pass, or one that the site
    tells without what runs being counted."""
    kept = reasons.own.get(request.seq)
    if kept is not None or not _is_served(site, request):
        return kept
    return (
        too_wide(site, request.queue, request.spec.ask.pes)
        or never(site, request)
        or features.keeping(site, request)
        or alike.reason_of(reasons, request)
    )


def _is_served(site: Site, request: Request) -> bool:
    queue = site.settings.queues.get(request.queue)
    return queue is not None and queue.kind == "batch" and queue.started


def _of_its_queue(site: Site, request: Request, closing: Reason, boards: Callable[[str], Board]) -> Reason:
    """Why its queue was closed, said of one that the pass did not look at: with none of the figures of the
    one for whose sake it was closed."""
    ahead = 0 if request.reservation is not None else closing.ahead  # who has a promise had its turn before
    if closing.code is ReasonCode.NO_PES:
        closing = words.asking(request, closing)
    elif closing.code is ReasonCode.RESERVED:
        lacking = words.lacking(site, boards(request.queue), request)
        closing = words.behind(closing) if lacking is None else lacking
    return replace(closing, ahead=ahead)


def _of_array(site: Site, request: Request) -> Reason | None:
    """Why no index of an array could start; None where all have begun."""
    state = request.array
    if state is None or not state.left:
        return None
    if state.awaiting:
        return depend.reason(site, request)
    return reason_of_held(state.held[0])


def reason_of_held(held: HeldIndices) -> Reason:
    """Return the reason of indices that are held."""
    if held.never:
        return depend.hopeless(held.never)
    return told(ReasonCode.HELD, _HOLDERS.get(held.letters[:1], "system"), held.text)


def waiting_indices(site: Site, array: Request) -> Iterator[Request]:
    """Yield the indices of an array that wait as requests of their own."""
    own = (site.requests[seq] for seq in site.members.get(array.seq, ()))
    return (each for each in own if each.state in (State.QUEUED, State.HELD, State.WAITING))


def _suspended(request: Request) -> Reason | None:
    pause = request.pause
    if pause is None:
        return None
    return told(pause.cause.code, str(pause.cause), pause.text or f"it was suspended by {pause.cause}")


_HOLDERS = {"u": "owner", "o": "operator", "s": "system"}
(_NOT_YET,) = reason_kinds(ReasonCode.LATER, not_yet="no pass has looked at it yet")
_WAITS_FOR_DATE, _RETRIED = reason_kinds(
    ReasonCode.DATE,
    waits_for_date="it waits for the date its owner gave",
    retried="{why}; the next attempt comes later",
)
