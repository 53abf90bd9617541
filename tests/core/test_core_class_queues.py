"""Class queues beside reserved starts of other queues, and the offers of their jobs to `jobselect`."""

import pytest
from core.harness import hold_line, refuse
from core.story import Story

from nqspy.core.fallback.preempt import move_rank
from nqspy.engine.recheck import Recheck
from nqspy.model.actions import Redate, Start, Suspend
from nqspy.model.requests import State
from nqspy.ports import Answer


def test_a_forced_job_and_one_scheduled_now_pass_reserved_starts(gang):
    Story(gang).play("""queue night reserve=1 order=fcfs; run anne pes=4 wall=3600; run ben pes=8 wall=600
        submit cleo class=standby wall=7200 queue=apps, dora class=standby wall=7200 queue=apps
        submit emil class=standby wall=7200 queue=apps; schedule dora now; asks forcing cleo=force
        starts dora cleo; why emil RESERVED""")


@pytest.fixture
def cleared(gang):
    """PEs are cleared for an interactive job that would delay the reserved start of another queue."""
    gang.queue("night", reserve=1, order="fcfs").run("anne class=standby pes=6 wall=600 queue=apps")
    gang.later(seconds=30).run("ben pes=8 wall=600")
    gang.bumper = gang.submit("cleo class=interactive pes=4 wall=7200", queue="apps")[0]
    (gang.victim,) = [action.seq for action in gang.go().actions if isinstance(action, Suspend)]
    return gang.moved_out(gang.victim)


def test_the_recheck_lets_only_a_job_with_a_cleared_block_delay_a_reserved_start(cleared):
    (start,) = [action for action in cleared.run_pass().actions if isinstance(action, Start)]
    assert (start.seq, start.cleared) == (cleared.bumper, True)
    for is_cleared in (True, False):
        action = Start(start.seq, start.attempt, start.pes, cleared=is_cleared, by="select")
        assert Recheck(cleared.site, (), cleared.now, {}).stands(action) is is_cleared


# ---------------------------------------------------------------- jobselect


@pytest.mark.parametrize("answer", [refuse(), hold_line()])
def test_a_job_that_gave_way_goes_on_without_being_offered(cleared, answer):
    cleared.end(cleared.go().starts[0]).submit("dora class=interactive pes=1", queue="apps")
    exits = cleared.exits(answer.verdict == "hold_line", jobselect=lambda request, view: answer)
    assert cleared.go().starts == []
    assert cleared.victim not in exits.called("jobselect")
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
    pair = gang.run("anne class=production pes=4", "ben class=standby pes=4")
    gang.later(hours=1).run("cleo class=interactive pes=8")
    leaving, staying = sorted(pair, key=lambda seq: gang.request(seq).state is not State.SUSPENDED)
    assert move_rank(gang.site, leaving) > move_rank(gang.site, staying) > move_rank(gang.site, 999) == 0
