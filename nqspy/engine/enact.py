"""Turns the actions of a plan into events for the journal and orders for the executor."""

from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from nqspy.core import guarantees_times
from nqspy.engine.passed_over import Blocked
from nqspy.model import actions as ac
from nqspy.model import events as ev
from nqspy.model import facts, slots
from nqspy.model.actions import Action, Kill, Plan, Requeue, Start, TakeTurns
from nqspy.model.cause import Cause
from nqspy.model.events import Promised
from nqspy.model.facts import Promise
from nqspy.model.ids import Instant, Seq, array_of
from nqspy.model.requests import MOMENT
from nqspy.model.site import Site
from nqspy.ports import Exits


def enact(
    site: Site,
    plan: Plan,
    now: Instant,
    emit: Callable[[ev.Event], object],
    stands: Callable[[Action], bool] | None = None,
) -> Iterator[Action]:
    """Yield the orders for the executor that follow from a plan's actions, and emit each action's event just
    before its order. ``stands``: True if an action may still be carried out at that moment (None: each may).
    A start later than its reservation is first recorded as late, with a cause."""
    for action in plan.actions:
        if stands is None or stands(action):
            late = _missed(site, action, now) if isinstance(action, Start) else None
            if late is not None:
                emit(late)
            event = event_of(site, action)
            deals = isinstance(action, Promise) and action.by == slots.NAME
            former = _turns(site) if deals else {}
            if event is not None:
                emit(event)
            if deals:
                yield from _take_turns(site, former)
            if isinstance(action, Requeue):  # its attempt must end first
                yield Kill(action.seq, action.attempt, "requeued", site.settings.server.grace)
            else:
                yield action


def _take_turns(site: Site, former: Mapping[Seq, object]) -> Iterator[TakeTurns]:
    """Yield the orders for the attempts whose slots differ from the ``former`` ones."""
    present = _turns(site)
    for seq in sorted(present.keys() | former.keys()):
        if seq in site.started and present.get(seq) != former.get(seq):
            yield TakeTurns(seq, site.started[seq].attempts)


def _turns(site: Site) -> dict[Seq, tuple[object, ...]]:
    """Return the slots of each request that has some, with what its shepherd is told of the table."""
    found: dict[Seq, tuple[object, ...]] = {}
    for domain in facts.stored_by(site, slots.NAME):
        if (table := slots.table_of(site, domain)) is not None:
            found |= {s: (own, table.lengths, table.partial) for s, own in table.turns().items()}
    return found


MISSED = "nqsd was stopped or busy at that time, or the clock was changed"
"""Cause of a late start for which no pass recorded another cause."""


def _missed(site: Site, start: Start, now: Instant) -> ev.Reserved | None:
    """Return the event that records a start as later than its guaranteed reservation; None: it is not late,
    or a cause for that is recorded already."""
    request = site.requests.get(array_of(start.seq) or 0) or site.requests[start.seq]
    reservation = request.reservation
    if reservation is None or reservation.at is None or reservation.late or now <= reservation.at + MOMENT:
        return None
    sure = guarantees_times(site, request.queue)
    return ev.Reserved({request.seq: replace(reservation, late=MISSED)}) if sure else None


def is_recorded(plan: Plan, short_before: bool) -> bool:
    """True if the journal stores a plan: it has actions, failures of exits or changed amounts of ready work,
    or ``short_of_pes`` differs from that of the plan before (``short_before``)."""
    return bool(plan.actions or plan.failures or plan.ready or plan.short_of_pes != short_before)


def decided(
    plan: Plan, wait: tuple[Blocked, ...] = (), exits: Exits | None = None, asked: Instant | None = None
) -> ev.Decided:
    """Return the event that records a plan. ``wait``: requests passed over, with reasons; ``exits``: recorded
    are those of `HOOKS` that they have; ``asked``: when the pass was asked for, if earlier."""
    hooks = None if exits is None else tuple(filter(exits.has, HOOKS))
    return ev.Decided(
        plan.as_of, plan.samples, plan.failures, plan.short_of_pes, wait, plan.ready, hooks, asked
    )  # fmt: skip


HOOKS = ("jobselect", "elected", "shrpri", "route")
"""Hooks of user exits that a pass calls."""


def event_of(site: Site, action: Action) -> ev.Event | None:
    """Return the event that records an action; None: it changes nothing by itself (a message, a signal)."""
    match action:
        case Start(seq, attempt, pes, forced, units, until, passing, lacked):
            return ev.Starting(seq, attempt, pes, forced, units, until, passing, lacked)
        case ac.Reserving(starts, as_of, causes):
            return ev.Reserved(starts, as_of, causes)
        case ac.Redate(seqs, date, cause, who):
            return ev.Redated(seqs, date, cause, who)
        case ac.Move(seq, queue):
            return ev.Routed(seq, queue, site.requests[seq].queue)
        case ac.Hold(seq, who, text):
            return ev.Held((seq,), "s", who, text, cause=Cause("exit", who))
        case ac.Suspend(seq, attempt, cause, text, parked, _, leaving):
            return ev.Suspended(seq, attempt, str(cause), parked, text, leaving, cause=cause)
        case ac.Resume(seq, attempt, cause, pes):
            return ev.Resumed(seq, attempt, str(cause), pes, cause=cause)
        case ac.Migrate(seq, attempt, pes):
            return ev.Migrated(seq, attempt, pes)
        case Requeue(seq, attempt, cause, text):
            return ev.Deleting(seq, attempt, str(cause), True, text, cause=cause)
        case Promise(key, value):
            return Promised(action.by, key, value)
    return None
