"""The decider of a run that looks ahead: passes at once, in the same process."""

from collections.abc import Mapping, Sequence

from nqspy.core.passes import run_pass
from nqspy.model.actions import Plan
from nqspy.model.events import Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Used
from nqspy.model.site import Site
from nqspy.ports import Exits


class Passes:
    """Asks are answered with a plan immediately."""

    def __init__(self, exits: Exits) -> None:
        self._exits = exits

    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """Runs a pass over the site as it is."""
        return run_pass(site, now, self._exits, samples)

    def follow(self, events: Sequence[Recorded]) -> None:
        """It looks at the site itself."""

    def reset(self, site: Site) -> None:
        """Nothing is known of that site."""
