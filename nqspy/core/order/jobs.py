"""The candidates of all class queues of a domain: by class, then by how long they have waited. Jobs that gave
way to a bumper and wait to be loaded again are candidates too."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from nqspy.core.classes import BY_CLASS, ClassTable, JobClass, is_bumped
from nqspy.core.draft import Draft
from nqspy.core.gate.gate import Gate
from nqspy.core.gate.rule import Mask
from nqspy.core.order.candidates import NEXT, Candidates
from nqspy.model.ids import Instant, Seq
from nqspy.model.queues import Queue
from nqspy.model.requests import Request
from nqspy.model.site import Site

Place = tuple[int, int, Instant, Seq]
"""The lower place comes first."""


class WaitingJob(Struct, frozen=True):
    """A job that waits to be loaded, ``since`` when; ``returns``: it was loaded before."""

    request: Request
    kind: JobClass
    since: Instant
    returns: bool

    @property
    def place(self) -> Place:
        """The place of the job: by its rank, the priority of its class, and the length of its wait."""
        return -self.request.rank, -self.kind.priority, self.since, self.request.seq

    def due(self) -> Instant | None:
        """Return when it has waited as long as its class allows; None: never."""
        return None if self.kind.wait is None else Instant(self.since + self.kind.wait)


def in_order(jobs: Sequence[WaitingJob]) -> list[WaitingJob]:
    """Return jobs in their order. A job stands behind those of the same owner, group and queue that have a
    higher ``qsub -p``, unless it returns or an operator scheduled it."""
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
    """Return the class queues of each domain that has any."""
    found: dict[str, list[Queue]] = {}
    for name, queue in site.settings.queues.items():
        if queue.order == BY_CLASS:
            found.setdefault(site.domain_of(name).name, []).append(queue)
    return [queues for _, queues in sorted(found.items())]


class ClassCandidates(Candidates):
    """A row is a place in ``jobs``, which stand in their order. ``queue`` is the first of ``queues``.
    ``taken``: the row that was examined last."""

    def __init__(self, draft: Draft, queues: Sequence[Queue], gate: Gate) -> None:
        self._draft, self.queue, self.queues = draft, queues[0], queues
        self.names = {queue.name for queue in queues}
        self.jobs = in_order(list(self._waiting(gate)))
        self._rest = dict.fromkeys(range(len(self.jobs)))
        self.taken = -1

    def _waiting(self, gate: Gate) -> Iterator[WaitingJob]:
        draft, table = self._draft, ClassTable(self._draft.site.settings)
        for request in draft.parked():
            if is_bumped(request) and request.queue in self.names and request.seq not in draft.own:
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
        return sorted(self._rest)

    def unserved(self) -> list[WaitingJob]:
        """Return the jobs that wait still, examined or not."""
        returned = {request.seq for request in self._draft.resumed}
        gone = {name: set(self._draft.gone(name)) for name in self.names}
        return [
            job
            for job in self.jobs
            if job.request.seq not in returned
            and (job.returns or job.request.slot not in gone[job.request.queue])
        ]

    def best(self, excluded: Mask | None = None, *, anew: bool = True) -> int | None:
        """Return the first remaining row."""
        return min(self._rest, default=None)

    def take(self, row: int) -> Request:
        del self._rest[row]
        self.taken = row
        return self.jobs[row].request

    def put_back(self, rows: Sequence[int], *, next_index: bool = False) -> None:
        self._rest.update(dict.fromkeys(rows))

    def sort_again(self) -> None:
        """Drop the jobs that wait no more; new dates count from the next pass on."""
        unserved = {job.request.seq for job in self.unserved()}
        self._rest = {row: None for row in self._rest if self.jobs[row].request.seq in unserved}

    def urgent(self) -> list[tuple[int, int]]:
        return [(rank, row) for row in self.scheduled() if (rank := self.jobs[row].request.rank) >= NEXT]

    def scheduled(self) -> list[int]:
        """Return the rows that an operator put in front of others, in order."""
        return [row for row, job in enumerate(self.jobs) if job.request.rank and not job.returns]

    def is_left(self, row: int) -> bool:
        return row in self._rest

    def refresh(self) -> None:
        """Do nothing: the order does not depend on what starts."""
