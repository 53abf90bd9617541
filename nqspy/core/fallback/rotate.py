"""Rotate (``set domain heartbeat=``; seed 002, section 4): the requests that share PEs of a domain run in
turns, all processes of one at the same time.

A domain with ``depth`` above 1 and a ``heartbeat`` (length of a slot) has a slot table (`model.slots`). This
feature makes it anew in each pass and stores it when it changes; a turn is no event. Requests that are
suspended, or whose processes have ended, have no slot. A table with one slot is not stored: all run. While a
prime request runs, only prime ones have slots, and the others of the domain stop.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.model import slots
from nqspy.model.actions import Action, Resume
from nqspy.model.domains import Domain
from nqspy.model.facts import Promise, plain, stored_by
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import PRIME, Request, State
from nqspy.model.site import Settings, Site
from nqspy.model.slots import NAME, SlotTable

AGAIN = 60_000
"""Time (ms) after which share values are asked again, where slots vary in length."""
STEPS = 4
"""Steps between the heartbeat and the longest slot, and likewise to the shortest."""


def act(draft: Draft, now: Instant) -> Instant | None:
    """Propose the slot table of each domain whose table is no longer right, after the starts of this pass."""
    site = draft.site
    rotating = {domain.name: domain for domain in site.settings.domains.values() if domain.rotates}
    former = stored_by(site, NAME)
    if not rotating and not former:
        return None
    back = {request.seq: request.pes for request in draft.resumed}
    back |= {each.seq: each.pes for each in draft.before if isinstance(each, Resume) and each.pes}
    going = [
        (each, back.get(each.seq, each.pes))
        for each in sorted(site.started.values(), key=lambda each: (each.started or 0, each.seq))
        if each.seq in back or (each.state is State.RUNNING and each.seq not in draft.leaving)
    ]
    going += [(choice.request, choice.pes) for choice in draft.chosen]
    varies = False
    for name in sorted({*rotating, *former}):
        fact, domain = None, rotating.get(name)
        if domain is not None:
            there = [each for each in going if site.domain_of(each[0].queue).name == name]
            primes = [each for each in there if each[0].rank == PRIME]
            made = slots.slots_of([(request.seq, pes) for request, pes in primes or there])
            stopped = tuple([each.seq for each, _ in there if primes and each.rank != PRIME])
            if len(made) > 1 or stopped:
                lengths = _lengths(draft, domain, made, {each.seq: each for each, _ in there})
                table = SlotTable(tuple(map(tuple, made)), lengths, domain.partial, stopped)
                fact, varies = plain(table), varies or domain.variation != 100
        if fact != former.get(name):
            draft.after.append(Promise(name, fact))
    return Instant(now + AGAIN) if varies else None


def _lengths(
    draft: Draft, domain: Domain, table: Sequence[Sequence[Seq]], requests: Mapping[Seq, Request]
) -> tuple[int, ...]:
    """Return the lengths (ms) of slots. With ``variation`` n (200 %: 2) a slot is heartbeat x n long if the
    mean share value of its requests is 1, heartbeat / n if it is 0, with `STEPS` steps on each side, so that
    the table changes seldom."""
    heartbeat = domain.heartbeat or 0
    if domain.variation == 100:
        return (heartbeat,) * len(table)
    stocks, lengths = draft.ledger_of(domain.name).stocks, []
    for slot in table:
        mean = fmean(stocks.value(requests[seq].owner, requests[seq].group) for seq in slot)
        power = round((2 * mean - 1) * STEPS) / STEPS
        lengths.append(max(1, round(heartbeat * (domain.variation / 100) ** power)))
    return tuple(lengths)


def verify(settings: Settings, site: Site) -> list[str]:
    """Return a line for each domain with a slot length in which no PE can have two holders."""
    return [
        f"domain {each.name}: heartbeat= has no effect with depth=1; set depth=2 or more to share PEs"
        for each in settings.domains.values()
        if each.heartbeat is not None and each.depth == 1
    ]


def stands(site: Site, action: Action) -> bool:
    """True for no table, and for one whose slots are no longer than the settings of the domain allow."""
    if not isinstance(action, Promise) or action.value is None:
        return isinstance(action, Promise)
    domain = site.settings.domains.get(action.key)
    table = slots.table_from(action.value)
    if table is None or domain is None or not domain.rotates or len(table.slots) != len(table.lengths):
        return False
    most = (domain.heartbeat or 0) * domain.variation / 100 + 1
    return len(table.slots) > (not table.stopped) and all(0 < length <= most for length in table.lengths)


FEATURE = Feature(NAME, act, verify=verify, stands=stands)
