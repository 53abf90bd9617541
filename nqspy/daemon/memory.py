"""What the kernel says of the machine's memory, and of people at terminals."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

_TERMINALS = Path("/dev/pts")


class MachineMemory(Struct, frozen=True):
    """Bytes of the machine's memory, of what of it is available without paging, and of swap; per cent of the
    last 10 s in which some process waited for memory (0 where the kernel does not say)."""

    total: int
    available: int
    swap: int
    stalled: float

    @property
    def used(self) -> float:
        """Per cent in use."""
        return 100 * (self.total - self.available) / self.total if self.total else 0.0


def look() -> MachineMemory:
    """The memory now. Raises OSError."""
    found = parse_meminfo(Path("/proc/meminfo").read_text())
    try:
        stalled = parse_pressure(Path("/proc/pressure/memory").read_text())
    except OSError:
        stalled = 0.0  # a kernel without CONFIG_PSI, or where it is switched off
    return MachineMemory(
        found.get("MemTotal", 0), found.get("MemAvailable", 0), found.get("SwapTotal", 0), stalled
    )


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by name of ``/proc/meminfo``."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if rest.endswith(" kB"):
            found[name] = int(rest.split()[0]) * 1024
    return found


def parse_pressure(text: str) -> float:
    """``some avg10`` of a file of ``/proc/pressure``; 0 when there is none."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["some"] and words[1].startswith("avg10="):
            return float(words[1].removeprefix("avg10="))
    return 0.0


def people_at_work(idle: float) -> bool:
    """Whether somebody has typed at a terminal in the last ``idle`` real seconds: the time of access of a
    terminal is that of its last input (w(1) counts so too)."""
    return typed_since(_touched(), time.time() - idle)


def typed_since(touched: Iterable[float], since: float) -> bool:
    """Whether one of these times (seconds since the epoch) is later than ``since``."""
    return any(at > since for at in touched)


def _touched() -> Iterable[float]:
    try:
        entries = list(os.scandir(_TERMINALS))
    except OSError:
        return
    for entry in entries:
        if entry.name.isdigit():
            try:
                yield entry.stat().st_atime
            except OSError:
                pass  # closed meanwhile
