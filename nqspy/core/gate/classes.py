"""Limits of job classes in one domain: PEs of the loaded jobs of a class, of all large jobs, and of one job
(seed 000, "Job Scheduling Parameters")."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable

from nqspy.core.classes import ClassTable
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.site import Site

(_REACHED,) = reason_kinds(
    ReasonCode.NO_PES,
    "a job that counts under this limit must end or give way, or the limit must be raised",
    class_limit="{who}: at most {pes} PEs at a time, {held} of them are in use",
)
(_ABOVE,) = reason_kinds(
    ReasonCode.NO_PES,
    "the limit must be raised, or it must ask for less",
    class_shut="{who}: at most {pes} PEs at a time, it asks for {asked}",
)


class _ClassRule(ABC):
    """A limit on PEs that counts the loaded jobs of one domain by class; no rule of the gate."""

    def __init__(self, site: Site) -> None:
        self._table = ClassTable(site.settings)
        self._loaded: Counter[str] = Counter()

    @abstractmethod
    def bound(self, job: Request) -> tuple[str, int | None]:
        """Return what has the limit that applies to a job, and the limit; None: no limit."""

    def counts(self, job: Request) -> bool:
        """True if a loaded job counts under this limit."""
        return False

    def held(self, job: Request, loaded: Counter[str]) -> int:
        """Return how many of the PEs ``loaded`` by the jobs of each class count against a job."""
        return 0

    def makes_room(self, holder: Request, job: Request) -> bool:
        """True if a job may have the PEs of a holder that gives way to it under this limit."""
        return False

    def refuses(self, request: Request, without: Iterable[Request] = ()) -> Reason | None:
        """Return why a job may not be loaded; ``without``: loaded jobs that give way to it."""
        loaded = self._loaded.copy() if without else self._loaded
        for holder in without:
            if self.counts(holder):
                loaded[self._table.name(holder)] -= _pes(holder)
        (who, most), pes = self.bound(request), _pes(request)
        if most is None or (held := self.held(request, loaded)) + pes <= most:
            return None
        return _ABOVE(who, most, pes) if pes > most else _REACHED(who, most, held)

    def add(self, request: Request) -> None:
        """Count a job as loaded from now on."""
        if self.counts(request):
            self._loaded[self._table.name(request)] += _pes(request)

    def leave_room(self, job: Request, holders: Iterable[Request]) -> None:
        """Leave room for a job beyond what the holders that give way to it leave."""
        if self.counts(job):
            left = sum(_pes(each) for each in holders if self.makes_room(each, job))
            self._loaded[self._table.name(job)] += max(0, _pes(job) - left)


class ClassLimit(_ClassRule):
    """PEs of the loaded jobs of a class."""

    def bound(self, job: Request) -> tuple[str, int | None]:
        kind = self._table.of(job)
        return f"class {kind.name}", kind.pe_limit

    def counts(self, job: Request) -> bool:
        return True

    def held(self, job: Request, loaded: Counter[str]) -> int:
        return loaded[self._table.name(job)]

    def makes_room(self, holder: Request, job: Request) -> bool:
        return self._table.name(holder) == self._table.name(job)

    def excess(self, job: Request) -> int:
        """Return how many PEs its class would have too many with a job."""
        _, most = self.bound(job)
        return 0 if most is None else max(0, self.held(job, self._loaded) + _pes(job) - most)


class JobLimit(_ClassRule):
    """PEs of one job."""

    def bound(self, job: Request) -> tuple[str, int | None]:
        return "gang", self._table.gang.job_limit


class LargeLimit(_ClassRule):
    """PEs of all loaded large jobs. Those of a lower class do not count against a job to which they will give
    way."""

    def bound(self, job: Request) -> tuple[str, int | None]:
        return "gang, large jobs", self._table.gang.large_limit if self.counts(job) else None

    def counts(self, job: Request) -> bool:
        return self._table.is_large(_pes(job))

    def held(self, job: Request, loaded: Counter[str]) -> int:
        kind, held = self._table.of(job), 0
        for name, pes in loaded.items():
            lower = self._table.named(name)
            bumps = kind.wait is not None and lower.preempted and lower.do_not_disturb is not None
            if not (bumps and lower.priority < kind.priority):
                held += pes
        return held

    def makes_room(self, holder: Request, job: Request) -> bool:
        return self.counts(holder) and self._table.of(holder).priority == self._table.of(job).priority


def _pes(job: Request) -> int:
    return job.spec.ask.pes
