"""How many examples a property is shown. A build server draws the same ones each time: more of them would
find nothing new there, and take its minutes. `scripts/test quick` draws few, for a first look."""

import os

BUILD, QUICK = "build", "quick"
"""Profiles that draw the same examples each time (`NQSPY_TEST_EXAMPLES`)."""
PROFILE = os.environ.get("NQSPY_TEST_EXAMPLES", "nqspy")
_PARTS = {BUILD: (1, 4), QUICK: (1, 20)}


def examples(most: int) -> int:
    """Return how many of them are drawn: a quarter on a build server, a twentieth in a quick run."""
    part, of = _PARTS.get(PROFILE, (1, 1))
    return max(2, most * part // of)
