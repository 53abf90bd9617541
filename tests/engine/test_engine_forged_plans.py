"""Whom a plan of another process may have give way or go on: only whom the site itself would."""

import pytest
from engine.harness import PLAIN, signed
from engine.test_engine_late_plans import Late

from nqspy.engine.inputs import Decision
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.actions import Plan, Requeue, Resume, Suspend
from nqspy.model.cause import cause_of
from nqspy.model.promises import Promise

PROBED = """
create probe nfs file=/etc/passwd running={}
create probe tape file=/etc/passwd running=suspend
create batch_queue night priority=20
enable queue night
start queue night
set queue batch needs=(nfs)
set queue night needs=(tape)
define shift evening when=("0 18 * * *")
start queue night
end
define shift day when=("30 8 * * *") spill={}
stop queue night
end
"""


def a_running_one(running: str = "suspend", spill: str = "suspend") -> Late:
    """Requests 1 in queue batch and 2 in queue night run; all resources are well."""
    centre = Late(PLAIN + PROBED.format(running, spill))
    centre.sim.feed([ob.ObservedResource("nfs", "ok", ""), ob.ObservedResource("tape", "ok", "")])
    centre.answer()
    centre.submit("anne", "anne queue=night")
    centre.answer()
    assert (centre.state(1), centre.state(2)) == ("running", "running")
    return centre


def plan(centre: Late, *actions) -> None:
    """A plan with these actions arrives, made from the site as it is."""
    centre.later_plans.plans.clear()
    centre.engine._mark()
    centre.engine.feed((), centre.sim.now)
    centre.sim.feed([Decision(Plan(signed(*actions), as_of=centre.site.n))])
    centre.later_plans.plans.clear()


def test_suspensions_and_resumptions_of_a_plan_are_carried_out_and_journaled():
    centre = a_running_one()
    for health, action, state in (
        ("broken", Suspend(1, 1, cause_of("probe nfs"), "", True), "suspended"),
        ("ok", Resume(1, 1), "running"),
    ):
        centre.sim.feed([ob.ObservedResource("nfs", health, "")])
        plan(centre, action)
        assert centre.state(1) == state


NOT_ASKED = ["", "gun", "scheduler", "anne", "shift_end", "swap", "probe ", "probe nowhere", "probe tape",
             "shift day", "shift "]  # fmt: skip


@pytest.mark.parametrize("who", NOT_ASKED)
def test_a_forged_plan_makes_nobody_give_way_whom_no_broken_resource_and_no_shift_concerns(who):
    centre = a_running_one()
    centre.sim.feed([ob.ObservedResource("tape", "broken", "")])
    before = centre.count()
    for parked in (True, False):
        plan(centre, Suspend(1, 1, cause_of(who), "", parked), Requeue(1, 1, cause_of(who), ""))
    assert centre.state(1) == "running"
    assert all(isinstance(event, ev.Decided) for event in centre.events()[before:])


@pytest.mark.parametrize(("wanted", "other"), [("suspend", Requeue), ("requeue", Suspend)])
def test_who_gives_way_for_a_broken_resource_does_so_as_its_probe_says(wanted, other):
    centre = a_running_one(wanted)
    centre.sim.feed([ob.ObservedResource("nfs", "broken", "")])
    plan(centre, other(1, 1, cause_of("probe nfs"), ""))
    assert centre.state(1) == "running"
    action = (
        Suspend(1, 1, cause_of("probe nfs"), "", True)
        if wanted == "suspend"
        else Requeue(1, 1, cause_of("probe nfs"), "")
    )
    plan(centre, action)
    assert centre.state(1) != "running" or centre.request(1).ending.rerun


@pytest.mark.parametrize("spill", ["suspend", "requeue"])
def test_a_shift_has_only_the_requests_of_a_queue_it_stopped_give_way_and_as_it_says(spill):
    centre = a_running_one(spill=spill)
    centre.qmgr("switch shift day")
    for action in (Suspend(1, 1, cause_of("shift day"), "", True), Requeue(1, 1, cause_of("shift day"), ""),
                   Suspend(2, 1, cause_of("shift night"), "", True), Requeue(2, 1, cause_of("gun"), ""),
                   Requeue(2, 1, cause_of("shift day"), "") if spill == "suspend"
                   else Suspend(2, 1, cause_of("shift day"), "", True)):  # fmt: skip
        plan(centre, action)
        assert (centre.state(1), centre.state(2)) == ("running", "running")
        assert not centre.request(2).ending
    asked = (
        Suspend(2, 1, cause_of("shift day"), "", True)
        if spill == "suspend"
        else Requeue(2, 1, cause_of("shift day"), "")
    )
    plan(centre, asked)
    assert centre.state(2) == "suspended" or centre.request(2).ending.rerun


def test_a_forged_plan_lets_nobody_go_on_whom_an_operator_has_suspended():
    centre = a_running_one()
    centre.ask(cm.SuspendRequests(("1",)))
    assert centre.state(1) == "suspended"
    plan(centre, Resume(1, 1, cause_of("scheduler")))
    assert centre.state(1) == "suspended"


def test_a_forged_plan_cannot_take_a_parked_requests_pes_back():
    centre = a_running_one()
    centre.sim.feed([ob.ObservedResource("nfs", "broken", "")])
    for action in (
        Suspend(1, 1, cause_of("probe nfs"), "", True),
        Suspend(1, 1, cause_of("probe nfs"), "", False),
    ):
        plan(centre, action)
    assert centre.request(1).pes_released


@pytest.mark.parametrize("by", ["", "nobody", "route", "resume"])
def test_what_no_feature_or_another_one_signs_does_not_stand(by):
    centre = a_running_one()
    centre.sim.feed([ob.ObservedResource("nfs", "broken", "")])
    centre.later_plans.plans.clear()
    gives_way = Suspend(1, 1, cause_of("probe nfs"), "", True, by=by)
    centre.sim.feed([Decision(Plan((gives_way,), as_of=centre.site.n))])
    assert centre.state(1) == "running"


def test_a_feature_that_promises_nothing_cannot_be_made_to():
    centre = a_running_one()
    plan(centre, Promise("1", 1), Promise("2", None), Suspend(1, 1))
    assert not centre.site.promises
    assert centre.state(1) == "running"
