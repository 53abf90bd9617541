"""Commands of people and programs: frozen dataclasses, one per command; ``cmd`` is its name on the wire.
Every command that changes something becomes events or is refused; queries (`Query`) only read."""

from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct

from nqspy.model.events import Change, written_name
from nqspy.model.ids import Instant
from nqspy.model.requests import AfterWord, Spec

COMMANDS: dict[str, type["Command"]] = {}
"""Every command by its name on the wire."""


class Command(Struct, frozen=True):
    """Base of all commands. ``cmd``: its name on the wire, that of its class unless it says otherwise."""

    cmd: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__name__ != "Query" and not cls.__name__.endswith("Command"):  # a base of several commands
            cls.cmd = vars(cls).get("cmd") or written_name(cls)
            COMMANDS[cls.cmd] = cls


class RequestsCommand(Command, frozen=True):
    """Base of the commands that name requests."""

    ids: tuple[str, ...]


class Query(Command, frozen=True):
    """Base of the commands that only read."""


class Submission(Struct, frozen=True):
    """A request of a `Submit`. ``spec.owner``, ``uid``, ``gid``, ``script``, ``environment`` and ``group``
    are filled in by the daemon. ``script`` is the script's bytes as Latin-1 text (exact for any bytes);
    ``environment`` the job's variables as ``NAME=value`` separated by NUL, Latin-1 likewise; ``user``: run as
    this user (managers); ``line``: line of the list. ``after``: places, counted from 0, of requests earlier
    in the same message that it waits for, each with what must become of it."""

    spec: Spec
    script: str
    environment: str = ""
    user: str | None = None
    line: int | None = None
    after: tuple[tuple[int, AfterWord], ...] = ()


class Submit(Command, frozen=True):
    """Submit these requests in order, all or none. ``key``: said again by a user, it repeats the answer."""

    items: tuple[Submission, ...]
    key: str = ""
    dry_run: bool = False


class Configure(Command, frozen=True):
    """Change settings: all of these changes or none. ``source``: file or person, for the journal; ``upsert``:
    create of what exists alters it; ``live``: a person types it, so that new times of shifts count from now
    on only; ``advise``: what can never start or be routed is answered too."""

    changes: tuple[Change, ...]
    source: str = ""
    upsert: bool = False
    check_only: bool = False
    live: bool = False
    advise: bool = True


class ApplyFiles(Command, frozen=True):
    """Apply the changed files of ``queues.d``: ``files`` are (name, content hash, commands in `encode`
    form)."""

    files: tuple[tuple[str, str, tuple[dict[str, Any], ...]], ...]


class Delete(RequestsCommand, frozen=True):
    """Delete waiting requests. Started ones are ended with ``kill`` or ``force`` (POSIX); with a ``signal``
    they get that and no more. ``mails``: so many owners' mails go out at most; ``cascade``: what waits for
    them is deleted too; ``lenient``: one that has ended meanwhile is no failure;
    ``history``: nor is one that had ended before, but it is told that its record stays."""

    kill: bool = False
    signal: int | None = None
    force: bool = False
    owner: str | None = None
    mails: int | None = None
    cascade: bool = False
    lenient: bool = False
    history: bool = False


class HoldRequests(RequestsCommand, frozen=True):
    """Hold waiting requests; ``letter``: u, o, s or several, "n": none (None: as the caller's role gives)."""

    cmd: ClassVar[str] = "hold"
    letter: str | None = None


class ReleaseRequests(RequestsCommand, frozen=True):
    """Take holds off, as `HoldRequests` puts them on. ``lenient``: one that is not held is no failure."""

    cmd: ClassVar[str] = "release"
    letter: str | None = None
    lenient: bool = False


class MoveRequests(RequestsCommand, frozen=True):
    """Move waiting requests into another queue (``ids``), or all of a queue (``source``)."""

    cmd: ClassVar[str] = "move"
    queue: str
    source: str | None = None


class ModifyRequest(RequestsCommand, frozen=True):
    """Change what a request asks for: attribute path below `Spec` -> value; of a running one only what can
    still matter."""

    cmd: ClassVar[str] = "modify"
    values: dict[str, Any]


class RerunRequests(RequestsCommand, frozen=True):
    """End started requests and queue them again; ``force``: by KILL at once."""

    cmd: ClassVar[str] = "rerun"
    force: bool = False


class SuspendRequests(RequestsCommand, frozen=True):
    """Stop (or let go on, ``resume``) started requests."""

    cmd: ClassVar[str] = "suspend"
    resume: bool = False


class SignalRequests(RequestsCommand, frozen=True):
    """Send a signal to all processes of running requests; 0: only see whether they run."""

    cmd: ClassVar[str] = "signal"
    signal: int


class WriteMessage(RequestsCommand, frozen=True):
    """Write a line into these outputs of running requests."""

    cmd: ClassVar[str] = "message"
    message: str
    streams: tuple[Literal["stdout", "stderr"], ...] = ("stderr",)


class ExchangeRequests(RequestsCommand, frozen=True):
    """Exchange the places of two waiting requests of one queue."""

    cmd: ClassVar[str] = "exchange"


class ScheduleRequest(RequestsCommand, frozen=True):
    """``schedule request ID first|next|now|system``."""

    cmd: ClassVar[str] = "schedule"
    place: Literal["first", "next", "now", "system"]


class AbortQueue(Command, frozen=True):
    """TERM, after ``seconds`` KILL, to every running request of a queue."""

    queue: str
    seconds: int = 60


class PurgeQueue(Command, frozen=True):
    """Delete all waiting requests of a queue."""

    queue: str


class CorrectUsage(Command, frozen=True):
    """Set the decayed use of a group, groups below it included, to ``ms`` (of what is charged); ``relative``:
    change it by so much, never below 0."""

    group: str
    ms: int
    relative: bool = False


class SwitchShift(Command, frozen=True):
    """Put a shift in force by hand until the next firing or ``until`` (an instant, or ``HH:MM`` in the site's
    zone)."""

    shift: str
    until: Instant | str | None = None


class AutomaticShift(Command, frozen=True):
    """Return to the shift that is due."""


class ReloadExits(Command, frozen=True):
    """Load the exits again: the whole set is verified first, a broken one leaves the old set in force."""


class ReloadQueues(Command, frozen=True):
    """Apply the files of ``queues.d`` that changed: all of them, or none if one is wrong."""


class Shutdown(Command, frozen=True):
    """Stop the daemon: leave running requests (default), wait for them (``drain``) or queue them again
    (``requeue``)."""

    mode: Literal["leave", "drain", "requeue"] = "leave"


class ListRequests(Query, frozen=True):
    """Requests as objects (`explain.view`); no filter: all that have not ended."""

    ids: tuple[str, ...] = ()
    queue: str | None = None
    user: str | None = None
    state: str | None = None
    ended: bool = False


class Why(Query, frozen=True):
    """Ask why a request waits, or what ended it."""

    id: str


class ShowObject(Query, frozen=True):
    """``show WHAT [NAMES]`` as data; ``options`` e.g. ``{"next": 1209600000}``."""

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
"""Commands that do to each request they name what they would do to it alone."""


def encode(command: Command) -> dict[str, Any]:
    """A command as plain JSON data, the same as after a way through a file: ``cmd`` and its fields."""
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(command))
    return {"cmd": command.cmd, **fields}


def decode(data: dict[str, Any]) -> Command:
    """The command of `encode`'s data. Raises KeyError for an unknown name, ValidationError for bad fields."""
    fields = dict(data)
    command: Command = msgspec.convert(fields, COMMANDS[fields.pop("cmd")])
    return command
