"""PSched's protocol of a scheduling feature (semantics.md 4): one file of `core` with four functions.

A feature is a module; `passes.STAGES` names them in the order in which they act.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from nqspy.core.draft import Draft
from nqspy.model.ids import Instant
from nqspy.model.site import Settings, Site


@dataclass(frozen=True, slots=True)
class Domain:
    """A named range of PEs with its own rules: numbers ``first`` to ``first + pes - 1``."""

    name: str
    first: int
    pes: int


def whole_machine(site: Site) -> Domain:
    """The one domain that all PEs are in."""
    return Domain("application", 0, site.pes())


class Feature(Protocol):
    """What a feature can do; a module with these four functions is one."""

    def verify(self, settings: Settings, site: Site) -> list[str]:
        """What is wrong with a new configuration, one line each; empty when it is acceptable."""

    def bind(self, domain: Domain, settings: Settings) -> Any:
        """State the feature keeps for a domain between passes; None if it keeps none."""

    def action(self, draft: Draft, domain: Domain, now: Instant) -> Instant | None:
        """Acts on the draft of one pass; answers when it wants to act again at the latest."""

    def exception(self, draft: Draft, domain: Domain) -> None:
        """Cleans up when the domain is taken down."""
