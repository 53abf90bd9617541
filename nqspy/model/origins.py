"""Where events come from: an input of the engine, or a consequence that it drew from inputs. A replay feeds
the inputs and compares the consequences."""

from collections.abc import Mapping
from enum import StrEnum

from nqspy.model import events as ev
from nqspy.model.array_events import Parted
from nqspy.model.cause import Caused
from nqspy.model.promises import Promised


class Origin(StrEnum):
    """Somebody asked for it, it was observed, its time had come, or nqspy decided it."""

    ASKED = "asked"
    OBSERVED = "observed"
    CLOCK = "clock"
    DECIDED = "decided"

    @property
    def is_input(self) -> bool:
        """Whether it does not follow from other events."""
        return self is not Origin.DECIDED


ORIGINS: Mapping[type[ev.Event], Origin] = {
    ev.Submitted: Origin.ASKED,
    ev.Released: Origin.ASKED,
    ev.Ranked: Origin.ASKED,
    ev.Moved: Origin.ASKED,
    ev.Modified: Origin.ASKED,
    ev.Deleted: Origin.ASKED,
    ev.SettingsChanged: Origin.ASKED,
    ev.UsageCorrected: Origin.ASKED,
    ev.FilesApplied: Origin.ASKED,
    ev.LoadedExits: Origin.ASKED,
    ev.Started: Origin.OBSERVED,
    ev.MovedOut: Origin.OBSERVED,
    ev.Exiting: Origin.OBSERVED,
    ev.Ended: Origin.OBSERVED,
    ev.Requeued: Origin.OBSERVED,
    ev.Held: Origin.OBSERVED,
    ev.MachineFound: Origin.OBSERVED,
    ev.ResourceChanged: Origin.OBSERVED,
    ev.PressureChanged: Origin.OBSERVED,
    ev.Restored: Origin.OBSERVED,
    ev.DaemonStarted: Origin.OBSERVED,
    ev.Eligible: Origin.CLOCK,
    ev.ShiftChanged: Origin.CLOCK,
    ev.ShiftFailed: Origin.CLOCK,
    ev.Reported: Origin.CLOCK,
    ev.Routed: Origin.DECIDED,
    ev.Starting: Origin.DECIDED,
    ev.Suspended: Origin.DECIDED,
    ev.Resumed: Origin.DECIDED,
    ev.Deleting: Origin.DECIDED,
    ev.Redated: Origin.DECIDED,
    ev.Reserved: Origin.DECIDED,
    ev.DependencyMet: Origin.DECIDED,
    ev.DependencyFailed: Origin.DECIDED,
    ev.Decided: Origin.DECIDED,
    ev.ExitOff: Origin.DECIDED,
    ev.Alarm: Origin.DECIDED,
    Promised: Origin.DECIDED,
    Parted: Origin.DECIDED,
}
"""By kind, as far as no cause says otherwise. A `Deleted` by ``dependency`` and the `SettingsChanged` of a
shift follow from others, although they have no cause that says so."""


def origin_of(event: ev.Event) -> Origin:
    """Where an event comes from. Of kinds that somebody may ask for or a pass decide, the cause says; what a
    part of nqspy causes is as its kind is."""
    if isinstance(event, Caused):
        cause = event.because()
        if cause.kind != "system":
            return Origin.ASKED if cause.is_person else Origin.DECIDED
    return ORIGINS[type(event)]
