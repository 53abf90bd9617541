"""Health of resources that requests need: probes, and the memory that people and requests share."""

from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from nqspy.model.ids import Instant, Seq
from nqspy.model.tree import setting

Health = Literal["ok", "broken"]


@dataclass(slots=True)
class Probe:
    """A check of one resource, run beside the daemon. Exactly one of ``command``, ``tcp``, ``http`` and
    ``file`` is tried; times are real time. ``unit`` is no setting: the unit of a consumable that is tried."""

    name: str
    command: str | None = setting(
        "text", None, "command that exits with status 0 while the resource works",
        guard="it names a program that the daemon runs",
    )  # fmt: skip
    tcp: str | None = setting("text", None, "HOST:PORT that accepts a connection")
    http: str | None = setting("text", None, "URL that answers with a status below 400")
    file: str | None = setting(
        "text", None, "path that can be read", guard="it names a path that the daemon opens"
    )
    every: int = setting("time", 60_000, "time between two tries", low=100)
    timeout: int = setting("time", 10_000, "longest time of one try", low=100)
    fails: int = setting(
        "number", 3, "failed tries in a row after which it counts as broken", low=1, high=1000
    )
    recovers: int = setting(
        "number", 2, "good tries in a row after which it counts as working", low=1, high=1000
    )
    units: str | None = setting("name", None, "consumable to try unit by unit; no request gets a broken unit")
    running: str = setting(
        "name", "hold", "action for running requests that need it while it is broken",
        words=("hold", "suspend", "requeue"),
    )  # fmt: skip
    unit: str = ""


KINDS = ("command", "tcp", "http", "file")
"""What a probe can try: exactly one of these settings is given."""


def kind_of(probe: Probe) -> tuple[str, str]:
    """Return what a probe tries: one of KINDS, and its value. Raises StopIteration if it has none."""
    return next((kind, value) for kind in KINDS if (value := getattr(probe, kind)) is not None)


def address_of(text: str) -> tuple[str, int] | None:
    """Return host and port of ``HOST:PORT`` or ``[2001:db8::1]:80``; None: it is no address."""
    host, colon, port = text.rpartition(":")
    if host[:1] == "[" and host[-1:] == "]":
        host = host[1:-1]
    elif ":" in host:
        return None
    good = colon and host and port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536
    return (host, int(port)) if good and host.isprintable() and " " not in host else None


def wrong_of(probe: Probe) -> str | None:
    """Return what is wrong with the settings of a probe together, in a sentence; None: they are right."""
    given = [kind for kind in KINDS if getattr(probe, kind) is not None]
    if len(given) != 1:
        fault = f"not {' and '.join(given)}" if given else "it has none"
        return f"give exactly one of command, tcp, http and file; {fault}"
    if "\0" in getattr(probe, given[0]) or not getattr(probe, given[0]).strip():
        return f"{given[0]} must not be empty or contain a NUL character"
    if probe.units is not None and probe.command is None:
        return f"units={probe.units} needs a command; the command finds the unit in NQSPY_UNIT"
    if probe.tcp is not None and address_of(probe.tcp) is None:
        return f"tcp={probe.tcp} is not an address; write it like tcp=licence.site:27000"
    if probe.http is not None and not probe.http.startswith(("http://", "https://")):
        return f"http={probe.http} is not a URL; write it like http=http://host:8080/alive"
    if probe.file is not None and not probe.file.startswith("/"):
        return f"file={probe.file} is not an absolute path"
    return None


class ResourceState(Struct, frozen=True):
    """Last result of the probes of a resource or unit: ``ok`` or ``broken``, since when, and their text."""

    state: Health
    since: Instant
    text: str = ""


Level = Literal["high", "tight", "calm"]
"""State of the memory: ``high``: requests give way; ``calm``: they come back; ``tight`` between: neither."""


class Pressure(Struct, frozen=True):
    """State of the machine's memory by the last event on it (`Site.pressure`). ``used``: per cent in use of
    ``total`` bytes; ``resident``: bytes in memory by request; ``people``: True if people work at a terminal.
    ``answered``: a request gave way or returned since then, so the next decision needs a new reading."""

    level: Level = "calm"
    at: Instant = Instant(0)
    used: float = 0.0
    text: str = ""
    resident: tuple[tuple[Seq, int], ...] = ()
    total: int = 0
    people: bool = False
    answered: bool = False
