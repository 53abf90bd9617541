"""Commands of people and programs, one Struct each; ``cmd`` is the name on the wire. A command that changes
something becomes events or is refused; a query (`Query`) only reads."""

from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct

from nqspy.model.events import Change, written_name
from nqspy.model.ids import Instant
from nqspy.model.requests import AfterWord, Spec

COMMANDS: dict[str, type["Command"]] = {}
"""Every command by its name on the wire."""


class Command(Struct, frozen=True):
    """Base of all commands. ``cmd``: its name on the wire, by default derived from the name of its class."""

    cmd: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__name__ != "Query" and not cls.__name__.endswith("Command"):  # a base of several commands
            cls.cmd = vars(cls).get("cmd") or written_name(cls)
            COMMANDS[cls.cmd] = cls


class RequestsCommand(Command, frozen=True):
    """Base of the commands that act on requests; ``ids``: their identifiers as users write them."""

    ids: tuple[str, ...]


class Query(Command, frozen=True):
    """Base of the commands that only read."""


class Submission(Struct, frozen=True):
    """Request in a `Submit`. The daemon sets ``spec.owner``, ``uid``, ``gid``, ``script``,
    ``environment`` and ``group``. ``script``: bytes of the script as Latin-1 text (exact for any bytes).
    ``environment``: variables of the job as ``NAME=value``, separated by NUL, Latin-1 too. ``user``: run as
    this user (managers). ``line``: its line in a list. ``after``: earlier requests of the same message that
    it waits for, by place from 0, each with the condition."""

    spec: Spec
    script: str
    environment: str = ""
    user: str | None = None
    line: int | None = None
    after: tuple[tuple[int, AfterWord], ...] = ()


class Submit(Command, frozen=True):
    """Submit these requests in order, all or none. A repeated ``key`` of a user gets the first answer.
    ``dry_run``: only say what would happen."""

    items: tuple[Submission, ...]
    key: str = ""
    dry_run: bool = False


class Configure(Command, frozen=True):
    """Change settings: all of these changes or none. ``source``: file or person, for the journal. ``upsert``:
    creating an existing object changes it. ``check_only``: check, and change nothing. ``live``: typed by a
    person, so new times of shifts count only from now on. ``advise``: the answer also names requests that can
    never start or be routed."""

    changes: tuple[Change, ...]
    source: str = ""
    upsert: bool = False
    check_only: bool = False
    live: bool = False
    advise: bool = True


class ApplyFiles(Command, frozen=True):
    """Apply changed files of ``queues.d``: of each its name, content hash, and commands in `encode` form."""

    files: tuple[tuple[str, str, tuple[dict[str, Any], ...]], ...]


class Delete(RequestsCommand, frozen=True):
    """Delete waiting requests. Started ones: ``kill`` ends them by KILL, ``signal`` only sends that signal,
    ``force`` ends them by TERM; else they are refused. ``owner``: refuse requests of others. ``mails``: most
    mails to owners. ``cascade``: delete requests that wait for them too. ``lenient``: one that has ended
    meanwhile is no failure. ``history``: nor one that had ended before; the answer says its record stays."""

    kill: bool = False
    signal: int | None = None
    force: bool = False
    owner: str | None = None
    mails: int | None = None
    cascade: bool = False
    lenient: bool = False
    history: bool = False


class HoldRequests(RequestsCommand, frozen=True):
    """Hold waiting requests. ``letter``: some of u, o, s; "n": none; None: u, or o on requests of others."""

    cmd: ClassVar[str] = "hold"
    letter: str | None = None


class ReleaseRequests(RequestsCommand, frozen=True):
    """Remove holds of these letters (None: all that the caller may remove) from requests. ``lenient``: a
    request that is not held is no failure."""

    cmd: ClassVar[str] = "release"
    letter: str | None = None
    lenient: bool = False


class MoveRequests(RequestsCommand, frozen=True):
    """Move waiting requests (``ids``), or all of the queue ``source``, into another queue."""

    cmd: ClassVar[str] = "move"
    queue: str
    source: str | None = None


class ModifyRequest(RequestsCommand, frozen=True):
    """Change what requests ask for, by path below `Spec`; of running ones only what `options` allows."""

    cmd: ClassVar[str] = "modify"
    values: dict[str, Any]


class RerunRequests(RequestsCommand, frozen=True):
    """End started requests and queue them again; ``force``: by KILL at once."""

    cmd: ClassVar[str] = "rerun"
    force: bool = False


class SuspendRequests(RequestsCommand, frozen=True):
    """Suspend started requests, or let suspended ones go on (``resume``). A job by class gives up its PEs."""

    cmd: ClassVar[str] = "suspend"
    resume: bool = False


class SignalRequests(RequestsCommand, frozen=True):
    """Send a signal to all processes of running requests; 0: only check that they run."""

    cmd: ClassVar[str] = "signal"
    signal: int


class WriteMessage(RequestsCommand, frozen=True):
    """Write a line of text into the output files ``streams`` of running requests."""

    cmd: ClassVar[str] = "message"
    message: str
    streams: tuple[Literal["stdout", "stderr"], ...] = ("stderr",)


class ExchangeRequests(RequestsCommand, frozen=True):
    """Exchange the places of two waiting requests of one queue."""

    cmd: ClassVar[str] = "exchange"


class ScheduleRequest(RequestsCommand, frozen=True):
    """Change the rank of waiting requests (``schedule request``): first of its queue, next of all queues, now
    (past limits), or back to the system's order. ``prime`` (``set request``): running ones too."""

    cmd: ClassVar[str] = "schedule"
    place: Literal["first", "next", "now", "prime", "system"]


class AbortQueue(Command, frozen=True):
    """End every running request of a queue: send TERM, and KILL after ``seconds``."""

    queue: str
    seconds: int = 60


class PurgeQueue(Command, frozen=True):
    """Delete all waiting requests of a queue."""

    queue: str


class CorrectUsage(Command, frozen=True):
    """Set decayed use of a group with those below it to ``ms``; ``relative``: add ``ms``, not below 0."""

    group: str
    ms: int
    relative: bool = False


class SwitchShift(Command, frozen=True):
    """Put a shift in force until its next firing, or ``until`` (instant, or ``HH:MM`` in the site's zone)."""

    shift: str
    until: Instant | str | None = None


class AutomaticShift(Command, frozen=True):
    """End a manual switch: put the shift in force that is due by its times."""


class ReloadExits(Command, frozen=True):
    """Load the user exits again, all or none. One wrong exit leaves the former ones in force."""


class ReloadQueues(Command, frozen=True):
    """Apply the changed files of ``queues.d``: all of them, or none if one is wrong."""


class Shutdown(Command, frozen=True):
    """Stop the daemon: running requests run on (default), are awaited (``drain``) or requeued."""

    mode: Literal["leave", "drain", "requeue"] = "leave"


class ListRequests(Query, frozen=True):
    """Ask for requests as the objects of ``qstat --json``; without a filter: all that have not ended."""

    ids: tuple[str, ...] = ()
    queue: str | None = None
    user: str | None = None
    state: str | None = None
    ended: bool = False


class Why(Query, frozen=True):
    """Ask why a request waits, or why it ended."""

    id: str


class ShowObject(Query, frozen=True):
    """Ask for ``show WHAT [NAMES]`` as data; ``options``: for example ``{"next": 1209600000}`` (ms ahead)."""

    cmd: ClassVar[str] = "show"
    what: str
    names: tuple[str, ...] = ()
    options: dict[str, Any] | None = None


IN_SHIFTS = (Configure, ReloadExits, AbortQueue, PurgeQueue, HoldRequests, ReleaseRequests)
"""Commands that a shift may run."""
EACH_ALONE = (
    Delete, HoldRequests, ReleaseRequests, MoveRequests, ModifyRequest, RerunRequests, SuspendRequests,
    SignalRequests, WriteMessage, ScheduleRequest,
)  # fmt: skip
"""Commands that act on each named request as if it were named alone."""


def encode(command: Command) -> dict[str, Any]:
    """Return a command as plain JSON data, as a file would hold it: ``cmd`` and its fields."""
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(command))
    return {"cmd": command.cmd, **fields}


def decode(data: dict[str, Any]) -> Command:
    """Return the command that `encode` wrote. Raises KeyError (bad name), ValidationError (bad fields)."""
    fields = dict(data)
    command: Command = msgspec.convert(fields, COMMANDS[fields.pop("cmd")])
    return command
