"""The bumper where jobs may run on several sizes, or hold barrier circuits."""

import pytest
from core.test_core_bumper import resumed, suspended

from nqspy.model.events import Change
from nqspy.model.promises import made
from nqspy.model.requests import State

# ------------------------------------------------------------ several sizes


def test_one_of_several_sizes_is_loaded_on_the_largest_that_fits_and_told_what_did_not(gang):
    gang.run("anne class=production pes=3")
    ben = gang.submit("ben class=production sizes=2,4,6")[0]
    assert gang.go().pes(ben) == (3, 4, 5, 6)
    assert gang.request(ben).spec.ask.pes == 4
    assert gang.request(ben).run.lacked == ((6, "NO_PES"),)


def test_its_size_is_under_the_limits_of_its_class_of_gang_and_of_its_queue(gang):
    gang.job_class("narrow", priority=2, wait=None, do_not_disturb="0", pe_limit=5)
    ben = gang.submit("ben class=narrow sizes=1,2,3,4,5,6,7,8")[0]
    assert len(gang.go().pes(ben)) == 5
    ben = gang.end(ben).set("gang/job_limit", 4).submit("ben class=narrow sizes=1,2,3,4,5,6,7,8")[0]
    assert len(gang.go().pes(ben)) == 4
    gang.end(ben).set("queue/apps/per_request/pe_limit", 3)
    ben = gang.submit("ben class=narrow sizes=1,2,3,4,5,6,7,8")[0]
    assert len(gang.go().pes(ben)) == 3


def test_a_bumper_has_its_least_size_cleared_and_takes_more_if_more_is_free_by_then(gang):
    first, second = gang.run("anne class=production pes=4", "ben class=standby pes=4")
    bumper = gang.later(hours=1).submit("cleo class=interactive sizes=2,3,8")[0]
    assert suspended(gang.go()) == [second]
    assert made(gang.site, "bumper")["application"] == {"seq": bumper, "pes": ["4-5"]}
    gang.moved_out(second)
    assert gang.go().pes(bumper) == (4, 5, 6)
    assert gang.request(first).state is State.RUNNING


def test_who_was_bumped_comes_back_on_the_size_that_it_has(gang):
    victim = gang.run("anne class=standby sizes=4,8")[0]
    bumper = gang.later(minutes=1).run("ben class=interactive pes=2")[0]
    gang.moved_out(victim).go()
    assert resumed(gang.go()) == {}
    gang.end(bumper)
    assert resumed(gang.go()) == {victim: ()}
    assert len(gang.request(victim).pes) == 8


# ------------------------------------------------------------ barrier circuits


@pytest.fixture
def wired(gang):
    """The same with four barrier circuits, given round robin."""
    return gang.change(Change("create", "consumable/barrier", {"count": 4, "policy": "round_robin"}))


def circuit(gang, seq):
    """The circuit that one holds."""
    return dict(gang.request(seq).units)["barrier"]


def test_circuits_are_given_round_robin_to_those_who_ask(wired):
    ask = "class=production pes=1 barrier=1"
    first, plain, second = wired.run(f"anne {ask}", "ben class=production pes=1", f"cleo {ask}")
    assert (circuit(wired, first), circuit(wired, second)) == (("0",), ("1",))
    assert wired.request(plain).units == ()
    third, fourth, fifth = wired.end(first).run(f"anne {ask}", f"anne {ask}", f"anne {ask}")
    assert [circuit(wired, seq) for seq in (third, fourth, fifth)] == [("2",), ("3",), ("0",)]
    sixth = wired.submit(f"dora {ask}")[0]
    assert wired.go().starts == []
    assert wired.why(sixth).code == "NO_UNITS"


def test_a_preempted_job_keeps_its_circuit(wired):
    victim = wired.run("anne class=standby pes=8 barrier=1")[0]
    bumper = wired.later(minutes=1).run("ben class=interactive pes=2 barrier=1")[0]
    wired.moved_out(victim).go()
    assert circuit(wired, victim) == ("0",)
    assert circuit(wired, bumper) == ("1",)
    wired.end(bumper)
    assert resumed(wired.go()) == {victim: ()}
    assert circuit(wired, victim) == ("0",)


def test_nobody_gives_way_to_one_that_lacks_a_circuit(wired):
    wired.set("consumable/barrier/count", 1)
    first, second = wired.run("anne class=production pes=2 barrier=1", "ben class=standby pes=6")
    wired.later(hours=1).submit("cleo class=interactive pes=4 barrier=1")
    assert suspended(wired.go()) == []
    wired.end(first)
    assert suspended(wired.go()) == [second]


def test_the_circuit_of_one_that_is_being_cleared_for_is_taken_by_nobody_else(wired):
    wired.set("consumable/barrier/count", 1)
    wired.run("anne class=production pes=4", "ben class=benchmark pes=2")
    bumper, late = wired.later(seconds=1).submit(
        "cleo class=interactive pes=4 barrier=1", "dora class=standby pes=1 barrier=1"
    )
    assert wired.go().starts == []
    assert made(wired.site, "bumper")["application"]["seq"] == bumper
    assert wired.why(late).code == "NO_UNITS"
