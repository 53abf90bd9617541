"""Rules about what is not there at all: PEs that the domain does not have, resources that are broken."""

from nqspy.core import resource_health
from nqspy.core.asked import too_wide
from nqspy.core.gate.rule import Mask, Rule, wider
from nqspy.core.placement.placements import size_of
from nqspy.model.columns import Columns
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request
from nqspy.model.site import Site


class Width(Rule):
    """The PEs that a queue's domain has."""

    holds_forced = True

    def __init__(self, site: Site) -> None:
        self._site = site

    def refuses(self, request: Request) -> Reason | None:
        return too_wide(self._site, request.queue, request.spec.ask.pes)

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        return wider(columns, size_of(self._site, queue))


class Health(Rule):
    """Resources that a request or its queue needs, and that are broken."""

    holds_forced = True

    def __init__(self, site: Site) -> None:
        self._site = site

    def refuses(self, request: Request) -> Reason | None:
        return resource_health.keeping(self._site, request)

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        return resource_health.blocked_mask(self._site, columns)
