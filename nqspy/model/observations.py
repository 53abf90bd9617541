"""Observations of the executor: reports of attempts while they run, and what a scan after a restart finds."""

from msgspec import Struct

from nqspy.model.health import Health, Level
from nqspy.model.ids import Seq
from nqspy.model.machine import Device
from nqspy.model.requests import Ending, Used


class Observation(Struct, frozen=True):
    """Base of all observations of an attempt; one of an attempt no longer in force is ignored."""

    seq: Seq
    attempt: int


class ObservedRunning(Observation, frozen=True):
    """An attempt runs: just started, or found running after a restart (with what it has used so far)."""

    used: Used = Used()


class ObservedUse(Observation, frozen=True):
    """Use of a running attempt so far."""

    used: Used = Used()


class ObservedNote(Observation, frozen=True):
    """A note on an attempt that was started: what it waits for before its script begins, or how it differs
    from what its owner expects. An empty ``text`` takes the note back."""

    text: str = ""


class ObservedMovedOut(Observation, frozen=True):
    """A suspended attempt has moved out: its processes stand still, ``paged`` bytes were paged out."""

    paged: int = 0


class ObservedExiting(Observation, frozen=True):
    """An attempt's processes have ended, its output is still being delivered; ``text``: why it cannot be."""

    used: Used = Used()
    text: str = ""


class ObservedEnded(Observation, frozen=True):
    """An attempt has ended."""

    ending: Ending = Ending("exit", 0)


class ObservedNotStarted(Observation, frozen=True):
    """An attempt could not be started, for a reason of the request's own (folder, shell): ``text``."""

    text: str = ""


class ObservedVoid(Observation, frozen=True):
    """An attempt was never begun and never will be, through no fault of the request (claimed as void by a
    restart, no room on the disk): it may be started anew. ``text`` says why; ``later``: the cause lies
    outside the queue and may last, so the next attempt backs off."""

    text: str = "the daemon stopped before"
    later: bool = False


class ObservedLost(Observation, frozen=True):
    """An attempt has vanished without a record of its end; ``text`` says why where that is known; ``unsure``:
    some of its processes may still run; ``brief``: it was lost within a minute of real time from its start;
    ``stdout`` and ``stderr``: what it had written, in the spool."""

    used: Used = Used()
    text: str = ""
    unsure: bool = False
    brief: bool = False
    stdout: str | None = None
    stderr: str | None = None


class ObservedStray(Observation, frozen=True):
    """The spool holds an attempt that was not expected: ``fate`` is what became of it (``alive``, ``done``,
    ``lost`` ...), or ``later`` for one that runs under a later nqspy."""

    fate: str = "done"


class SiteObservation(Struct, frozen=True):
    """Base of what is seen of the machine and the site rather than of an attempt."""


class ObservedResource(SiteObservation, frozen=True):
    """A probe's resource has broken, or is well again (after `Probe.fails` or `Probe.recovers` tries)."""

    name: str
    state: Health
    text: str = ""


class ObservedPressure(SiteObservation, frozen=True):
    """State of the machine's memory: ``used`` per cent in use of ``total`` bytes, ``resident`` bytes in
    memory by request; ``people``: some work at a terminal."""

    level: Level
    used: float = 0.0
    text: str = ""
    resident: tuple[tuple[Seq, int], ...] = ()
    total: int = 0
    people: bool = False


class ObservedMachine(SiteObservation, frozen=True):
    """CPUs went or came, or devices that can be given out: what there is now, memory in bytes."""

    cpus: tuple[int, ...]
    memory: int
    devices: tuple[Device, ...] = ()
