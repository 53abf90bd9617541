"""How scarce the memory is: a reading of it made into a level, with hysteresis. Pure; the daemon's readings
and the simulator's go through it alike.

It is ``high`` from the mark ``high`` on, or when processes wait for memory in ``psi`` per cent of the time or
more (the kernel's pressure stall information: "some" of the last 10 s) while ``low`` or more is in use: one
that waits inside a limit of its own says nothing of the machine. It stays short until less than ``low`` is in
use. While people work at terminals it is high from half way between the two marks on (seed 003,
section 6.3: people who type are not to be swapped).
"""

from dataclasses import dataclass

from nqspy.model.health import Level, SwapControl


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at the machine: per cent of the memory in use, per cent of the time in which some process
    waits for memory, whether somebody works at a terminal."""

    used: float
    stalled: float = 0.0
    people: bool = False


def threshold(control: SwapControl, people: bool) -> float:
    """Per cent in use from which requests give way."""
    return (control.high + control.low) / 2 if people and control.interactive else control.high


def judge(control: SwapControl, reading: Reading, former: Level) -> tuple[Level, str]:
    """The level, and what makes it so, in words; ``former``: the level before."""
    mark = threshold(control, reading.people)
    text = f"{reading.used:.0f} % in use"
    if reading.used >= control.low and reading.stalled >= control.psi:
        return "high", f"{text}, processes wait for memory {reading.stalled:.0f} % of the time"
    if reading.used >= mark:
        return "high", f"{text}, people are at work" if mark < control.high else text
    if reading.used < control.low or former == "calm":
        return "calm", text
    return "tight", text


def near(control: SwapControl, reading: Reading) -> bool:
    """Whether memory may become scarce within seconds: time to look often."""
    return reading.used >= control.low - 15 or reading.stalled > 0
