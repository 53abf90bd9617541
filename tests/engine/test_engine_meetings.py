"""Combinations: memory and closed queues, lost CPUs and suspended requests, lists and limits of queues, a
wrong clock, and words over the wire that no person types."""

import pytest
from engine.harness import ANNE, BEN, PLAIN, Centre, item
from engine.story import Story
from msgspec.structs import replace

from nqspy.engine.inputs import CommandAsked
from nqspy.model import commands as cm
from nqspy.model.ids import DAY, Instant
from nqspy.model.machine import Found
from nqspy.model.observations import ObservedMachine, ObservedPressure, ObservedUse
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


def test_swap_control_that_is_switched_on_again_looks_anew():
    centre = Centre(PLAIN + SWAP)
    memory(centre, "high", 90.0)
    assert centre.site.pressure.level == "high"
    centre.qmgr("set swap_control off").qmgr("set swap_control on")
    assert centre.site.pressure.level == "calm"
    centre.is_sound()


class MemoryStory(Story):
    """A test with readings of the memory, and with CPUs that disappear."""

    def memory(self, words: str) -> None:
        """Report the memory: level, per cent in use, GB that requests hold in their order."""
        level, used, *held = words.split()
        memory(self.centre, level, float(used), *((seq, int(size) * GB) for seq, size in enumerate(held, 1)))

    def cpus(self, number: str) -> None:
        """Report so many CPUs."""
        see(self.centre, ObservedMachine(tuple(range(int(number))), 0))

    def power_cut(self, cpus: str) -> None:
        """Restart after a power cut with so many CPUs."""
        self.centre.sim.executor.fail()
        self.centre.sim._found = Found(tuple(range(int(cpus))), 0)
        self.centre.sim.restart()


STORIES = {
    "a parked request that lost a CPU goes on with the others": """site length=3600
        qmgr create probe nfs file=/x running=suspend; submit anne pes=2 needs=nfs; later 5s
        probe nfs broken; cpus 1; probe nfs ok; submit ben; state 1 running 2 queued; later 3h
        state 1 ended 2 ended""",
    "others start when an operator lets the last one that gave way go on": f"""site pes=3 length=86400
        qmgr {SWAP.strip()}; submit anne, ben; later 1s; memory high 90 8 2; memory calm 69 0 2; submit cleo
        resume 1; later 1s; state 3 running""",
    "a machine that came back smaller is too small for one that asks for more": """site pes=4 length=36000
        submit anne pes=4; later 5s; power_cut 2; later 5s; why 1 NEVER machine""",
}


@pytest.mark.parametrize("title", STORIES)
def test_meetings(title):
    story = MemoryStory(Centre())
    story.play(STORIES[title])
    story.centre.is_sound()


SMALL = """
create batch_queue small priority=20 run_limit=1
create pipe_queue pipe destination=(small, batch)
enable queue all
start queue all
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


@pytest.mark.parametrize("path", ["users/count", "name/upper", "per_request/__class__", "sched_factor/all"])
def test_a_limit_that_is_none_refuses_its_own_submission_and_nobody_elses(path):
    centre = Centre()
    bad, good = item("anne", centre.sim.now), item("ben", centre.sim.now)
    bad = replace(bad, spec=replace(bad.spec, ask=replace(bad.spec.ask, others=((path, 5),))))
    centre.sim.feed(
        [CommandAsked(cm.Submit((good,)), BEN, "ben"), CommandAsked(cm.Submit((bad,)), ANNE, "anne")]
    )
    report = dict(centre.sim.replies[-2:])
    assert report["ben"].value["ids"]
    assert report["anne"].refusal.kind == "no_such_limit"
