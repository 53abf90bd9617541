"""The invented machine: hands whose attempts take the time they are told to take (`ports.Hands`).

It outlives its engine as real shepherds do: what has ended is kept until the engine says that it is committed
(`Forget`), and an attempt that was once begun, ended or claimed as void never begins again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nqspy.model.actions import Action, Forget, Kill, Resume, Signal, Start, Suspend
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Ending, EndReason, Request, Used, finite
from nqspy.model.sightings import SeenEnded, SeenLost, SeenRunning, SeenVoid, Sighting
from nqspy.model.site import Site
from nqspy.sim.heap import Heap


@dataclass(frozen=True, slots=True)
class Run:
    """What an attempt would do if nobody interfered: wall and CPU time in ms, exit status, memory in
    bytes."""

    wall: int
    cpu: int | None = None
    status: int = 0
    memory: int = 0


@dataclass(slots=True)
class _Attempt:
    """``since``: when it began or went on, None while suspended; ``done``: wall time before that."""

    seq: Seq
    attempt: int
    run: Run
    pes: int
    ending: Ending
    since: Instant | None = None
    done: int = 0
    end: SeenEnded | None = None

    def wall(self, now: Instant) -> int:
        """Wall time used so far, without that in which it was suspended."""
        return self.done if self.since is None else self.done + now - self.since


class Machine:
    """Attempts run side by side, each at full speed; a suspended one makes no progress.

    ``lengths`` invents each attempt's `Run`; ends come back through the heap. ``begun``: every attempt that
    ever began, as (request, attempt), in order.
    """

    def __init__(self, heap: Heap, lengths: Callable[[Request], Run]) -> None:
        self._heap = heap
        self._lengths = lengths
        self._attempts: dict[Seq, _Attempt] = {}
        self._ends: dict[tuple[Seq, int], SeenEnded] = {}
        self._latest: dict[Seq, int] = {}
        self._lost: set[tuple[Seq, int]] = set()
        self.begun: list[tuple[Seq, int]] = []

    def do(self, action: Action, request: Request | None, site: Site, now: Instant) -> None:
        """Starts, suspends, resumes, signals, kills and forgets; everything else has no meaning here."""
        if isinstance(action, Start):
            if request is not None and action.attempt > self._latest.get(action.seq, 0):
                self._start(action, request, site, now)
        elif isinstance(action, Forget):
            self._ends.pop((action.seq, action.attempt), None)
        elif isinstance(action, (Suspend, Resume, Kill, Signal)):
            attempt = self._attempts.get(action.seq)
            if attempt is not None and attempt.attempt == action.attempt:
                self._act(action, attempt, now)

    def _start(self, action: Start, request: Request, site: Site, now: Instant) -> None:
        run = self._lengths(request)
        attempt = _Attempt(action.seq, action.attempt, run, request.spec.ask.pes, _ending(run, request, site))
        self._latest[action.seq] = action.attempt
        self._attempts[action.seq] = attempt
        self.begun.append((action.seq, action.attempt))
        self._heap.push(now, SeenRunning(action.seq, action.attempt))
        self._go(attempt, now)

    def _go(self, attempt: _Attempt, now: Instant) -> None:
        attempt.since = now
        attempt.end = SeenEnded(attempt.seq, attempt.attempt, attempt.ending)
        self._heap.push(Instant(now + attempt.ending.used.wall - attempt.done), attempt.end)

    def _stop(self, attempt: _Attempt, now: Instant) -> None:
        attempt.done, attempt.since = attempt.wall(now), None
        if attempt.end is not None:
            self._heap.drop(attempt.end)
            attempt.end = None

    def _act(self, action: Action, attempt: _Attempt, now: Instant) -> None:
        if isinstance(action, Resume):
            if attempt.since is None:
                self._go(attempt, now)
            return
        self._stop(attempt, now)
        if not isinstance(action, Suspend):
            self._end(SeenEnded(attempt.seq, attempt.attempt, _killed(action, attempt)), now)

    def _end(self, end: SeenEnded, now: Instant) -> None:
        del self._attempts[end.seq]
        self._ends[end.seq, end.attempt] = end
        self._heap.push(now, end)

    # ------------------------------------------------------------ what it tells

    def scan(self, expected: Mapping[Seq, int]) -> Sequence[Sighting]:
        """What became of each expected attempt; one that was not begun never will be."""
        return [self._look(seq, number) for seq, number in expected.items()]

    def _look(self, seq: Seq, number: int) -> Sighting:
        attempt, end = self._attempts.get(seq), self._ends.get((seq, number))
        if attempt is not None and attempt.attempt == number:
            return SeenRunning(seq, number)
        if end is not None:
            return end
        if (seq, number) in self._lost:
            return SeenLost(seq, number)
        self._latest[seq] = max(number, self._latest.get(seq, 0))
        return SeenVoid(seq, number)

    def use(self, now: Instant) -> dict[Seq, tuple[int, Used]]:
        """(attempt, what it has used so far) of what runs."""
        return {
            a.seq: (a.attempt, Used(_cpu(a.run, a.wall(now)), a.wall(now), a.run.memory))
            for a in self._attempts.values()
            if a.since is not None
        }

    def ended(self, end: SeenEnded) -> None:
        """An attempt's time has come: it is over, and kept until the engine forgets it."""
        attempt = self._attempts.get(end.seq)
        if attempt is not None and attempt.end is end:
            del self._attempts[end.seq]
            self._ends[end.seq, end.attempt] = end

    def fail(self) -> None:
        """A power cut: everything that runs is lost without a trace."""
        for attempt in self._attempts.values():
            self._heap.drop(attempt.end)
            self._lost.add((attempt.seq, attempt.attempt))
        self._attempts.clear()


def _cpu(run: Run, wall: int) -> int:
    cpu = run.wall if run.cpu is None else run.cpu
    return cpu if wall >= run.wall else round(cpu * wall / run.wall)


def _least(*limits: int | None) -> int | None:
    return min((each for each in limits if each is not None), default=None)


def _ending(run: Run, request: Request, site: Site) -> Ending:
    """How it ends if nobody interferes: by itself, or at the first limit it meets."""
    ask, limits = request.spec.ask, site.settings.queues[request.queue].per_request
    wall = _least(finite(ask.wall), limits.wall_limit)
    cpu = _least(finite(ask.cpu_wanted()), limits.cpu_limit)
    needed = _cpu(run, run.wall)
    ends: list[tuple[int, EndReason]] = []
    if wall is not None and run.wall > wall:
        ends.append((wall, "wall_limit"))
    if cpu is not None and needed > cpu:
        ends.append((run.wall * cpu // needed, "cpu_limit"))
    if ends:
        at, reason = min(ends)
        return Ending(reason, None, 15, Used(_cpu(run, at), at, run.memory))
    return Ending("exit", run.status, None, Used(needed, run.wall, run.memory))


def _killed(action: Action, attempt: _Attempt) -> Ending:
    used = Used(_cpu(attempt.run, attempt.done), attempt.done, attempt.run.memory)
    if isinstance(action, Signal):
        return Ending("signal", None, action.signal, used)
    assert isinstance(action, Kill)
    return Ending("requeued" if action.reason == "requeued" else "deleted", None, action.signal, used)
