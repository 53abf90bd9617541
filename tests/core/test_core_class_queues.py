"""Class queues beside reserved starts of other queues, and the offers of their jobs to `jobselect`."""

import pytest
from core.harness import force, hold_line, refuse

from nqspy.core.fallback.preempt import move_rank
from nqspy.engine.recheck import Recheck
from nqspy.model.actions import Redate, Start, Suspend
from nqspy.model.requests import State
from nqspy.ports import Answer


def suspended(told):
    """Return the requests that a pass makes give way."""
    return [action.seq for action in told.actions if isinstance(action, Suspend)]


# ---------------------------------------------------------------- reserved starts of other queues


@pytest.fixture
def reserved(gang):
    """Half of the machine is busy for an hour; then a request of another queue is to have all of it."""
    gang.queue("night", reserve=1, order="fcfs").run("anne pes=4 wall=3600")
    gang.run("ben pes=8 wall=600")
    return gang


def test_a_forced_job_and_one_scheduled_now_pass_reserved_starts(reserved):
    forced, now, other = reserved.submit(*["cleo class=standby pes=1 wall=7200"] * 3, queue="apps")
    reserved.schedule(now, "now")
    reserved.exits(jobselect=lambda request, view: force() if request.seq == forced else None)
    assert set(reserved.go().starts) == {forced, now}
    assert reserved.why(other).code == "RESERVED"


@pytest.fixture
def cleared(gang):
    """PEs are cleared for an interactive job that would delay the reserved start of another queue."""
    gang.queue("night", reserve=1, order="fcfs").run("anne class=standby pes=6 wall=600 queue=apps")
    wide = gang.later(seconds=30).run("ben pes=8 wall=600")[0]
    gang.wide, gang.bumper = wide, gang.submit("cleo class=interactive pes=4 wall=7200", queue="apps")[0]
    (gang.victim,) = suspended(gang.go())
    gang.moved_out(gang.victim)
    return gang


def test_a_job_for_which_a_block_was_cleared_passes_reserved_starts(cleared):
    told = cleared.run_pass()
    assert told.starts == [cleared.bumper]
    assert [action.cleared for action in told.actions if isinstance(action, Start)] == [True]


def test_the_recheck_lets_only_a_job_with_a_cleared_block_delay_a_reserved_start(cleared):
    start = next(action for action in cleared.run_pass().actions if isinstance(action, Start))
    for is_cleared in (True, False):
        action = Start(start.seq, start.attempt, start.pes, cleared=is_cleared, by="select")
        assert Recheck(cleared.site, (), cleared.now, {}).stands(action) is is_cleared


# ---------------------------------------------------------------- jobselect


def test_each_job_is_offered_once_in_a_pass(gang):
    gang.run("anne class=benchmark pes=8")
    gang.later(hours=1)
    jobs = gang.submit("ben class=interactive pes=2", "cleo class=interactive pes=2", "dora class=standby")
    exits = gang.schedule(jobs[2], "first").exits(jobselect=lambda request, view: None)
    assert gang.go().starts == []
    assert sorted(exits.called("jobselect")) == sorted({*exits.called("jobselect")})


def test_a_job_that_gave_way_goes_on_without_being_offered(cleared):
    cleared.end(cleared.go().starts[0])
    exits = cleared.exits(may_force=False, jobselect=lambda request, view: refuse())
    cleared.go()
    assert cleared.victim not in exits.called("jobselect")
    assert not cleared.request(cleared.victim).pes_released


def test_a_job_that_gave_way_goes_on_behind_a_line_that_an_exit_holds(cleared):
    cleared.end(cleared.go().starts[0]).submit("dora class=interactive pes=1", queue="apps")
    cleared.exits(jobselect=lambda request, view: hold_line())
    assert cleared.go().starts == []
    assert not cleared.request(cleared.victim).pes_released


def test_a_refusal_reaches_the_jobs_of_its_queue_that_are_alike(gang):
    anne = gang.queue("more", order="class").submit(*["anne"] * 3, queue="apps")
    others = gang.submit("ben queue=apps", "anne queue=more")

    def jobselect(request, view):
        return Answer("refuse", "no", "exits/test", ("owner",)) if request.seq == anne[0] else None

    exits = gang.exits(may_force=False, jobselect=jobselect)
    assert sorted(gang.go().starts) == others
    assert set(exits.called("jobselect")) == {anne[0], *others}
    assert {gang.why(seq).code for seq in anne} == {"EXIT"}


def test_redated_jobs_take_their_new_place_at_once(gang):
    first = gang.submit("anne pes=8")[0]
    second = gang.later(seconds=1).submit("anne pes=4")[0]
    third = gang.later(seconds=1).submit("ben pes=4")[0]
    gang.set("queue/apps/user_limit", 2).hold(first)
    early = gang.later(seconds=1).submit("cleo class=interactive pes=4")[0]

    def elected(request, view):
        ben = tuple(each.seq for each in view.waiting(owner="ben"))
        return [Redate(ben, first_date, request.seq, "exits/test")] if request.seq == early else []

    first_date = gang.request(second).date_in_queue - 1
    gang.exits(elected=elected)
    assert gang.go().starts == [early, third]


# ---------------------------------------------------------------- moves


def test_what_a_bumper_waits_for_is_moved_first_then_what_comes_back(gang):
    cleared, other = gang.run("anne class=production pes=4", "ben class=standby pes=4")
    gang.later(hours=1).run("cleo class=interactive pes=8")
    leaving = next(seq for seq in (cleared, other) if gang.request(seq).state is State.SUSPENDED)
    staying = other if leaving == cleared else cleared
    assert move_rank(gang.site, leaving) > move_rank(gang.site, staying) > 0
    assert move_rank(gang.site, 999) == 0
