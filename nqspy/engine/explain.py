"""Reasons and places of waiting requests for ``qstat``, from the last pass and the order of the queue."""

from collections.abc import Iterable
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from nqspy.core import Gate, Place, QueueOrder, alike, depend, resource_health, standing
from nqspy.core.explain import STOPPED
from nqspy.core.passes import explain, explained, of_itself, reason_of_held, waiting_indices
from nqspy.engine.loop import Engine
from nqspy.engine.zones import local
from nqspy.model import indices
from nqspy.model.ids import Instant, Seq, index_of
from nqspy.model.indices import Runs
from nqspy.model.reasons import Reason, ReasonCode, quoted
from nqspy.model.requests import AfterWord, Request, State


class Places:
    """Places of a site's queued requests in their queues at ``now``, with the factors of their priorities. A
    queue is computed when first asked for, and again after it has changed."""

    def __init__(self, engine: Engine, now: Instant) -> None:
        self._engine = engine
        self._now = now
        self._queues: dict[str, tuple[int, QueueOrder]] = {}

    def of(self, request: Request) -> Place | None:
        """Return place and factors of a request in its queue; None: it is not in state queued."""
        if request.slot < 0:
            return None
        columns = self._engine.site.columns(request.queue)
        known = self._queues.get(request.queue)
        if known is None or known[0] != columns.version:
            engine, queue, reasons = self._engine, request.queue, self._engine.plan.reasons
            refused = {seq for seq, reason in reasons.own.items() if reason.code in _BY_EXITS}
            refused |= {seq for seq, _ in alike.reached(engine.site, reasons, queue)}
            with engine.exits.rehearsal(self._now):
                order = standing(engine.site, queue, self._now, engine.exits, engine.samples, refused)
            known = self._queues[queue] = (columns.version, order)
        return known[1].of(request)


class ChainLink(Struct, frozen=True):
    """Step of a chain of dependencies: ``needed_by`` waits until ``word`` (as ``ok``) is true of ``seq``."""

    needed_by: Seq
    seq: Seq
    word: AfterWord


CHAIN = 10
"""Most links that `chain` returns."""


def chain(engine: Engine, seq: Seq) -> list[ChainLink]:
    """Return the unmet prerequisites of a request, and theirs in turn, nearest first: at most `CHAIN` links,
    each prerequisite once."""
    requests, found, visited = engine.site.requests, list[ChainLink](), {seq}
    line = [seq]
    for needed_by in line:
        request = requests.get(needed_by)
        for each in request.unmet if request is not None else ():
            if each.seq not in visited and len(found) < CHAIN:
                visited.add(each.seq)
                line.append(each.seq)
                found.append(ChainLink(needed_by, each.seq, each.word))
    return found


_BY_EXITS = (ReasonCode.EXIT, ReasonCode.LINE_CLOSED)


def reason_of(engine: Engine, request: Request) -> Reason | None:
    """Return the reason that `reasons_of` gives for a request; None: it has none."""
    return reasons_of(engine, (request.seq,)).get(request.seq)


def reasons_of(engine: Engine, seqs: Iterable[Seq]) -> dict[Seq, Reason]:
    """Return, by number, why these requests wait; of a running one, what a feature or the executor notes
    about it. Requests without a reason are left out."""
    site = engine.site
    seqs = tuple(seqs)
    found = explain(site, seqs, engine.plan.reasons)
    if engine.notes:
        noted = [seq for seq in seqs if seq in engine.notes and seq in site.started]
        found |= {seq: quoted(ReasonCode.LATER, "executor", engine.notes[seq]) for seq in noted}
    for seq in found:
        request = explained(site, seq)
        assert request is not None
        queue = site.settings.queues.get(request.queue)
        if request.state is State.QUEUED and queue is not None and not queue.started:
            found[seq] = STOPPED(f"queue {queue.name}")
        elif found[seq].code is ReasonCode.RESOURCE:
            name = found[seq].who.removeprefix(resource_health.WHO)
            state = resource_health.broken(site).get(name)
            if state is not None:  # with the time of day since when it is broken, the date of another day
                since, today = local(state.since, site.timezone), local(site.at, site.timezone)
                when = since.strftime("%H:%M:%S" if since.date() == today.date() else "%Y-%m-%d %H:%M:%S")
                paused = request.state is State.SUSPENDED
                found[seq] = resource_health.reason(name, state, goes_on=paused, since=when)
    return found


def causes(engine: Engine, seq: Seq) -> list[tuple[Runs, Reason]]:
    """Return the reasons why indices of an array wait, each with the indices that have it. The first is the
    reason of the array itself, if it waits. Of indices that are requests of their own only `_INDICES` are
    examined; empty: ``seq`` is no array."""
    site = engine.site
    array = site.requests.get(seq)
    if array is None or array.array is None:
        return []
    state, found = array.array, list[tuple[Runs, Reason]]()
    whole = array.state is State.HELD
    blocked = state.left if whole else state.ready
    if blocked and (own := reason_of(engine, array)) is not None:
        found.append((blocked, own))
    if state.awaiting and not whole:
        found.append((state.all_awaiting, depend.reason(site, array)))
    found += [(each.indices, reason_of_held(each)) for each in state.held if not whole]
    few = [each.seq for each in islice(waiting_indices(site, array), _INDICES)]
    by_cause: dict[Reason, list[int]] = {}
    for member, reason in reasons_of(engine, few).items():
        by_cause.setdefault(replace(reason, ahead=0), []).append(index_of(member) or 0)
    return [*found, *((indices.of(several), reason) for reason, several in by_cause.items())]


_INDICES = 100
"""Most indices, of those that are requests of their own, for which reasons are given."""


def self_blocked(engine: Engine, seqs: Iterable[Seq]) -> dict[Seq, Reason | None]:
    """Return the requests of ``seqs`` that would not start even if all PEs were free (held, queue stopped,
    refused by an exit, too large), with their reasons; None: the reason is unknown."""
    site, reasons = engine.site, engine.plan.reasons
    found, others, gate = dict[Seq, Reason | None](), list[Seq](), Gate(site)
    for seq in seqs:
        request = site.to_be(seq)
        if request is None or request.state is not State.QUEUED:
            others.append(seq)
            continue
        queue = site.settings.queues.get(request.queue)
        reason = of_itself(gate, request, reasons) or reasons.closing.get(request.queue)
        if queue is None or not queue.started or (reason is not None and reason.code in _OF_ITSELF):
            found[seq] = reason
    known = reasons_of(engine, others) if others else {}
    never = {s for s, why in known.items() if why.kind == "hopeless" or why.code in _OF_ITSELF}
    return found | {s: known.get(s) for s in others if s not in known or s in never}


_OF_ITSELF = (ReasonCode.STOPPED, ReasonCode.EXIT, ReasonCode.HELD, ReasonCode.MEMORY, ReasonCode.NEVER)
"""Codes of reasons that block a request even if all PEs are free."""
