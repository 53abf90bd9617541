"""The invented machine: hands whose attempts take the time they are told to take (`ports.Hands`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nqspy.model.actions import Action, Kill, Resume, Start, Suspend
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Ending, Request, Used, finite
from nqspy.model.sightings import SeenEnded, SeenLost, SeenRunning, Sighting
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
    seq: Seq
    attempt: int
    run: Run
    since: Instant
    done: int = 0
    end: SeenEnded | None = None


class Machine:
    """Attempts run side by side, each at full speed; a suspended one makes no progress.

    ``lengths`` invents each attempt's `Run`; ends come back through the heap.
    """

    def __init__(self, heap: Heap, lengths: Callable[[Request], Run]) -> None:
        self._heap = heap
        self._lengths = lengths
        self._attempts: dict[Seq, _Attempt] = {}

    def do(self, action: Action, request: Request | None, site: Site, now: Instant) -> None:
        """Starts, suspends, resumes and kills; everything else has no meaning here."""
        if isinstance(action, Start) and request is not None:
            self._start(action, request, site, now)
        elif isinstance(action, (Suspend, Resume, Kill)):
            attempt = self._attempts.get(action.seq)
            if attempt is not None and attempt.attempt == action.attempt:
                self._act(action, attempt, now)

    def _start(self, action: Start, request: Request, site: Site, now: Instant) -> None:
        attempt = _Attempt(action.seq, action.attempt, self._lengths(request), now)
        self._attempts[action.seq] = attempt
        self._heap.push(now, SeenRunning(action.seq, action.attempt))
        self._set_end(attempt, _ending(attempt.run, _limit(request, site)), now)

    def _set_end(self, attempt: _Attempt, ending: Ending, now: Instant) -> None:
        attempt.since = now
        attempt.end = SeenEnded(attempt.seq, attempt.attempt, ending)
        self._heap.push(Instant(now + ending.used.wall - attempt.done), attempt.end)

    def _act(self, action: Action, attempt: _Attempt, now: Instant) -> None:
        if isinstance(action, Resume):
            if attempt.end is not None and attempt.since < 0:
                self._set_end(attempt, attempt.end.ending, now)
            return
        if attempt.since >= 0:
            attempt.done += now - attempt.since
            self._heap.drop(attempt.end)
        if isinstance(action, Suspend):
            attempt.since = Instant(-1)
        elif isinstance(action, Kill):
            del self._attempts[attempt.seq]
            self._heap.push(now, SeenEnded(attempt.seq, attempt.attempt, _killed(action, attempt)))

    def scan(self, expected: Mapping[Seq, int]) -> Sequence[Sighting]:
        """What became of each expected attempt: the machine outlives its engine."""
        return [
            SeenRunning(seq, number) if self._knows(seq, number) else SeenLost(seq, number)
            for seq, number in expected.items()
        ]

    def _knows(self, seq: Seq, number: int) -> bool:
        attempt = self._attempts.get(seq)
        return attempt is not None and attempt.attempt == number

    def use(self, now: Instant) -> dict[Seq, Used]:
        """What the running attempts have used so far."""
        return {
            a.seq: Used(_share(a.run, a.done + now - a.since), a.done + now - a.since, a.run.memory)
            for a in self._attempts.values()
            if a.since >= 0
        }

    def ended(self, seq: Seq) -> None:
        """Forgets an attempt whose end was fed."""
        self._attempts.pop(seq, None)


def _share(run: Run, wall: int) -> int:
    cpu = run.wall if run.cpu is None else run.cpu
    return cpu if wall >= run.wall else round(cpu * wall / run.wall)


def _limit(request: Request, site: Site) -> int | None:
    limits = site.settings.queues[request.queue].per_request
    own = (finite(request.spec.ask.wall), limits.wall_limit)
    return min((each for each in own if each is not None), default=None)


def _ending(run: Run, limit: int | None) -> Ending:
    if limit is not None and run.wall > limit:
        return Ending("wall_limit", None, 15, Used(_share(run, limit), limit, run.memory))
    return Ending("exit", run.status, None, Used(_share(run, run.wall), run.wall, run.memory))


def _killed(action: Kill, attempt: _Attempt) -> Ending:
    used = Used(_share(attempt.run, attempt.done), attempt.done, attempt.run.memory)
    reason = "requeued" if action.reason == "requeued" else "deleted"
    return Ending(reason, None, action.signal, used)
