"""A decider in another process: its plan comes late, and is looked at again before it counts."""

import pytest
from core.harness import House, promised, spec_of
from engine.harness import ANNE, PLAIN, Centre, asked, item, signed
from msgspec.structs import replace

from nqspy.core.gate.gate import Gate
from nqspy.core.no_exits import NoExits
from nqspy.core.passes import run_pass
from nqspy.engine.enact import MISSED, enact
from nqspy.engine.inputs import Decision
from nqspy.engine.recheck import Recheck
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import ExitFailure, Hold, Move, Plan, Redate, Requeue, Resume, Start, Suspend
from nqspy.model.arrays import ArraySpec
from nqspy.model.cause import cause_of
from nqspy.model.ids import Instant, Seq, array_key, member
from nqspy.model.reasons import told


class Later:
    """A decider that answers when the test says so, with the plan of the moment it was asked."""

    def __init__(self):
        self.plans: list[Plan] = []
        self.asked = 0
        self.exits = NoExits()

    def ask(self, site, now, samples):
        self.asked += 1
        self.plans.append(run_pass(site, now, self.exits, samples))

    def follow(self, events):
        """It looks at the site itself."""

    def reset(self, site):
        """It keeps nothing of it."""


class Late(Centre):
    """A centre with such a decider."""

    def __init__(self, settings: str = PLAIN, **more) -> None:
        self.later_plans = Later()
        super().__init__(settings, decider=self.later_plans, **more)
        self.answer()

    def answer(self, plan: Plan | None = None) -> None:
        """The plan in flight arrives, and whatever was asked for after it."""
        while self.later_plans.plans:
            first = self.later_plans.plans.pop(0)
            self.sim.feed([Decision(plan or first)])
            plan = None
        self.sim.run(self.sim.now)
        self.is_sound()

    def arrive(self) -> None:
        """Only the plan in flight arrives."""
        self.sim.feed([Decision(self.later_plans.plans.pop(0))])
        self.is_sound()


def test_nothing_starts_before_the_plan_arrives_and_one_plan_is_in_flight():
    centre = Late()
    before = centre.later_plans.asked
    centre.submit("anne", "anne", "anne")
    assert centre.later_plans.asked == before + 1
    assert [centre.state(seq) for seq in (1, 2, 3)] == ["queued"] * 3
    centre.arrive()
    assert centre.state(1) == "running"
    assert centre.later_plans.asked == before + 2, "what came meanwhile asks for the next"
    centre.answer()
    assert centre.starts() == [1, 2]


def test_a_plan_that_nobody_asked_for_changes_nothing():
    centre = Late()
    n = centre.count()
    centre.sim.feed([Decision(Plan(signed(Start(1, 1, (0,)))))])
    assert centre.count() == n


@pytest.mark.parametrize(
    "order",
    [
        cm.Delete(("1",)),
        cm.HoldRequests(("1",)),
        cm.ModifyRequest(("1",), {"ask/cpu": 5000}),
        cm.MoveRequests(("1",), "other"),
        cm.ScheduleRequest(("1",), "first"),
    ],
)
def test_a_start_falls_whose_request_has_changed(order):
    centre = Late(PLAIN + "create batch_queue other\nenable queue other\nstart queue other\n")
    centre.submit("anne")
    centre.ask(order)
    centre.arrive()
    assert centre.starts() == []
    assert centre.later_plans.plans, "another pass looks at what is now"


def test_what_has_not_changed_is_started_all_the_same():
    centre = Late(PLAIN + "stop queue batch\n")
    centre.submit("anne", "ben")
    centre.answer()
    centre.qmgr("start queue batch")
    centre.answer()
    assert centre.starts() == [1, 2]
    centre = Late(pes=3)
    centre.submit("anne")
    centre.submit("ben")
    centre.ask(cm.Delete(("2",)))
    centre.arrive()
    assert centre.starts() == [1]


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


@pytest.mark.parametrize(
    "command", ["set queue batch run_limit=0", "switch shift night", "reload exits", "set shift automatic"]
)
def test_a_change_of_settings_shift_or_exits_voids_the_whole_plan(command):
    centre = Late(PLAIN + 'define shift night when=("0 21 * * *")\nset run_limit=0 batch\nend\n')
    centre.qmgr("set queue batch run_limit=5")
    centre.answer()
    centre.submit("anne")
    centre.qmgr(command)
    centre.arrive()
    assert centre.starts() == []


def test_a_shift_that_comes_meanwhile_voids_it_too():
    centre = Late(
        PLAIN + 'define shift night when=("0 21 * * *")\nstop queue batch\nend\n',
        at="2026-03-02T20:59:59+01:00",
    )
    centre.qmgr("start queue batch")
    centre.answer()
    centre.submit("anne")
    centre.later(seconds=1)
    centre.answer()
    assert centre.starts() == []


def two_waiting(settings: str = "") -> Late:
    """Two queued requests, and a plan asked for after both of them."""
    centre = Late(PLAIN + settings)
    for owner in ("anne", "ben"):
        centre.engine.feed([asked(cm.Submit((item(owner, centre.sim.now),)), ANNE)], centre.sim.now)
    centre.engine.feed((), centre.sim.now)
    return centre


FIRST = Start(1, 1, (0,))
LIMITS = ("queue batch run_limit=1", "global run_limit=1", "queue batch user_limit=1")


@pytest.mark.parametrize(
    ("settings", "planned", "starts"),
    [
        ("", (FIRST, Start(2, 1, (0,))), [1]),  # a PE is given once
        ("", (Start(1, 2, (0,)), Start(9, 1, (1,))), []),  # another attempt, an unknown request
        *((f"set {limit}\n", (FIRST, Start(2, 1, (1,))), [1]) for limit in LIMITS),
        ("set queue batch run_limit=1\n", (FIRST, Start(2, 1, (1,), forced=True)), [1, 2]),
    ],
)
def test_starts_of_a_late_plan_are_examined_one_after_the_other(settings, planned, starts):
    centre = two_waiting(settings)
    centre.sim.feed([Decision(Plan(signed(*planned), as_of=0))])
    assert centre.starts() == starts
    centre.is_sound()


def test_a_redating_falls_with_the_start_it_belongs_to():
    centre = Late()
    centre.submit("anne", "anne", "anne")
    centre.ask(cm.HoldRequests(("1",)))
    dates = [centre.request(seq).date_in_queue for seq in (2, 3)]
    now = centre.sim.now = centre.sim.now + 1000
    plan = Plan(signed(Start(1, 1, (0,)), Redate((2, 3), now, 1, "gun"), Hold(3, "gun", "later")), as_of=0)
    centre.sim.feed([Decision(plan)])
    assert [centre.request(seq).date_in_queue for seq in (2, 3)] == dates
    assert centre.starts() == []


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


def test_while_resting_no_pass_is_run_and_no_plan_taken():
    centre = Late()
    centre.submit("anne")
    centre.engine.resting = True
    before = centre.later_plans.asked
    centre.arrive()
    centre.submit("ben")
    assert centre.starts() == []
    assert centre.later_plans.asked == before
    centre.engine.resting = False
    outcome = centre.engine.feed((), centre.sim.now)
    assert centre.later_plans.asked == before + 1
    assert not outcome.again


def test_ends_are_taken_while_a_plan_is_in_flight():
    centre = Late(length=60)
    centre.submit("anne", "ben", "cleo")
    centre.answer()
    centre.later(seconds=60)
    assert (centre.state(1), centre.state(2)) == ("ended", "ended")
    centre.answer()
    assert centre.state(3) == "running"


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
    assert "exit gun failed on 1.sim: no such thing" in centre.sim.log
    assert centre.sim.notices[-1].text.endswith("trace")


@pytest.mark.parametrize("command", ["set sched_factor cpu 6 time 10", "stop queue batch", "reload exits"])
@pytest.mark.parametrize("off", [False, True])
def test_a_failure_is_told_though_the_plan_is_void(command, off):
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


def test_a_start_falls_whose_group_has_come_to_its_cap_meanwhile():
    groups = "create group d1 share=1 limit=50% members=(anne)\ncreate group d2 share=1 members=(ben)\n"
    centre = Late(PLAIN + groups, pes=4)
    centre.submit("anne", "ben")
    centre.qmgr("set usage of group d1 1000h")
    centre.arrive()
    assert centre.starts() == []
    centre.answer()
    assert centre.starts() == [2], "one plan saw anne alone, the next both and the use of her group"
    centre.qmgr("set usage of group d1 0")
    centre.answer()
    assert centre.starts() == [2, 1]


def test_the_starts_of_a_late_plan_hold_no_more_together_than_their_groups_cap():
    settings = PLAIN + "create group d1 share=1 limit=50% members=(anne)\nset machine pes=4\n"
    centre = Late(settings, pes=4)
    centre.hand_in("anne", "anne", "anne")
    centre.later_plans.plans.clear()
    forged = Plan(signed(*(Start(seq, 1, (seq,)) for seq in (1, 2, 3))))
    centre.sim.feed([Decision(forged)])
    assert centre.starts() == [1, 2]
    centre.is_sound()


@pytest.mark.parametrize(
    "action",
    [
        Start(1, 1, (0, 1)),
        Start(1, 1, ()),
        Start(1, 1, (-1,)),
        Start(1, 1, (7,)),
        Redate((1, 2), 1 << 52, 0, "gun"),
        Redate((1, 2), -5, 0, "gun"),
        Move(1, "nowhere"),
        Suspend(1, 1),
        Resume(1, 1),
        Requeue(1, 1, cause_of("gun"), "why not"),
    ],
)
def test_a_plan_that_is_nonsense_changes_nothing_however_fresh_it_is(action):
    centre = two_waiting()
    before = centre.count()
    centre.sim.feed([Decision(Plan(signed(action), as_of=centre.site.n))])
    assert centre.events()[before:] == [centre.events(ev.Decided)[-1]]
    centre.is_sound()


def test_where_there_will_be_no_plan_another_is_asked_for():
    centre = Late()
    centre.submit("anne")
    before = centre.later_plans.asked
    centre.later_plans.plans.clear()
    centre.sim.feed([Decision(None)])
    assert centre.later_plans.asked == before + 1
    centre.answer()
    assert centre.starts() == [1]


def test_a_promised_start_that_its_plan_delays_is_told_with_its_cause():
    centre = Late(PLAIN + "set queue batch order=fcfs reserve=1\n", pes=2, length=100)
    for line in ("anne pes=2 wall=100", "ben pes=2 wall=10"):
        centre.submit(line)
        centre.answer()
    promised = centre.request(2).reservation
    centre.sim.run(promised.at)
    centre.sim.now = Instant(promised.at + 16_000)
    before = len(centre.events(ev.Reserved))
    centre.answer()
    assert centre.starts() == [1, 2]
    [event] = centre.events(ev.Reserved)[before:]
    assert event.starts == {2: replace(promised, late=MISSED)}


def test_nothing_starts_where_a_pe_was_set_offline_meanwhile():
    centre = Late(pes=2)
    seq = centre.submit("anne")[0]
    assert centre.later_plans.plans[0].starts == [seq]
    centre.qmgr("set machine offline=(0)")
    centre.answer()
    assert centre.request(seq).pes == (1,), "the plan had it start on PE 0"


def front_and_behind() -> House:
    """Six PEs, two units, and a queue in front of one in which each request has a reservation."""
    house = House().machine(pes=6)
    for name in ("gpu", "matlab"):
        house.change(ev.Change("create", f"consumable/{name}", {"units": ("0",)}))
    return house.queue("front", priority=1, order="fcfs").queue("behind", order="fcfs", reserve=None)


def rechecked(house: House, *changed: Seq) -> list[Seq]:
    """Make a plan, and carry out what stands of it although these requests have changed."""
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
    assert (promised(house, moves), rechecked(house)) == (9, [long])
    assert promised(house, moves) == 4


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
    assert promised(house, second) == minute


class Soon(Later):
    """A decider whose plans arrive 10 ms after they were asked for; ``sim``: the driver that asks it."""

    sim = None

    def ask(self, site, now, samples):
        super().ask(site, now, samples)
        if self.sim is not None:
            self.sim.heap.push(Instant(now + 10), Decision(self.plans.pop()))


class Refusing(Gate):
    """A gate with a rule that the passes do not have."""

    def limit(self, ask, forced=False):
        return REFUSED


REFUSED = told("LIMIT", "queue batch", "it never starts")


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
