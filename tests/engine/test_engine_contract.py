"""Requests with a contract under a virtual clock: they fill holes and are ended where these end."""

import pytest
from engine.harness import PLAIN, Centre

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev

FILLING = PLAIN + "set queue batch order=fcfs reserve=1 backfill=contract\n"


@pytest.fixture
def centre():
    """Four PEs, three of which are held for ten minutes; a wide one waits for all."""
    made = Centre(FILLING, pes=4, lengths=lambda r: Run(wall=3_600_000))
    made.submit("anne pes=3 wall=10:00", "ben pes=4 wall=20:00")
    return made


def ends(centre: Centre) -> dict[int, tuple[str, float]]:
    """How requests ended, and after how many minutes."""
    begun = next(iter(centre.journal.events())).at
    found = (each for each in centre.journal.events() if isinstance(each.event, ev.Ended))
    return {each.event.seq: (each.event.end_reason, (each.at - begun) / 60_000) for each in found}


def test_it_is_ended_where_its_hole_ends_and_the_promise_behind_it_is_kept(centre):
    (filling,) = centre.submit("cleo wall=60:00 contract")
    promised = centre.request(2).reservation.at
    assert centre.request(filling).run.until == promised
    centre.later(minutes=11)
    assert ends(centre)[filling] == ("contract", 10)
    assert centre.request(2).started == promised
    centre.is_sound()


def test_suspended_it_is_ended_there_too(centre):
    (filling,) = centre.submit("cleo wall=60:00 contract")
    centre.later(minutes=3)
    centre.ask(cm.SuspendRequests((str(filling),)))
    centre.later(minutes=8)
    assert ends(centre)[filling] == ("contract", 10)
    centre.is_sound()


def test_a_contract_may_be_given_and_taken_back_while_it_waits(centre):
    (late,) = centre.submit("cleo wall=60:00")
    assert centre.state(late) == "queued"
    centre.qmgr(f"modify request {late} contract=on")
    assert centre.state(late) == "running"
    (other,) = centre.submit("dora pes=2 wall=60:00 contract")
    centre.qmgr(f"modify request {other} contract=off")
    assert not centre.request(other).spec.contract
