"""How long a look ahead may take."""

import time
from collections.abc import Callable

LOOK_AHEAD = 0.05
"""Real seconds that a look ahead may take; it says how far it came."""


def part_of(seconds: float) -> Callable[[], float]:
    """Tells which part of so many real seconds has gone by since now."""
    began = time.monotonic()
    return lambda: (time.monotonic() - began) / seconds
