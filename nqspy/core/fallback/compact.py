"""Compact (seed 002, 5.2): where requests have consecutive PEs, running ones are pushed together if only the
holes between them keep out one that waits (figure 6).

A slide takes a request that lies between two holes to the other edge of one of them, so that both become
one. The cheapest slide comes first: that of the fewest PEs, then that to the lowest new base. A domain makes
at most one in a cycle (at whole multiples of ``balance_heartbeat``). The next cycle examines everything anew,
because requests that end or start meanwhile may make room for nothing. No slide is made unless such slides,
one after the other, let a waiting request start. A request stays in place during the do-not-disturb time of
its class, and for ``balance_rest`` after a slide.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from nqspy.core.classes import ClassTable, is_served, undisturbed_until
from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.core.gate.gate import Which
from nqspy.core.placement.placements import placement_of
from nqspy.model import facts
from nqspy.model.actions import Action, Migrate
from nqspy.model.board import blocks
from nqspy.model.columns import Columns
from nqspy.model.domains import Domain
from nqspy.model.facts import Promise
from nqspy.model.ids import Instant, Seq
from nqspy.model.queues import Queue
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import MOMENT, State
from nqspy.model.settings import Settings
from nqspy.model.site import Site

NAME = "compact"
"""Name of the feature in settings, plans and journals."""


class Slider(Struct, frozen=True):
    """A running request that may be moved from ``free_at`` on: it has ``count`` PEs from ``base`` on."""

    seq: Seq
    base: int
    count: int
    free_at: Instant


class Slide(Struct, frozen=True, order=True):
    """A move of a request to ``count`` PEs from ``base`` on. The least slide is the cheapest."""

    count: int
    base: int
    seq: Seq


def act(draft: Draft, now: Instant) -> Instant | None:
    """Propose at most one move in each domain. Return when the next may be made; None: none would help."""
    balanced = filter(is_balanced, draft.site.settings.domains.values())
    dues = [_balance(draft, domain, now) for domain in balanced]
    return min((due for due in dues if due is not None), default=None)


def is_balanced(domain: Domain) -> bool:
    """True if requests of a domain are moved: it sets a Heartbeat, a PE has one holder, PEs are in a row."""
    set_up = domain.balance_heartbeat is not None and domain.lists(NAME)
    return set_up and domain.depth == 1 and placement_of(domain).in_a_row


def _balance(draft: Draft, domain: Domain, now: Instant) -> Instant | None:
    """Propose a move in a domain if its cycle has come. Return when it may be made; None: none would help."""
    queues = [each for each in draft.waiting if draft.site.domain_of(each[0].name).name == domain.name]
    wanted, beat = _wanted(draft, domain, queues), domain.balance_heartbeat
    if wanted is None or beat is None:
        return None
    first, sizes = blocks(draft.board(queues[0][0].name).open())
    sliders, holes = _sliders(draft, domain), dict(zip(first.tolist(), sizes.tolist(), strict=True))
    slide = first_slide(holes, [each for each in sliders if each.free_at <= now], wanted, domain.balance_rest)
    cycle = now - now % beat
    if slide is None:
        later = [each.free_at for each in sliders if each.free_at > now]
        if not later or first_slide(holes, sliders, wanted, domain.balance_rest) is None:
            return None
        return Instant(-(-min(later) // beat) * beat)
    moved = facts.stored_by(draft.site, NAME).get(domain.name, -1)
    if now - cycle >= MOMENT or cycle <= moved <= now:
        return Instant(cycle + beat)
    draft.migrate(draft.site.started[slide.seq], tuple(range(slide.base, slide.base + slide.count)))
    draft.store_fact(domain.name, now)
    return None


# ---------------------------------------------------------------- who waits, who may be moved


def _wanted(draft: Draft, domain: Domain, queues: Sequence[tuple[Queue, Columns]]) -> int | None:
    """Return the PEs of the narrowest request that only the holes keep out; None: they keep out no request.
    ``queues``: those of the domain in which requests wait."""
    if domain.name not in draft.short_domains or draft.barred is not None:
        return None
    return min((pes for queue, columns in queues for pes in _kept_out(draft, queue, columns)), default=None)


def _kept_out(draft: Draft, queue: Queue, columns: Columns) -> Iterator[int]:
    """Yield the PEs of the narrowest request of a queue that could start if the free PEs of its domain were
    in a row; if one lets none pass, only of that one."""
    gate, free, room = draft.gate, draft.board(queue.name).free, draft.room(queue.name)
    shut = not queue.started or queue.kind != "batch" or queue.name in draft.shut
    if gate is None or shut or gate.closed(queue.name) is not None:
        return
    fits = (columns.pes > room) & (columns.pes <= free)
    limited = gate.mask(queue.name, columns, Which.LIMITS)
    fits = fits if limited is None else fits & ~limited
    if (blocker := draft.blockers.get(queue.name)) is not None:
        fits &= np.arange(len(columns)) == blocker.slot
    fits[draft.removed(queue.name)] = False
    rows = fits.nonzero()[0]
    for row in rows[np.argsort(columns.pes[rows], kind="stable")].tolist():
        request = columns.request(row)
        why = draft.reasons.get(request.seq)
        held = why is not None and why.code is not ReasonCode.NO_PES  # such as by an exit
        if not held and gate.limit(request) is None and gate.reserved.delaying(request) is None:
            yield request.spec.ask.pes
            return


def _sliders(draft: Draft, domain: Domain) -> list[Slider]:
    """Return the running requests of a domain that may be moved now or later, by their first PE."""
    site, table, found = draft.site, ClassTable(draft.site.settings), list[Slider]()
    for request in site.started.values():
        pes, run = request.pes, request.attempt
        if (
            run is None
            or request.state is not State.RUNNING
            or site.domain_of(request.queue).name != domain.name
        ):
            continue
        stays = run.starting or request.ending or request.seq in draft.leaving
        if stays or not pes or pes != tuple(range(pes[0], pes[0] + len(pes))):
            continue
        until = (
            undisturbed_until(request, table.of(request)) if is_served(site, request.queue) else Instant(0)
        )
        rested = 0 if run.migrated is None else run.migrated + domain.balance_rest
        if until is not None:
            found.append(Slider(request.seq, pes[0], len(pes), Instant(max(until, rested))))
    return sorted(found, key=lambda each: each.base)


# ---------------------------------------------------------------- the slides


def first_slide(
    holes: Mapping[int, int], sliders: Sequence[Slider], wanted: int, rest: int = 0
) -> Slide | None:
    """Return the first of the cheapest slides that, made one after the other, give a hole of ``wanted`` PEs;
    None: no slides do. ``holes``: sizes by first PE; ``rest``: 0 if one request may be moved twice."""
    at, holes, first = {each.seq: each for each in sliders}, dict(holes), None
    while max(holes.values(), default=0) < wanted:
        ends = {base + size: base for base, size in holes.items()}
        between = [each for each in at.values() if each.base in ends and each.base + each.count in holes]
        if not between:
            return None
        # Of the two slides of a request, that to the left has the lower base.
        slide = min(Slide(each.count, ends[each.base], each.seq) for each in between)
        first, moved = first or slide, at.pop(slide.seq)
        holes[slide.base + slide.count] = holes.pop(slide.base) + holes.pop(moved.base + moved.count)
        if not rest:
            at[slide.seq] = replace(moved, base=slide.base)
    return first


# ---------------------------------------------------------------- the feature


def verify(settings: Settings, site: Site) -> list[str]:
    """Return a line for each domain in which the Heartbeat has no effect."""
    return [
        f"domain {each.name}: balance_heartbeat has no effect with {what}"
        for each in settings.domains.values()
        if each.balance_heartbeat is not None
        for what in _without_effect(each)
    ]


def _without_effect(domain: Domain) -> Iterator[str]:
    if domain.is_command:
        yield "kind=command: its requests hold no PEs"
    elif not placement_of(domain).in_a_row:
        yield f"placement={domain.placement}: requests need no consecutive PEs; set placement=contiguous"
    if domain.depth > 1:
        yield f"depth={domain.depth}: it needs one holder a PE"


def stands(site: Site, action: Action) -> bool:
    """True if a proposal is still right: its domain is balanced, and for a move some request waits there."""
    match action:
        case Promise(key):
            return key in site.domains() and is_balanced(site.domain(key))
        case Migrate(seq, _, pes):
            domain = site.domain_of(site.started[seq].queue)
            waits = any(
                len(rows) and site.domain_of(name).name == domain.name for name, rows in site.waiting.items()
            )
            return waits and is_balanced(domain) and pes == tuple(range(pes[0], pes[0] + len(pes)))
    return False


FEATURE = Feature(NAME, act, verify=verify, stands=stands)
