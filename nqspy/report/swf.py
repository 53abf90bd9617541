"""``nqspy report swf``: ended requests as a log in the Standard Workload Format, version 2.2."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from nqspy.core.runtime import wall_limit
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.endings import End
from nqspy.model.ids import Instant, Seq, array_of, index_of, member
from nqspy.model.requests import Ask, Spec, finite
from nqspy.model.site import Site
from nqspy.report.past_site import PastSite
from nqspy.report.replay import HistoryReplay, RequestHistory
from nqspy.report.time_text import Zone

UNKNOWN = "-1"
_NOTED = ("user", "group", "executable")
KB = 1024
CONTINUED, LAST_COMPLETED, LAST_FAILED = 2, 3, 4
"""Statuses in SWF of the attempts of a job that ran more than once."""

NOTES = (
    "times are whole seconds, each rounded by itself; a run of 0 took less than half a second",
    "wait reaches from submission to the first start; a run is wall time, suspensions left out",
    "status 1: ended with 0, 0: otherwise, 5: deleted while it waited or ran",
    "status 2 to 4, without a submit time: attempts of the job before them, which were run again; its own "
    "run is their sum",
    "preceding job: the last to end of those whose end a job waited for; think time is 0 where it was "
    "submitted before that end",
)


COMPLETED, FAILED, CANCELLED = 1, 0, 5
"""Status of a job's end in SWF."""


class SwfFrame(Struct, frozen=True):
    """Facts of a log besides its jobs: names of host and system, the site's zone, which ends belong to it
    (from ``begin``, before ``end``; None: all), whether times have ``fractions`` of a second."""

    host: str
    system: str
    zone: Zone
    begin: Instant | None = None
    end: Instant | None = None
    fractions: bool = False

    def time(self, ms: int) -> str:
        """Return ms as the log has it: whole seconds, halves rounded up, or with fractions."""
        if not self.fractions:
            return str((ms + 500) // 1000)
        whole, rest = divmod(ms, 1000)
        return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def swf_log(
    events: Iterable[ev.Recorded], frame: SwfFrame, sees: Callable[[Spec], bool] = lambda spec: True
) -> str:
    """Return the log of the requests that ``sees`` accepts; ``events``: all from the first on."""
    found = _Journal(sees)
    for recorded in events:
        found.add(recorded)
    first, last = frame.begin, frame.end
    jobs = [
        job
        for job in sorted(found.jobs, key=lambda job: (job.submitted, job.seq))
        if (first is None or job.ended >= first) and (last is None or job.ended < last)
    ]
    # Whole seconds: UnixStartTime has no fractions.
    zero = min((job.submitted for job in jobs), default=frame.begin or 0) // 1000 * 1000
    lines = list(_lines(frame, zero, jobs))
    return "".join(f"{line}\n" for line in (*_header(found, frame, zero, jobs, len(lines)), *lines))


class _Part(NamedTuple):
    """An attempt: when it began and ended, its wall time (ms without suspensions; None: unknown)."""

    begin: Instant
    end: Instant
    wall: int | None


class _Job(Struct):
    """An ended request, or index of an array. ``parts``: its attempts, none if it never ran; ``had``: PEs it
    got, 0: none; ``cpu``: ms of all its attempts, ``memory``: bytes (0: unknown); ``limit``: wall limit in
    ms; ``before``: what it waited for, and when that ended; ``numbers`` of its names."""

    seq: Seq
    submitted: Instant
    ended: Instant
    status: int
    parts: tuple[_Part, ...]
    had: int
    cpu: int
    memory: int
    ask: Ask
    limit: int | None
    before: tuple[Seq, Instant] | None
    numbers: tuple[int, ...] = ()


class _Journal:
    """Follows a whole journal, so that ``names`` get the same numbers in each log; ``pes``: the most."""

    def __init__(self, sees: Callable[[Spec], bool]) -> None:
        self._sees = sees
        self._then, self._replay = PastSite(Site(), Site()), HistoryReplay({})
        self._ends: dict[Seq, tuple[Seq, Instant]] = {}
        self.jobs: list[_Job] = []
        self.pes = 0
        self.names: dict[str, dict[str, int]] = {kind: {} for kind in (*_NOTED, "Queue", "Partition")}

    def _numbers(self, spec: Spec, **others: str) -> tuple[int, ...]:
        named = {"user": spec.owner, "group": spec.group, "executable": spec.name, **others}
        every = ((self.names[kind], name) for kind, name in named.items())
        return tuple(numbers.setdefault(name, len(numbers) + 1) for numbers, name in every)

    def add(self, recorded: ev.Recorded) -> None:
        """Follow an event; the end of a request adds a job to ``jobs``."""
        event = recorded.event
        if self._then.add(recorded):
            self.pes = max(self.pes, self._then.site.pes())
        self._replay.add(recorded)
        if isinstance(event, ev.Submitted) and self._sees(event.spec):
            self._numbers(event.spec)
        elif isinstance(event, ev.Ended | ev.Deleted):
            self._ended(event)

    def _ended(self, event: ev.Ended | ev.Deleted) -> None:
        """Add the job of an ended request; of an array those of its indices that never began."""
        seq = event.seq
        if isinstance(event, ev.Deleted) and event.indices:
            seq = member(seq, event.indices[0][0])
        history = self._replay.histories.pop(seq, None)
        if history is None or history.ended is None:
            return
        request, site = history.request, self._then.site
        remaining = None if request.array is None else indices.each(request.array.left)
        for seq in [request.seq] if remaining is None else [member(event.seq, index) for index in remaining]:
            job = self._job(history, history.ended, seq)
            for one in (seq, array_of(seq)):  # the last index to end is the end of its array
                if one is not None:
                    self._ends[one] = seq, job.ended
            if self._sees(request.spec):
                domain = site.domain_of(request.queue).name
                job.numbers = self._numbers(request.spec, Queue=request.queue, Partition=domain)
                self.jobs.append(job)

    def _job(self, history: RequestHistory, ended: Instant, seq: Seq) -> _Job:
        request, ending, attempts = history.request, history.ending, history.attempts
        status, lost, memory = CANCELLED, False, 0
        if isinstance(ending, ev.Ended):
            lost, memory = ending.end_reason == "lost", ending.used.memory
            if ending.end_reason != "deleted":
                status = COMPLETED if End.of(ending).ok else FAILED
        parts = tuple(
            _Part(each.begin, each.end, None if lost and each is attempts[-1] and not wall else wall)
            for each in attempts
            if each.end is not None and (wall := each.points[-1][2]) is not None
        )
        start, index, ends = parts[0].begin if parts else ended, index_of(seq), []
        for each in request.spec.after:
            awaited = member(each.seq, index) if each.word == "each" and index is not None else each.seq
            end = self._ends.get(awaited)
            if each.word != "start" and end is not None and end[1] <= start:
                ends.append(end)
        before = max(ends, key=lambda end: (end[1], end[0]), default=None)
        return _Job(
            seq, request.submitted, ended, status, parts, attempts[-1].pes if attempts else 0,
            sum(attempt.points[-1][1] for attempt in attempts if attempt.points), memory, request.spec.ask,
            wall_limit(self._then.site.settings, request.queue, request.spec.ask), before,
        )  # fmt: skip


def _lines(frame: SwfFrame, zero: int, jobs: Sequence[_Job]) -> Iterator[str]:
    """Yield lines of each job, with times from ``zero`` on, and of its attempts if it ran more than once."""
    places, time = {job.seq: place for place, job in enumerate(jobs, 1)}, frame.time
    for place, job in enumerate(jobs, 1):
        walls = [part.wall for part in job.parts if part.wall is not None]
        wall = time(sum(walls)) if job.parts and len(walls) == len(job.parts) else UNKNOWN
        start = time(max(0, job.parts[0].begin - job.submitted)) if job.parts else UNKNOWN
        cpu = time(job.cpu // job.had) if job.had else UNKNOWN
        memory = job.memory // job.had // KB if job.had and job.memory else UNKNOWN
        preceding, think = UNKNOWN, UNKNOWN
        if job.before is not None and places.get(job.before[0], place) < place:  # it stands before this one
            preceding, think = str(places[job.before[0]]), time(max(0, job.submitted - job.before[1]))
        submit = time(job.submitted - zero)
        yield _line(frame, place, job, (submit, start, wall), (cpu, memory), job.status, (preceding, think))
        since = job.submitted
        for part in job.parts if len(job.parts) > 1 else ():
            last = LAST_COMPLETED if job.status == COMPLETED else LAST_FAILED
            status = last if part is job.parts[-1] else CONTINUED
            wait, run = time(max(0, part.begin - since)), UNKNOWN if part.wall is None else time(part.wall)
            yield _line(frame, place, job, (UNKNOWN, wait, run), _UNKNOWNS, status, _UNKNOWNS)
            since = part.end


_UNKNOWNS = (UNKNOWN, UNKNOWN)


def _line(
    frame: SwfFrame, place: int, job: _Job, times: Sequence[str], used: Sequence[object], status: int,
    before: Sequence[str],
) -> str:  # fmt: skip
    asked = finite(job.ask.memory)
    asked = finite(job.ask.memory_process) if asked is None else asked // max(1, job.ask.pes)
    limit = UNKNOWN if job.limit is None else max("1", frame.time(job.limit), key=float)
    memory = UNKNOWN if asked is None else asked // KB
    fields = (*times, job.had or UNKNOWN, *used, job.ask.pes, limit, memory, status, *job.numbers, *before)
    return " ".join(map(str, (place, *fields)))


def _header(found: _Journal, frame: SwfFrame, zero: int, jobs: Sequence[_Job], records: int) -> Iterator[str]:
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
    for kind, what in (("Queue", "queues of the site"), ("Partition", "domains of PEs")):
        yield f"; Max{kind}s: {len(found.names[kind])}"
        yield f"; {kind}s: {what}, numbered from 1 as they first ended a request; none is interactive (0)"
        yield from (f"; {kind}: {number} {_plain(name)}" for name, number in found.names[kind].items())
    for kind in _NOTED:
        names = found.names[kind].items()
        yield from (f"; Note: {kind} {number} is {_plain(name)}" for name, number in names)
    yield from (f"; Note: {text}" for text in (NOTES[1:] if frame.fractions else NOTES))


def _plain(name: str) -> str:
    """Return a name for a comment of the log, without line breaks."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _date(zone: Zone, at: int) -> str:
    """Return an instant as ``date`` writes it."""
    text = zone.ctime(at)
    return f"{text[:20]}{zone.local(at).tzname()} {text[20:]}"
