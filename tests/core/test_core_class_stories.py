"""Job classes and the bumper as in seed 000, on the machine of `conftest.gang` (`core.story`)."""

import pytest
from core.harness import hold_line, refuse
from core.story import Story

from nqspy.core.fallback.preempt import move_rank
from nqspy.engine.recheck import Recheck
from nqspy.model.actions import Redate, Start, Suspend
from nqspy.model.requests import State
from nqspy.ports import Answer
from nqspy.userexit.testing import Site

LARGE = "set gang/large_size 3; set gang/large_limit 4"
BESIDE = """queue night priority=9; run anne class=production pes=4 wall=7200 queue=apps; later 60
    submit ben class=interactive pes=8 wall=600 queue=apps"""
RESERVED = "queue night reserve=1 order=fcfs; run anne pes=4 wall=3600; run ben pes=8 wall=600"
CIRCUITS = "create consumable/barrier count=4 policy=round_robin"
SIZES = "sizes=1,2,3,4,5,6,7,8"

LOADING = {
    "by class, then by wait, nearest to PE 0": """submit anne class=production pes=2; later 1ms
        submit ben class=standby pes=2; later 1ms; submit cleo class=interactive pes=2; later 1ms
        submit dora class=production pes=2; starts cleo anne dora ben
        pes cleo 0-1; pes anne 2-3; pes dora 4-5; pes ben 6-7; line apps""",
    "one without a class has the site's default": """submit anne; later 1ms; submit ben class=interactive
        starts ben anne""",
    "qstat gives places by class": """submit anne class=production pes=2, ben class=interactive pes=2
        line apps ben anne""",
    "no job has more than a job may": """set gang/job_limit 4; submit anne class=interactive pes=5, ben pes=4
        starts ben""",
    "large jobs together": f"""{LARGE}; submit anne pes=4, ben pes=4, cleo pes=2; starts anne cleo
        why ben class_limit 4 4""",
    "one that a limit alone holds": """set class/interactive/pe_limit 2
        run ben class=interactive pes=4, ben class=interactive pes=2, ben class=interactive
        why ben class_shut 2 4; why ben3 class_limit 2 2; set class/interactive/pe_limit -
        set gang/job_limit 3; go; why ben class_shut 3 4""",
    "large jobs of lower classes that may be bumped do not count": f"""{LARGE}
        submit anne class=production pes=4, ben class=production pes=4; starts anne
        submit cleo class=interactive pes=4; starts cleo; gives -; pes cleo 4-7; why ben class_limit""",
    "large jobs of lower classes that never give way count": f"""{LARGE}; run anne class=benchmark pes=4
        submit ben class=interactive pes=4; starts -; why ben class_limit 4 4""",
    "large jobs of lower classes count for one that bumps none": f"""{LARGE}; run anne class=production pes=4
        submit ben class=benchmark pes=4; starts -""",
    "a job that an operator scheduled comes before higher classes": """
        submit anne class=interactive pes=8, ben class=production pes=8, cleo class=standby pes=8
        schedule ben first; picks ben; schedule cleo next; picks cleo; schedule anne now; picks anne""",
    "scheduled now it passes limits, not those of classes": """set queue/apps/run_limit 0
        set class/standby/pe_limit 4; submit anne class=standby pes=8, ben class=standby pes=4
        schedule anne now; schedule ben now; starts ben""",
    "behind those of its owner with a higher priority": """
        submit anne class=production pes=2, ben class=production pes=2, anne class=standby pes=2 p=10
        line apps ben anne2 anne; starts ben anne2 anne""",
    "one that was asked to end counts": """set class/production/pe_limit 4
        submit anne class=production pes=4, ben class=production pes=4; starts anne; delete anne; starts -
        end anne; starts ben""",
    "the largest size that fits": """run anne class=production pes=3
        submit ben class=production sizes=2,4,6; starts ben; pes ben 3-6; lacked ben 6:NO_PES""",
    "a size under the limits of class, gang and queue": f"""
        create class/narrow priority=2 do_not_disturb=0 pe_limit=5; run ben class=narrow {SIZES}; pes ben 0-4
        end ben; set gang/job_limit 4; run ben class=narrow {SIZES}; pes ben2 0-3; end ben2
        set queue/apps/per_request/pe_limit 3; run ben class=narrow {SIZES}; pes ben3 0-2""",
    "circuits are given round robin": f"""{CIRCUITS}
        run anne class=production barrier=1, ben class=production, cleo class=production barrier=1
        units anne barrier=0; units cleo barrier=1; units ben; end anne
        run dora class=production barrier=1, emil class=production barrier=1, fay class=production barrier=1
        units dora barrier=2; units emil barrier=3; units fay barrier=0
        submit gus class=production barrier=1; starts -; why gus NO_UNITS""",
    "one that would delay a reserved start waits": f"""{RESERVED}
        submit cleo class=interactive pes=2 wall=7200 queue=apps, cleo class=standby pes=2 wall=600 queue=apps
        starts cleo2; why cleo RESERVED; block -""",
    "on a size that delays no reserved start": """queue night reserve=1; run anne pes=4 wall=3600
        run ben pes=6 wall=600; run cleo class=standby sizes=2,4 wall=7200 queue=apps; pes cleo 4-5""",
    "a contract fills the hole before a reserved start": f"""{RESERVED}; set queue/apps/backfill contract
        run cleo class=standby pes=2 wall=7200 contract=on queue=apps; ends cleo 60""",
    "again when a reserved start moves": f"""{RESERVED}; submit cleo class=standby pes=2 wall=7200 queue=apps
        starts -; end anne; starts ben; why cleo NO_PES""",
}  # fmt: skip

BUMPING = {
    "once the do-not-disturb time is over": """run anne class=production pes=8; later 20s
        run ben class=interactive pes=4; gives -; wake 80s; why ben being_cleared 0-3; at 80s; go; gives anne
        starts -; moved anne; starts ben; pes ben 0-3; end ben; go; returns anne""",
    "one may come back on other PEs": """run anne class=production pes=2, ben class=standby pes=4; at 60s
        run cleo class=interactive pes=6; gives ben; moved ben; starts cleo; pes cleo 2-7; end anne; go
        end cleo; go; returns ben 0-3""",
    "never a higher class, nor one that is not preempted": """
        run anne class=benchmark pes=4, ben class=interactive pes=4; later 180
        submit cleo class=interactive pes=2, dora class=production pes=2; later 60; starts -; gives -
        block -""",
    "equal classes only if they have a wait": """run anne class=production pes=8; later 60
        run ben class=production pes=2; gives -; later 30; go; gives anne; block ben""",
    "the block that costs least": """run anne class=production pes=4, ben class=standby pes=4; later 60
        run cleo class=interactive pes=2; gives ben""",
    "of equal cost the larger one": """
        run anne class=production, ben class=production, cleo class=production pes=2
        run dora class=production pes=4
        later 60; run emil class=interactive pes=4; gives dora""",
    "no larger one than is needed": """run anne class=production pes=2, ben class=production pes=6; later 60
        run cleo class=interactive pes=2; gives anne""",
    "what becomes free earlier is taken, and the block let go": """
        run anne class=standby pes=4, ben class=interactive pes=4; run cleo class=production pes=4; block -
        at 31; go; gives anne; block cleo 4-7; end ben; starts cleo; pes cleo 0-3; block -; moved anne; go
        returns anne""",
    "one bumper at a time, unless a higher class comes": """
        run anne class=standby pes=4, ben class=standby pes=4; submit cleo class=production pes=8; at 1799s
        submit dora class=production pes=8; at 30; go; block cleo; later 1s; run emil class=interactive pes=8
        block emil""",
    "one loaded a moment ago is cleared in time": """run anne class=production pes=8; later 1s
        submit ben class=production pes=8; later 1s; submit cleo class=production pes=8; later 31; go
        end anne
        starts ben; block cleo; wake +80000""",
    "none is bumped as it is loaded": """set class/standby/do_not_disturb 0; set class/standby/wait 60000
        submit anne class=standby pes=8, ben class=standby pes=8; later 2; starts anne; gives -; wake +1
        later 1ms; go; gives anne""",
    "one that a limit of its class forbids is no bumper": """run anne class=standby pes=8; later 60
        set class/interactive/pe_limit 2; run ben class=interactive pes=4; gives -; block -""",
    "holders of a block leave one after the other": """run anne class=standby pes=4, ben class=standby pes=4
        later 60; run cleo class=interactive pes=8; gives anne; go; gives -; moved anne; go; gives ben
        moved ben; starts cleo""",
    "a slot is taken before one is bumped": """set domain/application/depth 2; run anne class=production pes=8
        later 60; submit ben class=interactive pes=4; starts ben; gives -; pes ben 0-3""",
    "the block is given to no other": """run anne class=standby pes=3, ben class=benchmark pes=2
        submit cleo class=interactive pes=6, dora class=production; starts -; block cleo 2-7""",
    "its room under the class limit is taken by none that gave way": """set class/production/pe_limit 2
        run anne class=production, ben class=production; run cleo class=benchmark pes=5; later 60
        submit dora class=production pes=2; later 30; go; gives anne; moved anne; go; gives ben; moved ben
        starts dora""",
    "its room under the limit of large jobs": f"""{LARGE}; set class/standby/do_not_disturb 3600000
        run anne class=standby pes=4; run ben class=benchmark; submit cleo class=production pes=4; later 30
        submit dora class=production pes=3; starts -; block cleo; why dora class_limit; later 240; go
        gives anne; moved anne; starts cleo""",
    "none gives way in other queues": """queue night; run anne pes=8; later 120
        run ben class=interactive queue=apps; gives -""",
    "no request of another queue gets PEs of the block": f"""{BESIDE}; submit cleo pes=2 queue=night; starts -
        gives anne; why cleo pes_kept_free 2 0 8 - 4 2.ymp -""",
    "a start is reserved beside the block": f"""{BESIDE}; set queue/night/reserve 1
        run cleo pes=2 wall=600 queue=night; reserved cleo 70""",
    "a block stays when another bumper is loaded": """set class/production/wait 0
        run anne class=standby pes=3, ben class=standby pes=3; at 2s; end anne; run cleo class=standby pes=3
        at 4s; run dora class=production pes=3; block dora 3-5; at 20s; submit emil class=interactive pes=2
        starts emil; gives ben""",
    "each index of an array may bump": """run anne class=production pes=7; later 5
        array ben 2 pes=1 class=interactive; later 1ms; submit cleo class=interactive; starts ben[1]
        gives anne
        moved anne; starts ben[2] cleo""",
    "one that a reservation refused bumps once that has started": """
        queue night order=fcfs reserve=1 priority=9; run anne class=production pes=4 queue=apps, ben wall=5:00
        run cleo pes=4 wall=60:00; later 4; run dora class=interactive pes=3 wall=10:00 queue=apps
        why dora RESERVED; later 1; end ben; starts cleo; wake +1; later 1ms; go; gives anne""",
    "the least size is cleared, and more taken if it is free": """
        run anne class=production pes=4, ben class=standby pes=4; later 60
        run cleo class=interactive sizes=2,3,8; gives ben; block cleo 4-5; moved ben; starts cleo
        pes cleo 4-6""",
    "one comes back on the size that it has": """run anne class=standby sizes=4,8; later 1
        run ben class=interactive pes=2; moved anne; go; go; returns -; end ben; go; returns anne
        pes anne 0-7""",
    "one that gave way keeps its circuit": f"""{CIRCUITS}; run anne class=standby pes=8 barrier=1; later 1
        run ben class=interactive pes=2 barrier=1; moved anne; go; units anne barrier=0; units ben barrier=1
        end ben; go; returns anne; units anne barrier=0""",
    "none gives way to one that lacks a circuit": f"""{CIRCUITS}; set consumable/barrier/count 1
        run anne class=production pes=2 barrier=1, ben class=standby pes=6; later 60
        run cleo class=interactive pes=4 barrier=1; gives -; end anne; go; gives ben""",
    "the circuit of a bumper is taken by no other": f"""{CIRCUITS}; set consumable/barrier/count 1
        run anne class=production pes=4, ben class=benchmark pes=2; later 1s
        submit cleo class=interactive pes=4 barrier=1, dora class=standby barrier=1; starts -; block cleo
        why dora few_units_free 1 barrier 0 1 '' 3.ymp ''""",
    "one comes back under the limits": """set queue/apps/user_limit 1; run anne class=standby pes=8; later 60
        run ben class=interactive pes=8; gives anne; moved anne; starts ben; submit anne class=interactive
        end ben; starts anne2; why anne LIMIT; end anne2; go; returns anne""",
    "no block for one that has not waited": """set class/standby/wait 7200000; run anne class=benchmark pes=8
        submit ben class=standby pes=2; asks; go; block -""",
    "no block with a PE that is offline": """set machine/offline (1)
        run anne class=standby pes=4, ben class=standby pes=2; pes anne 2-5; pes ben 6-7; later 20s
        run cleo class=interactive pes=4; gives anne; block cleo 2-5; moved anne; go; pes cleo 2-5""",
    "a block of which a PE goes offline is given up": """run anne class=standby pes=4, ben class=standby pes=4
        run cleo class=interactive pes=4; block cleo 0-3; set machine/offline (2); go; block cleo 4-7""",
    "a reservation is late for the block": """queue night order=fcfs reserve=1 priority=9
        run anne class=production pes=4 wall=7200 queue=apps; run ben pes=4 wall=10:00
        run cleo pes=4 wall=10:00
        reserved cleo 10; later 9; run dora class=interactive pes=8 wall=60:00 queue=apps; end ben; later 2
        go
        late cleo = 4.ymp""",
} | {
    f"of a class at its limit one gives way though PEs are free: {placement}": f"""
        set domain/application/placement {placement}; set class/production/pe_limit 2
        run anne class=production, ben class=production, cleo class=standby pes=3
        submit dora class=production; later 30; go; gives anne; moved anne; starts dora"""
    for placement in ("contiguous", "lowest")
}  # fmt: skip

OFFERS = {
    "jobs are offered in the order of their classes": """queue more order=class
        submit anne class=standby queue=apps, ben class=interactive queue=more; asks forcing; starts ben anne
        asked ben anne""",
    "each job is offered once in a pass": """run anne class=benchmark pes=8; later 60
        submit ben class=interactive pes=2, cleo class=interactive pes=2, dora class=standby
        schedule dora first; asks forcing; starts -; asked dora ben cleo""",
    "one that is refused bumps no other": """run anne class=standby pes=8; later 60
        submit ben class=interactive pes=4; asks all=refuse; go; gives -; block -
        why ben EXIT who=exits/test""",
    "the block of one that is refused is let go": """run anne class=benchmark pes=4, ben class=standby pes=4
        run cleo class=interactive pes=4; block cleo; asks all=refuse; go; block -""",
    "offers stop if none can be loaded and none may bump": """run anne class=benchmark pes=8
        submit ben class=standby pes=2, ben class=standby pes=2, ben class=standby pes=2; asks; starts -
        asked ben; short yes; why ben NO_PES; why ben3 NO_PES""",
    "a bumper is offered where no PE is free": """run anne class=standby pes=8; later 60
        submit ben class=interactive pes=2, cleo class=standby pes=2; asks; go; gives anne; asked ben""",
    "a forced job passes limits, not those of classes": """set queue/apps/user_limit 0
        set class/standby/pe_limit 2; submit anne class=standby pes=4, anne class=standby pes=2
        asks forcing all=force; starts anne2; why anne class_shut 2 4""",
    "the line of all class queues is closed": """queue more order=class
        submit anne class=interactive queue=more, ben class=standby queue=apps; asks forcing all=hold
        starts -
        why anne EXIT; why ben LINE_CLOSED""",
    "offers beyond those of a pass are left to the next": """limit offers_per_pass=2
        submit anne class=standby, anne class=standby, anne class=standby; asks all=refuse; go
        asked anne anne2; why anne EXIT; why anne2 EXIT; why anne3 LATER""",
}  # fmt: skip

STORIES = LOADING | BUMPING | OFFERS


@pytest.mark.parametrize("title", STORIES)
def test_jobs_by_class(gang, title):
    Story(gang).play(STORIES[title])


OTHERS = {
    "a machine that lost PEs under a job clears those that are left": """machine 3; queue jobs order=class
        create class/production priority=1; create class/fast priority=4 wait=0
        run anne pes=3 class=production; set machine/pes 2; submit ben pes=2 class=fast; later 10; go
        why ben being_cleared 0-1""",
    "a job whose resource is broken is not loaded": """machine 3; queue jobs order=class
        create class/production priority=1; probe nfs broken; submit anne needs=nfs, ben; starts ben
        why anne RESOURCE""",
}


@pytest.mark.parametrize("title", OTHERS)
def test_jobs_of_other_classes(house, title):
    Story(house).play(OTHERS[title])


def test_a_forced_job_and_one_scheduled_now_pass_reserved_starts(gang):
    Story(gang).play("""queue night reserve=1 order=fcfs; run anne pes=4 wall=3600; run ben pes=8 wall=600
        submit cleo class=standby wall=7200 queue=apps, dora class=standby wall=7200 queue=apps
        submit emil class=standby wall=7200 queue=apps; schedule dora now; asks forcing cleo=force
        starts dora cleo; why emil RESERVED""")


@pytest.fixture
def cleared(gang):
    """Return a site where PEs are cleared for an interactive job that would delay a reserved start of another
    queue."""
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
    refusal = Answer("refuse", "no", "exits/test", ("owner",))
    exits = gang.exits(False, jobselect=lambda job, view: refusal if job.seq == anne[0] else None)
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


def test_what_a_bumper_waits_for_is_moved_first_then_what_comes_back(gang):
    pair = gang.run("anne class=production pes=4", "ben class=standby pes=4")
    gang.later(hours=1).run("cleo class=interactive pes=8")
    leaving, staying = sorted(pair, key=lambda seq: gang.request(seq).state is not State.SUSPENDED)
    assert move_rank(gang.site, leaving) > move_rank(gang.site, staying) > move_rank(gang.site, 999) == 0


def test_a_start_that_a_bumped_job_delays_names_that_job():
    site = Site(
        "create class production priority=2 wait=300 do_not_disturb=5\n"
        "create class urgent priority=4 wait=0 do_not_disturb=5\n"
        "create batch_queue jobs\nenable queue jobs\nstart queue jobs\nset queue jobs order=class\n"
        "create batch_queue rest\nenable queue rest\nstart queue rest\nset queue rest order=fcfs reserve=all",
        pes=2,
    )
    site.submit("low", queue="jobs", wall=3600, runs=3600, job_class="production")
    site.submit("other", queue="rest", wall=3000, runs=3000)
    site.submit("wide", queue="rest", pes=2, wall=600)
    site.let_pass("10min")
    site.submit("high", queue="jobs", wall=60, runs=60, job_class="urgent")
    late = site.job("wide").request.reservation.late
    assert site.job("low").id in late
    assert site.job("other").id not in late
