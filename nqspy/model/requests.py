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
    """State of a request; the values are the words of ``qstat --json``, except ``begun`` (`shown_state`): an
    array of which no index can start, because all have begun, are held or wait."""

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

PRIME = 4
"""Rank of ``set request prime`` (seed 002, 4.2): the request goes before all others of its domain, shuts them
out while it waits or runs, and keeps this rank when it starts."""
STARTED = (State.RUNNING, State.SUSPENDED, State.EXITING)
"""States in which a request has an attempt. In state exiting, the attempt has released its PEs."""

EndReason = Literal["exit", "signal", "cpu_limit", "wall_limit", "memory_limit", "file_limit",
    "process_limit", "contract", "deleted", "lost", "requeued", "not_started"]  # fmt: skip


class Ask(Struct, frozen=True, omit_defaults=True):
    """Resources that a request asks for. None: not given; UNLIMITED: without limit; times in ms, sizes in
    bytes. ``others``: further limits by qmgr path, such as ``("per_process/stack_limit", 8388608)``.
    ``needs``: resources that must work (probes). ``consumables``: number of units of each. ``best_guess``:
    run time that its owner expects (``wall`` is the limit)."""

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
        """Return the limits that have fields of their own, by qmgr path (ms, bytes; None: not given)."""
        return {
            "per_request/cpu_limit": self.cpu,
            "per_process/cpu_limit": self.cpu_process,
            "per_request/wall_limit": self.wall,
            "per_request/memory_limit": self.memory,
            "per_process/memory_limit": self.memory_process,
        }

    def cpu_wanted(self) -> int | None:
        """Return the CPU time (ms) asked for: of the request, else of each process; None: not given."""
        return self.cpu if self.cpu is not None else self.cpu_process

    def memory_wanted(self) -> int | None:
        """Return the memory (bytes) asked for: of the request, else of each process; None: not given."""
        return self.memory if self.memory is not None else self.memory_process

    def finite_cpu(self) -> int | None:
        """Return `cpu_wanted` (ms) if it is finite, else None."""
        return finite(self.cpu if self.cpu is not None else self.cpu_process)

    def finite_memory(self) -> int | None:
        """Return `memory_wanted` (bytes) if it is finite, else None."""
        return finite(self.memory if self.memory is not None else self.memory_process)


class Output(Struct, frozen=True, omit_defaults=True):
    """Places of a request's output. Paths are absolute; None: the default path (`output_paths`). ``join``:
    stderr goes into the file of stdout. ``keep_*``: it stays in the owner's home. ``direct_*``: it is written
    in place while the job runs. ``log``: the job log goes into its own file (``log_path``), or behind the
    output (merged); empty: there is none."""

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
    """Events at which a request sends mail (begin, end, rerun, transfer, abort), and the recipient."""

    begin: bool = False
    end: bool = False
    rerun: bool = False
    transfer: bool = False
    abort: bool = False
    to: str | None = None


AfterWord = Literal["ok", "any", "fail", "start", "each"]
AFTER_WORDS: tuple[AfterWord, ...] = ("ok", "any", "fail", "start", "each")


class Dependency(Struct, frozen=True):
    """Condition on an earlier request: it ended with exit status 0 (``ok``), in any way (``any``), otherwise
    (``fail``), or began (``start``). ``each``: index by index between two arrays, it ended with status 0."""

    seq: Seq
    word: AfterWord = "ok"


class Prerequisite(Struct, frozen=True, omit_defaults=True):
    """Outcome of a prerequisite: end ``reason`` (empty: it has not ended); ``began``: True if it started."""

    seq: Seq
    reason: str = ""
    began: bool = True


class Spec(Struct, frozen=True, omit_defaults=True):
    """A request as its owner asked for it. ``script``, ``environment``: content hashes. ``name_given``: its
    owner chose the name. ``eligible``: earliest start (``-a``). ``held``: it is held from its submission on.
    ``after``: dependencies, all of which must be met. ``unix_groups``: of its submitter, while a pipe queue
    has it. ``listed``: it came in a list and keeps its order. ``array``: its indices, if it is an array (or
    an index of it). ``start_in``: folder to start in, if given. ``layout``: how its PEs are laid out.
    ``contract``: it may start in a hole shorter than its wall limit and is ended at the end of the hole.
    ``mold``: numbers of PEs on which it may run; for ``ask`` see `specs`. ``job_class``: for class queues;
    empty: the default. ``caller``: of an application, number and start (ticks since boot) of the `mpprun`
    process that waits for it; ``within``: the request in which that was called, which is charged.
    ``session``: of ``qsub -I``, number and start of the command that waits for it. ``script_name``: name of
    the script's file."""

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
        """Project of the request (``-P``), which is stored as an attribute; None: it has no project."""
        named = [word.removeprefix("project:") for word in self.attributes if word.startswith("project:")]
        return named[-1] if named else None


class Used(Struct, frozen=True):
    """Use of an attempt so far: CPU and wall time (ms of the site's clock), most memory (bytes)."""

    cpu: int = 0
    wall: int = 0
    memory: int = 0

    def most(self, other: "Used") -> "Used":
        """Return the greater of both uses in each value, so that a late report never lowers the use."""
        if other.cpu >= self.cpu and other.wall >= self.wall and other.memory >= self.memory:
            return other
        return Used(max(self.cpu, other.cpu), max(self.wall, other.wall), max(self.memory, other.memory))


class Ending(Struct, frozen=True):
    """End of an attempt: ``reason`` in one word, exit ``status`` 0..255 or ``signal``, whole use; ``text``:
    for people. ``stdout``, ``stderr``: paths of its output, if known."""

    reason: EndReason
    status: int | None = None
    signal: int | None = None
    used: Used = Used()
    text: str = ""
    stdout: str | None = None
    stderr: str | None = None


class AttemptOutput(Struct, frozen=True, omit_defaults=True):
    """Paths of the output of an attempt that was run again. Without a known path ``stdout`` is empty and
    ``stderr`` None: nothing was written, or it is not known where."""

    attempt: int
    stdout: str | None = None
    stderr: str | None = None


class Redating(Struct, frozen=True):
    """Change of a date in queue at ``at``, by an exit when request ``cause`` started, or by a person (None).
    ``place``: number that orders it among requests of that date (None: its own)."""

    at: Instant
    who: str
    cause: Seq | None = None
    place: Seq | None = None


class Pause(Struct, frozen=True):
    """A suspension. ``pes_released``: its PEs are free for others; ``leaving``: they will be after a move."""

    cause: Cause
    at: Instant
    text: str = ""
    pes_released: bool = False
    leaving: bool = False

    @property
    def preempted(self) -> bool:
        """True if a scheduling feature made the request give way."""
        return self.cause.is_feature


class EndOrder(Struct, frozen=True):
    """Order to a started attempt to end: for good, or so that the request runs again (``rerun``)."""

    cause: Cause
    rerun: bool = False
    text: str = ""

    def __str__(self) -> str:
        why = f": {self.text}" if self.text else ""
        return f"{'rerun' if self.rerun else 'deleted'} by {self.cause}{why}"


class Retry(Struct, frozen=True):
    """Back-off of a request after an attempt that could not begin, for a cause outside the queue (``text``).
    ``at``: earliest instant of the next attempt; ``times``: attempts in a row that failed so."""

    at: Instant
    times: int
    text: str


class MovesMade(NamedTuple):
    """Moves of an attempt off its PEs: how many, their whole time (ms), and bytes that left the memory."""

    times: int = 0
    took: int = 0
    paged: int = 0


MOMENT = 1_000
"""Time (ms) that a start may take. A reservation is reported as late only this long after its time."""


class Reservation(Struct, frozen=True):
    """A start reserved for a waiting request. ``at``: instant by which it can start; None: unknown, because a
    request without a wall limit must end first. ``by``: requests that must end first. ``late``: why the time
    could not be kept; empty: it can. ``turn``: order in which reservations were made. ``pes``: size reserved
    for a moldable request, else 0."""

    at: Instant | None
    by: tuple[Seq, ...] = ()
    late: str = ""
    turn: int = 0
    pes: int = 0


NOT_USED = Used()


class Attempt(Struct, frozen=True, omit_defaults=True):
    """Run of a request, from the decision to start it until its end is recorded. ``number`` counts from 1;
    ``pes`` is empty once its processes have ended. (A Struct is made 30 times as fast as a dataclass.)

    ``starting``: decided, not yet reported by the executor; ``started``: instant of the decision, then of the
    begin. ``charged``: use charged so far (ms); ``rate``: assumed charge while it runs (thousandths of a PE)
    since ``charged_at``. ``pause``: its suspension now; ``resumed``: when it last went on;
    ``resumed_by_person``: when a person last resumed it. ``ending``: the order to end it.
    ``preempted_times``: how often features suspended it; ``preempted_bytes``: its memory at the last time;
    ``moved``: its moves off its PEs; ``migrated``: when it was last moved to other PEs while it ran.
    ``suspended_time``: of former suspensions (ms). ``units``: of
    consumables, held until its processes have ended. ``adjusted``: its request was altered while it ran;
    ``until``: end of its hole (`Spec.contract`); ``passing``, ``lacked``: as in `actions.Start`.
    ``undelivered``: why its output is not delivered yet.
    """

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
    migrated: Instant | None = None

    def ran(self, now: Instant) -> int:
        """Return the wall time (ms) that the attempt has run by ``now``, without its suspensions."""
        return (now if self.pause is None else self.pause.at) - self.started - self.suspended_time


class Request(Struct):
    """A request that has not ended: what was asked for, and its state now. (A Struct: it is copied often.)
    ``queue``: where it is (``spec.queue``: where it was submitted); ``date_in_queue``: orders it;
    ``attempts``: number of the latest attempt, ``attempt``: the present one. ``holds``: letters u (owner), o
    (operator), s (system). ``rank``: set by ``schedule request`` (0 system, 1 first of its queue, 2 next of
    all, 3 now). ``unmet``: dependencies that it still waits for, held by them; ``never``: why one of them can
    never be met. ``redated``: what set its date, if not submission or a change of queue. ``losses``: attempts
    in a row lost soon after their start. ``slot``: its row in the queue's columns while queued, else -1.
    ``array``: state of its indices. ``reservation``: its reserved start. ``former``: outputs of earlier
    attempts. ``retry``: set while its last attempts could not begin. ``prerequisites``: outcomes of the
    requests that it waited for."""

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
        """Instant before which it does not start: its start date or, after failed starts, that of the next
        attempt if that is later; None: there is none."""
        if self.retry is None:
            return self.spec.eligible
        return max(self.retry.at, self.spec.eligible or Instant(0))

    @property
    def run(self) -> Attempt:
        """Present attempt of the request. Raises BrokenSite if there is none."""
        if self.attempt is None:
            raise BrokenSite(f"request {self.seq} is {self.state} and has no attempt")
        return self.attempt

    @property
    def pes(self) -> tuple[int, ...]:
        """PEs of its attempt; empty: it has no attempt, or the processes have ended."""
        return self.attempt.pes if self.attempt is not None else ()

    @property
    def units(self) -> Units:
        """Units of consumables that its attempt holds, or held until its processes ended."""
        return self.attempt.units if self.attempt is not None else ()

    @property
    def started(self) -> Instant | None:
        """Instant at which its present attempt started; None: it has no attempt."""
        return self.attempt.started if self.attempt is not None else None

    @property
    def used(self) -> Used:
        """Last recorded use of its present attempt; zeros if it has none."""
        return self.attempt.used if self.attempt is not None else NOT_USED

    def used_until(self, now: Instant, sample: Used | None = None) -> Used:
        """Return the use of its attempt by ``now``: ``sample`` (None: the last recorded use), with the wall
        time continued to ``now``, except for suspensions."""
        used, run = self.used if sample is None else sample, self.attempt
        if run is None or run.starting or self.state is State.EXITING:
            return used
        return Used(used.cpu, max(used.wall, run.ran(now)), used.memory)

    @property
    def pause(self) -> Pause | None:
        """Present suspension of the request; None: it is not suspended."""
        return self.attempt.pause if self.attempt is not None else None

    @property
    def ending(self) -> EndOrder | None:
        """Order to end its attempt; None: nothing has ordered its end."""
        return self.attempt.ending if self.attempt is not None else None

    @property
    def pes_released(self) -> bool:
        """True if it is suspended and its PEs are free for others."""
        run = self.attempt
        return run is not None and run.pause is not None and run.pause.pes_released

    @property
    def letters(self) -> str:
        """Letters of its holds as ``qstat`` shows them: with ``s`` while it waits for other requests."""
        return "".join(sorted({*self.holds, *("s" if self.unmet else "")}))

    @property
    def weight(self) -> int:
        """Number that it counts as in limits of queued requests: an array's indices not begun, else 1."""
        return 1 if self.array is None else indices.count(self.array.left)

    @property
    def multiplicity(self) -> int:
        """Number of starts that it is ready for: 1, of an array the number of its ready indices."""
        return 1 if self.array is None else indices.count(self.array.ready)

    def awaits(self) -> set[Seq]:
        """Return the requests that it waits for, also arrays where it waits index by index."""
        awaiting = () if self.array is None else self.array.awaiting
        return {each.seq for each in self.unmet} | {seq for seq, _ in awaiting}

    @property
    def shown_state(self) -> State:
        """State as people see it: an array is running once an index has begun; `BEGUN` is shown as held."""
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
        """Name of the request."""
        return self.spec.name
