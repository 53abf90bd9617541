"""Who of the jobs that go by class waits and who holds PEs, and what the limits of classes leave."""

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from nqspy.core.classes import ClassTable, JobClass
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Attempt, Request, State

(_LIMITED,) = reason_kinds(
    ReasonCode.NO_PES,
    "a job that counts against this limit must end or give way, or the limit be raised",
    class_limit="{who}: {pes} PEs are the most at a time, and {held} of them are given",
)
(_SHUT,) = reason_kinds(
    ReasonCode.NO_PES,
    "the limit must be raised, or it must ask for less",
    class_shut="{who}: {pes} PEs are the most at a time, and it asks for {asked}",
)


class WaitingJob(Struct, frozen=True):
    """One that waits to be loaded, ``since`` when; ``parked``: it was before."""

    request: Request
    kind: JobClass
    since: Instant
    parked: bool

    @property
    def rank(self) -> tuple[int, Instant, Seq]:
        """Its place: by priority of its class, then who has waited longest."""
        return -self.kind.priority, self.since, self.request.seq

    def due(self) -> Instant | None:
        """When it has waited as long as its class has it wait; None: never."""
        return None if self.kind.wait is None else Instant(self.since + self.kind.wait)


class LoadedJobs:
    """Who holds PEs of a domain by class, and what that leaves under the limits of the classes."""

    def __init__(self, table: ClassTable, running: list[Request], leaving: list[Request]) -> None:
        self.running, self.leaving, self._table = running, leaving, table
        self.new: set[Seq] = set()
        self._of_class: Counter[str] = Counter()
        self._large: Counter[str] = Counter()
        for request in (*running, *leaving):
            self._count(request, len(request.pes))

    def load(self, request: Request, pes: tuple[int, ...], now: Instant, back: bool) -> None:
        """It is loaded on these PEs from now on; ``back``: it was before. Whoever waits sees it there as he
        does those who run, and that it is ``new``."""
        before = request.run if back else Attempt(request.attempts + 1, pes, now)
        run = replace(before, pes=pes, pause=None, resumed=now if back else None)
        self.running.append(replace(request, state=State.RUNNING, attempt=run))
        self.new.add(request.seq)
        self._count(request, len(pes))

    def _count(self, request: Request, pes: int) -> None:
        name = self._table.name(request)
        self._of_class[name] += pes
        if self._table.is_large(pes):
            self._large[name] += pes

    def keep(self, request: Request, bumped: tuple[Request, ...]) -> None:
        """The others leave a bumper room under the limits, beyond what those leave it who give way to it."""
        pes, name = request.spec.ask.pes, self._table.name(request)
        self._of_class[name] += max(0, pes - sum(self.gives(each, request) for each in bumped))
        if self._table.is_large(pes):
            rank = self._table.of(request).priority
            large = [len(each.pes) for each in bumped if self._table.of(each).priority == rank]
            self._large[name] += max(0, pes - sum(filter(self._table.is_large, large)))

    def limit(self, request: Request, kind: JobClass, without: tuple[Request, ...] = ()) -> Reason | None:
        """The limit that keeps it from being loaded now, ``without`` those."""
        pes, gang = request.spec.ask.pes, self._table.gang
        held = self._of_class[self._table.name(request)] - sum(self.gives(each, request) for each in without)
        if kind.pe_limit is not None and held + pes > kind.pe_limit:
            return _kept_back(f"class {kind.name}", kind.pe_limit, held, pes)
        if gang.job_limit is not None and pes > gang.job_limit:
            return _SHUT("gang", gang.job_limit, pes)
        large = self._large_beside(kind, without)
        if gang.large_limit is not None and self._table.is_large(pes) and large + pes > gang.large_limit:
            return _kept_back("gang, large jobs", gang.large_limit, large, pes)
        return None

    def short(self, request: Request, kind: JobClass) -> int:
        """How many PEs too many its class would have with it."""
        held = self._of_class[self._table.name(request)]
        return 0 if kind.pe_limit is None else max(0, held + request.spec.ask.pes - kind.pe_limit)

    def gives(self, holder: Request, request: Request) -> int:
        """How many its class has less once that holder has left."""
        return len(holder.pes) if self._table.name(holder) == self._table.name(request) else 0

    def _large_beside(self, kind: JobClass, without: tuple[Request, ...]) -> int:
        """PEs of large jobs that count for one of that class: those of lower classes do not where they have
        to give way to it."""
        counted = self._large.copy()
        for request in without:
            if self._table.is_large(len(request.pes)):
                counted[self._table.name(request)] -= len(request.pes)
        return sum(pes for name, pes in counted.items() if not self._yields(self._table.named(name), kind))

    def _yields(self, lower: JobClass, kind: JobClass) -> bool:
        """Whether jobs of one class are of a lower one, and will give way to those of the other."""
        bumps = kind.wait is not None and lower.preempted and lower.do_not_disturb is not None
        return bumps and lower.priority < kind.priority


def _kept_back(who: str, most: int, held: int, asked: int) -> Reason:
    """The limit that ``most`` is: it would bind it alone, or does so beside those that have its PEs."""
    return _SHUT(who, most, asked) if asked > most else _LIMITED(who, most, held)
