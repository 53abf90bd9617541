"""Requests that have ended as jobs of a workload log, followed through the journal: one for each request and
each index of an array, with who went before it; names are numbered as they first appear."""

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from nqspy.core.runtime import wall_limit
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.endings import End
from nqspy.model.ids import Instant, Seq, array_of, index_of, member
from nqspy.model.requests import Ask, Request, Spec, finite
from nqspy.model.site import Site
from nqspy.report.replay import HistoryReplay, RequestHistory
from nqspy.report.site_then import SiteThen

COMPLETED, FAILED, CANCELLED = 1, 0, 5
"""How a job ended, as SWF says it."""


class Part(Struct, frozen=True):
    """One attempt: when it began and ended, its wall time (ms, suspensions left out; None: nobody saw it)."""

    begin: Instant
    end: Instant
    wall: int | None


class LoggedJob(Struct, frozen=True):
    """A request, or an index of an array, that has ended. ``parts``: its attempts, none where it never ran;
    ``had``: PEs it got, 0: none; ``cpu`` ms of all its attempts, ``memory`` bytes (0: not known); ``limit``:
    its wall limit, ms; ``before``: whom it waited for and when that one ended."""

    seq: Seq
    submitted: Instant
    ended: Instant
    status: int
    parts: tuple[Part, ...]
    had: int
    cpu: int
    memory: int
    ask: Ask
    limit: int | None
    user: int
    group: int
    name: int
    queue: int
    domain: int
    before: tuple[Seq, Instant] | None

    @property
    def start(self) -> Instant | None:
        """When it was first started."""
        return self.parts[0].begin if self.parts else None

    @property
    def wall(self) -> int | None:
        """Wall time of all its attempts; None where nobody saw that of each."""
        walls = [part.wall for part in self.parts if part.wall is not None]
        return sum(walls) if self.parts and len(walls) == len(self.parts) else None


class NameNumbers(dict[str, int]):
    """Numbers from 1 upward for names, in the order in which they are first asked for."""

    def of(self, name: str) -> int:
        """The number of a name."""
        return self.setdefault(name, len(self) + 1)


class LoggedJobs:
    """Takes all events of a journal in their order. ``sees``: whose requests belong to the log.

    ``pes``: the most that the machine had; numbers by name in ``users``, ``groups``, ``names``, ``queues``,
    ``domains``: as all the journal is followed, they are the same in each log of one site."""

    def __init__(self, sees: Callable[[Spec], bool] = lambda spec: True) -> None:
        self._sees = sees
        self._then = SiteThen(Site(), Site())
        self._replay = HistoryReplay({})
        self._ends: dict[Seq, tuple[Seq, Instant]] = {}
        self.jobs: list[LoggedJob] = []
        self.pes = 0
        self.users, self.groups, self.names = NameNumbers(), NameNumbers(), NameNumbers()
        self.queues, self.domains = NameNumbers(), NameNumbers()

    def take(self, recorded: ev.Recorded) -> None:
        """Follows one event."""
        event = recorded.event
        if self._then.take(recorded):
            self.pes = max(self.pes, self._then.site.pes())
        self._replay.take(recorded)
        if isinstance(event, ev.Submitted) and self._sees(event.spec):
            self.users.of(event.spec.owner)
            self.groups.of(event.spec.group)
            self.names.of(event.spec.name)
        elif isinstance(event, ev.Ended | ev.Deleted):
            self._gone(event)

    def _gone(self, event: ev.Ended | ev.Deleted) -> None:
        parted = isinstance(event, ev.Deleted) and event.indices
        seq = member(event.seq, event.indices[0][0]) if parted else event.seq  # type: ignore[union-attr]
        history = self._replay.histories.pop(seq, None)
        if history is None or history.ended is None:
            return
        for job in self._jobs_of(history, event.seq):
            for one in (job.seq, array_of(job.seq)):  # the last index to end is the end of its array
                if one is not None:
                    self._ends[one] = job.seq, job.ended
            if self._sees(spec := history.request.spec):
                self.jobs.append(
                    replace(
                        job, user=self.users.of(spec.owner), group=self.groups.of(spec.group),
                        name=self.names.of(spec.name), queue=self.queues.of(history.request.queue),
                        domain=self.domains.of(self._then.site.domain_of(history.request.queue).name),
                    )
                )  # fmt: skip

    def _jobs_of(self, history: RequestHistory, seq: Seq) -> Iterator[LoggedJob]:
        """The job of a request; of an array those of its indices that never began."""
        array = history.request.array
        if array is None:
            yield self._job(history, history.request.seq)
            return
        for index in indices.each(array.left):
            yield self._job(history, member(seq, index))

    def _job(self, history: RequestHistory, seq: Seq) -> LoggedJob:
        request, ending, ended = history.request, history.ending, history.ended
        assert ended is not None
        status = CANCELLED
        if isinstance(ending, ev.Ended) and ending.end_reason != "deleted":
            status = COMPLETED if End.of(ending).ok else FAILED
        lost = isinstance(ending, ev.Ended) and ending.end_reason == "lost"
        parts = tuple(
            Part(each.begin, each.end, None if lost and each is history.attempts[-1] and not wall else wall)
            for each in history.attempts
            if each.end is not None and (wall := each.points[-1][2]) is not None
        )
        return LoggedJob(
            seq, request.submitted, ended, status, parts,
            had=history.attempts[-1].pes if history.attempts else 0,
            cpu=sum(attempt.points[-1][1] for attempt in history.attempts if attempt.points),
            memory=ending.used.memory if isinstance(ending, ev.Ended) else 0,
            ask=request.spec.ask,
            limit=wall_limit(self._then.site.settings, request.queue, request.spec.ask),
            user=0, group=0, name=0, queue=0, domain=0,
            before=self._before(request, seq, parts[0].begin if parts else ended),
        )  # fmt: skip

    def _before(self, request: Request, seq: Seq, start: Instant) -> tuple[Seq, Instant] | None:
        """Of those whose end it waited for the one that ended last; None: it waited for nobody's."""
        index = index_of(seq)
        found = []
        for each in request.spec.after:
            awaited = member(each.seq, index) if each.word == "each" and index is not None else each.seq
            end = self._ends.get(awaited)
            if each.word != "start" and end is not None and end[1] <= start:
                found.append(end)
        return max(found, key=lambda end: (end[1], end[0]), default=None)


def asked_memory(job: LoggedJob) -> int | None:
    """Bytes that a job asked for on each of its PEs; None: it did not say."""
    whole = finite(job.ask.memory)
    return finite(job.ask.memory_process) if whole is None else whole // max(1, job.ask.pes)
