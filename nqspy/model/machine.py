"""The machine and the installation: PEs, memory, names, and times that hold for the whole site."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cache
from math import prod

from msgspec import Struct

from nqspy.model.domains import GREATEST, numbers, spans
from nqspy.model.errors import BadValue
from nqspy.model.ids import DAY
from nqspy.model.tree import setting

SCRIPT_MAX = 64 << 20
"""Greatest size (bytes) of a script that fits into a message."""
RUN = "it names a program that the daemon runs"
AUTH = "the mail server receives a password"
"""Reasons for which only root and the home's owner may change a setting (`Declared.guard`)."""
SHELL_STRATEGY = re.compile(r"login|login_each|free|fixed=/.+")
"""The values of `Server.shell_strategy`."""


@dataclass(slots=True)
class Machine:
    """The machine to schedule. ``None`` is *auto*: what the executor found at start."""

    pes: int | None = setting(
        "count", None, "number of PEs; auto: the CPUs the daemon may use", low=1, high=1_000_000,
        nothing="auto",
    )  # fmt: skip
    memory: int | None = setting(
        "size", None, "memory shown; auto: the machine's. It is not a limit", nothing="auto"
    )
    shape: str | None = setting("name", None, "PEs along x, y and z of its torus, like 8x8x4")
    pes_per_node: int = setting("number", 1, "PEs of a node, adjacent along x", low=1, high=1024)
    offline: tuple[str, ...] = setting(
        "names", (), "PEs that no request gets, like 16-31 or (0-3, 8); running requests keep theirs",
        operator=True,
    )  # fmt: skip
    foreign_scan: int | None = setting(
        "time", None, "real time between two scans for foreign jobs, processes that nqspy did not start; no"
        " request gets their PEs; off: no scan", low=100, nothing="off",
    )  # fmt: skip


class Device(Struct, frozen=True):
    """A device that can be given out. ``vendor``: ``nvidia`` or ``amd``; ``unit``: its name; ``files``:
    device files; ``cpus``: CPUs near it (empty: unknown); ``numbers``: MAJOR:MINOR of the device files."""

    vendor: str
    unit: str
    files: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    numbers: tuple[str, ...] = ()


class ForeignJob(Struct, frozen=True):
    """A process that nqspy did not start and that uses more than a tenth of some PEs (`Site.foreign`): its
    ``pid``, ``user``, ``command``, and those ``pes``. ``start``: ticks after boot; a pid may come again."""

    pid: int
    start: int
    user: str
    command: str
    pes: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Text that names the process: ``anne: stress, process 4711``."""
        return f"{self.user}: {self.command}, process {self.pid}"


class Found(Struct, frozen=True):
    """Machine as the executor found it (`Site.found`). ``cpus``: CPU number of each PE; ``memory``: bytes;
    ``offline``: PEs that lack their CPU now; ``devices``: those that can be given out (`consumables`)."""

    cpus: tuple[int, ...] = (0, 1)
    memory: int = 0
    offline: tuple[int, ...] = ()
    devices: tuple[Device, ...] = ()

    def updated(self, now: "Found", busy: bool) -> "Found":
        """Return the machine after the executor found ``now``. While requests run (``busy``) each PE keeps
        its number and CPU; a PE without its CPU is offline, and new CPUs become further PEs."""
        if not busy:
            return now
        cpus = (*self.cpus, *(cpu for cpu in now.cpus if cpu not in self.cpus))
        lost = tuple(pe for pe, cpu in enumerate(cpus) if cpu not in now.cpus)
        return Found(cpus, now.memory, lost, now.devices)


@dataclass(slots=True)
class Server:
    """Settings of the installation."""

    name: str | None = setting(
        "name", None, "host part of identifiers; auto: the short host name", nothing="auto"
    )
    timezone: str | None = setting(
        "name", None, "zone of shifts and reports; auto: the machine's", nothing="auto"
    )
    script_limit: int | None = setting("size", 4 << 20, "greatest size of a script", high=SCRIPT_MAX)
    user_spool: str | None = setting(
        "text", "10%", "scripts and environments that a user may keep, waiting and ended: a size, or a part"
        " of the home's disk like 10%", nothing="unlimited",
    )  # fmt: skip
    grace: int = setting("time", 10_000, "real time between TERM and KILL", low=0)
    shell_strategy: str = setting(
        "text", "login", "shell of a request that names none: login, login_each, free or fixed=PATH",
        guard="it names a program that runs as any user, even root",
    )  # fmt: skip
    login_env_age: int = setting(
        "time", 900_000, "real time after which a login environment is read again", low=1_000
    )
    login_env_failed: str = setting(
        "name", "plain", "if the owner's login shell gives no environment: a plain one, or the job is held",
        words=("plain", "hold"),
    )  # fmt: skip
    log_level: str = setting(
        "name", "info", "detail of the daemon's log", words=("debug", "info", "warning", "error")
    )
    lost_request: str = setting(
        "name", "rerun", "action for a request whose end was not seen", words=("rerun", "fail")
    )
    output_clash: str = setting(
        "name", "number", "action for a second output on one path, of requests that wait or run",
        words=("number", "overwrite", "append"),
    )  # fmt: skip
    dependency_failed: str = setting(
        "name", "hold", "action for a request whose prerequisite failed", words=("hold", "delete", "run")
    )
    limit_hint: int | None = setting(
        "count", 10, "multiple of the run time of similar requests above which the owner gets a hint"
        " on the wall limit", low=2, high=1_000, nothing="off",
    )  # fmt: skip
    privacy: str = setting(
        "name", "all", "requests that a user sees: owner (their own), group or all",
        words=("owner", "group", "all"),
    )  # fmt: skip


WAYS = ("command", "sendmail", "smtp")
"""Settings of `Mail` that each name a way to send mail; the first one that is set is used."""


@dataclass(slots=True)
class Mail:
    """Ways to send mail: the first of command, sendmail and smtp that is set; none: no mail."""

    command: str | None = setting("text", None, "shell command that reads each mail", guard=RUN)
    sendmail: str | None = setting(
        "text", None, "program that sends a mail like sendmail, with the address as argument", guard=RUN
    )
    smtp: str | None = setting("text", None, "mail server, HOST or HOST:PORT", guard="all mails go there")
    tls: str = setting(
        "name", "none", "encryption of mails to the server: none (in clear), starttls (by STARTTLS), implicit"
        " (from the start)",
        words=("none", "starttls", "implicit"), guard=AUTH,
    )  # fmt: skip
    user: str | None = setting("text", None, "user name at the mail server, with a password", guard=AUTH)
    password_file: str | None = setting(
        "text", None, "file with the password in its first line, private to its owner (chmod 600)", guard=AUTH
    )
    sender: str | None = setting(
        "text", None, "address that mails come from; auto: nqspy at this host", nothing="auto"
    )
    limit: int | None = setting(
        "count", 20, "most mails to a person within an hour; the rest comes in one", low=1, high=10_000
    )

    @property
    def on(self) -> bool:
        """True if some way to send mail is set."""
        return any(getattr(self, way) for way in WAYS)


@dataclass(slots=True)
class Deciding:
    """Settings of the process in which passes and user exits run."""

    memory: int = setting(
        "size", 1 << 30, "memory that the user-exit process may use above its initial memory",
        low=64 << 20,
    )  # fmt: skip


@dataclass(slots=True)
class ExitSettings:
    """Settings of one exit module: enabled, its budget, and its own settings as written."""

    name: str
    enabled: bool = setting("flag", True, "on: it is called", operator=True)
    budget: int = setting("time", 50, "CPU time of one call; ten times that of wall time", low=1, high=60_000)
    values: dict[str, str] = field(default_factory=dict)


def set_offline(machine: Machine, pes: int) -> tuple[int, ...]:
    """Return the PEs with numbers below ``pes`` that ``machine offline`` names."""
    return tuple(pe for pe in numbers(machine.offline) if pe < pes) if machine.offline else ()


def offline_pes(machine: Machine, found: Found, pes: int) -> tuple[int, ...]:
    """Return all offline PEs in ascending order: set offline, or without their CPU. If there are more PEs
    than CPUs, no PE depends on a CPU."""
    lost = tuple(pe for pe in found.offline if pe < pes) if pes <= len(found.cpus) else ()
    shut = set_offline(machine, pes)
    return tuple(sorted({*lost, *shut})) if shut else lost


def foreign_in_words(jobs: Iterable[ForeignJob], most: int = 3) -> str:
    """Return foreign jobs as text, with their PEs: ``PEs 2-3 (anne: stress, process 4711)``; at most
    ``most`` of them, and how many more there are."""
    words = [f"PE{'s' * (len(job.pes) > 1)} {', '.join(spans(job.pes))} ({job.name})" for job in jobs]
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def no_pe(pe: int, pes: int) -> str:
    """Return the error text for a PE set offline that the machine, with ``pes`` PEs, does not have."""
    return f"machine offline: there is no PE {pe}; the machine has {pes}, numbered from 0"


Coordinate = tuple[int, int, int]
"""x, y and z of a PE, each from 0."""


class Torus(Struct, frozen=True):
    """A torus of PEs along x, y and z; ``per_node`` PEs side by side along x are a node."""

    x: int
    y: int
    z: int
    per_node: int = 1

    @property
    def pes(self) -> int:
        """Number of PEs."""
        return self.x * self.y * self.z

    @property
    def nodes(self) -> Coordinate:
        """Number of nodes along x, y and z."""
        return self.x // self.per_node, self.y, self.z

    def at(self, pe: int) -> Coordinate:
        """Return the coordinate of a PE. Its node is at the same y and z, and at ``x // per_node``."""
        return pe % self.x, pe // self.x % self.y, pe // (self.x * self.y)

    def __str__(self) -> str:
        return f"{self.x}x{self.y}x{self.z}"


@cache
def read_shape(shape: str, per_node: int = 1) -> Torus:
    """Return the torus of a text like ``8x8x4``. Raises BadValue."""
    words = shape.split("x")
    if len(words) != 3 or not all(w.isascii() and w.isdigit() and len(w) < 8 and int(w) for w in words):
        raise BadValue(f"{shape[:40]!r} is not a shape; write PEs along x, y and z: 8x8x4")
    x, y, z = map(int, words)
    return Torus(x, y, z, per_node)


def torus_of(machine: Machine) -> Torus | None:
    """Return the torus of a machine by its settings; None: no shape is set."""
    return None if machine.shape is None else read_shape(machine.shape, machine.pes_per_node)


def base_in(torus: Torus, pes: Collection[int]) -> tuple[int, Coordinate] | None:
    """Return the lowest of some PEs (BASE) and its coordinate; None: there are no PEs."""
    base = min(pes, default=None)
    return None if base is None else (base, torus.at(base))


def base_of(pes: Collection[int], torus: Torus | None) -> str | None:
    """Return the lowest of some PEs with its coordinate, ``64 (0,0,1)``; None: no PEs, or no shape is set."""
    found = None if torus is None else base_in(torus, pes)
    return None if found is None else f"{found[0]} ({written(found[1])})"


def written(coordinate: Coordinate) -> str:
    """Return a coordinate as text: ``0,0,1``."""
    return ",".join(map(str, coordinate))


def check_machine(machine: Machine) -> Iterable[str]:
    """Yield a line for each wrong setting of the machine: offline PEs, the shape."""
    try:
        last = max(numbers(machine.offline), default=-1)
        if last >= (machine.pes or GREATEST):
            yield no_pe(last, machine.pes or GREATEST)
    except BadValue as error:
        yield f"machine offline: {error}"
    if machine.shape is None:
        return
    try:
        torus = read_shape(machine.shape, machine.pes_per_node)
    except BadValue as error:
        yield f"machine: {error}"
        return
    pes, per_node = machine.pes, machine.pes_per_node
    if pes is None:
        yield f"machine: a shape needs the number of PEs too: set machine pes={torus.pes} shape={torus}"
    elif torus.pes != pes:
        fitting = suggestion(pes, per_node)
        yield f"machine: shape={torus} has {torus.pes} PEs, the machine {pes}; {fitting}"
    elif torus.x % per_node:
        fitting = suggestion(pes, per_node)
        yield f"machine: {torus.x} PEs along x are not a multiple of pes_per_node={per_node}; {fitting}"


def suggestion(pes: int, per_node: int) -> str:
    """Return text with the shape for ``pes`` PEs that is nearest to a cube, or with why there is none."""
    if pes % per_node:
        return f"{pes} PEs are not a multiple of pes_per_node={per_node}"
    sides = [n for n in range(1, pes + 1) if pes % n == 0]
    shapes = ((x, y, pes // (x * y)) for x in sides if x % per_node == 0 for y in sides if pes % (x * y) == 0)
    found = min(shapes, key=lambda each: (sum(each), [-side for side in each]))
    assert prod(found) == pes
    return f"shape={'x'.join(map(str, found))} would fit"


@dataclass(slots=True)
class Backup:
    """Settings of automatic copies of the database."""

    every: int | None = setting(
        "time", DAY, "time between two backups; off: none by itself", low=60_000, nothing="off"
    )
    keep: int = setting("number", 7, "number of backups kept", low=1, high=10_000)


@dataclass(slots=True)
class History:
    """Settings of the ages at which events move from the database into files, and reports are removed."""

    keep: int | None = setting(
        "time", 90 * DAY, "age at which events and ended requests move into files", low=14 * DAY,
        nothing="unlimited",
    )  # fmt: skip
    size: int | None = setting(
        "size", None, "size of the database above which the oldest of them move, too", low=1 << 20
    )
    reports: int | None = setting(
        "time", 366 * DAY, "age at which night reports are removed; they can be made again",
        low=DAY, nothing="unlimited",
    )  # fmt: skip
