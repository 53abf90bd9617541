"""Owners change the class of their jobs, suspend and resume them; a suspended job gives up its PEs."""

import pytest
from engine.harness import ANNE, BEN, OLGA, Centre
from engine.test_engine_properties import happened, unlike, what_if

from nqspy.engine.virtual.moves import OutOnly
from nqspy.model import commands as cm
from nqspy.model import events as ev

SITE = """
create class production priority=2 wait=0 do_not_disturb=0
create class interactive priority=4 wait=0 do_not_disturb=0
create class standby priority=1 wait=unlimited do_not_disturb=0
create class royal priority=9 wait=0 users=(ben)
create batch_queue apps order=class
create batch_queue plain
enable queue all
start queue all
add managers = (olga:o)
"""


@pytest.fixture
def centre():
    return Centre(SITE, pes=4, moves=OutOnly(1_000), length=3_600)


def job(centre, owner="anne", pes=4, kind="production", queue="apps"):
    [seq] = centre.submit(f"{owner} pes={pes} wall=7200 queue={queue} class={kind}")
    return seq


def do(centre, seq, by, resume=False) -> str:
    """Suspend or resume a job; return the kind of the refusal, empty: it is done."""
    answer = centre.ask(cm.SuspendRequests((centre.id(seq),), resume), by)
    return answer["failed"][0]["code"] if answer["failed"] else ""


def change(centre, seq, kind, by) -> str:
    answer = centre.ask(cm.ModifyRequest((centre.id(seq),), {"job_class": kind}), by)
    return answer["failed"][0]["code"] if answer["failed"] else ""


def pes_held(centre, seq) -> int:
    return sum(seq in holders for holders in centre.site.holders.values())


def test_a_job_that_its_owner_suspends_gives_up_its_pes_and_stays_away_until_its_owner_resumes_it(centre):
    mine = job(centre)
    assert do(centre, mine, ANNE) == ""
    assert (centre.state(mine), pes_held(centre, mine)) == ("suspended", 4)
    other = job(centre, "ben")
    centre.later(seconds=3)
    assert centre.state(other) == "queued", "it is moving out"
    centre.later(seconds=3)
    assert (centre.state(other), pes_held(centre, mine)) == ("running", 0)
    centre.later(hours=3)
    assert (centre.state(other), centre.state(mine)) == ("ended", "suspended")
    ran = centre.request(mine).run.ran(centre.sim.now)
    assert do(centre, mine, ANNE, resume=True) == ""
    assert (centre.state(mine), centre.request(mine).run.ran(centre.sim.now)) == ("running", ran)
    centre.later(hours=2)
    assert centre.state(mine) == "ended"
    assert centre.end_of(mine).used.wall == 3_600_000
    centre.is_sound()


def test_a_resumed_job_waits_by_its_class_and_from_then_on(centre):
    mine = job(centre)
    do(centre, mine, ANNE)
    centre.later(seconds=10)
    one = job(centre, "ben", kind="interactive")
    assert centre.state(one) == "running"
    centre.later(minutes=5)
    assert do(centre, mine, ANNE, resume=True) == ""
    centre.later(minutes=1)
    assert (centre.state(mine), centre.request(mine).pause.at) == ("suspended", centre.sim.now - 60_000)
    centre.later(hours=1)
    assert (centre.state(one), centre.state(mine)) == ("ended", "running")
    assert [event.because().name for event in centre.events(ev.Resumed)] == ["bumper"]


def test_no_room_is_kept_for_a_job_that_its_owner_keeps_away(centre):
    centre.qmgr("set queue plain reserve=1")
    mine = job(centre)
    do(centre, mine, ANNE)
    centre.later(seconds=10)
    job(centre, "ben", pes=2, queue="plain")
    began = centre.sim.now
    wide = job(centre, "ben", pes=4, queue="plain")
    assert centre.request(wide).reservation.at == began + 7_200_000


def test_a_job_is_resumed_while_it_moves_out(centre):
    mine = job(centre)
    do(centre, mine, ANNE)
    centre.later(seconds=1)
    assert do(centre, mine, ANNE, resume=True) == ""
    centre.later(seconds=10)
    assert centre.state(mine) == "running"


def test_a_job_that_gave_way_stays_away_if_its_owner_says_so(centre):
    mine = job(centre)
    one = job(centre, "ben", pes=4, kind="interactive")
    centre.later(seconds=10)
    assert (centre.state(mine), centre.state(one)) == ("suspended", "running")
    assert do(centre, mine, BEN) == "not_permitted"
    assert do(centre, mine, ANNE, resume=True) == "not_permitted", "it comes back by itself"
    assert do(centre, mine, ANNE) == ""
    centre.later(hours=2)
    assert (centre.state(one), centre.state(mine)) == ("ended", "suspended")
    assert do(centre, mine, OLGA, resume=True) == ""
    centre.later(seconds=1)
    assert centre.state(mine) == "running"


def test_others_may_not_and_in_other_queues_only_operators_may(centre):
    mine, plain = job(centre, pes=2), job(centre, pes=2, queue="plain")
    assert do(centre, mine, BEN) == "not_permitted"
    assert do(centre, plain, ANNE) == "not_permitted"
    assert do(centre, plain, OLGA) == ""
    centre.later(seconds=10)
    assert (centre.state(plain), pes_held(centre, plain)) == ("suspended", 2), "it keeps its PEs"
    assert do(centre, plain, ANNE, resume=True) == "not_permitted"
    assert do(centre, plain, OLGA, resume=True) == ""
    assert centre.state(plain) == "running"
    assert do(centre, mine, OLGA) == ""
    centre.later(seconds=10)
    assert pes_held(centre, mine) == 0
    assert do(centre, mine, ANNE, resume=True) == "not_permitted", "an operator suspended it"
    assert do(centre, mine, OLGA, resume=True) == ""
    assert centre.state(mine) == "running"


def test_a_job_is_not_suspended_twice_nor_resumed_while_it_runs(centre):
    mine = job(centre)
    assert do(centre, mine, ANNE, resume=True) == "wrong_state"
    assert do(centre, mine, ANNE) == ""
    assert do(centre, mine, ANNE) == "wrong_state"
    centre.later(seconds=10)
    assert do(centre, mine, ANNE) == "wrong_state"
    centre.ask(cm.Delete((centre.id(mine),), force=True), ANNE)
    assert centre.state(mine) == "ended"


def test_the_class_of_a_running_job_changes_what_it_gives_way_to(centre):
    mine = job(centre, kind="interactive")
    one = job(centre, "ben")
    centre.later(seconds=10)
    assert (centre.state(mine), centre.state(one)) == ("running", "queued")
    assert change(centre, mine, "standby", BEN) == "not_permitted"
    assert change(centre, mine, "royal", ANNE) != ""
    assert change(centre, mine, "nothing", ANNE) != ""
    assert change(centre, mine, "standby", ANNE) == ""
    centre.later(seconds=10)
    assert (centre.state(mine), centre.state(one)) == ("suspended", "running")
    centre.is_sound()


def test_a_journal_with_it_is_followed_and_run_again(centre):
    mine = job(centre)
    centre.later(seconds=5)
    do(centre, mine, ANNE)
    centre.later(minutes=10)
    job(centre, "ben", kind="interactive")
    centre.later(minutes=1)
    do(centre, mine, ANNE, resume=True)
    centre.later(hours=3)
    assert [(event.because().kind, event.to.kind) for event in centre.events(ev.PauseChanged)] == [
        ("owner", "feature")
    ]
    assert not unlike(centre.journal)
    was, would = what_if(centre)
    assert happened(was.made) == happened(would.made)
    assert [type(each.event) for each in was.made].count(ev.PauseChanged) == 1
