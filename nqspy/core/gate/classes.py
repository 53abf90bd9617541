"""Limits of job classes in one domain: PEs of a class's loaded jobs, of all large jobs, of one job."""

from collections import Counter
from collections.abc import Iterable

from nqspy.core.classes import ClassTable
from nqspy.core.gate.rule import LESS
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.site import Site

(_REACHED,) = reason_kinds(
    ReasonCode.NO_PES,
    "a job that counts toward this limit must end or give way, or the limit must be raised",
    class_limit="{who} may hold {pes:1 PE|* PEs} at a time, {held} {held:is|are} in use",
)
(_ABOVE,) = reason_kinds(
    ReasonCode.NO_PES, LESS, class_shut="{who} may hold {pes:1 PE|* PEs} at a time, it alone needs {asked}"
)


class ClassLimits:
    """Limits of classes on the PEs of loaded jobs of one domain, and the count of these PEs. They are no
    rules of the gate: `fallback.preempt` asks them too."""

    def __init__(self, site: Site) -> None:
        self._table = ClassTable(site.settings)
        self._loaded, self._large = Counter[str](), Counter[str]()

    def refuses(self, job: Request, without: Iterable[Request] = ()) -> Reason | None:
        """Return why a job may not be loaded; None: it may. ``without``: loaded jobs that give way to it."""
        leaving, leaving_large = Counter[str](), Counter[str]()
        for holder in without:
            leaving[self._table.name(holder)] += _pes(holder)
            if self._is_large(holder):
                leaving_large[self._table.name(holder)] += _pes(holder)
        kind, name, pes, gang = self._table.of(job), self._table.name(job), _pes(job), self._table.gang
        bounds = [(f"class {kind.name}", kind.pe_limit, self._loaded[name] - leaving[name])]
        bounds.append(("gang", gang.job_limit, 0))
        if self._is_large(job):
            counted = [each for each in self._large if not self._gives_way(each, job)]
            held = sum(self._large[each] - leaving_large[each] for each in counted)
            bounds.append(("gang, large jobs", gang.large_limit, held))
        for who, most, held in bounds:
            if most is not None and held + pes > most:
                return _ABOVE(who, most, pes) if pes > most else _REACHED(who, most, held)
        return None

    def _is_large(self, job: Request) -> bool:
        return self._table.is_large(_pes(job))

    def _gives_way(self, name: str, job: Request) -> bool:
        """True if large jobs of a class do not count against a job of a higher class: they give way to it."""
        kind, lower = self._table.of(job), self._table.named(name)
        bumps = kind.wait is not None and lower.preempted and lower.do_not_disturb is not None
        return bumps and lower.priority < kind.priority

    def add(self, job: Request) -> None:
        """Count a job as loaded from now on."""
        self._loaded[self._table.name(job)] += _pes(job)
        if self._is_large(job):
            self._large[self._table.name(job)] += _pes(job)

    def makes_room(self, holder: Request, job: Request) -> bool:
        """True if PEs that a holder frees make room under a job's class limit: both are of one class."""
        return self._table.name(holder) == self._table.name(job)

    def excess(self, job: Request) -> int:
        """Return by how many PEs the class would exceed its limit with this job loaded; 0: not at all."""
        most = self._table.of(job).pe_limit
        return 0 if most is None else max(0, self._loaded[self._table.name(job)] + _pes(job) - most)

    def leave_room(self, job: Request, holders: Iterable[Request]) -> None:
        """Count a job as loaded in place of ``holders``: its PEs, less those that they free under limits."""
        name, priority, pes = self._table.name(job), self._table.of(job).priority, _pes(job)
        freed = sum(_pes(each) for each in holders if self.makes_room(each, job))
        self._loaded[name] += max(0, pes - freed)
        if self._is_large(job):
            large = (each for each in holders if self._is_large(each))
            freed = sum(_pes(each) for each in large if self._table.of(each).priority == priority)
            self._large[name] += max(0, pes - freed)


def _pes(job: Request) -> int:
    return job.spec.ask.pes
