"""Night work that cannot end before the day: kept back, suspended or queued again, and told beforehand."""

import pytest
from core.story import Story

from nqspy.core import features
from nqspy.core.passes import explain
from nqspy.model import commands as cm
from nqspy.model.actions import Suspend
from nqspy.model.cause import cause_of
from nqspy.model.events import Change
from nqspy.model.reasons import ReasonCode
from nqspy.model.shifts import Shift

DRAIN = "machine 4; queue night; stops night 480 drain"
DRAINED = {
    "what cannot end in time is not started": f"""{DRAIN}
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
    "an explicit unlimited is started": f"{DRAIN}; submit anne wall=unlimited; starts anne",
    "no exit forces a start past it, an operator does": f"""{DRAIN}
        submit anne wall=9:00:00, ben wall=9:00:00; asks forcing all=force; starts -; schedule ben now
        starts ben; why anne SHIFT""",
} | {
    f"only drain holds requests: {kind}": f"""machine 4; queue night; stops night 480 {kind}
        submit anne wall=9:00:00; starts anne"""
    for kind in ("leave", "suspend", "requeue")
}  # fmt: skip

ONE = "machine 1; queue night; run anne"
AWAY = f"{ONE}; day suspend stop:night; does suspend:anne"
SPILLED = {
    "its PEs are used": """machine 2; queue night priority=10; queue batch
        run anne queue=night, ben queue=batch, cleo queue=batch; day suspend stop:night
        does suspend:anne start:cleo; pes cleo 0; does -; why anne SHIFT""",
    "it goes on when its queue is started, whatever the shift": f"""{AWAY}; set shift/day/spill leave; does -
        begin_shift evening; does -; set queue/night/started on; does resume:anne""",
    "requeue ends what may run again and leaves the rest": """machine 2; queue night; queue batch
        run anne queue=night, ben queue=night rerun=no; submit cleo; day requeue stop:night
        does requeue:anne; does start:cleo; does -""",
    "a queue that an operator stopped goes on": """machine 2; queue night; queue batch
        run anne queue=night, ben queue=batch; day suspend stop:night; set queue/night/started on
        set queue/batch/started off; does -""",
    "what an operator resumes is left alone until the shift comes again": f"""{AWAY}; later 5s; resume anne
        does -; later 1440; begin_shift day; does suspend:anne""",
    "one that the scheduler resumed gives way when its queue stops again": f"""{AWAY}; later 5s
        set queue/night/started on; does resume:anne; later 5s; set queue/night/started off
        does suspend:anne""",
    "one that another feature parked does not come back": f"""{ONE}; suspend anne probe nfs
        day suspend stop:night; does -; why anne shift_stopped night""",
} | {
    f"{kind} does nothing to what runs": f"{ONE}; day {kind} stop:night; does -"
    for kind in ("leave", "drain")
}  # fmt: skip

TOLD = {
    f"told beforehand: {spill} {asked}": f"""machine 1; queue night; stops night 480 {spill}
        submit anne {asked}; go; why anne {told}"""
    for spill, asked, told in (
        ("suspend", "wall=9:00:00", "will_rest 06:00 night"), ("suspend", "wall=8:00:00", "-"),
        ("requeue", "wall=9:00:00", "will_end 06:00 night"), ("requeue", "wall=9:00:00 rerun=no", "-"),
        ("suspend", "", "-"), ("leave", "wall=9:00:00", "-"),
    )
}  # fmt: skip
STORIES = DRAINED | SPILLED | TOLD


@pytest.mark.parametrize("title", STORIES)
def test_shifts(house, title):
    Story(house).play(STORIES[title])


def test_requests_that_are_kept_back_are_not_walked(house):
    Story(house).play(DRAIN)
    house.submit(*["anne wall=9:00:00"] * 2_000, "ben wall=1:00:00")
    told = house.run_pass()
    assert told.starts == [2_001]
    assert len(told.plan.reasons.own) < 5
    assert explain(house.site, [1_000], told.plan.reasons)[1_000].code is ReasonCode.SHIFT


def test_the_cause_and_the_text_of_a_suspension(house):
    Story(house).play(f"{ONE}; day suspend stop:night")
    text = "shift day stopped queue night; it goes on when the queue is started again"
    assert house.go().actions == (Suspend(1, 1, cause_of("shift day"), text, True),)
    assert house.why(1).matches(who="shift day", text=text)


def test_a_spill_that_means_nothing_is_said(house):
    Story(house).play("machine 1; queue night; day suspend start:night")
    (line,) = features.verify(house.site.settings, house.site)
    assert line.startswith("shift day: spill=suspend")


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
