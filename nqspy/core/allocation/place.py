"""Place: gives each chosen request its PEs, the lowest free numbers of the domain, in the order of choice."""

from itertools import islice
from typing import Any

from nqspy.core.draft import Draft
from nqspy.core.feature import Domain
from nqspy.model.actions import Start
from nqspy.model.ids import Instant
from nqspy.model.site import Settings, Site


def verify(settings: Settings, site: Site) -> list[str]:
    """Every configuration of one domain is acceptable."""
    return []


def bind(domain: Domain, settings: Settings) -> Any:
    """It keeps nothing between passes."""
    return None


def action(draft: Draft, domain: Domain, now: Instant) -> Instant | None:
    """Turns choices into starts, each followed by what it brings about."""
    free = (pe for pe in range(domain.first, domain.first + domain.pes) if pe not in draft.held_pes)
    for choice in draft.chosen:
        request = choice.request
        pes = tuple(islice(free, request.spec.ask.pes))
        draft.after.append(Start(request.seq, request.attempts + 1, pes, choice.forced))
        draft.after += choice.follow
    return None


def exception(draft: Draft, domain: Domain) -> None:
    """Nothing to clean up."""
