"""How many examples a property is shown. A build server draws the same ones each time: more of them would
find nothing new there, and take its minutes."""

import os

BUILD = "build"
"""The profile of a build server (`NQSPY_TEST_EXAMPLES`)."""
PROFILE = os.environ.get("NQSPY_TEST_EXAMPLES", "nqspy")


def examples(most: int) -> int:
    """So many; two fifths of them on a build server."""
    return most * 2 // 5 if PROFILE == BUILD else most
