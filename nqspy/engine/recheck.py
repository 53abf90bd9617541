"""Re-check of a plan that another process made: an action is carried out only if the site still allows it.
States, PEs, units, limits and reservations are checked here; the feature that proposed an action says whether
it still wants it."""

from collections.abc import Collection, Mapping
from functools import cached_property

from nqspy.core import NOW, Gate, consumables, features
from nqspy.model import actions as ac
from nqspy.model import board, facts
from nqspy.model.actions import Action, Hold, Move, Redate, Requeue, Reserving, Resume, Start, Suspend
from nqspy.model.facts import Promise
from nqspy.model.ids import Instant, Seq, array_of
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request, State, Used
from nqspy.model.site import Site
from nqspy.model.specs import sized
from nqspy.shares import FairShare

(_NOT_AS_PLANNED,) = reason_kinds(
    ReasonCode.LATER, not_as_planned="the last pass chose it, but something changed before it could start"
)


class Recheck:
    """Checks the actions of one plan, in order, each just before it is carried out.

    ``changed``: requests with events since the plan was asked for. ``now``: when it was asked for, but at
    most a `MOMENT` ago. ``samples``: last reported use of running attempts. The maker of the plan is not
    trusted: whatever the plan contains, the site stays consistent. A plan from before a change of settings or
    shift must not be given to this class.

    ``drops``: number of actions so far that were dropped; ``fallen``: the starts among these, with reasons.
    """

    def __init__(
        self, site: Site, changed: Collection[Seq], now: Instant, samples: Mapping[Seq, Used]
    ) -> None:
        self._site, self._now, self._samples = site, now, samples
        self._changed = changed
        self.drops, self.fallen = 0, dict[Seq, Reason]()
        self._has_reserved = False
        self._gate = self._gate_of_now()

    def _gate_of_now(self) -> Gate:
        self.__dict__.pop("_ledger", None)
        gate = Gate(self._site, self._now, lambda: self._ledger)
        gate.reserved.build_timeline()
        return gate

    @cached_property
    def _ledger(self) -> FairShare:
        return FairShare(self._site, self._now, self._samples)

    def stands(self, action: Action) -> bool:
        """True if an action may be carried out now; one that may not is counted as dropped. A redating that
        follows from a dropped start is dropped too. If a dropped start keeps its reservation, later
        reservations of the plan are dropped, as they may need its PEs."""
        if self._has_reserved:  # by now the site has the reservations of the plan so far
            self._gate = self._gate_of_now()
        holds = self._holds(action) and features.stands(self._site, action)
        if isinstance(action, Start):
            if holds:
                request = self._to_be(action.seq, len(action.pes))
                assert request is not None
                array = self._site.requests.get(array_of(request.seq) or 0)
                self._gate.add(request, array or request, action.forced)
                if "_ledger" in self.__dict__:
                    self._ledger.commit(request)
            else:
                self.fallen.setdefault(action.seq, _NOT_AS_PLANNED("scheduler"))
        self.drops += not holds
        self._has_reserved = holds and isinstance(action, Reserving)
        return holds

    def _holds(self, action: Action) -> bool:
        match action:
            case Start():
                fallen = self._refusal(action)
                self.fallen |= {} if fallen is None else {action.seq: fallen}
                return fallen is None
            case Redate():
                return action.cause not in self.fallen and 0 <= action.date <= self._now
            case Move(seq, queue):
                return self._waits(seq) and queue in self._site.settings.queues
            case Hold(seq):
                return self._waits(seq)
            case Reserving(starts):
                reserved = any({seq, array_of(seq)} & self._site.reserved.keys() for seq in self.fallen)
                return all(map(self._is_queued, starts)) and not reserved
            case Suspend(seq, attempt):
                return self._unchanged(seq, attempt) and self._site.started[seq].state is State.RUNNING
            case Requeue(seq, attempt):
                return self._unchanged(seq, attempt)
            case Resume(seq, attempt):
                if not self._unchanged(seq, attempt):
                    return False
                request, pes = self._site.started[seq], action.pes
                if request.state is not State.SUSPENDED or (pes and not self._are_pes(pes, request)):
                    return False
                return not request.pes_released or (
                    self._are_free_pes(pes or request.pes, request)
                    and features.why_held(self._site, request, but=action.by) is None
                )
            case ac.Migrate(seq, attempt, pes):
                if not self._unchanged(seq, attempt):
                    return False
                request = self._site.started[seq]
                if request.state is not State.RUNNING or request.run.starting:
                    return False
                depth, new = self._site.domain_of(request.queue).depth, {*pes} - {*request.pes}
                return self._are_pes(pes, request) and board.has_slots(self._site.holders, new, depth)
            case Promise():
                return facts.fits(self._site, action)
        return True

    def _is_queued(self, seq: Seq) -> bool:
        request = self._site.requests.get(seq)
        return request is not None and request.state is State.QUEUED

    def _waits(self, seq: Seq) -> bool:
        return self._is_queued(seq) and seq not in self._changed

    def _unchanged(self, seq: Seq, attempt: int) -> bool:
        request = self._site.started.get(seq)
        same = request is not None and request.attempts == attempt and not request.ending
        return same and seq not in self._changed

    def _are_free_pes(self, pes: tuple[int, ...], request: Request) -> bool:
        depth, foreign = self._site.domain_of(request.queue).depth, self._site.foreign_pes()
        free = board.has_slots(self._site.holders, pes, depth) and not set(pes).intersection(foreign)
        return free and self._are_pes(pes, request)

    def _are_pes(self, pes: tuple[int, ...], request: Request) -> bool:
        domain = self._site.domain_of(request.queue)
        wanted, own = domain.held_by(request.spec.ask.pes), self._site.pes_of(domain)
        inside = all(0 <= pe < len(own) and own[pe] for pe in pes)
        return len(pes) == len(set(pes)) == wanted and inside

    def _to_be(self, seq: Seq, pes: int) -> Request | None:
        """Return a request as it would start on ``pes`` PEs (an index that has not begun: as a request of its
        own). None: it has ended, or its array changed since the plan was asked for."""
        found = self._site.to_be(seq)
        changed = seq not in self._site.requests and array_of(seq) in self._changed
        return None if changed or found is None else sized(found, pes)

    def _refusal(self, action: Start) -> Reason | None:
        """Return the reason why a planned start may not be carried out; None: it may."""
        site, request = self._site, self._to_be(action.seq, len(action.pes))
        queue = None if request is None else site.settings.queues.get(request.queue)
        if request is None or queue is None or not queue.started or action.seq in self._changed:
            return _NOT_AS_PLANNED("scheduler")
        if request.state is not State.QUEUED or request.attempts + 1 != action.attempt:
            return _NOT_AS_PLANNED("scheduler")
        free = self._are_free_pes(action.pes, request)
        if not free or not consumables.may_have(site, request.spec.ask.consumables, action.units):
            return _NOT_AS_PLANNED("scheduler")
        reason = features.why_held(site, request, but=action.by)
        if reason is not None or request.rank >= NOW:
            return reason
        reason = self._gate.limit(request, action.forced)
        if reason is not None or action.forced or action.cleared:
            return reason
        # An index that has not begun has the reservation of its array.
        array = site.requests.get(array_of(request.seq) or 0) if request.seq not in site.requests else None
        candidate, reserved = sized(array or request, len(action.pes)), self._gate.reserved
        reason = reserved.delaying(candidate)
        if reason is None and not reserved.is_as_found(candidate, action):
            return _NOT_AS_PLANNED("scheduler")
        return reason
