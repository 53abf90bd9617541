"""``nqspy report swf``: ended requests as a log in the Standard Workload Format, version 2.2, of the Parallel
Workloads Archive: 18 numbers a job, -1 for what is unknown, behind a header of comments."""

from collections.abc import Callable, Iterable, Iterator, Sequence

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
from nqspy.report.time_text import Zone

UNKNOWN = "-1"
KB = 1024
CONTINUED, LAST_COMPLETED, LAST_FAILED = 2, 3, 4
"""Statuses of the attempts of one that ran more than once."""

NOTES = (
    "times are whole seconds, each rounded by itself; a run of 0 took less than half a second",
    "wait reaches from submission to the first start; a run is wall time, suspensions left out",
    "status 1: ended with 0, 0: otherwise, 5: deleted while it waited or ran",
    "status 2 to 4, without a submit time: attempts of the job before them, which were run again; its own "
    "run is their sum",
    "preceding job: the last to end of those whose end a job waited for; think time is 0 where it was "
    "submitted before that end",
)


# ---------------------------------------------------------------- jobs of a journal


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


# ---------------------------------------------------------------- the log


class SwfFrame(Struct, frozen=True):
    """What of a log does not come from its jobs: names of host and system, the site's zone, which ends belong
    to it (from ``begin``, before ``end``; None: all), whether times have ``fractions`` of a second."""

    host: str
    system: str
    zone: Zone
    begin: Instant | None = None
    end: Instant | None = None
    fractions: bool = False

    def has(self, job: LoggedJob) -> bool:
        """True if a job ended in that time."""
        first, last = self.begin, self.end
        return (first is None or job.ended >= first) and (last is None or job.ended < last)

    def time(self, ms: int) -> str:
        """A time as the log has it: whole seconds, halves upward, or with what is beyond them."""
        if not self.fractions:
            return str((ms + 500) // 1000)
        whole, rest = divmod(ms, 1000)
        return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def swf_log(
    events: Iterable[ev.Recorded], frame: SwfFrame, sees: Callable[[Spec], bool] = lambda spec: True
) -> str:
    """The log of a journal's requests, as text. ``events``: all of them from the first on; ``sees``: whose
    requests belong to it."""
    found = LoggedJobs(sees)
    for recorded in events:
        found.take(recorded)
    jobs = sorted((job for job in found.jobs if frame.has(job)), key=lambda job: (job.submitted, job.seq))
    # Whole seconds: UnixStartTime has no fractions.
    zero = min((job.submitted for job in jobs), default=frame.begin or 0) // 1000 * 1000
    lines = list(_Lines(frame, zero, jobs).all())
    return "".join(f"{line}\n" for line in (*_header(found, frame, zero, jobs, len(lines)), *lines))


# ---------------------------------------------------------------- lines


class _Lines:
    """The lines of jobs, which are numbered as they were submitted from the instant ``zero`` on."""

    def __init__(self, frame: SwfFrame, zero: int, jobs: Sequence[LoggedJob]) -> None:
        self._frame, self._zero, self._jobs = frame, zero, jobs
        self._numbers: dict[Seq, int] = {job.seq: place for place, job in enumerate(jobs, 1)}

    def all(self) -> Iterator[str]:
        """Each job, and behind one that ran more than once its attempts."""
        time = self._frame.time
        for job in self._jobs:
            start = UNKNOWN if job.start is None else time(max(0, job.start - job.submitted))
            yield self._line(job, time(job.submitted - self._zero), start, job.wall, job.status)
            if len(job.parts) > 1:
                yield from self._attempts(job)

    def _attempts(self, job: LoggedJob) -> Iterator[str]:
        since = job.submitted
        for part in job.parts:
            last = LAST_COMPLETED if job.status == COMPLETED else LAST_FAILED
            status = last if part is job.parts[-1] else CONTINUED
            yield self._line(job, UNKNOWN, self._frame.time(max(0, part.begin - since)), part.wall, status)
            since = part.end

    def _line(self, job: LoggedJob, submit: str, wait: str, run: int | None, status: int) -> str:
        time, asked, whole = self._frame.time, asked_memory(job), submit != UNKNOWN
        preceding, think = self._preceding(job) if whole else (UNKNOWN, UNKNOWN)
        fields = (
            self._numbers[job.seq], submit, wait, UNKNOWN if run is None else time(run), job.had or UNKNOWN,
            time(job.cpu // job.had) if job.had and whole else UNKNOWN,
            job.memory // job.had // KB if job.had and job.memory and whole else UNKNOWN,
            job.ask.pes, UNKNOWN if job.limit is None else max("1", time(job.limit), key=float),
            UNKNOWN if asked is None else asked // KB, status, job.user, job.group, job.name, job.queue,
            job.domain, preceding, think,
        )  # fmt: skip
        return " ".join(map(str, fields))

    def _preceding(self, job: LoggedJob) -> tuple[str, str]:
        """Only one that stands before it in the log can be named."""
        number = 0 if job.before is None else self._numbers.get(job.before[0], 0)
        if job.before is None or not 0 < number < self._numbers[job.seq]:
            return UNKNOWN, UNKNOWN
        return str(number), self._frame.time(max(0, job.submitted - job.before[1]))


# ---------------------------------------------------------------- header


def _header(
    found: LoggedJobs, frame: SwfFrame, zero: int, jobs: Sequence[LoggedJob], records: int
) -> Iterator[str]:
    zone, last = frame.zone, max((job.ended for job in jobs), default=zero)
    offset = zone.local(zero).utcoffset()
    labels = {
        "Version": "2.2", "Computer": f"{frame.host}, {frame.system}", "Installation": frame.host,
        "Information": "https://www.cs.huji.ac.il/labs/parallel/workload/swf.html",
        "MaxJobs": len(jobs), "MaxRecords": records, "Preemption": "Double" if records > len(jobs) else "No",
        "UnixStartTime": zero // 1000, "TimeZone": int(offset.total_seconds()) if offset is not None else 0,
        "TimeZoneString": str(zone.info), "StartTime": _date(zone, zero), "EndTime": _date(zone, last),
        "MaxNodes": 1, "MaxProcs": found.pes, "AllowOveruse": "No",
    }  # fmt: skip
    yield from (f"; {label}: {value}" for label, value in labels.items())
    yield from _named("Queue", "Queues", found.queues)
    yield from _named("Partition", "Partitions", found.domains)
    for what, names in (("user", found.users), ("group", found.groups), ("executable", found.names)):
        yield from (f"; Note: {what} {number} is {_plain(name)}" for name, number in names.items())
    yield from (f"; Note: {text}" for text in (NOTES[1:] if frame.fractions else NOTES))


def _named(label: str, title: str, names: NameNumbers) -> Iterator[str]:
    what = "queues of the site" if label == "Queue" else "domains of PEs"
    yield f"; Max{title}: {len(names)}"
    yield f"; {title}: {what}, numbered from 1 as they first ended a request; none is interactive (0)"
    yield from (f"; {label}: {number} {_plain(name)}" for name, number in names.items())


def _plain(name: str) -> str:
    """A name that stays on its line."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _date(zone: Zone, at: int) -> str:
    """As ``date`` writes it."""
    text = zone.ctime(at)
    return f"{text[:20]}{zone.local(at).tzname()} {text[20:]}"
