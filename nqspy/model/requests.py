"""Requests: what was asked (`Ask`, `Spec`), where it stands (`Request`), how an attempt ended (`Ending`)."""

from enum import StrEnum
from typing import Literal, NamedTuple

from msgspec import Struct

from nqspy.model import indices
from nqspy.model.arrays import ArraySpec, ArrayState
from nqspy.model.cause import Cause
from nqspy.model.consumables import Units, Wanted
from nqspy.model.errors import BrokenSite
from nqspy.model.ids import Instant, Seq
from nqspy.model.shapes import Lacked, Layout, Sizes
from nqspy.model.units import finite as finite


class State(StrEnum):
    """State of a request; the values are the words of ``qstat --json``, but for ``begun``: an array of which
    no index could start, as all have begun, are held or await others (shown by `shown_state`)."""

    ARRIVING = "arriving"
    WAITING = "waiting"
    HELD = "held"
    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    EXITING = "exiting"
    ENDED = "ended"
    ROUTING = "routing"
    BEGUN = "begun"


NQS_LETTER = {
    State.ARRIVING: "A", State.WAITING: "W", State.HELD: "H", State.QUEUED: "Q", State.RUNNING: "R",
    State.SUSPENDED: "S", State.EXITING: "E", State.ENDED: "-", State.ROUTING: "D", State.BEGUN: "R",
}  # fmt: skip
POSIX_LETTER = NQS_LETTER | {State.ENDED: "F", State.ARRIVING: "T", State.ROUTING: "T"}

STARTED = (State.RUNNING, State.SUSPENDED, State.EXITING)
"""States of an attempt; one that is exiting has given its PEs back."""

EndReason = Literal["exit", "signal", "cpu_limit", "wall_limit", "memory_limit", "file_limit",
    "process_limit", "contract", "deleted", "lost", "requeued", "not_started"]  # fmt: skip


class Ask(Struct, frozen=True, omit_defaults=True):
    """Resources asked for. None = omitted, UNLIMITED = asked without limit; times in ms, sizes in bytes.
    ``others``: further limits by their qmgr path, e.g. ``("per_process/stack_limit", 8388608)``; ``needs``:
    resources that must be well; ``consumables``: how many units of which; ``best_guess``: how long its owner
    thinks that it runs (``wall`` is when it may be ended)."""

    cpu: int | None = None
    cpu_process: int | None = None
    wall: int | None = None
    memory: int | None = None
    memory_process: int | None = None
    pes: int = 1
    nice: int | None = None
    others: tuple[tuple[str, int], ...] = ()
    needs: tuple[str, ...] = ()
    consumables: Wanted = ()
    best_guess: int | None = None

    def limits(self) -> dict[str, int | None]:
        """Limits that have fields of their own, by their qmgr paths."""
        return {
            "per_request/cpu_limit": self.cpu,
            "per_process/cpu_limit": self.cpu_process,
            "per_request/wall_limit": self.wall,
            "per_request/memory_limit": self.memory,
            "per_process/memory_limit": self.memory_process,
        }

    def cpu_wanted(self) -> int | None:
        """Requested CPU time for order and routing: a request-wide limit counts before a per-process one."""
        return self.cpu if self.cpu is not None else self.cpu_process

    def memory_wanted(self) -> int | None:
        """Requested memory for order and limits: a request-wide limit counts before a per-process one."""
        return self.memory if self.memory is not None else self.memory_process

    def finite_cpu(self) -> int | None:
        """`cpu_wanted` where that is a finite time."""
        return finite(self.cpu if self.cpu is not None else self.cpu_process)

    def finite_memory(self) -> int | None:
        """`memory_wanted` where that is a finite size."""
        return finite(self.memory if self.memory is not None else self.memory_process)


class Output(Struct, frozen=True, omit_defaults=True):
    """Destination of output. Paths are absolute or None for the default; ``join``: stderr into the stdout
    file. ``keep_*``: stays in the owner's home; ``direct_*``: written in place while running; ``log``: the
    job log goes into a file of its own, at ``log_path`` if one is named, or behind the output."""

    stdout: str | None = None
    stderr: str | None = None
    join: bool = False
    keep_stdout: bool = False
    keep_stderr: bool = False
    direct_stdout: bool = False
    direct_stderr: bool = False
    log: Literal["", "own", "merged"] = ""
    log_path: str | None = None


class MailWishes(Struct, frozen=True, omit_defaults=True):
    """Mail about a request, and its addressees: at begin, end, rerun, transfer, abort."""

    begin: bool = False
    end: bool = False
    rerun: bool = False
    transfer: bool = False
    abort: bool = False
    to: str | None = None


AfterWord = Literal["ok", "any", "fail", "start", "each"]
AFTER_WORDS: tuple[AfterWord, ...] = ("ok", "any", "fail", "start", "each")


class Dependency(Struct, frozen=True):
    """Condition on an earlier request: it ended with exit status 0 (``ok``), at all (``any``), otherwise
    (``fail``), or began (``start``); ``each``: array by array, index by index, it ended well."""

    seq: Seq
    word: AfterWord = "ok"


class Prerequisite(Struct, frozen=True, omit_defaults=True):
    """A prerequisite of another request: its end reason (empty: it had only begun), and if it began."""

    seq: Seq
    reason: str = ""
    began: bool = True


class Spec(Struct, frozen=True, omit_defaults=True):
    """A request as its owner asked for it. ``script`` and ``environment`` are content hashes. ``name_given``:
    the owner named it (a default name such as STDIN says nothing). ``eligible``: not before (``-a``).
    ``after``: requests it depends on; all must be met. ``unix_groups``: of its submitter, kept while a pipe
    queue holds it. ``listed``: it was handed in as part of a list, and keeps its order. ``array``: it is an
    array of these indices (or one index of it). ``start_in``: the folder it starts in, if it named one.
    ``layout``: how its PEs are laid out. ``contract``: it may start in a hole shorter than its wall limit,
    and is ended where that ends. ``mold``: it may run on several numbers of PEs; ``ask`` is then what `specs`
    says. ``job_class``: where its queue goes by classes; empty: the site's default. ``caller``: of an
    application the `mpprun` that waits for it, its number and beginning (ticks since boot); ``within``: the
    request that was called in, which is charged; ``session``: of a session (``qsub -I``) the command that
    waits for it, likewise. ``script_name``: of the file that its script was read from."""

    owner: str
    uid: int
    name: str
    queue: str
    script: str
    environment: str
    workdir: str
    gid: int = 0
    name_given: bool = False
    dialect: Literal["nqs", "pbs", "slurm"] = "nqs"
    account: str | None = None
    group: str = "default"
    ask: Ask = Ask()
    args: tuple[str, ...] = ()
    shell: str | None = None
    priority: int | None = None
    eligible: Instant | None = None
    held: bool = False
    rerunnable: bool = True
    output: Output = Output()
    mail: MailWishes = MailWishes()
    host: str = ""
    umask: int = 0o022
    attributes: tuple[str, ...] = ()
    after: tuple[Dependency, ...] = ()
    unix_groups: tuple[str, ...] = ()
    listed: bool = False
    array: ArraySpec | None = None
    start_in: str | None = None
    layout: Layout | None = None
    contract: bool = False
    mold: Sizes | None = None
    job_class: str = ""
    caller: tuple[int, int] | None = None
    within: str = ""
    session: tuple[int, int] | None = None
    script_name: str = ""

    @property
    def project(self) -> str | None:
        """The project it was handed in for (``-P``), kept as an attribute."""
        named = [word.removeprefix("project:") for word in self.attributes if word.startswith("project:")]
        return named[-1] if named else None


class Used(Struct, frozen=True):
    """Use of an attempt so far: CPU and wall time in ms of the site's clock, most memory in bytes."""

    cpu: int = 0
    wall: int = 0
    memory: int = 0

    def most(self, other: "Used") -> "Used":
        """The greater of each: what was told late must not take use back."""
        if other.cpu >= self.cpu and other.wall >= self.wall and other.memory >= self.memory:
            return other
        return Used(max(self.cpu, other.cpu), max(self.wall, other.wall), max(self.memory, other.memory))


class Ending(Struct, frozen=True):
    """End of an attempt: ``status`` 0..255 or ``signal``, the reason in one word; ``text`` for people."""

    reason: EndReason
    status: int | None = None
    signal: int | None = None
    used: Used = Used()
    text: str = ""
    stdout: str | None = None
    stderr: str | None = None


class AttemptOutput(Struct, frozen=True, omit_defaults=True):
    """Output of an attempt that was run again; empty: unknown, None: there is none."""

    attempt: int
    stdout: str | None = None
    stderr: str | None = None


class Redating(Struct, frozen=True):
    """A date in queue that submission did not give: set at ``at`` by an exit as ``cause`` started. ``place``:
    among those of that date it stands where this number stands (None: its own)."""

    at: Instant
    who: str
    cause: Seq | None = None
    place: Seq | None = None


class Pause(Struct, frozen=True):
    """A suspension. ``pes_released``: others may have its PEs; ``leaving``: once it has moved out."""

    cause: Cause
    at: Instant
    text: str = ""
    pes_released: bool = False
    leaving: bool = False

    @property
    def preempted(self) -> bool:
        """True if a scheduling feature had it give way."""
        return self.cause.is_feature


class EndOrder(Struct, frozen=True):
    """Order to end an attempt: for good, or to run it again (``rerun``)."""

    cause: Cause
    rerun: bool = False
    text: str = ""

    def __str__(self) -> str:
        why = f": {self.text}" if self.text else ""
        return f"{'rerun' if self.rerun else 'deleted'} by {self.cause}{why}"


class Retry(Struct, frozen=True):
    """A request with an attempt that could not begin, for a cause outside the queue. The next comes not
    before ``at``; ``times``: attempts in a row that failed so; ``text``: the cause."""

    at: Instant
    times: int
    text: str


class MovesMade(NamedTuple):
    """Moves of an attempt off its PEs: how often, their time in all (ms), bytes that left the memory."""

    times: int = 0
    took: int = 0
    paged: int = 0


MOMENT = 1_000
"""Time that a start may take, ms: limits count from then. A start so much late is not reported as late."""


class Reservation(Struct, frozen=True):
    """A start promised to a waiting request: at ``at`` at the latest, None: unknown, as it waits for one
    without a wall limit. ``by``: requests that must end first. ``late``: why the promise could not be kept.
    ``turn``: the order in which promises were made. ``pes``: its PEs if it has several sizes, else 0."""

    at: Instant | None
    by: tuple[Seq, ...] = ()
    late: str = ""
    turn: int = 0
    pes: int = 0


NOT_USED = Used()


class Attempt(Struct, frozen=True, omit_defaults=True):
    """State of a request while PEs are, or were, held for it. ``number`` counts from 1; ``pes`` is empty once
    its processes have ended. (A Struct is made anew in a thirtieth of a dataclass's time.)

    ``starting``: decided, not yet reported by the executor. ``charged`` is the use already charged; ``rate``:
    at which it counts as charged while it runs (thousandths of a PE), since ``charged_at``. ``pause``: it is
    suspended; ``resumed``: when it last went on, ``resumed_by_person``: when a person last resumed it.
    ``ending``: the order to end it. ``preempted_times``: how often it gave way, ``preempted_bytes``: what it
    held when it last did, ``moved``: how often it left its PEs so. ``suspended_time``: how long it was
    suspended before. ``units``: of consumables, its own until its processes have ended; ``adjusted``: it asks
    for others now; ``until``: when its hole ends; ``passing``, ``lacked``: as `actions.Start` has them.
    ``undelivered``: why its output is not delivered yet."""

    number: int
    pes: tuple[int, ...]
    started: Instant
    starting: bool = True
    used: Used = NOT_USED
    charged: int = 0
    rate: int = 0
    charged_at: Instant | None = None
    pause: Pause | None = None
    resumed: Instant | None = None
    resumed_by_person: Instant | None = None
    ending: EndOrder | None = None
    preempted_times: int = 0
    preempted_bytes: int = 0
    suspended_time: int = 0
    units: Units = ()
    adjusted: bool = False
    until: Instant | None = None
    passing: bool = False
    lacked: Lacked = ()
    moved: MovesMade = MovesMade()
    undelivered: str = ""

    def ran(self, now: Instant) -> int:
        """Wall time (ms) it has run by ``now``, without that in which it was suspended."""
        return (now if self.pause is None else self.pause.at) - self.started - self.suspended_time


class Request(Struct):
    """A request that has not ended: what was asked, and where it stands now. (A Struct: it is copied often.)

    ``queue`` is where it is (``spec.queue`` is what was asked for); ``date_in_queue`` orders it; ``attempts``
    says how many there were, ``attempt`` is the present one; ``holds`` are letters u (owner), o (operator), s
    (system); ``rank`` is what ``schedule request`` set (system 0, first of its queue 1, next of all 2, now
    3). ``unmet``: dependencies it still waits for (it is held as long as there are any); ``never``: why one
    of them can never be met; ``redated``: what gave it its date in queue, if not submission or a queue's
    change; ``losses``: how many attempts in a row were lost soon after their start; ``slot`` is its row in
    the queue's columns while queued, else -1. ``array``: where its indices stand. ``reservation``: the start
    it is promised. ``former``: outputs of earlier attempts; ``retry``: its last attempts could not begin;
    ``prerequisites``: what became of those that it waited for."""

    seq: Seq
    spec: Spec
    queue: str
    state: State
    submitted: Instant
    date_in_queue: Instant
    attempts: int = 0
    attempt: Attempt | None = None
    holds: str = ""
    hold_text: str = ""
    rank: int = 0
    unmet: tuple[Dependency, ...] = ()
    never: str = ""
    redated: Redating | None = None
    losses: int = 0
    array: ArrayState | None = None
    reservation: Reservation | None = None
    former: tuple[AttemptOutput, ...] = ()
    prerequisites: tuple[Prerequisite, ...] = ()
    retry: Retry | None = None
    slot: int = -1

    @property
    def eligible(self) -> Instant | None:
        """Instant before which it does not start: its date, or its next attempt after failed ones."""
        if self.retry is None:
            return self.spec.eligible
        return max(self.retry.at, self.spec.eligible or Instant(0))

    @property
    def run(self) -> Attempt:
        """The attempt of one that was started. Raises BrokenSite when there is none."""
        if self.attempt is None:
            raise BrokenSite(f"request {self.seq} is {self.state} and has no attempt")
        return self.attempt

    @property
    def pes(self) -> tuple[int, ...]:
        """PEs of its attempt."""
        return self.attempt.pes if self.attempt is not None else ()

    @property
    def units(self) -> Units:
        """Units of consumables that its attempt holds, or has held."""
        return self.attempt.units if self.attempt is not None else ()

    @property
    def started(self) -> Instant | None:
        """Return when its attempt was started."""
        return self.attempt.started if self.attempt is not None else None

    @property
    def used(self) -> Used:
        """Return what its attempt used, as far as it was charged."""
        return self.attempt.used if self.attempt is not None else NOT_USED

    def used_until(self, now: Instant, sample: Used | None = None) -> Used:
        """Return what its attempt has used by ``now``: what was told last (``sample``, if anything since it
        was charged), and the wall time since, which stands still while it is suspended."""
        used, run = self.used if sample is None else sample, self.attempt
        if run is None or run.starting or self.state is State.EXITING:
            return used
        return Used(used.cpu, max(used.wall, run.ran(now)), used.memory)

    @property
    def pause(self) -> Pause | None:
        """Return its suspension, while it is suspended."""
        return self.attempt.pause if self.attempt is not None else None

    @property
    def ending(self) -> EndOrder | None:
        """Return the order to end its attempt."""
        return self.attempt.ending if self.attempt is not None else None

    @property
    def pes_released(self) -> bool:
        """True if it is suspended and others may have its PEs."""
        run = self.attempt
        return run is not None and run.pause is not None and run.pause.pes_released

    @property
    def letters(self) -> str:
        """The letters of its holds as people see them: one that waits for others is held by the system."""
        return "".join(sorted({*self.holds, *("s" if self.unmet else "")}))

    @property
    def weight(self) -> int:
        """Return how many requests it stands for: of an array as many as have not begun."""
        return 1 if self.array is None else indices.count(self.array.left)

    @property
    def multiplicity(self) -> int:
        """Return how many of it could start: of an array the indices that are ready."""
        return 1 if self.array is None else indices.count(self.array.ready)

    def awaits(self) -> set[Seq]:
        """Return the requests it waits for; an array also those of which its indices await one each."""
        awaiting = () if self.array is None else self.array.awaiting
        return {each.seq for each in self.unmet} | {seq for seq, _ in awaiting}

    @property
    def shown_state(self) -> State:
        """The state that people are told: an array runs once an index of it has begun."""
        if self.array is None or self.state is State.ENDED:
            return self.state
        if self.array.begun:
            return State.RUNNING
        return State.HELD if self.state is State.BEGUN else self.state

    @property
    def owner(self) -> str:
        """Name of the user it runs as."""
        return self.spec.owner

    @property
    def group(self) -> str:
        """Resource group it is charged to."""
        return self.spec.group

    @property
    def name(self) -> str:
        """Return its request name."""
        return self.spec.name
