"""Rotate (``set domain heartbeat=``; seed 002, section 4): the requests that share PEs of a domain run in
turns, all processes of one at the same time.

A domain with ``depth`` above 1 and a ``heartbeat`` (length of a slot) has a slot table (`model.slots`). This
feature makes it anew in each pass and stores it when it changes; a turn is no event. Requests that are
suspended, or whose processes have ended, have no slot. A table with one slot is not stored: all run.
"""

from nqspy.core.draft import Draft
from nqspy.core.feature import Feature
from nqspy.model import slots
from nqspy.model.actions import Action, Resume
from nqspy.model.facts import Promise, plain, stored_by
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import State
from nqspy.model.site import Settings, Site
from nqspy.model.slots import NAME, SlotTable


def act(draft: Draft, now: Instant) -> Instant | None:
    """Propose the slot table of each domain whose table is no longer right, after the starts of this pass."""
    site = draft.site
    rotating = {domain.name: domain for domain in site.settings.domains.values() if domain.rotates}
    former = stored_by(site, NAME)
    if not rotating and not former:
        return None
    holders: dict[str, list[tuple[Seq, tuple[int, ...]]]] = {name: [] for name in rotating}
    back = {request.seq: request.pes for request in draft.resumed}
    back |= {each.seq: each.pes for each in draft.before if isinstance(each, Resume) and each.pes}
    running = sorted(site.started.values(), key=lambda each: (each.started or 0, each.seq))
    for request in running:
        goes = request.state is State.RUNNING and request.seq not in draft.leaving
        if (name := site.domain_of(request.queue).name) in holders and (goes or request.seq in back):
            holders[name].append((request.seq, back.get(request.seq, request.pes)))
    for choice in draft.chosen:
        if (name := site.domain_of(choice.request.queue).name) in holders and choice.pes:
            holders[name].append((choice.request.seq, choice.pes))
    for name in sorted({*rotating, *former}):
        made = slots.slots_of(holders.get(name, []))
        fact = None
        if len(made) > 1:
            fact = plain(SlotTable(tuple(map(tuple, made)), rotating[name].heartbeat or 0).stored())
        if fact != former.get(name):
            draft.after.append(Promise(name, fact))
    return None


def verify(settings: Settings, site: Site) -> list[str]:
    """Return a line for each domain with a slot length in which no PE can have two holders."""
    return [
        f"domain {each.name}: heartbeat= has no effect with depth=1; set depth=2 or more to share PEs"
        for each in settings.domains.values()
        if each.heartbeat is not None and each.depth == 1
    ]


def stands(site: Site, action: Action) -> bool:
    """True for a slot table: one that lists a request which does not run is made anew in the next pass."""
    return isinstance(action, Promise)


FEATURE = Feature(NAME, act, verify=verify, stands=stands)
