"""Candidates that are no rows of one queue: the jobs of all class queues of a domain.

Jobs go by class, then by how long they have waited. Jobs that gave way to a bumper and wait to be loaded
again are candidates too.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from nqspy.core.alike import covers
from nqspy.core.classes import BY_CLASS, ClassTable, JobClass, is_bumped
from nqspy.core.draft import Draft
from nqspy.core.gate.gate import Gate
from nqspy.core.gate.rule import Mask
from nqspy.core.order.candidates import NEXT, Candidates
from nqspy.model.ids import Instant, Seq
from nqspy.model.queues import Queue
from nqspy.model.reasons import Reach
from nqspy.model.requests import Request
from nqspy.model.site import Site

Place = tuple[int, int, Instant, Seq]
"""Place of a job in the order; the lowest comes first."""


class WaitingJob(Struct, frozen=True):
    """A job that waits to be loaded. ``since``: begin of its wait; ``returns``: it gave way to a bumper."""

    request: Request
    kind: JobClass
    since: Instant
    returns: bool

    @property
    def place(self) -> Place:
        """Place of the job: by its rank, the priority of its class, and the length of its wait."""
        return -self.request.rank, -self.kind.priority, self.since, self.request.seq

    def due(self) -> Instant | None:
        """Return when the job will have waited as long as its class allows; None: its class sets no wait."""
        return None if self.kind.wait is None else Instant(self.since + self.kind.wait)


def in_order(jobs: Sequence[WaitingJob]) -> list[WaitingJob]:
    """Return jobs by `WaitingJob.place`. A job stands behind those of the same owner, group and queue that
    have a higher ``qsub -p``, unless it returns or an operator scheduled it."""
    places = {job.request.seq: (job.place, 0) for job in jobs}
    free = [(job, job.request.spec.priority or 0) for job in jobs if not (job.returns or job.request.rank)]
    last: dict[tuple[str, str, str], Place] = {}
    for own, equals in groupby(sorted(free, key=lambda each: -each[1]), key=lambda each: each[1]):
        mine = [(job, (job.request.owner, job.request.group, job.request.queue)) for job, _ in equals]
        for job, who in mine:
            places[job.request.seq] = max(job.place, last.get(who, job.place)), -own
        for job, who in mine:
            last[who] = max(places[job.request.seq][0], last.get(who, job.place))
    return sorted(jobs, key=lambda job: (places[job.request.seq], job.place))


def class_queues(site: Site) -> list[list[Queue]]:
    """Return the class queues of each domain that has some, a list for each domain."""
    found: dict[str, list[Queue]] = {}
    for name, queue in site.settings.queues.items():
        if queue.order == BY_CLASS:
            found.setdefault(site.domain_of(name).name, []).append(queue)
    return [queues for _, queues in sorted(found.items())]


class ClassCandidates(Candidates):
    """Candidates of all class queues of a domain. A row is the sequence number of a job. ``queue``: first of
    the queues ``names``; ``jobs``: by row, in order."""

    def __init__(self, draft: Draft, queues: Sequence[Queue], gate: Gate) -> None:
        self._draft, self.queue = draft, queues[0]
        self.names = {queue.name for queue in queues}
        self.jobs: dict[int, WaitingJob] = {
            job.request.seq: job for job in in_order(list(self._waiting(gate)))
        }
        self._unexamined, self._rows, self._next = set(self.jobs), list(self.jobs), 0
        self.changes = 0

    def _waiting(self, gate: Gate) -> Iterator[WaitingJob]:
        draft, table = self._draft, ClassTable(self._draft.site.settings)
        for request in draft.released():
            if is_bumped(request) and request.queue in self.names and request.seq not in draft.reasons:
                assert request.pause is not None
                yield WaitingJob(request, table.of(request), request.pause.at, True)
        for queue, columns in draft.waiting:
            if queue.name in self.names and queue.started and queue.name not in draft.shut:
                missing = gate.missing(queue.name, columns)
                for row, request in enumerate(columns.requests()):
                    if missing is None or not missing[row]:
                        yield WaitingJob(request, table.of(request), request.date_in_queue, False)

    def remaining(self) -> list[int]:
        """Return the rows that were not examined, in order."""
        return list(filter(self.is_remaining, self.jobs))

    def unserved(self) -> list[WaitingJob]:
        """Return the jobs that still wait, examined or not: this pass neither starts nor resumes them."""
        returned = {request.seq for request in self._draft.resumed}
        removed = {name: set(self._draft.removed(name)) for name in self.names}
        return [
            job
            for job in self.jobs.values()
            if job.request.seq not in returned
            and (job.returns or job.request.slot not in removed[job.request.queue])
        ]

    def best(self, excluded: Mask | None = None, *, anew: bool = True) -> int | None:
        """Return the first row that was not examined; None: all were. The arguments have no effect."""
        while self._next < len(self._rows) and self._rows[self._next] not in self._unexamined:
            self._next += 1
        return self._rows[self._next] if self._next < len(self._rows) else None

    def request(self, row: int) -> Request:
        return self.jobs[row].request

    def row_of(self, request: Request) -> int:
        return request.seq

    def examine(self, row: int) -> Request:
        self._unexamined.remove(row)
        return self.request(row)

    def pass_over(self, reach: Reach) -> None:
        waiting = (job.request for job in self.jobs.values() if not job.returns)
        self._unexamined -= {request.seq for request in waiting if covers(reach, request)}

    def skip_waiting(self) -> bool:
        self._unexamined = {row for row in self.remaining() if self.jobs[row].returns}
        return True

    def put_back(self, rows: Sequence[int], *, next_index: bool = False) -> None:
        self._unexamined |= self.jobs.keys() & rows
        self._next = 0

    def sort_again(self) -> None:
        """Sort by the present dates, without the jobs that no longer wait."""
        dated = [
            job if job.returns else replace(job, since=self._draft.date_of(job.request))
            for job in self.unserved()
        ]
        self.jobs = {job.request.seq: job for job in in_order(dated)}
        self._unexamined &= self.jobs.keys()
        self._rows, self._next = list(self.jobs), 0
        self.changes += 1

    def sort_by_order(self) -> None:
        """Do nothing: there is one order."""

    def urgent(self) -> list[tuple[int, int]]:
        return [(rank, row) for row in self.scheduled() if (rank := self.request(row).rank) >= NEXT]

    def scheduled(self) -> list[int]:
        """Return the rows that an operator moved ahead of others (``schedule request``), in order."""
        return [row for row, job in self.jobs.items() if job.request.rank and not job.returns]

    def any_within(self, pes: int) -> bool:
        return any(self.request(row).spec.ask.pes <= pes for row in self.remaining())

    def is_remaining(self, row: int) -> bool:
        return row in self._unexamined

    @property
    def ahead(self) -> int:
        return sum(not self.is_remaining(job.request.seq) for job in self.unserved())

    def refresh(self) -> None:
        """Do nothing: the order does not depend on what starts."""
