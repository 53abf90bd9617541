"""A decider in another process: its plan arrives late or forged, and is checked again before it counts."""

import pytest
from core.harness import House, reserved_minute, spec_of
from engine.harness import ANNE, PLAIN, Centre, asked, item, signed
from engine.story import Story
from msgspec.structs import replace

from nqspy.core.gate.gate import Gate
from nqspy.core.no_exits import NoExits
from nqspy.core.passes import run_pass
from nqspy.engine.enact import MISSED, enact
from nqspy.engine.inputs import Decision
from nqspy.engine.recheck import Recheck
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.actions import ExitFailure, Move, Plan, Redate, Requeue, Resume, Start, Suspend
from nqspy.model.arrays import ArraySpec
from nqspy.model.cause import cause_of
from nqspy.model.facts import Promise
from nqspy.model.ids import Instant, Seq, array_key, member
from nqspy.model.reasons import quoted


class Later:
    """A decider that answers when the test says so, with a plan for the time of the question."""

    def __init__(self):
        self.plans: list[Plan] = []
        self.asked = 0
        self.exits = NoExits()

    def ask(self, site, now, samples):
        self.asked += 1
        self.plans.append(run_pass(site, now, self.exits, samples))

    def follow(self, events):
        """Do nothing: it reads the site directly."""

    def reset(self, site):
        """Do nothing: it stores nothing of the site."""


class Late(Centre):
    """A site with such a decider."""

    def __init__(self, settings: str = PLAIN, **more) -> None:
        self.later_plans = Later()
        super().__init__(settings, decider=self.later_plans, **more)
        self.answer()

    def answer(self, plan: Plan | None = None) -> None:
        """Let the plan in flight arrive, and all that are asked for after it."""
        while self.later_plans.plans:
            first = self.later_plans.plans.pop(0)
            self.sim.feed([Decision(plan or first)])
            plan = None
        self.sim.run(self.sim.now)
        self.is_sound()

    def arrive(self) -> None:
        """Let only the plan in flight arrive."""
        self.sim.feed([Decision(self.later_plans.plans.pop(0))])
        self.is_sound()


class LateStory(Story):
    """A test with plans that arrive late."""

    def __init__(self, centre: Late) -> None:
        super().__init__(centre)
        self._asked = centre.later_plans.asked

    def plans(self, _: str) -> None:
        """Let the plan in flight arrive, and all that are asked for after it."""
        self.centre.answer()

    def plan(self, _: str) -> None:
        """Let only the plan in flight arrive."""
        self.centre.arrive()

    def asked(self, number: str) -> None:
        """Check how many plans were asked for since the last such check."""
        before, self._asked = self._asked, self.centre.later_plans.asked
        assert self._asked - before == int(number), self._asked - before

    def lost(self, _: str) -> None:
        """Report that there will be no plan."""
        self.centre.later_plans.plans.clear()
        self.centre.sim.feed([Decision(None)])

    def rests(self, word: str) -> None:
        """Let the engine rest, or continue."""
        self.centre.engine.paused = word == "on"
        self.centre.sim.feed([])


def play_late(text: str, settings: str = PLAIN, **more) -> None:
    """Run a test with late plans on its own site."""
    LateStory(Late(settings, **more)).play(text)


OTHER = "qmgr create batch_queue other | enable queue other | start queue other; plans; asked 2"
STORIES = {
    "one plan is in flight, and nothing starts before": """submit anne, anne, anne; asked 1
        state 1 queued 2 queued 3 queued; plan; state 1 running; asked 1; plans; starts 1 2""",
    "what has not changed is started": """qmgr stop queue batch; submit anne, ben; plans
        qmgr start queue batch; plans; starts 1 2""",
    "whatever becomes of others it is started": """qmgr set machine pes=3; plans; submit anne; submit ben
        delete 2; plan; starts 1""",
    "a shift that comes meanwhile voids the plan": """until 20:59:59
        qmgr define shift night when=("0 21 * * *") | stop queue batch | end; qmgr start queue batch; plans
        submit anne; later 1s; plans; starts -""",
    "ends are taken while a plan is in flight": """submit anne, ben, cleo; plans; later 600s
        state 1 ended 2 ended; plans; state 3 running""",
    "a start falls whose group has come to its cap": """qmgr set machine pes=4
        qmgr create group d1 share=1 limit=50% members=(anne) | create group d2 share=1 members=(ben); plans
        submit anne, ben; qmgr set usage of group d1 1000h; plan; starts -; plans; starts 2
        qmgr set usage of group d1 0; plans; starts 1""",
    "where there will be no plan another is asked for": """submit anne; asked 1; lost; asked 1; plans
        starts 1""",
    "no start on a PE that is offline by then": "submit anne; qmgr set machine offline=(0); plans; pes 1 1",
    "no start on a PE that a foreign job has by then": """submit anne; foreign 0; plan; starts -
        plans; pes 1 1""",
    "while it rests no pass is run, and no plan taken": """submit anne; asked 1; rests on; plan; submit ben
        starts -; asked 0; rests off; asked 1""",
} | {
    f"a start falls whose request has changed: {act}": f"""{OTHER}; submit anne; {act}
        plan; starts -; asked 2"""
    for act in ("delete 1", "hold 1", "modify 1 ask.cpu=5000", "move 1 to=other", "schedule 1 place=first")
} | {
    f"a change of settings, shift or exits voids the plan: {command}": f"""
        qmgr define shift night when=("0 21 * * *") | set run_limit=0 batch | end
        qmgr set queue batch run_limit=5; plans; submit anne; qmgr {command}; plan; starts -"""
    for command in (
        "set queue batch run_limit=0", "switch shift night", "reload exits", "set shift automatic"
    )
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_late_plans(title):
    play_late(STORIES[title])


FIRST, LATER = Start(1, 1, (0,)), Instant(1_772_478_001_000)
CAPPED = "set machine pes=4\ncreate group default share=0 limit=25%\n"
STALE = {
    "a PE is given once": ("", (FIRST, Start(2, 1, (0,))), [1]),
    "another attempt, an unknown request": ("", (Start(1, 2, (0,)), Start(9, 1, (1,))), []),
    "a forced start passes limits": (
        "set queue batch run_limit=1\n", (FIRST, Start(2, 1, (1,), forced=True)), [1, 2]
    ),
    "groups hold no more together than their caps": (CAPPED, (FIRST, Start(2, 1, (1,))), [1]),
    "a redating falls with the start that it belongs to": (
        "", (Start(1, 2, (0,)), Redate((2,), LATER, 1, "gun")), []
    ),
} | {
    f"a limit is kept: {limit}": (f"set {limit}\n", (FIRST, Start(2, 1, (1,))), [1])
    for limit in ("queue batch run_limit=1", "global run_limit=1", "queue batch user_limit=1")
} | {
    f"nonsense: {action}": ("", (action,), [])
    for action in (
        Start(1, 1, (0, 1)), Start(1, 1, ()), Start(1, 1, (-1,)), Start(1, 1, (7,)), Move(1, "nowhere"),
        Redate((1, 2), 1 << 52, 0, "gun"), Redate((1, 2), -5, 0, "gun"), Suspend(1, 1), Resume(1, 1),
        Requeue(1, 1, cause_of("gun"), "why not"),
    )
}  # fmt: skip


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("title", STALE)
def test_actions_of_a_late_plan_are_examined_one_after_the_other(title, fresh):
    settings, planned, starts = STALE[title]
    centre = Late(PLAIN + settings)
    for owner in ("anne", "ben"):
        centre.engine.feed([asked(cm.Submit((item(owner, centre.sim.now),)), ANNE)], centre.sim.now)
    centre.engine.feed((), centre.sim.now)
    before, centre.sim.now = centre.count(), LATER
    centre.sim.feed([Decision(Plan(signed(*planned), as_of=centre.site.n * fresh))])
    assert centre.starts() == starts
    assert centre.count() == before + 1 + len(starts), "nothing else happens"
    centre.is_sound()


def test_a_plan_that_nobody_asked_for_changes_nothing():
    centre = Late()
    n = centre.count()
    centre.sim.feed([Decision(Plan(signed(FIRST)))])
    assert centre.count() == n


@pytest.mark.parametrize(("late", "starts"), [(1, [1, 3]), (2, [1])])
def test_a_start_that_just_fits_before_a_reservation_may_come_a_moment_late(late, starts):
    centre = Late(PLAIN + "set queue batch reserve=1\n", pes=2)
    centre.submit("anne pes=1 wall=1:00", "ben pes=2 wall=1:00")
    centre.answer()
    centre.later(seconds=50)
    centre.answer()
    centre.submit("cleo pes=1 wall=10")
    centre.later(seconds=late)
    centre.arrive()
    assert centre.starts() == starts


def test_a_plan_from_before_a_failed_commit_is_dropped():
    centre = Late()
    centre.submit("anne")
    plan = centre.later_plans.plans[0]

    def full():
        centre.journal.failpoint = None
        raise OSError(28, "No space left on device")

    centre.journal.failpoint = full
    centre.engine.feed([asked(cm.Delete(("1",)))], centre.sim.now)
    centre.sim.feed([Decision(plan)])
    assert centre.starts() == []
    centre.later(seconds=2)
    centre.answer()
    assert centre.starts() == [1]


def test_what_a_pass_saw_and_how_exits_failed_is_journaled_before_its_starts():
    centre = Late()
    centre.submit("anne")
    plan = centre.later_plans.plans.pop(0)
    failures = (ExitFailure("gun", 1, "no such thing", "trace", False), ExitFailure("gun", 2, "again"))
    more = Plan(plan.actions, plan.reasons, plan.wake_at, plan.as_of, failures=failures)
    centre.sim.feed([Decision(more)])
    kinds = [event.kind for event in centre.events()][-4:]
    assert kinds == ["submitted", "decided", "alarm", "starting"]
    assert centre.events(ev.Decided)[-1].failures == failures
    assert centre.events(ev.Alarm)[-1].text in centre.sim.log
    assert centre.sim.notices[-1].text.endswith("trace")


@pytest.mark.parametrize("command", ["set sched_factor cpu 6 time 10", "stop queue batch", "reload exits"])
@pytest.mark.parametrize("off", [False, True])
def test_a_failure_is_reported_though_the_plan_is_void(command, off):
    centre = Late()
    centre.submit("anne")
    centre.qmgr(command)
    failures = (ExitFailure("sel", 1, "it looped", "trace", off),)
    centre.sim.feed([Decision(Plan(signed(Start(1, 1, (0,))), as_of=centre.site.n, failures=failures))])
    assert centre.starts() == []
    assert centre.events(ev.Decided)[-1].failures == failures
    assert "it looped" in centre.events(ev.Alarm)[-1].text
    assert bool(centre.events(ev.ExitOff)) == off
    assert not off or not centre.site.settings.exits["sel"].enabled
    centre.is_sound()


@pytest.mark.parametrize(("delay", "late"), [(16_000, MISSED), (1_000, "")])
def test_a_reserved_start_that_its_plan_delays_is_recorded_with_its_cause_unless_briefly(delay, late):
    centre = Late(PLAIN + "set queue batch order=fcfs reserve=1\n", pes=2, length=100)
    for line in ("anne pes=2 wall=100", "ben pes=2 wall=10"):
        centre.submit(line)
        centre.answer()
    promised = centre.request(2).reservation
    centre.sim.run(promised.at)
    centre.sim.now = Instant(promised.at + delay)
    before = len(centre.events(ev.Reserved))
    centre.answer()
    assert centre.starts() == [1, 2]
    recorded = [event.starts for event in centre.events(ev.Reserved)[before:]]
    assert recorded == ([{2: replace(promised, late=late)}] if late else [])


def front_and_behind() -> House:
    """Return a site with six PEs, two units, and two queues; each request of the second has a reservation."""
    house = House().machine(pes=6)
    for name in ("gpu", "matlab"):
        house.change(ev.Change("create", f"consumable/{name}", {"units": ("0",)}))
    return house.queue("front", priority=1, order="fcfs").queue("behind", order="fcfs", reserve=None)


def rechecked(house: House, *changed: Seq) -> list[Seq]:
    """Make a plan, then change these requests; return the starts of the plan that are still carried out."""
    plan = house.run_pass().plan
    recheck = Recheck(house.site, set(changed), house.now, {})
    orders = list(enact(house.site, plan, house.now, house._event, recheck.stands))
    return [order.seq for order in orders if isinstance(order, Start)]


def test_a_start_stands_that_rests_on_a_reservation_moved_in_the_same_plan():
    house = front_and_behind()
    house.submit("anne pes=3 wall=4:00", "anne gpu=1 wall=9:00", "anne matlab=1 wall=9:00")
    house.go()
    moves, _ = house.submit("anne pes=3 gpu=1 wall=2:00", "anne pes=2 matlab=1 wall=2:00")
    house.go()
    (long,) = house.submit("ben pes=2 wall=20:00", queue="front")
    assert house.go().starts == []
    house.later(minutes=1).end(2)
    assert (reserved_minute(house, moves), rechecked(house)) == (9, [long])
    assert reserved_minute(house, moves) == 4


def test_a_start_stands_that_rests_on_a_reservation_given_up_in_the_same_plan():
    house = front_and_behind().probe("nfs", "ok")
    house.submit("anne pes=3 wall=4:00")
    house.go()
    (drops,) = house.submit("anne pes=6 needs=nfs wall=2:00")
    house.go()
    (long,) = house.submit("ben pes=2 wall=20:00", queue="front")
    assert house.go().starts == []
    house.probe("nfs", "broken")
    assert rechecked(house) == [long]
    assert house.request(drops).reservation is None


@pytest.mark.parametrize(("falls", "minute"), [(False, 4), (True, 5)])
def test_no_reservation_is_given_the_room_of_one_whose_start_falls(falls, minute):
    house = front_and_behind()
    house.submit("anne pes=5 wall=5:00")
    house.go()
    first, second = house.submit("anne pes=2 wall=3:00", "anne pes=4 wall=1:00", queue="behind")
    assert house.go().starts == []
    house.later(minutes=1).end(1)
    (narrow,) = house.submit("ben wall=5:00", queue="front")
    assert rechecked(house, *[first] * falls) == ([] if falls else [first, narrow])
    assert reserved_minute(house, second) == minute


class Soon(Later):
    """A decider whose plans arrive 10 ms after the question; ``sim``: the driver that asks it."""

    sim = None

    def ask(self, site, now, samples):
        super().ask(site, now, samples)
        if self.sim is not None:
            self.sim.heap.push(Instant(now + 10), Decision(self.plans.pop()))


class Refusing(Gate):
    """A gate with an additional rule that passes do not have."""

    def limit(self, ask, forced=False):
        return REFUSED


REFUSED = quoted("LIMIT", "queue batch", "it never starts")


@pytest.mark.parametrize("line", ["anne", "anne wall=1:00 pes=2"])
def test_passes_back_off_while_the_recheck_refuses_each_plan(monkeypatch, line):
    decider = Soon()
    centre = Centre(PLAIN + "set queue batch order=fcfs reserve=all\n", decider=decider)
    decider.sim = centre.sim
    centre.sim.feed([Decision(decider.plans.pop())])
    monkeypatch.setattr("nqspy.engine.recheck.Gate", Refusing)
    (seq,) = centre.submit(line)
    before = decider.asked
    centre.later(minutes=1)
    assert centre.starts() == []
    assert 5 <= decider.asked - before <= 8
    assert centre.engine.plan.reasons.own[seq] == REFUSED
    before = decider.asked
    centre.submit("ben")
    assert decider.asked == before + 1, "what happens calls for a pass all the same"
    monkeypatch.undo()
    centre.later(minutes=2)
    assert centre.starts()[0] == seq


def test_an_index_stands_although_its_array_has_a_reservation():
    house = House().machine(pes=2).queue("night", order="fcfs", reserve=1)
    array = Seq(array_key(house.site.next_seq))
    spec = replace(spec_of("anne", pes="2", wall="1:00"), queue="night", array=ArraySpec(((1, 3, 1),)))
    house._event(ev.Submitted(array, spec, "night", "queued"))
    house.go()
    house.later(seconds=3).end(member(array, 1))
    assert house.request(array).reservation is not None
    plan = house.run_pass().plan
    assert plan.starts == [member(array, 2)]
    recheck = Recheck(house.site, set(), house.now, {})
    assert all(recheck.stands(action) for action in plan.actions)


# ---------------------------------------------------------------- forged plans
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
    """Return a site where requests 1 in queue batch and 2 in queue night run; all resources are ok."""
    centre = Late(PLAIN + PROBED.format(running, spill))
    centre.sim.feed([ob.ObservedResource("nfs", "ok", ""), ob.ObservedResource("tape", "ok", "")])
    centre.answer()
    centre.submit("anne", "anne queue=night")
    centre.answer()
    assert (centre.state(1), centre.state(2)) == ("running", "running")
    return centre


def plan(centre: Late, *actions) -> None:
    """Let a plan with these actions arrive, as made for the present site."""
    centre.later_plans.plans.clear()
    centre.engine._mark()
    centre.engine.feed((), centre.sim.now)
    centre.sim.feed([Decision(Plan(signed(*actions), as_of=centre.site.n))])
    centre.later_plans.plans.clear()


class ForgedStory(LateStory):
    """A test in which forged plans arrive."""

    def forge(self, words: str) -> None:
        """Let a plan arrive that resumes, reruns or suspends a request (``keep``: with its PEs), for this
        cause (``~``: a blank)."""
        act, name, *rest = words.split()
        seq, cause = self.seq(name), cause_of(" ".join(rest).replace("~", " "))
        made = {
            "resume": Resume(seq, 1, cause),
            "requeue": Requeue(seq, 1, cause, ""),
            "suspend": Suspend(seq, 1, cause, "", True),
            "keep": Suspend(seq, 1, cause, "", False),
        }
        plan(self.centre, made[act])


FORGED = {
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


@pytest.mark.parametrize("title", FORGED)
def test_forged_plans(title):
    wanted, text = FORGED[title]
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


def test_a_feature_that_stores_no_facts_cannot_be_made_to():
    centre = a_running_one()
    plan(centre, Promise("1", 1), Promise("2", None), Suspend(1, 1))
    assert not centre.site.promises
    assert centre.state(1) == "running"
