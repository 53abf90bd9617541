"""Startable: for how many PEs each owner in each group has requests that could start, the work on which
quotas rest beside what runs (`model.balance`).

Queued in a started batch queue, and kept back neither by a limit of its own people (user and group limits,
groups' caps), nor by what is broken, nor by a shift that drains its queue, nor by the machine's size, nor by
a cap or limit that leaves too little for it even when nothing runs (a run limit of 0 leaves nothing). Room
that others hold (PEs, memory, run limits) is no such limit: who waits for it has work. What exits say is not
asked. A queue that was stopped counts as long as requests of it run: what runs on was given while all waited,
and is accounted for to them.
"""

from collections.abc import Mapping
from weakref import ref

import numpy as np

from nqspy.core.draft import Draft
from nqspy.core.gate.gate import Gate, Which
from nqspy.core.gate.rule import Mask, any_of
from nqspy.core.placement.placements import size_of
from nqspy.model.columns import Columns, Ints
from nqspy.model.domains import APPLICATION, account_key
from nqspy.model.queues import Queue
from nqspy.model.requests import State
from nqspy.model.site import Site

Pairs = Mapping[str, int]
"""PEs by ``GROUP:OWNER``."""


def gate_of(draft: Draft, *, run_limits: bool = True) -> Gate:
    """Return the gate of a pass that begins; from now on its draft knows what could start.

    The draft knows the gate, and the gate does not know the draft: no circle outlives the pass.
    """
    known = ref(draft)
    gate = Gate(draft.site, draft.now, lambda: _there(known).ledger, room=draft.rooms, run_limits=run_limits)
    draft.startable = lambda domain: _by_gate(_there(known), gate, domain)
    return gate


def _by_gate(draft: Draft, gate: Gate, domain: str) -> Pairs:
    """Return what could start by the gate of a pass; by another where it counts what does not start."""
    return startable(draft, _counting_chosen(draft) if gate.keeps else gate, domain)


def _counting_chosen(draft: Draft) -> Gate:
    """Return a gate with what runs and what this pass has chosen."""
    gate = Gate(draft.site, draft.now, lambda: draft.ledger)
    for choice in draft.chosen:
        gate.count(choice.request)
    return gate


def _there(known: ref[Draft]) -> Draft:
    """The draft of a pass that is not over."""
    draft = known()
    assert draft is not None
    return draft


def startable(draft: Draft, gate: Gate, domain: str) -> Pairs:
    """What could start now in a domain, 0 for those of whom only what could not is queued: without what this
    pass has chosen, at most its PEs for each."""
    site, names = draft.site, draft.site.numbers.pairs.names
    queued = total = _NONE
    elsewhere = site.is_divided() or domain != APPLICATION
    for queue, columns in draft.waiting:
        if elsewhere and site.domain_of(queue.name).name != domain:
            continue
        queued = _both(queued, columns.pes_by_pair())
        if queue.kind == "batch" and (queue.started or _runs_something(site, queue.name)):
            total = _both(total, _of_queue(draft, gate, queue, columns))
    rows = queued.nonzero()[0]
    total = _both(np.zeros(len(queued), dtype=np.int64), total) if len(total) < len(queued) else total
    pes = np.minimum(total[rows], site.balance_of(domain).terms.pes).tolist()
    return dict(zip(map(names.__getitem__, rows.tolist()), pes, strict=True))


_NONE = np.zeros(0, dtype=np.int64)


def _both(some: Ints, more: Ints) -> Ints:
    """Sums by number, of which there may be more in one than in the other. Neither is changed."""
    if not len(some):
        return more
    longer, shorter = (some, more) if len(some) >= len(more) else (more, some)
    made = longer.copy()
    made[: len(shorter)] += shorter
    return made


def _runs_something(site: Site, queue: str) -> bool:
    running = (request for request in site.started.values() if request.queue == queue)
    return any(request.state is State.RUNNING for request in running)


def changes(draft: Draft) -> tuple[tuple[str, int], ...]:
    """What a pass has to tell of it: by name (`domains.account_key`), where it is not what the last pass that
    told of it said. Of an owner who waits and can start nothing that is told too, once: who follows the
    journal has nothing else that says so."""
    site = draft.site
    waits = any(map(len, site.waiting.values()))
    found: list[tuple[str, int]] = []
    for domain in site.shared():
        known = site.balance_of(domain).startable()
        now = _now(draft, domain) if waits or any(known.values()) else {}
        others = sorted({name for name, _ in now.items() ^ known.items()})
        told = [name for name in others if name in now or known[name]]
        found += [(account_key(domain, name), now.get(name, 0)) for name in told]
    return tuple(found)


def _now(draft: Draft, domain: str) -> Pairs:
    """With what runs and what this pass has chosen: the pass's own count where nothing else is in it."""
    if draft.startable is not None and not draft.resumed:
        return draft.startable(domain)
    return startable(draft, _counting_chosen(draft), domain)


def _of_queue(draft: Draft, gate: Gate, queue: Queue, columns: Columns) -> Ints:
    """PEs by pair."""
    site = draft.site
    found, gone = columns.pes_by_pair(), draft.gone(queue.name)
    bound = gate.rules(queue.name) or site.resources or columns.most("count") > 1
    if not bound and columns.most("pes") <= size_of(site, queue.name):
        return _without(found, gone, columns) if gone else found
    own = (rule for rule in gate.rules(queue.name) if not (rule.shared or rule.whole_queue))
    spent = (rule.spent(queue.name, columns) for rule in own)
    out = any_of([gate.mask(queue.name, columns, Which.EVER), *spent])
    if gone:
        chosen = np.zeros(len(columns), dtype=bool)
        chosen[gone] = True
        out = any_of([out, chosen])
    found = found.copy() if out is None else _without(found, out.nonzero()[0], columns)
    _drop_indices(draft, gate, out, columns, found)
    return found


def _without(found: Ints, rows: Ints | list[int], columns: Columns) -> Ints:
    """Return PEs by pair without those of these rows."""
    if 2 * len(rows) <= len(columns):
        return found - _pes_of(columns, rows, len(found))
    others = np.ones(len(columns), dtype=bool)
    others[rows] = False
    return _pes_of(columns, others.nonzero()[0], len(found))


def _pes_of(columns: Columns, rows: Ints | list[int], pairs: int) -> Ints:
    pes = columns.pes[rows] * columns.count[rows]
    return np.bincount(columns.pair[rows], weights=pes, minlength=pairs).astype(np.int64)


def _drop_indices(draft: Draft, gate: Gate, out: Mask | None, columns: Columns, found: Ints) -> None:
    """Indices of arrays that this pass has chosen, or that may not run beside the others of theirs."""
    rows = set((columns.count > 1).nonzero()[0].tolist() if columns.most("count") > 1 else ())
    rows |= gate.arrays.rows(columns)
    for row in rows:
        if out is None or not out[row]:
            request = columns.request(row)
            could = max(0, min(draft.left_of(request), gate.arrays.room(request)))
            found[columns.pair[row]] -= columns.pes[row] * (request.multiplicity - int(could))
