"""Observations: what the executor reports of running attempts, and what a scan finds after a restart."""

from msgspec import Struct

from nqspy.model.health import Health, Level
from nqspy.model.ids import Seq
from nqspy.model.machine import Device, ForeignJob
from nqspy.model.requests import Ending, Used


class Observation(Struct, frozen=True):
    """Base of all observations of an attempt. The engine ignores one of an attempt that has ended already."""

    seq: Seq
    attempt: int


class ObservedRunning(Observation, frozen=True):
    """An attempt runs: it was just started, or was found running after a restart, with its use so far."""

    used: Used = Used()


class ObservedUse(Observation, frozen=True):
    """Use of a running attempt so far, measured at regular times."""

    used: Used = Used()


class ObservedNote(Observation, frozen=True):
    """A text on an attempt that was started, shown to people: what it waits for before its script begins, or
    how it differs from what its owner expects. An empty ``text`` removes it."""

    text: str = ""


class ObservedMovedOut(Observation, frozen=True):
    """A suspended attempt has left its PEs: its processes are stopped, and ``paged`` bytes were paged out."""

    paged: int = 0


class ObservedExiting(Observation, frozen=True):
    """The processes of an attempt have ended; its output is being delivered. ``text``: why that fails."""

    used: Used = Used()
    text: str = ""


class ObservedEnded(Observation, frozen=True):
    """An attempt has ended; ``ending``: how, with its whole use and its output's paths."""

    ending: Ending = Ending("exit", 0)


class ObservedNotStarted(Observation, frozen=True):
    """An attempt could not be started, for a reason of its own request (folder, shell): ``text``."""

    text: str = ""


class ObservedVoid(Observation, frozen=True):
    """An attempt was never begun and never will be, through no fault of its request (claimed as void after a
    restart, disk full): it may be started anew. ``text``: why. ``later``: the cause lies outside the queue
    and may last, so the next attempt backs off."""

    text: str = "the daemon stopped before"
    later: bool = False


class ObservedLost(Observation, frozen=True):
    """An attempt has vanished without a record of its end. ``text``: why, if known. ``unsure``: some of its
    processes may still run. ``brief``: it was lost within a minute of real time after its start. ``stdout``,
    ``stderr``: its output so far, in the spool."""

    used: Used = Used()
    text: str = ""
    unsure: bool = False
    brief: bool = False
    stdout: str | None = None
    stderr: str | None = None


class ObservedStray(Observation, frozen=True):
    """The spool holds an attempt that the database does not know as running. ``fate``: its state by its spool
    (``alive``, ``done``, ``lost`` ...), or ``later`` if it runs under a later nqspy."""

    fate: str = "done"


class SiteObservation(Struct, frozen=True):
    """Base of observations of the machine and the site, not of an attempt."""


class ObservedResource(SiteObservation, frozen=True):
    """A resource broke, or works again, by the last tries of a probe (`Probe.fails`, `Probe.recovers`)."""

    name: str
    state: Health
    text: str = ""


class ObservedPressure(SiteObservation, frozen=True):
    """State of the machine's memory. ``used``: per cent in use of ``total`` bytes; ``resident``: bytes in
    memory by request; ``people``: True if people work at a terminal."""

    level: Level
    used: float = 0.0
    text: str = ""
    resident: tuple[tuple[Seq, int], ...] = ()
    total: int = 0
    people: bool = False


class ObservedForeign(SiteObservation, frozen=True):
    """All foreign jobs that the last scan found, by ``pid``; their ``pes`` are numbers of CPUs here."""

    jobs: tuple[ForeignJob, ...] = ()


class ObservedMachine(SiteObservation, frozen=True):
    """CPUs or devices went or came: all that there are now, and the memory in bytes."""

    cpus: tuple[int, ...]
    memory: int
    devices: tuple[Device, ...] = ()
