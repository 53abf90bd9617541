"""Comeback: suspended requests whose PEs others might have go on, unless an earlier stage keeps them back.

They come before everything that waits, in the order of their starts, on the PEs they had. One whose PEs are
partly taken keeps those that are free, so that it cannot starve.
"""

from typing import Any

from nqspy.core.draft import Draft
from nqspy.core.feature import Domain
from nqspy.model.ids import Instant
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.site import Settings, Site

WHO = "scheduler"


def verify(settings: Settings, site: Site) -> list[str]:
    """Every configuration is acceptable."""
    return []


def bind(domain: Domain, settings: Settings) -> Any:
    """It keeps nothing between passes."""
    return None


def action(draft: Draft, domain: Domain, now: Instant) -> Instant | None:
    """Lets go on what nobody keeps back any more and whose PEs are free."""
    parked = draft.parked()
    gone = _gone(draft.site) if parked else set()
    for request in parked:
        if request.seq in draft.own:
            continue
        taken = [pe for pe in request.pes if pe in draft.held_pes and pe not in gone]
        if taken:
            draft.keep(request, _taken(taken))
            draft.take(request.pes)
        else:
            draft.resume(request, WHO)
            gone.difference_update(request.pes)
    return None


def _gone(site: Site) -> set[int]:
    """PEs whose CPU is gone: there is nothing to wait for. Those that somebody holds yet are taken."""
    return set(site.offline()) - {
        pe for other in site.started.values() if not other.parked for pe in other.pes
    }


def _taken(pes: list[int]) -> Reason:
    named = ", ".join(map(str, pes))
    text = (
        f"it goes on when its PE {named} is free"
        if len(pes) == 1
        else f"it goes on when its PEs {named} are free"
    )
    return Reason(ReasonCode.NO_PES, "machine", text)


def exception(draft: Draft, domain: Domain) -> None:
    """Nothing to clean up."""
