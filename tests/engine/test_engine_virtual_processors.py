"""The machine that is shared: CPUs, waits for disks, memory, swapping."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.executor import VirtualExecutor
from nqspy.engine.virtual.heap import Heap
from nqspy.engine.virtual.processors import TimeShared
from nqspy.model.actions import Kill, Resume, Start, Suspend
from nqspy.model.ids import Instant
from nqspy.model.observations import ObservedEnded
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Request, Spec, State, Used
from nqspy.model.site import Site


@dataclass
class YMP:
    """A shared machine by hand: attempts by number, with what their `Run` is."""

    cpus: int = 2
    memory: int = 100
    runs: dict[int, Run] = field(default_factory=dict)
    ends: dict[int, tuple[int, ObservedEnded]] = field(default_factory=dict)
    now: int = 0

    def __post_init__(self):
        self.heap, self.site = Heap(), Site()
        self.site.settings.queues["q"] = Queue("q")
        self.shared = TimeShared(self.cpus, self.memory)
        self.executor = VirtualExecutor(self.heap, lambda request: self.runs[request.seq], self.shared)

    def start(self, run: Run, **ask) -> int:
        seq = len(self.runs) + 1
        self.runs[seq] = run
        spec = Spec("anne", 1, "x", "q", "", "", "/", ask=Ask(**ask))
        request = Request(seq, spec, "q", State.RUNNING, Instant(0), Instant(0), attempts=1)
        self.executor.do(Start(seq, 1, (0,)), request, self.site, Instant(self.now))
        return seq

    def do(self, action) -> None:
        self.executor.do(action, None, self.site, Instant(self.now))

    def to(self, at: int) -> "YMP":
        """Lets time pass; the ends that come are noted."""
        while (first := self.heap.next_at()) is not None and first <= at:
            self.now, items = self.heap.pop()
            seen = [each for each in items if isinstance(each, ObservedEnded)]
            self.executor.ended(seen, Instant(self.now))
            self.ends |= {each.seq: (self.now, each) for each in seen}
        self.now = at
        return self

    def used(self) -> dict[int, Used]:
        return {seq: used for seq, (_, used) in self.executor.use(Instant(self.now)).items()}

    def when(self) -> dict[int, int]:
        return {seq: at for seq, (at, _) in self.ends.items()}


def test_more_share_them_and_go_faster_when_one_has_ended():
    ymp = YMP(cpus=2)
    for wall in (1000, 1000, 2000):
        ymp.start(Run(wall))
    ymp.to(300)
    assert ymp.used() == dict.fromkeys((1, 2, 3), Used(200, 300)), "two thirds each"
    ymp.to(9000)
    assert ymp.when() == {1: 1500, 2: 1500, 3: 2500}
    assert [end.ending.used for _, end in ymp.ends.values()] == [
        Used(1000, 1500),
        Used(1000, 1500),
        Used(2000, 2500),
    ]
    assert ymp.executor.spent(Instant(9000)) == pytest.approx(4000)


def test_only_who_ends_first_is_in_the_heap_and_the_others_come_in_their_turn():
    ymp = YMP(cpus=4)
    for wall in (3000, 500, 3000, 1000):
        ymp.start(Run(wall))
    ymp.heap.next_at()
    assert [each.seq for _, _, each in ymp.heap.entries() if isinstance(each, ObservedEnded)] == [2]
    ymp.to(700).do(Kill(4, 1, "deleted", 0))
    ymp.to(9000)
    assert list(ymp.when().items()) == [(2, 500), (4, 700), (1, 3000), (3, 3000)], "nobody's rate changed"
    assert ymp.ends[3][1].ending.used == Used(3000, 3000)


def test_while_one_waits_for_its_disk_another_one_uses_its_cpu():
    """min(1, CPUs / (k (1 - io))): with a tenth of waits, 2 CPUs are full with 3 requests, not with 2."""
    busy = {}
    for k in (1, 2, 3):
        ymp = YMP(cpus=2)
        for _ in range(k):
            ymp.start(Run(wall=1000, cpu=900))
        busy[k] = ymp.executor.spent(Instant(400)) / (2 * 400)
        first = min(ymp.to(9000).when().values())
        assert first == pytest.approx(1000 / min(1, 2 / (k * 0.9)), abs=1)
    assert busy == pytest.approx({1: 0.45, 2: 0.9, 3: 1.0})


def test_who_does_not_fit_into_memory_makes_no_progress():
    ymp = YMP(cpus=4, memory=100)
    ymp.start(Run(1000, memory=60))
    ymp.start(Run(1000, memory=60))
    ymp.start(Run(500, memory=40))
    ymp.to(400)
    assert ymp.used() == {1: Used(400, 400, 60), 2: Used(0, 400, 60), 3: Used(400, 400, 40)}
    assert ymp.to(9000).when() == {3: 500, 1: 1000, 2: 2000}
    assert ymp.ends[2][1].ending.used == Used(1000, 2000, 60)
    assert ymp.shared.swapped_out(Instant(9000)) == 1000
    assert (ymp.shared.swaps, ymp.shared.swapped_bytes) == (1, 60), "it came in once"


def test_one_started_earlier_takes_its_place_from_a_later_one():
    ymp = YMP(cpus=4, memory=100)
    for memory in (50, 80, 30):
        ymp.start(Run(1000, memory=memory))
    ymp.to(999)
    assert ymp.used()[2].cpu == 0
    ymp.to(1500)
    assert ymp.shared.swaps == 1, "the second in; the third had ended as well"
    ymp.start(Run(100, memory=30))
    assert ymp.to(1700).used()[4].cpu == 0, "30 do not fit beside 80"
    assert ymp.to(9000).when()[4] == 2100


def test_a_suspended_one_gives_cpu_and_memory_to_others():
    ymp = YMP(cpus=1, memory=100)
    ymp.start(Run(1000, memory=60))
    ymp.start(Run(1000, memory=60))
    ymp.to(250).do(Suspend(1, 1))
    ymp.to(650)
    assert ymp.used() == {2: Used(400, 650, 60)}
    ymp.do(Resume(1, 1))
    assert ymp.to(9000).when() == {1: 1400, 2: 2000}
    assert ymp.ends[1][1].ending.used == Used(1000, 1000, 60)
    assert ymp.shared.swaps == 5, "1 out, 2 in; 1 in, 2 out; 2 in"


def test_limits_count_what_is_used_and_a_wall_limit_the_wait_for_memory_too():
    ymp = YMP(cpus=1, memory=100)
    ymp.start(Run(1000, memory=100), cpu=600)
    ymp.start(Run(1000, memory=100), wall=800)
    ymp.start(Run(1000, memory=100), wall=500)
    ymp.to(9000)
    ends = [(at, end.ending.reason, end.ending.used.cpu) for at, end in ymp.ends.values()]
    assert ends == [(500, "wall_limit", 0), (600, "cpu_limit", 600), (800, "wall_limit", 200)]


def test_one_that_is_killed_leaves_its_part_to_the_others():
    ymp = YMP(cpus=1)
    ymp.start(Run(1000))
    ymp.start(Run(1000))
    ymp.to(400).do(Kill(1, 1, "deleted", 0))
    ymp.to(9000)
    assert ymp.when() == {1: 400, 2: 1200}
    assert ymp.ends[1][1].ending.used == Used(200, 400)


@settings(max_examples=examples(60))
@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(
            st.integers(0, 900), st.integers(1, 900), st.integers(0, 120), st.sampled_from([1.0, 0.95, 0.5])
        ),
        min_size=1,
        max_size=8,
    ),
)
def test_work_is_neither_lost_nor_made_and_no_cpu_works_for_two(cpus, requests):
    """All that fit into memory end, with exactly their CPU time; in between it only grows."""
    ymp = YMP(cpus=cpus, memory=100)
    fitting, needs = set(), {}
    for at, wall, memory, part in sorted(requests):
        ymp.to(max(at, ymp.now))
        seq = ymp.start(Run(wall, cpu=round(wall * part), memory=memory))
        needs[seq] = round(wall * part)
        if memory <= 100:
            fitting.add(seq)
    spent = []
    for at in range(ymp.now, ymp.now + 20_000, 500):
        ymp.to(at)
        spent.append(ymp.executor.spent(Instant(at)))
    assert ymp.ends.keys() == fitting
    assert {seq: end.ending.used.cpu for seq, (_, end) in ymp.ends.items()} == {s: needs[s] for s in fitting}
    assert all(0 <= after - before <= cpus * 500 + 1e-6 for before, after in pairwise(spent))
    assert spent[-1] == pytest.approx(sum(needs[seq] for seq in fitting), abs=len(requests) * 3)
