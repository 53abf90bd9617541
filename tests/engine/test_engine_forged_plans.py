"""Whom a plan of another process may have give way or go on: only whom the site itself would."""

import pytest
from engine.harness import PLAIN, signed
from engine.test_engine_late_plans import Late, LateStory

from nqspy.engine.inputs import Decision
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


class ForgedStory(LateStory):
    """A story in which forged plans arrive."""

    def forge(self, words: str) -> None:
        """Have a plan arrive that makes a request go on, run again, or give way (``keep``: with its PEs), for
        this cause (``~``: a blank)."""
        act, name, *told = words.split()
        seq, cause = self.seq(name), cause_of(" ".join(told).replace("~", " "))
        made = {
            "resume": Resume(seq, 1, cause),
            "requeue": Requeue(seq, 1, cause, ""),
            "suspend": Suspend(seq, 1, cause, "", True),
            "keep": Suspend(seq, 1, cause, "", False),
        }
        plan(self.centre, made[act])


STORIES = {
    "what a broken resource asks for is done": ("suspend", """probe nfs broken; forge suspend 1 probe nfs
        state 1 suspended; probe nfs ok; forge resume 1; state 1 running"""),
    "as its probe says: suspend": ("suspend", """probe nfs broken; forge requeue 1 probe nfs; state 1 running
        events deleting 0; forge suspend 1 probe nfs; state 1 suspended"""),
    "as its probe says: requeue": ("requeue", """probe nfs broken; forge suspend 1 probe nfs; state 1 running
        forge requeue 1 probe nfs; events deleting 1"""),
    "none that an operator has suspended goes on": ("suspend", """suspend 1; forge resume 1 scheduler
        state 1 suspended"""),
    "the PEs of one that is parked are not taken back": ("suspend", """probe nfs broken
        forge suspend 1 probe nfs; forge keep 1 probe nfs; has 1 pes_released=true"""),
} | {
    f"a shift has requests of a queue that it stopped give way as it says: {spill}": (spill, f"""
        qmgr switch shift day; forge suspend 1 shift day; forge requeue 1 shift day
        forge suspend 2 shift night; forge requeue 2 gun; forge {other} 2 shift day
        state 1 running 2 running; events deleting 0; forge {spill} 2 shift day; events {done} 1""")
    for spill, other, done in (("suspend", "requeue", "suspended"), ("requeue", "suspend", "deleting"))
} | {
    f"none gives way that no broken resource and no shift concerns: {cause}": ("suspend", f"""
        probe tape broken; forge suspend 1 {cause}; forge keep 1 {cause}; forge requeue 1 {cause}
        state 1 running; events suspended 0; events deleting 0""")
    for cause in (
        "", "gun", "scheduler", "anne", "shift_end", "swap", "probe~", "probe nowhere", "probe tape",
        "shift day", "shift~",
    )
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_forged_plans(title):
    wanted, text = STORIES[title]
    story = ForgedStory(a_running_one(wanted, wanted))
    story.play(text)
    story.centre.is_sound()


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
