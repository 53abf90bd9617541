"""Limits on running requests (run, user, group, memory, PEs; of queue, complexes and the whole site), and
limits on what one request may ask for. Groups' caps are in `caps`.

Counting is by *requested* memory and PEs, from start to end of a request (nqs.md 4.1).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nqspy.core import broken
from nqspy.core.ledger import Ledger
from nqspy.core.queueing.caps import Caps
from nqspy.core.runtime import memory_of, wall_limit
from nqspy.model.columns import Columns
from nqspy.model.ids import Instant
from nqspy.model.queues import LIMIT_NAMES, Queue, RunningLimits
from nqspy.model.reasons import CLOSED, TOO_LARGE, Reason, ReasonCode
from nqspy.model.requests import Ask, Request, Spec, State, finite
from nqspy.model.site import Settings, Site
from nqspy.model.units import UNLIMITED, format_seconds, format_size, format_time

Mask = npt.NDArray[np.bool_]

# ---------------------------------------------------------------- what one request may ask for


_ASKED: tuple[tuple[str, str, str], ...] = (
    ("per_request/cpu_limit", "CPU time", "cpu"),
    ("per_process/cpu_limit", "CPU time of a process", "cpu_process"),
    ("per_request/wall_limit", "wall time", "wall"),
    ("per_request/memory_limit", "memory", "memory"),
    ("per_process/memory_limit", "memory of a process", "memory_process"),
)


_NAMED = {"per_request/process_limit": "number of processes"}


def violation(site: Site, spec: Spec, queue: Queue) -> str | None:
    """Why a queue can never take this request: one line naming the limit and the greatest value allowed;
    None when it can. An explicit ``unlimited`` fits only where the queue has no such limit."""
    ask = spec.ask
    for path, words, asked in _asked(ask):
        limit = _limit_at(queue, path)
        if asked is not None and limit is not None and (asked == UNLIMITED or asked > limit):
            show = _shower(path)
            wanted = "unlimited" if asked == UNLIMITED else show(asked)
            return f"{queue.name}: {words} {wanted} is above the limit of {show(limit)}"
    if queue.per_request.pe_limit is not None and ask.pes > queue.per_request.pe_limit:
        return f"{queue.name}: {ask.pes} PEs are above the limit of {queue.per_request.pe_limit}"
    return never(site, queue.name, ask.pes)


def never(site: Site, queue: str | None, pes: int) -> str | None:
    """Why a request of that many PEs can never start in a queue's domain (None: in none at all); None when it
    can."""
    size = site.pes() if queue is None else site.size(queue)
    if pes <= size:
        return None
    if queue is None or pes > site.pes() or not site.is_divided():
        return f"{pes} PEs are more than the machine's {site.pes()}"
    return f"{pes} PEs are more than the {size} of domain {site.domain_of(queue).name}"


def _asked(ask: Ask) -> Iterator[tuple[str, str, int | None]]:
    for path, words, name in _ASKED:
        yield path, words, getattr(ask, name)
    if ask.cpu is None:
        yield "per_request/cpu_limit", "CPU time", ask.cpu_wanted()
    if ask.memory is None:
        yield "per_request/memory_limit", "memory", ask.memory_wanted()
    for path, value in ask.others:
        yield (
            path,
            _NAMED.get(path) or path.rpartition("/")[2].removesuffix("_limit").replace("_", " "),
            value,
        )


def _limit_at(queue: Queue, path: str) -> int | None:
    branch, _, name = path.partition("/")
    found: int | None = getattr(getattr(queue, branch, None), name, None)
    return finite(found)


def _shower(path: str) -> Callable[[int], str]:
    if path.endswith(("cpu_limit", "wall_limit", "cpu_warning")):
        return format_seconds
    return str if path.endswith(("pe_limit", "process_limit")) else format_size


# ---------------------------------------------------------------- what runs, and what that leaves


@dataclass(slots=True)
class _Count:
    """What runs under one holder of limits."""

    runs: int = 0
    memory: int = 0
    pes: int = 0
    owners: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)

    def add(self, request: Request) -> None:
        self.runs += 1
        self.pes += request.spec.ask.pes
        self.owners[request.owner] = self.owners.get(request.owner, 0) + 1
        self.groups[request.group] = self.groups.get(request.group, 0) + 1


@dataclass(frozen=True, slots=True)
class Gate:
    """What the limits leave for one queue: users and groups that may start no more, memory (bytes), PEs and
    wall time (ms, until a shift stops the queue) left; infinite where there is no limit; ``room``: PEs left
    to each group that a cap holds for."""

    owners: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    all_owners: bool = False
    memory: float = float("inf")
    pes: float = float("inf")
    room: tuple[tuple[str, int], ...] = ()
    wall: float = float("inf")


class RunningCounts:
    """Running requests counted under every holder of limits; starts of a pass are added as they are
    decided. ``now``: the pass's (the last event's instant where there is none); ``run_limits`` False leaves
    run limits out, which keep back a whole queue alike.

    Of a parked request (`Request.parked`) only its memory counts: it neither runs nor holds PEs. Of one that
    is exiting nothing does: its processes have ended.

    ``ledger`` gives use and what the starts commit, for groups' caps (it is asked for only where there are
    caps); without one, use counts as it stood at the site's last event.
    """

    def __init__(
        self,
        site: Site,
        ledger: Callable[[], Ledger] | None = None,
        *,
        run_limits: bool = True,
        now: Instant | None = None,
    ) -> None:
        self._site = site
        self._now = site.at if now is None else now
        self._caps = Caps(site, ledger or (lambda: Ledger(site, self._now, {})))
        self._run_limits = run_limits
        self._counts: dict[str, _Count] = {}
        self._holders: dict[str, list[tuple[str, RunningLimits]]] = {}
        for request in site.started.values():
            if request.state is not State.EXITING:
                self.add(request)

    def add(self, request: Request) -> None:
        """Counts a request as running from now on."""
        if not request.pes_released:
            self._caps.add(request)
        holders = self.holders(request.queue)
        memory = self._memory(request) if holders else 0
        for who, _ in holders:
            count = self._counts.setdefault(who, _Count())
            count.memory += memory
            if not request.pes_released:
                count.add(request)

    def resume(self, request: Request) -> None:
        """Counts a parked request as running again; one that kept its PEs never ceased to count."""
        if not request.pes_released:
            return
        self._caps.add(request)
        for who, _ in self.holders(request.queue):
            self._counts.setdefault(who, _Count()).add(request)

    def holders(self, queue: str) -> list[tuple[str, RunningLimits]]:
        """Who limits a queue, by name: the queue, its complexes, the whole site; those without limits left
        out."""
        if queue not in self._holders:
            settings: Settings = self._site.settings
            own = [(f"queue {queue}", settings.queues[queue])] if queue in settings.queues else []
            others = [(f"complex {each.name}", each) for each in settings.complexes_of(queue)]
            every = [*own, *others, ("global", settings.global_)]
            self._holders[queue] = [(who, holder) for who, holder in every if _has_limits(holder)]
        return self._holders[queue]

    def _count(self, who: str) -> _Count:
        return self._counts.get(who) or _Count()

    def _memory(self, request: Request) -> int:
        asked = finite(request.spec.ask.memory_wanted())
        if asked is not None:
            return asked
        queue = self._site.settings.queues.get(request.queue)
        return (memory_of(queue) or 0) if queue is not None else 0

    def closed(self, queue: str) -> Reason | None:
        """The run limit that keeps back a whole queue; None while none is reached."""
        for who, holder in self.holders(queue):
            if holder.run_limit is not None and self._count(who).runs >= holder.run_limit:
                return _reached(who, "run", holder.run_limit)
        return None

    def gate(self, queue: str) -> Gate:
        """What the limits other than the run limits leave for a queue now."""
        owners: set[str] = set()
        groups: set[str] = set()
        all_owners, memory, pes = False, float("inf"), float("inf")
        for who, holder in self.holders(queue):
            count = self._count(who)
            if holder.user_limit is not None:
                owners.update(name for name, runs in count.owners.items() if runs >= holder.user_limit)
            if holder.group_limit is not None:
                groups.update(name for name, runs in count.groups.items() if runs >= holder.group_limit)
            all_owners = all_owners or holder.user_limit == 0 or holder.group_limit == 0
            if holder.memory_limit is not None:
                memory = min(memory, holder.memory_limit - count.memory)
            if holder.pe_limit is not None:
                pes = min(pes, holder.pe_limit - count.pes)
        room, wall = self._caps.room(), self._wall_left(queue)
        return Gate(frozenset(owners), frozenset(groups), all_owners, memory, pes, room, wall)

    def ever(self, queue: str) -> Gate:
        """What the limits would leave for a queue if nothing ran: what asks for more can never start, or not
        before a shift stops the queue. A run limit of 0 keeps back all."""
        nobody, memory, pes = False, float("inf"), float("inf")
        for _, holder in self.holders(queue):
            nobody = nobody or 0 in (holder.run_limit, holder.user_limit, holder.group_limit)
            memory = memory if holder.memory_limit is None else min(memory, holder.memory_limit)
            pes = pes if holder.pe_limit is None else min(pes, holder.pe_limit)
        room, wall = self._caps.most(), self._wall_left(queue)
        return Gate(all_owners=nobody, memory=memory, pes=pes, room=room, wall=wall)

    def opens(self) -> Instant | None:
        """When the first group that its past use keeps back will have forgotten enough of it."""
        return self._caps.opens()

    def keeping(self, request: Request, forced: bool = False) -> Reason | None:
        """The first limit that keeps one request back; None when every limit lets it start. PE limits, and a
        shift that drains the queue, hold for ``forced`` requests too. A cap under which it can never start is
        named before all that passes."""
        never = None if forced else self._caps.never(request)
        if never is not None:
            return never
        for who, holder in self.holders(request.queue):
            reason = None if forced else self._keeping(request, who, holder)
            reason = reason or self._keeping_pes(request, who, holder)
            if reason is not None:
                return reason
        kept = None if forced else self._caps.keeping(request)
        return kept or self._keeping_wall(request)

    def _wall_left(self, queue: str) -> float:
        """Time until a shift stops the queue that nothing shall outlast, ms."""
        closing = self._site.closings.get(queue)
        return closing.at - self._now if closing is not None and closing.spill == "drain" else float("inf")

    def _keeping_wall(self, request: Request) -> Reason | None:
        left = self._wall_left(request.queue)
        wall = (
            wall_limit(self._site.settings, request.queue, request.spec.ask) if left != float("inf") else None
        )
        if wall is None or wall <= left:
            return None
        closing = self._site.closings[request.queue]
        text = (
            f"its wall limit of {format_time(wall)} goes beyond {closing.clock}, when shift "
            f"{closing.shift} stops queue {request.queue}; it may start after that, or with a shorter limit"
        )
        return Reason(ReasonCode.SHIFT, f"shift {closing.shift}", text, closing.at)

    def _keeping(self, request: Request, who: str, holder: RunningLimits) -> Reason | None:
        count = self._count(who)
        if self._run_limits and holder.run_limit is not None and count.runs >= holder.run_limit:
            return _reached(who, "run", holder.run_limit)
        if holder.user_limit is not None and count.owners.get(request.owner, 0) >= holder.user_limit:
            return _reached(who, "user", holder.user_limit, request.owner)
        if holder.group_limit is not None and count.groups.get(request.group, 0) >= holder.group_limit:
            return _reached(who, "group", holder.group_limit, request.group)
        most, asked = holder.memory_limit, self._memory(request)
        if most is not None and asked > most - count.memory:
            left = _left(most, count.memory, asked, format_size)
            named = _named("memory", format_size(most), who)
            return _limit(who, f"{named} leaves {left}, it counts {format_size(asked)}")
        return None

    def _keeping_pes(self, request: Request, who: str, holder: RunningLimits) -> Reason | None:
        count, asked, most = self._count(who), request.spec.ask.pes, holder.pe_limit
        if most is not None and asked > most - count.pes:
            left = _left(most, count.pes, asked, str)
            return _limit(who, f"{_named('PE', most, who)} leaves {left}, it asks for {asked}")
        return None


def _reached(who: str, what: str, limit: int, whom: str = "") -> Reason:
    """A limit on how many run is reached (for ``whom``); one of 0 always is."""
    ending = CLOSED if limit == 0 else f"is reached for {whom}" if whom else "is reached"
    return _limit(who, f"{_named(what, limit, who)} {ending}")


def _left(limit: int, held: int, asked: int, show: Callable[[int], str]) -> str:
    """What a limit leaves now; or ever, to one that asks for more than that."""
    return f"{show(limit)} {TOO_LARGE}" if asked > limit else show(max(0, limit - held))


def _has_limits(holder: RunningLimits) -> bool:
    return any(getattr(holder, name) is not None for name in LIMIT_NAMES)


def _named(what: str, value: object, who: str) -> str:
    return f"global {what} limit {value}" if who == "global" else f"{what} limit {value} of {who}"


def _limit(who: str, text: str) -> Reason:
    return Reason(ReasonCode.LIMIT, who, text)


def kept_back(site: Site, gate: Gate, queue: Queue, columns: Columns) -> Mask | None:
    """Rows that a gate keeps back, those included that ask for more PEs than the machine has or need what is
    broken; None if no row is."""
    masks = [*_by_people(site, gate, columns), *_by_size(site, gate, queue, columns)]
    masks += _by_room(site, gate, columns)
    needing = broken.kept_back(site, columns)
    if needing is not None:
        masks.append(needing)
    if not masks:
        return None
    found = masks[0]
    for mask in masks[1:]:
        found = found | mask
    return found


def _by_people(site: Site, gate: Gate, columns: Columns) -> Iterator[Mask]:
    if gate.all_owners:
        yield np.ones(len(columns), dtype=bool)
    for names, numbers, column in (
        (gate.owners, site.numbers.owners, columns.owner),
        (gate.groups, site.numbers.groups, columns.group),
    ):
        blocked = [number for name in names if (number := numbers.known(name)) is not None]
        if blocked:
            table = np.zeros(len(numbers), dtype=bool)
            table[blocked] = True
            yield table[column]


def _by_size(site: Site, gate: Gate, queue: Queue, columns: Columns) -> Iterator[Mask]:
    most = min(gate.pes, site.size(queue.name))
    if columns.most("pes") > most:
        yield columns.pes > most
    if columns.most("memory") > gate.memory:
        too_large = columns.memory > gate.memory
        if (memory_of(queue) or 0) <= gate.memory:
            too_large &= columns.memory != float("inf")
        yield too_large
    if gate.wall != float("inf"):
        too_long = columns.wall > gate.wall
        default = finite(queue.per_request.wall_limit)
        if default is None or default <= gate.wall:
            too_long &= columns.wall != float("inf")
        yield too_long


def _by_room(site: Site, gate: Gate, columns: Columns) -> Iterator[Mask]:
    room = [
        (number, left) for name, left in gate.room if (number := site.numbers.groups.known(name)) is not None
    ]
    if room and columns.most("pes") > min(left for _, left in room):
        table = np.full(len(site.numbers.groups), site.pes(), dtype=np.int64)
        for number, left in room:
            table[number] = left
        yield columns.pes > table[columns.group]
