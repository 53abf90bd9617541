"""Virtual executor and its heap: time, order, suspension, limits, orders; and a shared machine."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nqspy.engine.virtual.attempts import Run
from nqspy.engine.virtual.executor import VirtualExecutor
from nqspy.engine.virtual.heap import Heap
from nqspy.engine.virtual.processors import TimeShared
from nqspy.model.actions import Forget, Kill, Resume, Signal, Start, Suspend
from nqspy.model.cause import Cause
from nqspy.model.ids import Instant
from nqspy.model.observations import ObservedEnded, ObservedRunning, ObservedVoid
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Attempt, EndOrder, Pause, Request, Spec, State, Used
from nqspy.model.site import Site


# ---------------------------------------------------------------- heap
@given(st.lists(st.integers(0, 9)))
def test_things_come_by_their_instant_and_then_in_the_order_they_were_pushed(instants):
    heap = Heap()
    for n, at in enumerate(instants):
        heap.push(Instant(at), (at, n))
    found = []
    while (at := heap.next_at()) is not None:
        now, items = heap.pop()
        assert now == at
        found += items
    assert found == sorted((at, n) for n, at in enumerate(instants))


def test_what_is_taken_back_does_not_come():
    heap, item = Heap(), object()
    number = heap.push(Instant(1), item)
    heap.push(Instant(2), "b")
    heap.drop(number)
    assert [entry[2] for entry in heap.entries()] == ["b"]
    assert heap.next_at() == 2
    assert heap.pop() == (2, ["b"])
    assert heap.next_at() is None


def test_the_heap_knows_whether_anything_is_sure_to_happen():
    heap = Heap()
    heap.push(Instant(1), None)
    heap.push(Instant(2), lambda now: ())
    assert heap.sure == 0, "shifts and readings of probes come about by themselves"
    ends = [heap.push(Instant(3), n) for n in range(1, 1000)]
    assert heap.sure == 999
    for number in ends[:-1]:
        heap.drop(number)
    assert (heap.sure, len(heap.entries())) == (1, 3)
    heap.pop()
    heap.pop()
    assert heap.pop() == (3, [999])
    assert heap.sure == 0


def test_a_stream_is_asked_for_its_next_item_when_the_one_before_has_come():
    heap, asked = Heap(), []

    def items():
        for at in (1, 1, 5, 9):
            asked.append(at)
            yield Instant(at), f"job at {at}"

    heap.stream(items())
    heap.push(Instant(5), "end")
    assert (asked, heap.sure) == ([1], 2)
    assert heap.pop() == (1, ["job at 1", "job at 1"])
    assert asked == [1, 1, 5]
    assert heap.pop() == (5, ["end", "job at 5"])
    assert heap.pop() == (9, ["job at 9"])
    assert heap.next_at() is None


# ---------------------------------------------------------------- machine
class Bench:
    """A machine with one request on it."""

    def __init__(self, run: Run, ask: Ask | None = None, **limits: int) -> None:
        self.heap = Heap()
        self.executor = VirtualExecutor(self.heap, lambda request: run)
        self.site = Site()
        queue = Queue("q")
        for name, value in limits.items():
            setattr(queue.per_request, name, value)
        self.site.settings.queues["q"] = queue
        spec = Spec("anne", 1, "x", "q", "", "", "/", ask=ask or Ask())
        self.request = Request(1, spec, "q", State.RUNNING, Instant(0), Instant(0), attempts=1)

    def do(self, action, now: int = 0) -> None:
        self.executor.do(action, self.request if isinstance(action, Start) else None, self.site, Instant(now))

    def all(self):
        """Return (instant, observation) for everything to come."""
        found = []
        while self.heap.next_at() is not None:
            at, items = self.heap.pop()
            found += [(at, each) for each in items]
        return found

    def end(self) -> tuple[int, ObservedEnded]:
        [end] = [each for each in self.all() if isinstance(each[1], ObservedEnded)]
        return end


START = Start(1, 1, (0,))


def test_an_attempt_is_seen_running_and_then_ended_with_what_it_used():
    bench = Bench(Run(wall=1000, cpu=400, status=3, memory=9))
    bench.do(START, 50)
    (at, running), (end, ended) = bench.all()
    assert (at, running) == (50, ObservedRunning(1, 1))
    assert end == 1050
    assert (ended.ending.reason, ended.ending.status, ended.ending.used) == ("exit", 3, Used(400, 1000, 9))


def test_doing_it_twice_is_harmless():
    bench = Bench(Run(wall=1000))
    for action in (START, START, Suspend(1, 1), Suspend(1, 1), Resume(1, 1), Resume(1, 1)):
        bench.do(action, 100)
    assert bench.end()[0] == 1100
    assert bench.executor.begun == [(1, 1)]
    for seq, attempt in ((1, 1), (1, 1), (1, 2), (9, 1)):
        bench.do(Kill(seq, attempt, "deleted", 0), 200)
    assert bench.end()[0] == 200
    bench.do(START, 300)
    assert bench.all() == [], "it has begun already"


def test_a_suspended_attempt_makes_no_progress_and_is_not_seen_using():
    bench = Bench(Run(wall=1000))
    bench.do(START)
    bench.do(Suspend(1, 1), 300)
    assert bench.executor.use(Instant(500)) == {}
    bench.do(Resume(1, 1), 800)
    assert bench.executor.use(Instant(900)) == {1: (1, Used(400, 400))}
    assert bench.executor.use(Instant(900), but={(1, 1)}) == {}
    at, ended = bench.end()
    assert (at, ended.ending.used.wall) == (1500, 1000)


@pytest.mark.parametrize(
    ("run", "ask", "limits", "reason", "used"),
    [
        (Run(1000), Ask(wall=600), {}, "wall_limit", Used(600, 600)),
        (Run(1000), Ask(), {"wall_limit": 700}, "wall_limit", Used(700, 700)),
        (Run(1000), Ask(wall=800), {"wall_limit": 700}, "wall_limit", Used(700, 700)),
        (Run(1000, cpu=2000), Ask(cpu=500), {}, "cpu_limit", Used(500, 250)),
        (Run(1000, cpu=500), Ask(cpu=600, wall=900), {}, "wall_limit", Used(450, 900)),
        (Run(1000, cpu=500), Ask(cpu=500, wall=1000), {}, "exit", Used(500, 1000)),
        (Run(0), Ask(cpu=0), {}, "exit", Used(0, 0)),
        (
            Run(1000, cpu=2000, unlimited=True), Ask(cpu=500, wall=600), {"wall_limit": 700},
            "exit", Used(2000, 1000),
        ),
    ],
)  # fmt: skip
def test_the_first_limit_it_meets_ends_it_and_none_a_run_that_has_none(run, ask, limits, reason, used):
    bench = Bench(run, ask, **limits)
    bench.do(START)
    at, ended = bench.end()
    assert (ended.ending.reason, ended.ending.used, at) == (reason, used, used.wall)


def test_what_runs_already_goes_on_and_what_is_suspended_waits_until_it_is_resumed():
    bench = Bench(Run(wall=1000))
    run = Attempt(2, (0,), Instant(40), starting=False)
    running = structs.replace(bench.request, seq=3, attempts=2, attempt=run)
    pause = Pause(Cause("operator", "olga"), Instant(60))
    asleep = structs.replace(running, seq=4, state=State.SUSPENDED, attempt=structs.replace(run, pause=pause))
    bench.site.started = {3: running, 4: asleep}
    bench.executor.adopt(bench.site, {3: Used(50, 50)}, Instant(100))
    bench.do(Resume(4, 2), 500)
    ends = bench.all()
    assert [(at, seen.seq, seen.attempt) for at, seen in ends] == [(1040, 3, 2), (1480, 4, 2)]
    assert [seen.ending.used.wall for _, seen in ends] == [1000, 1000]


def test_whose_end_was_ordered_before_ends_at_once():
    bench = Bench(Run(wall=1000))
    order = EndOrder(Cause("owner", "anne"), rerun=True)
    run = Attempt(2, (0,), Instant(40), starting=False, ending=order)
    bench.site.started = {3: structs.replace(bench.request, seq=3, attempts=2, attempt=run)}
    bench.executor.adopt(bench.site, {}, Instant(100))
    [(at, seen)] = bench.all()
    assert (at, seen.ending.reason) == (100, "requeued")


@pytest.mark.parametrize(
    ("action", "reason", "signal"),
    [
        (Kill(1, 1, "deleted", 0), "deleted", 15),
        (Kill(1, 1, "requeued", 0, 9), "requeued", 9),
        (Signal(1, 1, 10), "signal", 10),
    ],
)
@pytest.mark.parametrize("suspended", [False, True])
def test_one_that_is_killed_ends_with_what_it_used_so_far(action, reason, signal, suspended):
    bench = Bench(Run(wall=1000))
    bench.do(START)
    if suspended:
        bench.do(Suspend(1, 1), 400)
    bench.do(action, 400)
    at, ended = bench.end()
    assert at == 400
    assert (ended.ending.reason, ended.ending.signal, ended.ending.used) == (reason, signal, Used(400, 400))


def test_after_a_restart_each_expected_attempt_is_seen_once():
    bench = Bench(Run(wall=1000))
    assert bench.executor.scan({1: 1}) == [ObservedVoid(1, 1)]
    bench.do(START)
    assert bench.all() == [], "what was claimed as void never begins"
    bench.do(Start(1, 2, (0,)))
    assert bench.executor.scan({1: 2, 7: 1}) == [ObservedRunning(1, 2), ObservedVoid(7, 1)]
    at, ended = bench.end()
    bench.executor.ended([ended], Instant(at))
    assert bench.executor.scan({1: 2}) == [ended], "kept until it is committed"
    bench.do(Forget(1, 2))
    assert bench.executor.scan({1: 2}) == [ObservedVoid(1, 2)]


@pytest.mark.parametrize("look", [Heap.next_at, Heap.entries, lambda heap: heap.sure])
def test_what_is_put_off_is_there_for_whoever_looks_and_only_what_was_put_off_last(look):
    heap = Heap()
    heap.put_off(lambda: heap.push(Instant(7), "first thought"))
    heap.put_off(lambda: heap.push(Instant(9), "second thought"))
    assert look(heap)
    assert heap.sure == 1
    assert heap.pop() == (9, ["second thought"])


# ---------------------------------------------------------------- the machine that is shared
@dataclass
class YMP:
    """A shared machine, driven by hand: attempts by number, each with its `Run`."""

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
        """Let time pass, and record the ends that come."""
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
    """Speed: min(1, CPUs / (k (1 - io))); if a tenth is disk waits, 3 requests fill 2 CPUs, 2 do not."""
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
    """All requests that fit into memory end with exactly their CPU time, which only grows until then."""
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
