"""The decider that runs a pass at once, in the same process."""

from collections.abc import Mapping

from nqspy.core.passes import run_pass
from nqspy.model.actions import Plan
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Used
from nqspy.model.site import Site
from nqspy.ports import Exits


class AtOnce:
    """Asks are answered with a plan immediately (`ports.Decider`)."""

    def __init__(self, exits: Exits) -> None:
        self._exits = exits

    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """Runs a pass over the site as it is."""
        return run_pass(site, now, self._exits, samples)
