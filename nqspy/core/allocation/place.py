"""Place: gives each chosen request its PEs, the lowest free numbers of the domain, in the order of choice."""

from itertools import islice

from nqspy.core.draft import Draft
from nqspy.core.feature import Domain, Feature
from nqspy.model.actions import Action, Hold, Move, Redate, Start
from nqspy.model.ids import Instant
from nqspy.model.site import Site


def act(draft: Draft, domain: Domain, now: Instant) -> Instant | None:
    """Turns choices into starts, each followed by what it brings about."""
    free = draft.board.open()
    for choice in draft.chosen:
        request = choice.request
        pes = tuple(islice(free, request.spec.ask.pes))
        draft.after.append(Start(request.seq, request.attempts + 1, pes, choice.forced))
        draft.after += choice.follow
    return None


def stands(site: Site, action: Action) -> bool:
    """A start, and what exits made of it, stands as long as there is room for it."""
    return isinstance(action, Start | Redate | Hold | Move)


FEATURE = Feature("place", act, stands=stands)
