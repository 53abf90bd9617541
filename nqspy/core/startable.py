"""Startable work: PEs of the requests that could start, by owner and group. Quotas rest on it and on running
requests (`shares.balance`).

A request counts if it is queued in a started batch queue, also if it waits for room that others hold (PEs,
memory, run limits). It does not count if one of these holds it: a limit or cap of its user or group, a broken
resource, a shift that drains its queue, the size of the machine, a limit that lets it never start. Exits are
not asked. A stopped queue counts while requests of it run: their use is accounted for to all that waited.
"""

from collections.abc import Mapping
from weakref import proxy

import numpy as np

from nqspy.core.draft import Draft
from nqspy.core.gate.gate import Gate, Which
from nqspy.core.gate.rule import any_of
from nqspy.core.placement.placements import size_of
from nqspy.model.columns import Columns, Ints
from nqspy.model.domains import APPLICATION, account_key
from nqspy.model.queues import Queue
from nqspy.model.requests import State
from nqspy.shares import balance_of

Pairs = Mapping[str, int]
"""PEs by ``GROUP:OWNER``."""


def gate_of(draft: Draft, *, run_limits: bool = True) -> Gate:
    """Return the gate of a pass that begins, and set ``draft.startable`` to a function that uses it. The gate
    has only a weak reference to the draft, so that the memory of a pass is freed at its end. ``run_limits``
    False: limits that hold a whole queue do not count."""
    known = proxy(draft)
    gate = Gate(draft.site, draft.now, lambda: known.ledger, room=draft.rooms, run_limits=run_limits)

    def by_gate(domain: str) -> Pairs:
        """Return the startable PEs by the gate of the pass; by another if it counts what does not start."""
        return startable(known, _counting_chosen(known) if gate.counts_candidates else gate, domain)

    draft.startable = by_gate
    return gate


def _counting_chosen(draft: Draft) -> Gate:
    """Return a gate that counts what runs and what this pass starts."""
    gate = Gate(draft.site, draft.now, lambda: draft.ledger)
    for choice in draft.chosen:
        gate.count(choice.request)
    return gate


def startable(draft: Draft, gate: Gate, domain: str) -> Pairs:
    """Return the startable PEs in a domain by ``GROUP:OWNER``, without this pass's starts, each at most the
    PEs of the domain. An owner and group have 0 if no queued request of theirs can start."""
    site, names = draft.site, draft.site.numbers.pairs.names
    queued, total = np.zeros((2, len(names)), dtype=np.int64)
    elsewhere = site.is_divided() or domain != APPLICATION
    for queue, columns in draft.waiting:
        if elsewhere and site.domain_of(queue.name).name != domain:
            continue
        asked = columns.pes_by_pair()
        queued[: len(asked)] += asked
        runs = (r.state is State.RUNNING for r in site.started.values() if r.queue == queue.name)
        if queue.kind == "batch" and (queue.started or any(runs)):
            total[: len(asked)] += _of_queue(draft, gate, queue, columns)
    rows = queued.nonzero()[0]
    pes = np.minimum(total[rows], balance_of(site, domain).terms.pes).tolist()
    return dict(zip(map(names.__getitem__, rows.tolist()), pes, strict=True))


def changes(draft: Draft) -> tuple[tuple[str, int], ...]:
    """Return account (`domains.account_key`) and startable PEs where these differ from the last report of a
    pass. If no waiting request of an owner can start, the owner is reported once with 0, for the journal."""
    site = draft.site
    waits = any(map(len, site.waiting.values()))
    changed: list[tuple[str, int]] = []
    for domain in site.shared():
        before = balance_of(site, domain).startable()
        now: Pairs = {}
        if waits or any(before.values()):
            # By the gate of the pass, unless the pass resumes requests.
            by_pass = None if draft.resumed else draft.startable
            now = by_pass(domain) if by_pass else startable(draft, _counting_chosen(draft), domain)
        differing = sorted({name for name, _ in now.items() ^ before.items()})
        reported = [name for name in differing if name in now or before[name]]
        changed += [(account_key(domain, name), now.get(name, 0)) for name in reported]
    return tuple(changed)


def _of_queue(draft: Draft, gate: Gate, queue: Queue, columns: Columns) -> Ints:
    """Return the startable PEs of a queue, as an array by number of the pair of owner and group."""
    site = draft.site
    pes, removed = columns.pes_by_pair(), draft.removed(queue.name)
    bound = gate.rules(queue.name) or site.resources or columns.most("count") > 1
    if not bound and columns.most("pes") <= size_of(site, queue.name):
        return pes - _pes_of(columns, removed, len(pes)) if removed else pes
    own = (rule for rule in gate.rules(queue.name) if not (rule.shared or rule.whole_queue))
    spent = (rule.spent(queue.name, columns) for rule in own)
    out = any_of([gate.mask(queue.name, columns, Which.EVER), *spent])
    if removed:
        chosen = np.zeros(len(columns), dtype=bool)
        chosen[removed] = True
        out = any_of([out, chosen])
    if out is None:
        pes = pes.copy()
    elif 2 * np.count_nonzero(out) <= len(out):
        pes = pes - _pes_of(columns, out.nonzero()[0], len(pes))
    else:
        pes = _pes_of(columns, (~out).nonzero()[0], len(pes))
    # Subtract the indices of arrays that this pass starts, or that the limit of their array holds.
    rows = set((columns.count > 1).nonzero()[0].tolist() if columns.most("count") > 1 else ())
    for row in rows | gate.arrays.rows(columns):
        if out is None or not out[row]:
            request = columns.request(row)
            could = max(0, min(draft.remaining_of(request), gate.arrays.room(request)))
            pes[columns.pair[row]] -= columns.pes[row] * (request.multiplicity - int(could))
    return pes


def _pes_of(columns: Columns, rows: Ints | list[int], pairs: int) -> Ints:
    pes = columns.pes[rows] * columns.count[rows]
    return np.bincount(columns.pair[rows], weights=pes, minlength=pairs).astype(np.int64)
