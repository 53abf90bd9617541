"""Where one thing meets another: memory and closings, lost CPUs and parked requests, lists and limits of
queues, a clock that was far off, and words over the wire that nobody would type."""

import pytest
from engine.harness import ANNE, BEN, PLAIN, ROOT, Centre, item
from msgspec.structs import replace

from nqspy.engine.inputs import CommandAsked
from nqspy.model import commands as cm
from nqspy.model.ids import DAY, Instant
from nqspy.model.machine import Found
from nqspy.model.observations import ObservedMachine, ObservedPressure, ObservedResource, ObservedUse
from nqspy.model.requests import Used

NIGHT = """
create batch_queue night priority=10
enable queue night
set default batch_request queue night
define shift night when=("0 21 * * *")
  start queue night
end
define shift day when=("30 8 * * *")
  stop queue night
end
"""
SWAP = "set swap_control on high=85 low=70 min_resident=0\n"
GB = 1 << 30


def see(centre, observation):
    centre.sim.see(Instant(centre.sim.now), observation)
    centre.later(seconds=1)


def memory(centre, level, used, *held):
    see(centre, ObservedPressure(level, used, "", held, 12 * GB))


# ---------------------------------------------------------------- memory, closings, CPUs


def test_what_gave_way_to_memory_over_a_closing_is_stopped_for_the_day_like_the_others():
    centre = Centre(
        NIGHT + SWAP + "set shift day spill=suspend\n", at="2026-03-02T22:00:00+01:00", length=86400
    )
    large, small = centre.submit("anne", "ben")
    centre.until("2026-03-03T08:25:00+01:00")
    memory(centre, "high", 90.0, (large, 8 * GB), (small, 2 * GB))
    assert str(centre.request(large).pause.cause) == "swap"
    centre.until("2026-03-03T08:31:00+01:00")
    for _ in range(2):
        memory(centre, "calm", 20.0, (large, 0), (small, 2 * GB))
    centre.later(minutes=5)
    assert [str(centre.request(seq).pause.cause) for seq in (large, small)] == ["shift day", "shift day"]
    centre.is_sound()


def test_a_parked_request_that_lost_a_cpu_goes_on_with_the_others():
    centre = Centre(f"{PLAIN}create probe nfs file=/x running=suspend\n", length=3600)
    [wide] = centre.submit("anne pes=2 needs=nfs")
    centre.later(seconds=5)
    see(centre, ObservedResource("nfs", "broken", ""))
    see(centre, ObservedMachine((0,), 0))
    see(centre, ObservedResource("nfs", "ok", ""))
    [other] = centre.submit("ben")
    assert (centre.state(wide), centre.state(other)) == ("running", "queued")
    centre.later(hours=3)
    assert (centre.state(wide), centre.state(other)) == ("ended", "ended")
    centre.is_sound()


def test_others_start_at_once_when_an_operator_lets_the_last_one_that_gave_way_go_on():
    centre = Centre(PLAIN + SWAP, pes=3, length=86400)
    large, small = centre.submit("anne", "ben")
    centre.later(seconds=1)
    memory(centre, "high", 90.0, (large, 8 * GB), (small, 2 * GB))
    memory(centre, "calm", 69.0, (large, 0), (small, 2 * GB))
    [waits] = centre.submit("cleo")
    centre.ask(cm.SuspendRequests((centre.id(large),), True))
    centre.later(seconds=1)
    assert centre.state(waits) == "running"


def test_swap_control_that_is_switched_on_again_looks_anew():
    centre = Centre(PLAIN + SWAP)
    memory(centre, "high", 90.0)
    assert centre.site.pressure.level == "high"
    centre.qmgr("set swap_control off").qmgr("set swap_control on")
    assert centre.site.pressure.level == "calm"
    centre.is_sound()


def test_a_machine_that_came_back_smaller_says_so_to_who_asks_for_more():
    centre = Centre(pes=4, length=36000)
    [wide] = centre.submit("anne pes=4")
    centre.later(seconds=5)
    centre.sim.executor.fail()
    centre.sim._found = Found((0, 1), 0)
    centre.sim.restart()
    centre.later(seconds=5)
    assert centre.site.pes() == 2
    assert "more than the machine's 2" in centre.engine.plan.reasons.of(wide, "batch").text


# ---------------------------------------------------------------- lists


SMALL = """
create batch_queue small priority=20 run_limit=1
enable queue small
start queue small
create pipe_queue pipe destination=(small, batch)
enable queue pipe
start queue pipe
"""


@pytest.mark.parametrize("limit", ["set queue small queued_limit=1\n", "set loadonly small\n"])
def test_a_list_goes_the_way_its_requests_would_go_one_by_one(limit):
    singly, listed = Centre(PLAIN + SMALL + limit, pes=1), Centre(PLAIN + SMALL + limit, pes=1)
    one_by_one = [singly.hand_in("anne queue=pipe")["queues"][0] for _ in range(3)]
    assert one_by_one == ["small", "batch", "batch"]
    assert listed.hand_in(*["anne queue=pipe"] * 3)["queues"] == one_by_one


def test_on_a_quiet_machine_those_behind_many_that_cannot_be_routed_have_their_turn():
    tiny = "create batch_queue tiny priority=20\nset per_request memory_limit=1mb tiny\n"
    pipe = "create pipe_queue pipe destination=(tiny)\nenable queue pipe\nstart queue pipe\n"
    centre = Centre(f"{PLAIN}{tiny}{pipe}set global offers_per_pass=2\nstart queue tiny\n")
    seqs = centre.submit(*[f"u{n} queue=pipe mem=1mb" for n in range(6)], "zoe queue=pipe mem=1mb")
    centre.qmgr("set per_request memory_limit=512kb tiny")
    [fits] = centre.submit("yves queue=pipe mem=256kb")
    centre.qmgr("enable queue tiny")
    centre.later(minutes=5)
    assert centre.request(fits).queue == "tiny"
    assert {centre.request(seq).queue for seq in seqs} == {"pipe"}


# ---------------------------------------------------------------- clocks and numbers


def test_a_clock_that_was_a_year_ahead_leaves_the_shifts_alone_once_it_is_right():
    centre = Centre(NIGHT, at="2026-03-02T20:00:00+01:00")
    centre.until("2026-03-02T22:00:00+01:00")
    right = centre.sim.now
    centre.sim.now = Instant(right + 365 * DAY)
    centre.sim.feed([])
    centre.sim.now = Instant(right + DAY // 2)
    centre.sim.feed([])
    assert centre.site.shift.current == "day"


def test_use_never_falls_whatever_is_read():
    centre = Centre(f"{PLAIN}create group d1 members=(anne)\n", pes=3, length=10**6)
    [seq] = centre.submit("anne")
    centre.later(hours=2)
    centre.submit("ben")
    before = centre.site.accounts["g:d1"].value
    assert before > 0
    centre.engine.feed([ObservedUse(seq, 1, Used(1_000, 1_000, 0))], centre.sim.now)
    centre.submit("ben")
    assert centre.site.accounts["g:d1"].value >= before


# ---------------------------------------------------------------- words over the wire


@pytest.mark.parametrize("path", ["users/count", "name/upper", "per_request/__class__", "sched_factor/all"])
def test_a_limit_that_is_none_refuses_its_own_submission_and_nobody_elses(path):
    centre = Centre()
    bad, good = item("anne", centre.sim.now), item("ben", centre.sim.now)
    bad = replace(bad, spec=replace(bad.spec, ask=replace(bad.spec.ask, others=((path, 5),))))
    centre.sim.feed(
        [CommandAsked(cm.Submit((good,)), BEN, "ben"), CommandAsked(cm.Submit((bad,)), ANNE, "anne")]
    )
    told = dict(centre.sim.replies[-2:])
    assert told["ben"].value["ids"]
    assert f"'{path}' is no limit of a request" in str(told["anne"].refusal)


def test_a_shift_is_not_switched_to_for_longer_than_a_year():
    centre = Centre(NIGHT + "set shift day spill=drain\n")
    refusal = centre.refused(cm.SwitchShift("night", Instant(10**18)), ROOT)
    assert "more than a year off" in str(refusal)
