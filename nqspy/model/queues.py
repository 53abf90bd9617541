"""Queues, complexes, the machine-wide limits and the factors of intra-queue priority: settings only."""

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from msgspec import Struct

from nqspy.model.tree import added_settings, branch, declared, get, setting


@dataclass(slots=True)
class Factors:
    """Weights of the intra-queue priority ``P = share*s + cpu*c + memory*m + time*t`` (seed 003, 5.1;
    semantics.md 1). None: the site's default weight. All zero: first in, first out by date in queue."""

    share: int | None = setting("count", None, "weight of the fair-share term", nothing="default")
    cpu: int | None = setting(
        "count", None, "weight of the CPU term: little requested CPU time first", nothing="default"
    )
    memory: int | None = setting(
        "count", None, "weight of the memory term: little requested memory first", nothing="default"
    )
    time: int | None = setting("count", None, "weight of the time in queue", nothing="default")

    def over(self, default: "Factors") -> "Weights":
        """Return the weights in force for a queue: its own, where None those of ``default``, else 0."""
        both = zip(self.all(), default.all(), strict=True)
        return Weights(*[own if own is not None else base or 0 for own, base in both])

    def all(self) -> tuple[int | None, ...]:
        """Return the four weights in the order share, cpu, memory, time."""
        return (self.share, self.cpu, self.memory, self.time)


class Weights(Struct, frozen=True):
    """The weights in force for one queue: whole numbers >= 0."""

    share: int
    cpu: int
    memory: int
    time: int

    def tau_max(self) -> float | None:
        """Return the greatest ratio of the wait of the queue's longest waiting request to that of a request
        that overtakes it, ``T/(T-S-C-M)``; None: no bound (seed 003, 6.1). It holds only against the longest
        waiting one. That has the time factor 1, so what overtakes it has one of at least 1/tau_max. Two
        others may both have a small one (waits of 10 s and 5 min beside one of 10 min)."""
        rest = self.time - self.share - self.cpu - self.memory
        return self.time / rest if rest > 0 else None


PROCESSES = 512
"""Processes and threads of a request where its queue says nothing: fork bombs end early."""


@dataclass(slots=True)
class RequestLimits:
    """Greatest values a request of a queue may ask for, for the request as a whole. None = unlimited."""

    cpu_limit: int | None = setting("time", None, "CPU time of all processes of a request")
    cpu_warning: int | None = setting("time", None, "CPU time at which a request is warned by SIGXCPU")
    wall_limit: int | None = setting("time", None, "wall-clock time of a request")
    memory_limit: int | None = setting("size", None, "memory of all processes of a request")
    pe_limit: int | None = setting("count", None, "PEs of a request")
    process_limit: int | None = setting(
        "count", PROCESSES, "processes and threads of a request at a time", low=2
    )
    permfile_limit: int | None = setting("size", None, "permanent file space of a request")
    tempfile_limit: int | None = setting("size", None, "temporary file space of a request")


@dataclass(slots=True)
class ProcessLimits:
    """Greatest values for each process of a request. None = unlimited."""

    cpu_limit: int | None = setting("time", None, "CPU time of a process")
    cpu_warning: int | None = setting("time", None, "CPU time at which a process is warned by SIGXCPU")
    memory_limit: int | None = setting("size", None, "memory of a process")
    permfile_limit: int | None = setting("size", None, "size of a file that a process writes")
    tempfile_limit: int | None = setting("size", None, "size of a temporary file that a process writes")
    corefile_limit: int | None = setting("size", None, "core file of a process")
    data_limit: int | None = setting("size", None, "data segment of a process")
    stack_limit: int | None = setting("size", None, "stack of a process")
    working_set_limit: int | None = setting("size", None, "working set of a process (Linux ignores it)")


def _units_held(whose: str) -> Any:
    return setting("amounts", (), f"units of consumables that {whose} hold")


@dataclass(slots=True, kw_only=True)
class RunningLimits:
    """Limits on what runs at a time in a queue, a complex or the whole site. None: unlimited. The fields are
    limits that exits and displays read by name; files of `core.gate` declare the limits that they apply. It
    is a base class and no branch, so that paths are ``queue/night/run_limit``."""

    run_limit: int | None = setting("count", None, "requests running at a time")
    user_limit: int | None = setting("count", None, "requests of one user running at a time")
    group_limit: int | None = setting("count", None, "requests of one group running at a time")
    memory_limit: int | None = setting("size", None, "requested memory of all running requests")
    pe_limit: int | None = setting("count", None, "PEs of all running requests")
    consumable_limit: tuple[str, ...] = _units_held("all running requests")
    consumable_user_limit: tuple[str, ...] = _units_held("requests of one user")
    consumable_group_limit: tuple[str, ...] = _units_held("requests of one group")
    added: dict[str, Any] = added_settings()


@dataclass(slots=True)
class Queue(RunningLimits):
    """A batch queue runs requests, a pipe queue routes them to its destinations. A new queue is disabled
    and stopped. The words of ``order`` and ``backfill`` are declared by `core`."""

    name: str
    kind: Literal["batch", "pipe"] = "batch"
    priority: int = setting(
        "number", 0, "order among the queues: higher first", low=0, high=63, operator=True, pipes="too"
    )
    enabled: bool = setting("flag", False, "on: it accepts submissions", operator=True, pipes="too")
    started: bool = setting("flag", False, "on: its requests start or are routed", operator=True, pipes="too")
    _: KW_ONLY
    run_limit: int | None = setting("count", None, "requests running at a time", operator=True)
    queued_limit: int | None = setting("count", None, "requests in it that have not ended", pipes="too")
    user_queued_limit: int | None = setting(
        "count", None, "requests of one user in it that have not ended", pipes="too"
    )
    destinations: tuple[str, ...] = setting(
        "names", (), "queues a pipe queue tries, in this order", pipes="only"
    )
    pipeonly: bool = setting("flag", False, "on: only pipe queues may submit to it")
    loadonly: bool = setting("flag", False, "on: it holds no more requests than its run limit")
    workdir: str = setting(
        "name", "home", "folder where a request starts: home or submit", words=("home", "submit")
    )
    domain: str = setting("name", "application", "domain its requests' PEs come from")
    nice: int = setting("number", 0, "nice value of its requests", low=0, high=19)
    users: tuple[str, ...] = setting(
        "names", (), "users that may submit; empty with groups empty: all", pipes="too"
    )
    groups: tuple[str, ...] = setting("names", (), "Unix groups that may submit", pipes="too")
    restricted: bool = setting("flag", False, "on: only the named users and groups may submit", pipes="too")
    needs: tuple[str, ...] = setting("names", (), "resources that its requests need")
    age_from: str = setting(
        "name", "eligible", "start of a request's age: when it could start, or was submitted",
        words=("eligible", "submitted"), pipes="too",
    )  # fmt: skip
    order: str = setting("name", "priority", "order of its requests", words=("priority",))
    backfill: str = setting(
        "name", "limit", "requests that may start before one that waits", words=("limit",)
    )
    probability: float = setting(
        "percent", 90.0, "least probability that a request started past another ends in time",
        low=1, high=99,
    )  # fmt: skip
    shortest_hole: int = setting("time", 60_000, "least time given to a request with a contract", low=1000)
    reserve: int | None = setting(
        "number", 0, "number of waiting requests with a reserved start", low=0, high=1_000_000, nothing="all"
    )
    backfill_order: str = setting(
        "name", "order", "order of the requests that start before one that waits", words=("order", "shortest")
    )
    per_request: RequestLimits = branch(RequestLimits)
    per_process: ProcessLimits = branch(ProcessLimits)
    sched_factor: Factors = branch(Factors)


def is_heeded(kind: str, path: str) -> bool:
    """True if queues of a kind (``batch`` or ``pipe``) use the setting at that path, or it is unknown."""
    info = declared(Queue).get(path)
    return info is None or info.pipes == "too" or (info.pipes == "only") == (kind == "pipe")


def accepts(queue: Queue, path: str, value: Any) -> bool:
    """True if a queue may have ``value`` for the setting at ``path``: it uses the setting, or the value is
    the default (old sites may have unused settings)."""
    return is_heeded(queue.kind, path) or value == declared(Queue)[path].default


def without_effect(queues: Iterable[Queue]) -> Iterator[str]:
    """Yield a line for each setting of a queue that has no effect in queues of its kind."""
    for queue in queues:
        for path, info in declared(Queue).items():
            if get(queue, path) != info.default and not is_heeded(queue.kind, path):
                yield f"{path.replace('/', ' ')} has no effect in queue {queue.name}, a {queue.kind} queue"


@dataclass(slots=True)
class Complex(RunningLimits):
    """A named set of batch queues with common limits; a queue may be in several, all limits apply."""

    name: str
    queues: tuple[str, ...] = setting("names", (), "member queues")


@dataclass(slots=True, kw_only=True)
class Global(RunningLimits):
    """Limits over all queues, and bounds of a pass."""

    queued_limit: int | None = setting("count", None, "requests that have not ended")
    user_queued_limit: int | None = setting("count", None, "requests of one user that have not ended")
    offers_per_pass: int = setting(
        "number", 1000, "candidates offered to jobselect in one pass", low=1, high=1_000_000
    )
    share_rule: str = setting(
        "name", "deficit", "basis of the share term, unless an exit changes it", words=("deficit",)
    )


@dataclass(slots=True)
class Defaults:
    """Settings that apply where a request gives no value."""

    queue: str | None = setting("name", None, "queue of a request that names none")
    mpprun_queue: str | None = setting("name", None, "queue of the applications that mpprun starts")
    cpu_limit: int | None = setting("time", 600_000, "CPU time that routing assumes where none is asked for")
    priority: int = setting("number", 31, "priority of a request that names none", low=0, high=63)
    wall_limit: int | None = setting(
        "time", None, "wall time that plans assume where neither request nor queue has a limit", low=1000
    )
    rerun_output: str = setting(
        "name", "append", "where the output of a further attempt goes: append (behind the former), number"
        " (into its own file), replace (in its place)", words=("append", "number", "replace"),
    )  # fmt: skip
