"""Night work that cannot end before the day: kept back, suspended or queued again, and told beforehand."""

import pytest
from core.harness import force
from core.story import Story
from msgspec.structs import force_setattr

from nqspy.core import features
from nqspy.core.passes import explain
from nqspy.core.preemption import shift_end
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Requeue, Resume, Suspend
from nqspy.model.amounts import UNLIMITED
from nqspy.model.cause import cause_of
from nqspy.model.events import Change
from nqspy.model.ids import HOUR, Instant
from nqspy.model.reasons import ReasonCode, Reasons
from nqspy.model.shifts import Shift, UpcomingStop


def closes(house, hours: float, spill: str = "drain", queue: str = "night"):
    """So many hours from now shift day stops the queue."""
    at = Instant(round(house.now + hours * HOUR))
    house.site.upcoming_stops = {queue: UpcomingStop(at, "day", spill, "08:30")}


def day(house, spill: str, *commands: str):
    """Shift day is in force, with these changes of ``started``."""
    changes = tuple(Change("set", path, value) for path, value in (_pair(each) for each in commands))
    lines = [cm.encode(cm.Configure(changes))]
    house.change(Change("create", "shift/day", {"when": ["30 8 * * *"], "spill": spill, "commands": lines}))
    house.change(*changes)._event(ev.ShiftChanged("day", "night", house.now))


def _pair(text: str) -> tuple[str, bool]:
    verb, name = text.split()
    return f"queue/{name}/started", verb == "start"


# ---------------------------------------------------------------- drain


STORIES = {
    "what cannot end in time is not started": """machine 4; queue night; stops night 480 drain
        submit anne wall=9:00:00, ben wall=8:00:00, cleo wall=1:00:00, dora, eva wall=8:00:01
        starts ben cleo dora; why anne SHIFT until=480; why eva too_long 28801000 06:00 night""",
    "the minutes count as time goes by": """machine 1; queue night; stops night 480 drain
        submit anne wall=2:00:00, ben wall=1:00:00; later 360; later 1ms; starts ben; why anne SHIFT""",
    "other queues are left alone": """machine 4; queue night; queue batch; stops night 480 drain
        submit anne wall=9:00:00 queue=night, ben wall=9:00:00 queue=batch; starts ben""",
    "the queue's wall limit counts": """machine 4; queue night max_wall=8:00:00; stops night 480 drain
        submit anne wall=1:00, ben; starts anne ben""",
    "the queue's wall limit is too long": """machine 4; queue night max_wall=8:00:01; stops night 480 drain
        submit anne wall=1:00, ben; starts anne""",
} | {
    f"only drain holds requests: {kind}": f"""machine 4; queue night; stops night 480 {kind}
        submit anne wall=9:00:00; starts anne"""
    for kind in ("leave", "suspend", "requeue")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_drain(house, title):
    Story(house).play(STORIES[title])


def test_an_explicit_unlimited_without_a_limit_of_the_queue_is_started(house):
    house.machine(pes=4).queue("night")
    closes(house, 8)
    house.submit("anne")
    force_setattr(house.request(1).spec.ask, "wall", UNLIMITED)
    house.site.waiting["night"].update(house.request(1), house.site.numbers)
    assert house.run_pass().starts == [1]


def test_an_exit_cannot_force_past_it_an_operator_can(house):
    house.machine(pes=4).queue("night")
    closes(house, 8)
    one, two = house.submit("anne wall=9:00:00", "ben wall=9:00:00")
    house.exits(jobselect=lambda request, view: force())
    assert house.run_pass().starts == []
    house.schedule(two, "now")
    assert house.run_pass().starts == [two]
    assert house.run_pass().reason(one).code is ReasonCode.SHIFT


def test_a_hundred_thousand_that_are_kept_back_are_not_walked(house):
    house.machine(pes=4).queue("night")
    closes(house, 8)
    house.submit(*["anne wall=9:00:00"] * 2_000, "ben wall=1:00:00")
    told = house.run_pass()
    assert told.starts == [2_001]
    assert len(told.plan.reasons.own) < 5
    assert explain(house.site, [1_000], told.plan.reasons)[1_000].code is ReasonCode.SHIFT


def test_explain_agrees_with_the_pass_on_every_request(house):
    house.machine(pes=2).queue("night", user_limit=1)
    closes(house, 8)
    seqs = house.submit(*[f"u{n % 3} wall={n}:00:00" for n in range(1, 13)])
    told = house.run_pass()
    said = explain(house.site, seqs, Reasons(told.plan.reasons.own))
    for seq in seqs:
        if seq >= 9:
            assert said[seq].code is ReasonCode.SHIFT
        elif seq in told.plan.reasons.own:
            assert said[seq].code is not ReasonCode.SHIFT


# ---------------------------------------------------------------- suspend, requeue


def test_what_runs_in_the_stopped_queue_is_suspended_and_its_pes_are_used(house):
    house.machine(pes=2).queue("night", priority=10).queue("batch")
    house.run("anne queue=night", "ben queue=batch", "cleo queue=batch")
    day(house, "suspend", "stop night")
    told = house.go()
    text = "shift day stopped queue night; it goes on when the queue is started again"
    assert told.actions[0] == Suspend(1, 1, cause_of("shift day"), text, True)
    assert told.starts == [3]
    assert told.pes(3) == (0,)
    told = house.go()
    assert told.actions == ()
    assert explain(house.site, [1], told.plan.reasons)[1].matches(
        code=ReasonCode.SHIFT, who="shift day", text=text
    )


def test_it_goes_on_when_the_queue_is_started_whatever_the_shift(house):
    house.machine(pes=1).queue("night").run("anne")
    day(house, "suspend", "stop night")
    house.go()
    house.set("shift/day/spill", "leave")
    assert house.go().actions == (), "the queue is still stopped"
    house._event(ev.ShiftChanged("evening", "day", house.now))
    assert house.go().actions == ()
    house.set("queue/night/started", True)
    assert house.go().actions == (Resume(1, 1, cause_of("scheduler")),)


def test_requeue_ends_what_may_run_again_and_leaves_the_rest(house):
    house.machine(pes=2).queue("night").submit("anne", "ben")
    force_setattr(house.request(2).spec, "rerunnable", False)
    house.go()
    day(house, "requeue", "stop night")
    assert house.go().actions == (Requeue(1, 1, cause_of("shift day"), "shift day stopped queue night"),)
    assert house.go().actions == ()


@pytest.mark.parametrize("kind", ["leave", "drain"])
def test_leave_and_drain_do_nothing_to_what_runs(house, kind):
    house.machine(pes=1).queue("night").run("anne")
    day(house, kind, "stop night")
    assert house.go().actions == ()


def test_a_queue_that_somebody_else_stopped_goes_on(house):
    house.machine(pes=2).queue("night").queue("batch").run("anne queue=night", "ben queue=batch")
    day(house, "suspend", "stop night")
    house.set("queue/night/started", True).set("queue/batch/started", False)
    assert house.go().actions == ()


def test_what_an_operator_lets_go_on_is_left_alone_until_the_shift_comes_again(house):
    house.machine(pes=1).queue("night").run("anne")
    day(house, "suspend", "stop night")
    house.go()
    house.later(seconds=5)._event(ev.Resumed(1, 1, "olga"))
    assert house.go().actions == ()
    house.later(hours=24)._event(ev.ShiftChanged("day", "night", house.now))
    assert [type(action) for action in house.go().actions] == [Suspend]


def test_a_request_that_the_scheduler_resumed_gives_way_when_its_queue_stops_again(house):
    house.machine(pes=1).queue("night").run("anne")
    day(house, "suspend", "stop night")
    house.go()
    house.later(seconds=5).set("queue/night/started", True)
    assert [type(action) for action in house.go().actions] == [Resume]
    house.later(seconds=5).set("queue/night/started", False)
    assert [type(action) for action in house.go().actions] == [Suspend]


def test_one_that_another_feature_parked_does_not_come_back_into_a_stopped_queue(house):
    house.machine(pes=1).queue("night").run("anne")
    house._event(ev.Suspended(1, 1, "probe nfs", True, "nfs is away"))
    day(house, "suspend", "stop night")
    told = house.run_pass()
    assert told.actions == ()
    assert told.plan.reasons.own[1].who == "shift day"


def test_a_spill_that_means_nothing_is_said(house):
    house.machine(pes=1).queue("night")
    day(house, "suspend", "start night")
    assert features.verify(house.site.settings, house.site) == [
        "shift day: spill=suspend means nothing, its commands stop no queue"
    ]


@pytest.mark.parametrize(
    ("values", "stops"),
    [
        ((("queue/night/started", False),), True),
        ((("queue/*/started", False),), True),
        ((("queue/*/started", False), ("queue/night/started", True)), False),
        ((("queue/night/started", True), ("queue/*/started", False)), True),
        ((("queue/batch/started", False), ("queue/night/enabled", False)), False),
        ((), False),
    ],
)
def test_the_last_word_of_a_shift_says_whether_it_stops_a_queue(values, stops):
    changes = tuple(Change("set", path, value) for path, value in values)
    commands = [cm.encode(cm.PurgeQueue("night")), cm.encode(cm.Configure(changes))]
    assert Shift("day", commands=commands).stops("night") is stops


# ---------------------------------------------------------------- told beforehand


@pytest.mark.parametrize(
    ("kind", "line", "told"),
    [
        ("suspend", "anne wall=9:00:00", "suspended at 08:30, when shift day stops queue night"),
        ("requeue", "anne wall=9:00:00", "ended and queued again at 08:30"),
        ("suspend", "anne wall=8:00:00", None),
        ("suspend", "anne", None),
        ("drain", "anne wall=9:00:00", None),
    ],
)
def test_what_will_become_of_it_is_told_when_it_starts(house, kind, line, told):
    house.machine(pes=1).queue("night")
    closes(house, 8, kind)
    house.submit(line)
    said = shift_end.outlook(house.site, house.request(1), house.now)
    text = said and said.text
    assert told in text if told else text is None
    if told:
        house.go()
        reason = explain(house.site, [1], Reasons())[1]
        assert reason.matches(code=ReasonCode.SHIFT, who="shift day", text=text)


def test_one_that_may_not_run_again_is_not_told_that_it_will(house):
    house.machine(pes=1).queue("night")
    closes(house, 8, "requeue")
    house.submit("anne wall=9:00:00")
    force_setattr(house.request(1).spec, "rerunnable", False)
    assert shift_end.outlook(house.site, house.request(1), house.now) is None
