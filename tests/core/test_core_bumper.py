"""The Gang Scheduler's classes and its bumper, as seed 000 tells of them."""

import pytest

from nqspy.core.fallback.preempt import move_rank
from nqspy.model import actions as ac
from nqspy.model.events import Change, Deleting
from nqspy.model.ids import member
from nqspy.model.promises import made
from nqspy.model.requests import State


def suspended(told):
    """Whom a pass has give way."""
    return [action.seq for action in told.actions if isinstance(action, ac.Suspend)]


def resumed(told):
    """Who comes back, and where."""
    return {action.seq: action.pes for action in told.actions if isinstance(action, ac.Resume)}


def test_jobs_are_loaded_by_class_then_by_wait_nearest_to_pe_0(gang):
    production = gang.submit("anne class=production pes=2")[0]
    standby = gang.later(1).submit("ben class=standby pes=2")[0]
    interactive = gang.later(1).submit("cleo class=interactive pes=2")[0]
    later = gang.later(1).submit("dora class=production pes=2")[0]
    told = gang.run_pass()
    assert told.starts == [interactive, production, later, standby]
    assert [told.pes(seq)[0] for seq in told.starts] == [0, 2, 4, 6]


def test_one_that_names_no_class_has_the_sites_default(gang):
    nameless = gang.submit("anne pes=1")[0]
    interactive = gang.later(1).submit("ben class=interactive pes=1")[0]
    assert gang.run_pass().starts == [interactive, nameless]


def test_an_interactive_job_preempts_once_the_do_not_disturb_time_is_over(gang):
    victim = gang.run("anne class=production pes=8")[0]
    bumper = gang.later(seconds=20).submit("ben class=interactive pes=4")[0]
    told = gang.go()
    assert suspended(told) == []
    assert told.plan.wake_at == gang.request(victim).started + 80_000
    assert "being cleared" in gang.why(bumper).text
    gang.at(80)
    assert suspended(gang.go()) == [victim]
    assert not gang.request(victim).pes_released
    assert gang.go().starts == []
    gang.moved_out(victim)
    assert gang.go().pes(bumper) == (0, 1, 2, 3)
    gang.end(bumper)
    assert resumed(gang.go()) == {victim: ()}


def test_who_comes_back_may_do_so_on_other_pes(gang):
    low, victim = gang.run("anne class=production pes=2", "ben class=standby pes=4")
    wide = gang.at(60).submit("cleo class=interactive pes=6")[0]
    assert suspended(gang.go()) == [victim]
    gang.moved_out(victim)
    assert gang.go().pes(wide) == (2, 3, 4, 5, 6, 7)
    gang.end(low).go()
    gang.end(wide)
    assert resumed(gang.go()) == {victim: (0, 1, 2, 3)}


def test_a_benchmark_job_and_a_higher_class_are_never_bumped(gang):
    gang.run("anne class=benchmark pes=4", "ben class=interactive pes=4")
    bumper = gang.later(hours=3).submit("cleo class=interactive pes=2")[0]
    waiting = gang.submit("dora class=production pes=2")[0]
    told = gang.later(hours=1).go()
    assert suspended(told) == []
    assert told.starts == []
    assert made(gang.site, "bumper") == {}
    assert gang.request(bumper).state is gang.request(waiting).state is State.QUEUED


def test_equal_classes_bump_each_other_only_where_they_are_to_wait(gang):
    gang.run("anne class=production pes=8")
    waiting = gang.later(hours=1).submit("ben class=production pes=2")[0]
    assert suspended(gang.go()) == []
    gang.later(minutes=30)
    assert len(suspended(gang.go())) == 1
    assert made(gang.site, "bumper")["application"]["seq"] == waiting


def test_the_block_that_costs_least_is_cleared(gang):
    first, second = gang.run("anne class=production pes=4", "ben class=standby pes=4")
    gang.later(hours=1).submit("cleo class=interactive pes=2")
    assert suspended(gang.go()) == [second]
    assert gang.request(first).state is State.RUNNING


def test_of_two_that_cost_the_same_the_larger_is_bumped(gang):
    gang.submit("anne class=production pes=1", "ben class=production pes=1", "cleo class=production pes=2")
    large = gang.run("dora class=production pes=4")[0]
    gang.later(hours=1).submit("emil class=interactive pes=4")
    assert suspended(gang.go()) == [large]


def test_no_larger_one_is_bumped_than_is_called_for(gang):
    small, large = gang.run("anne class=production pes=2", "ben class=production pes=6")
    gang.later(hours=1).submit("cleo class=interactive pes=2")
    assert suspended(gang.go()) == [small]
    assert gang.request(large).state is State.RUNNING


def test_a_bumper_takes_what_becomes_free_earlier_and_lets_go_of_its_block(gang):
    whole, other = gang.run("anne class=standby pes=4", "ben class=interactive pes=4")
    bumper = gang.run("cleo class=production pes=4")[0]
    assert made(gang.site, "bumper") == {}
    gang.at(31 * 60)
    assert suspended(gang.go()) == [whole]
    assert made(gang.site, "bumper")["application"] == {"seq": bumper, "pes": ["4-7"]}
    gang.end(other)
    assert gang.go().pes(bumper) == (0, 1, 2, 3)
    assert made(gang.site, "bumper") == {}
    gang.moved_out(whole)
    assert resumed(gang.go()) == {whole: ()}


def test_there_is_one_bumper_at_a_time_unless_a_higher_class_comes(gang):
    gang.run("anne class=standby pes=4", "ben class=standby pes=4")
    production = gang.submit("cleo class=production pes=8")[0]
    gang.at(30 * 60 - 1).submit("dora class=production pes=8")
    gang.at(30 * 60).go()
    assert made(gang.site, "bumper")["application"]["seq"] == production
    interactive = gang.later(seconds=1).run("emil class=interactive pes=8")[0]
    assert made(gang.site, "bumper")["application"]["seq"] == interactive


def test_one_loaded_a_moment_ago_is_cleared_for_the_next_bumper_when_his_time_is_over(gang):
    before = gang.run("anne class=production pes=8")[0]
    first = gang.later(seconds=1).submit("ben class=production pes=8")[0]
    second = gang.later(seconds=1).submit("cleo class=production pes=8")[0]
    gang.later(minutes=31).go()
    told = gang.end(before).go()
    assert told.starts == [first]
    assert made(gang.site, "bumper")["application"]["seq"] == second
    assert told.plan.wake_at == gang.request(first).started + 80_000


def test_who_need_not_be_left_alone_at_all_is_not_bumped_as_he_is_loaded(gang):
    gang.set("class/standby/do_not_disturb", 0).set("class/standby/wait", 60_000)
    first, _ = gang.submit("anne class=standby pes=8", "ben class=standby pes=8")
    told = gang.later(minutes=2).go()
    assert (told.starts, suspended(told)) == ([first], [])
    gang.later(told.plan.wake_at - gang.now)
    assert suspended(gang.go()) == [first]


def test_whom_a_limit_of_its_class_forbids_is_no_bumper(gang):
    gang.run("anne class=standby pes=8")
    gang.later(hours=1).set("class/interactive/pe_limit", 2).submit("ben class=interactive pes=4")
    told = gang.go()
    assert suspended(told) == []
    assert made(gang.site, "bumper") == {}


@pytest.mark.parametrize("placement", ["contiguous", "lowest"])
def test_of_a_class_at_its_limit_one_gives_way_though_pes_are_free(gang, placement):
    gang.set("domain/application/placement", placement).set("class/production/pe_limit", 2)
    first, second = gang.submit("anne class=production pes=1", "ben class=production pes=1")
    gang.run("cleo class=standby pes=3")
    bumper = gang.submit("dora class=production pes=1")[0]
    gang.later(minutes=30)
    leaves = suspended(gang.go())
    assert leaves in ([first], [second])
    gang.moved_out(leaves[0])
    assert gang.go().starts == [bumper]


def test_large_jobs_together_have_no_more_than_their_limit(gang):
    gang.set("gang/large_size", 3).set("gang/large_limit", 4)
    one, two, small = gang.submit("anne pes=4", "ben pes=4", "cleo pes=2")
    assert gang.go().starts == [one, small]
    assert "large jobs" in gang.why(two).text


def test_one_whom_a_limit_alone_keeps_back_is_told_that_it_must_be_raised(gang):
    wide, _, two = gang.set("class/interactive/pe_limit", 2).run(
        "ben class=interactive pes=4", "ben class=interactive pes=2", "ben class=interactive"
    )
    assert gang.why(wide).matches(kind="class_shut", who="class interactive", values=(2, 4))
    assert "the limit must be raised" in gang.why(wide).needed
    assert "2 of them are in use" in gang.why(two).text
    assert "end or give way" in gang.why(two).needed
    gang.set("class/interactive/pe_limit", None).set("gang/job_limit", 3).go()
    assert gang.why(wide).matches(kind="class_shut", who="gang", values=(3, 4))


def test_large_jobs_of_lower_classes_do_not_count_for_one_that_may_bump_them(gang):
    gang.set("gang/large_size", 3).set("gang/large_limit", 4)
    one, two = gang.submit("anne class=production pes=4", "ben class=production pes=4")
    assert gang.go().starts == [one]
    interactive = gang.submit("cleo class=interactive pes=4")[0]
    told = gang.go()
    assert told.pes(interactive) == (4, 5, 6, 7)
    assert suspended(told) == []
    assert "large jobs" in gang.why(two).text


def test_large_jobs_of_lower_classes_that_never_give_way_count_for_everybody(gang):
    gang.set("gang/large_size", 3).set("gang/large_limit", 4).run("anne class=benchmark pes=4")
    interactive = gang.submit("ben class=interactive pes=4")[0]
    assert gang.go().starts == []
    assert "large jobs" in gang.why(interactive).text


def test_large_jobs_of_lower_classes_count_for_one_whose_class_bumps_nobody(gang):
    gang.set("gang/large_size", 3).set("gang/large_limit", 4).run("anne class=production pes=4")
    gang.submit("ben class=benchmark pes=4")
    assert gang.go().starts == []


def test_of_a_block_one_leaves_after_the_other_and_the_others_go_on(gang):
    first, second = gang.run("anne class=standby pes=4", "ben class=standby pes=4")
    bumper = gang.later(hours=1).submit("cleo class=interactive pes=8")[0]
    leaves = suspended(gang.go())
    assert len(leaves) == 1
    assert suspended(gang.go()) == []
    gang.moved_out(leaves[0])
    assert suspended(gang.go()) == [seq for seq in (first, second) if seq not in leaves]
    gang.moved_out(second if leaves == [first] else first)
    assert gang.go().starts == [bumper]


def test_what_a_bumper_waits_for_is_moved_first_then_who_comes_back(gang):
    cleared, other = gang.run("anne class=production pes=4", "ben class=standby pes=4")
    gang.later(hours=1).run("cleo class=interactive pes=8")
    leaving = next(seq for seq in (cleared, other) if gang.request(seq).state is State.SUSPENDED)
    staying = other if leaving == cleared else cleared
    assert move_rank(gang.site, leaving) > move_rank(gang.site, staying) > 0
    assert move_rank(gang.site, 999) == 0


def test_no_job_has_more_than_a_job_may(gang):
    wide, fits = gang.set("gang/job_limit", 4).submit("anne class=interactive pes=5", "ben pes=4")
    assert gang.go().starts == [fits]
    assert gang.request(wide).state is State.QUEUED


def test_a_bumper_takes_a_slot_before_it_bumps(gang):
    first = gang.set("domain/application/depth", 2).run("anne class=production pes=8")[0]
    second = gang.later(hours=1).submit("ben class=interactive pes=4")[0]
    assert gang.go().pes(second) == (0, 1, 2, 3)
    assert gang.request(first).state is State.RUNNING


def test_what_is_reserved_is_given_to_nobody_else(gang):
    gang.run("anne class=standby pes=3", "ben class=benchmark pes=2")
    bumper = gang.submit("cleo class=interactive pes=6")[0]
    small = gang.submit("dora class=production pes=1")[0]
    assert gang.go().starts == []
    assert made(gang.site, "bumper")["application"] == {"seq": bumper, "pes": ["2-7"]}
    assert gang.request(small).state is State.QUEUED


def test_the_room_of_a_bumper_under_its_class_limit_is_taken_by_nobody_who_gave_way_to_it(gang):
    gang.set("class/production/pe_limit", 2)
    first, second = gang.run("anne class=production pes=1", "ben class=production pes=1")
    gang.run("cleo class=benchmark pes=5")
    bumper = gang.later(hours=1).submit("dora class=production pes=2")[0]
    gang.later(minutes=30)
    for _ in range(2):
        (leaves,) = suspended(gang.go())
        gang.moved_out(leaves)
    assert gang.go().starts == [bumper]
    assert gang.request(first).state is gang.request(second).state is State.SUSPENDED


def test_the_room_of_a_bumper_under_the_limit_of_large_jobs_is_taken_by_nobody_else(gang):
    gang.set("gang/large_size", 3).set("gang/large_limit", 4)
    victim = gang.set("class/standby/do_not_disturb", 3_600_000).run("anne class=standby pes=4")[0]
    gang.run("ben class=benchmark pes=1")
    bumper = gang.submit("cleo class=production pes=4")[0]
    late = gang.later(minutes=30).submit("dora class=production pes=3")[0]
    assert gang.go().starts == []
    assert made(gang.site, "bumper")["application"]["seq"] == bumper
    assert "large jobs" in gang.why(late).text
    gang.later(hours=4)
    assert suspended(gang.go()) == [victim]
    gang.moved_out(victim)
    assert gang.go().starts == [bumper]


def test_nobody_gives_way_where_nothing_goes_by_class(gang):
    gang.queue("night").run("anne pes=8")
    gang.later(hours=2).submit("ben class=interactive pes=1", queue="apps")
    assert suspended(gang.go()) == []


def test_qstat_gives_places_by_class(gang):
    production, interactive = gang.submit("anne class=production pes=2", "ben class=interactive pes=2")
    assert gang.standing().line() == [interactive, production]


@pytest.fixture
def beside(gang):
    """A bumper has a block cleared, of which a half is free; another queue of the domain is served too."""
    gang.queue("night", priority=9).run("anne class=production pes=4 wall=7200 queue=apps")
    gang.later(hours=1).submit("ben class=interactive pes=8 wall=600 queue=apps")
    return gang


def test_no_request_of_another_queue_gets_pes_of_the_block(beside):
    waiting = beside.submit("cleo pes=2 queue=night")[0]
    told = beside.go()
    assert len(suspended(told)) == 1
    assert told.starts == []
    free_kept_for = (2, 0, 8, None, 4, "2.ymp", None)
    assert beside.why(waiting).matches(code="NO_PES", kind="pes_kept_free", values=free_kept_for)


def test_a_start_is_reserved_beside_the_block(beside):
    waiting = beside.set("queue/night/reserve", 1).run("cleo pes=2 wall=600 queue=night")[0]
    assert beside.request(waiting).reservation.at == beside.now + 600_000


def test_a_job_that_an_operator_scheduled_comes_before_higher_classes(gang):
    high, low, first = gang.submit(
        "anne class=interactive pes=8", "ben class=production pes=8", "cleo class=standby pes=8"
    )
    gang.schedule(low, "first")
    assert gang.run_pass().starts == [low]
    gang.schedule(first, "next")
    assert gang.run_pass().starts == [first]
    gang.schedule(high, "now")
    assert gang.run_pass().starts == [high]


def test_a_job_that_is_scheduled_now_passes_limits_but_not_those_of_classes(gang):
    gang.set("queue/apps/run_limit", 0).set("class/standby/pe_limit", 4)
    wide, small = gang.submit("anne class=standby pes=8", "ben class=standby pes=4")
    gang.schedule(wide, "now").schedule(small, "now")
    assert gang.run_pass().starts == [small]


def test_a_job_waits_behind_those_of_its_owner_with_a_higher_priority(gang):
    low, other, high = gang.submit(
        "anne class=production pes=2", "ben class=production pes=2", "anne class=standby pes=2 p=10"
    )
    assert gang.run_pass().starts == [other, high, low]
    assert gang.standing().line() == [other, high, low]


def test_a_block_stays_when_another_bumper_is_loaded(gang):
    gang.set("class/production/wait", 0)
    first, victim = gang.run("anne class=standby pes=3", "ben class=standby pes=3")
    gang.at(2).end(first).run("cleo class=standby pes=3")
    bumper = gang.at(4).run("dora class=production pes=3")[0]
    assert made(gang.site, "bumper")["application"] == {"seq": bumper, "pes": ["3-5"]}
    small = gang.at(20).submit("emil class=interactive pes=2")[0]
    told = gang.go()
    assert told.starts == [small]
    assert suspended(told) == [victim]


def test_a_machine_that_lost_pes_under_a_job_clears_those_that_are_left(house):
    house.machine(pes=3).queue("jobs", order="class")
    house.change(Change("create", "class/production", {"priority": 1}))
    house.change(Change("create", "class/fast", {"priority": 4, "wait": 0}))
    house.run("anne pes=3 class=production")
    fast = house.set("machine/pes", 2).submit("ben pes=2 class=fast")[0]
    house.later(minutes=10).go()
    assert house.why(fast) is not None


def test_a_job_whose_resource_is_broken_is_not_loaded(house):
    house.machine(pes=3).queue("jobs", order="class")
    house.change(Change("create", "class/production", {"priority": 1})).probe("nfs", "broken")
    broken, well = house.submit("anne needs=nfs", "ben")
    assert house.go().starts == [well]
    assert house.why(broken).code == "RESOURCE"


def test_each_index_of_an_array_may_bump(gang):
    victim = gang.run("anne class=production pes=7")[0]
    gang.later(minutes=5)
    array = gang.array("ben pes=1 class=interactive", 2)
    (other,) = gang.later(1).submit("cleo class=interactive pes=1")
    told = gang.go()
    assert told.starts == [member(array, 1)], "the second one has waited longer than the other job"
    assert suspended(told) == [victim]
    gang.moved_out(victim)
    assert gang.go().starts == [member(array, 2), other]


def test_a_bumper_that_a_reservation_refused_bumps_once_that_has_started(gang):
    gang.queue("night", order="fcfs", reserve=1, priority=9)
    victim, short = gang.run("anne class=production pes=4 queue=apps", "ben pes=1 wall=5:00")
    (wide,) = gang.run("cleo pes=4 wall=60:00")
    (bumper,) = gang.later(minutes=4).run("dora class=interactive pes=3 wall=10:00 queue=apps")
    assert gang.why(bumper).code == "RESERVED"
    told = gang.later(minutes=1).end(short).go()
    assert told.starts == [wide]
    assert told.plan.wake_at == gang.now + 1
    gang.later(1)
    assert suspended(gang.go()) == [victim]


def test_a_job_that_was_asked_to_end_counts_under_the_limit_of_its_class(gang):
    gang.set("class/production/pe_limit", 4)
    first, second = gang.submit("anne class=production pes=4", "ben class=production pes=4")
    assert gang.go().starts == [first]
    gang._event(Deleting(first, 1, "anne"))
    assert gang.go().starts == []
    gang.end(first)
    assert gang.go().starts == [second]
