"""Requests with a contract under a virtual clock: they fill holes and are ended where these end."""

import pytest
from engine.harness import PLAIN
from engine.story import play

from nqspy.engine.virtual.attempts import Run

FILLING = PLAIN + "set queue batch order=fcfs reserve=1 backfill=contract\n"

HELD = "submit anne pes=3 wall=10:00, ben pes=4 wall=20:00"
"""Three of four PEs are held for ten minutes; a wide request waits for all."""
STORIES = {
    "ended where its hole ends, and the reservation behind it is kept": """submit cleo wall=60:00 contract
        later 9m; state 3 running; later 1m; end 3 contract; ran 3 600; state 2 running""",
    "suspended it is ended there too": """submit cleo wall=60:00 contract; later 3m; suspend 3; later 6m
        state 3 suspended; later 1m; end 3 contract""",
    "given and taken back while it waits": """submit cleo wall=60:00; state 3 queued
        qmgr modify request 3 contract=on; state 3 running; submit dora pes=2 wall=60:00 contract
        qmgr modify request 4 contract=off; has 4 spec.contract=false""",
}


@pytest.mark.parametrize("title", STORIES)
def test_contracts(title):
    play(f"{HELD}; {STORIES[title]}", settings=FILLING, pes=4, lengths=lambda r: Run(wall=3_600_000))
