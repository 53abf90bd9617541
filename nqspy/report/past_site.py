"""The site at each instant of a past time: settings and machine, followed through the journal."""

from nqspy.model import events as ev
from nqspy.model.configure import apply_changes
from nqspy.model.machine import Found
from nqspy.model.site import Site
from nqspy.report.over_time import CapacityOverTime


def _cpus(site: Site) -> int:
    return min(site.pes(), len(site.found.cpus) or site.pes())


KINDS = ("settings_changed", "machine_found")
"""Events that change settings or machine."""


def follow(site: Site, event: ev.Event) -> bool:
    """Apply an event to a site without requests; return True if it changed settings or machine."""
    if isinstance(event, ev.SettingsChanged):
        apply_changes(site.settings, event.changes, upsert=True)
    elif isinstance(event, ev.MachineFound):
        site.found = Found(event.cpus, event.memory, event.offline, event.devices)
        site.host, site.zone = event.host, event.zone
    else:
        return False
    return True


class PastSite:
    """Follows ``before``, the site before the first event (`follow`); without it ``now`` is used for all
    times. ``pes``: number of PEs over time; ``cpus``: number of CPUs that requests could use on them, fewer
    if PEs are time-shared."""

    def __init__(self, now: Site, before: Site | None = None) -> None:
        self.site = now if before is None else before
        self.pes, self.cpus = CapacityOverTime(self.site.pes()), CapacityOverTime(_cpus(self.site))
        self._follows = before is not None
        self._n, self._changed = 0, False

    def add(self, recorded: ev.Recorded) -> bool:
        """Apply an event (a repeated one does nothing); return True if it changed the site."""
        if self._follows and recorded.n != self._n:
            self._n, self._changed = recorded.n, follow(self.site, recorded.event)
            if self._changed:
                self.pes.becomes(recorded.at, self.site.pes())
                self.cpus.becomes(recorded.at, _cpus(self.site))
        return self._changed
