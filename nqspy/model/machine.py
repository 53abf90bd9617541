"""The machine and the installation: PEs, memory, names and times that hold for the whole site."""

from dataclasses import dataclass, field

from msgspec import Struct

from nqspy.model.tree import setting

SCRIPT_MAX = 64 << 20
"""Bytes of a script that a message has room for."""
RUN = "it names a program that the daemon runs"
TOLD = "the mail server is told a password"
"""Why a setting is the home's owner's alone."""


@dataclass(slots=True)
class Machine:
    """What there is to schedule. ``None`` is *auto*: what the executor found at start."""

    pes: int | None = setting(
        "count",
        None,
        "number of PEs; auto: the CPUs the daemon may use",
        low=1,
        high=1_000_000,
        nothing="auto",
    )
    memory: int | None = setting(
        "size", None, "memory shown; auto: the machine's. No limit by itself", nothing="auto"
    )
    shape: str | None = setting("name", None, "PEs along x, y and z of its torus, like 8x8x4")
    pes_per_node: int = setting("number", 1, "PEs of a node, beside each other along x", low=1, high=1024)
    offline: tuple[str, ...] = setting(
        "names",
        (),
        "PEs that are not given out, like 16-31 or (0-3, 8); a request that holds one keeps it",
        operator=True,
    )


class Device(Struct, frozen=True):
    """A device that can be given out: whose it is (``nvidia`` or ``amd``), its name, its device files, their
    numbers (``195:0``), and the CPUs that are near to it; none where that is not known."""

    vendor: str
    unit: str
    files: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    numbers: tuple[str, ...] = ()


class Found(Struct, frozen=True):
    """What the executor found: CPU numbers that PEs stand for, memory in bytes; ``offline``: PEs whose CPU is
    gone for now; ``devices``: those that can be given out (`consumables`)."""

    cpus: tuple[int, ...] = (0, 1)
    memory: int = 0
    offline: tuple[int, ...] = ()
    devices: tuple[Device, ...] = ()

    def seen(self, now: "Found", busy: bool) -> "Found":
        """What is known once the executor has found ``now``: while requests run (``busy``) a PE keeps its
        number and its CPU, one whose CPU is gone is offline, new CPUs become further PEs."""
        if not busy:
            return now
        cpus = (*self.cpus, *(cpu for cpu in now.cpus if cpu not in self.cpus))
        lost = tuple(pe for pe, cpu in enumerate(cpus) if cpu not in now.cpus)
        return Found(cpus, now.memory, lost, now.devices)


@dataclass(slots=True)
class Server:
    """The installation."""

    name: str | None = setting(
        "name", None, "host part of identifiers; auto: the short host name", nothing="auto"
    )
    timezone: str | None = setting(
        "name", None, "zone of shifts and reports; auto: the machine's", nothing="auto"
    )
    script_limit: int | None = setting("size", 4 << 20, "size of a script at most", high=SCRIPT_MAX)
    user_spool: str | None = setting(
        "text", "10%", "scripts and environments that a user may keep, waiting and ended: a size, or a part"
        " of the home's disk like 10%", nothing="unlimited",
    )  # fmt: skip
    grace: int = setting("time", 10_000, "real time between TERM and KILL", low=0)
    shell_strategy: str = setting(
        "text", "login", "shell of a request that names none: login, login_each, free or fixed=PATH",
        guard="it names a program that runs as any user, root too",
    )  # fmt: skip
    login_env_age: int = setting(
        "time", 900_000, "real time after which the environment of a login is taken anew", low=1_000
    )
    login_env_failed: str = setting(
        "name", "plain", "a job whose owner's login shell gives no environment has a plain one, or is held",
        words=("plain", "hold"),
    )  # fmt: skip
    log_level: str = setting(
        "name", "info", "what the daemon's log tells", words=("debug", "info", "warning", "error")
    )
    lost_request: str = setting(
        "name", "rerun", "what becomes of a request whose end was not seen", words=("rerun", "fail")
    )
    output_clash: str = setting(
        "name", "number", "second output of one path, of requests that wait or run at the same time",
        words=("number", "overwrite", "append"),
    )  # fmt: skip
    dependency_failed: str = setting(
        "name", "hold", "what becomes of a request whose prerequisite failed", words=("hold", "delete", "run")
    )
    limit_hint: int | None = setting(
        "count", 10, "how many times as long as requests like it ran a wall limit must be that its owner is"
        " told", low=2, high=1_000, nothing="off",
    )  # fmt: skip
    privacy: str = setting(
        "name", "all", "whose requests a user sees: owner (their own), group or all",
        words=("owner", "group", "all"),
    )  # fmt: skip


WAYS = ("command", "sendmail", "smtp")
"""Settings of `Mail` that say how mails leave the house: the first that is set does."""


@dataclass(slots=True)
class Mail:
    """How mails leave the house: by the first of command, sendmail and smtp that is set; none: no mail."""

    command: str | None = setting("text", None, "shell command that mails are fed to", guard=RUN)
    sendmail: str | None = setting(
        "text", None, "program that takes a mail as sendmail does, the address as its argument", guard=RUN
    )
    smtp: str | None = setting("text", None, "mail server, HOST or HOST:PORT", guard="all mails go there")
    tls: str = setting(
        "name", "none", "how one speaks to the mail server: in clear, by STARTTLS, encrypted from the start",
        words=("none", "starttls", "implicit"), guard=TOLD,
    )  # fmt: skip
    user: str | None = setting("text", None, "user that the mail server knows, with a password", guard=TOLD)
    password_file: str | None = setting(
        "text", None, "file whose first line is the password; its owner's alone (chmod 600)", guard=TOLD
    )
    sender: str | None = setting(
        "text", None, "address that mails come from; auto: nqspy at this host", nothing="auto"
    )
    limit: int | None = setting(
        "count", 20, "most mails a person gets within an hour; what is more comes in one", low=1, high=10_000
    )

    @property
    def on(self) -> bool:
        """Whether there is any way."""
        return any(getattr(self, way) for way in WAYS)


@dataclass(slots=True)
class Deciding:
    """The process in which passes and user exits run."""

    memory: int = setting(
        "size", 1 << 30, "memory that the process of the user exits may take beyond what it begins with",
        low=64 << 20,
    )  # fmt: skip


@dataclass(slots=True)
class ExitSettings:
    """What a site set of one exit module: switched on or off, its budget, and its own settings as written."""

    name: str
    enabled: bool = setting("flag", True, "whether it is called", operator=True)
    budget: int = setting("time", 50, "CPU time of one call; ten times that of wall time", low=1, high=60_000)
    values: dict[str, str] = field(default_factory=dict)
