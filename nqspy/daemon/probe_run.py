"""One try of a probe: a command, a connection, a URL, a file. It ends at its timeout, whatever it tries."""

import contextlib
import http.client
import os
import pwd
import shutil
import time
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from nqspy.model.health import Probe, address_of, kind_of
from nqspy.model.units import format_seconds
from nqspy.system.run_with_timeout import Hand, NotRun, TimedCommand, connection, cut_at, left_until, run

SHOWN = 200
"""Characters of output that become the text."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Result(Struct, frozen=True):
    """What a try found: whether the resource is well, and a line about it."""

    good: bool
    text: str = ""


def attempt(probe: Probe, hand: Hand) -> Result:
    """Tries once. Never raises for what is wrong with the resource: that is what it finds."""
    kind, value = kind_of(probe)
    end = time.monotonic() + probe.timeout / 1000
    late = f"no answer within {format_seconds(probe.timeout)}"
    try:
        if kind == "tcp":
            return _connect(value, end)
        if kind == "http":
            return _fetch(value, end)
        if kind == "file":
            head = [shutil.which("head") or "head", "-c", "1", "--", value]
            return _run(head, probe, hand, end, telling=False)
        return _run(["/bin/sh", "-c", value], probe, hand, end, telling=True)
    except TimeoutError:
        return Result(False, late)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Result(
            False, late if time.monotonic() >= end else printable(str(error)) or repr(error)[:SHOWN]
        )


def printable(text: str) -> str:
    """The last line that says something, without what would upset a terminal, at most SHOWN characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in lines[-1])[:SHOWN] if lines else ""


# ---------------------------------------------------------------- connections


def _connect(value: str, end: float) -> Result:
    host, port = address_of(value) or ("", 0)
    connection(host, port, end).close()
    return Result(True, "it takes a connection")


def _fetch(url: str, end: float) -> Result:
    """The status that a URL answers with; redirections are not followed, proxies not used."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    port = parts.port or (443 if secure else 80)
    made = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    line = made(host, port, timeout=left_until(end))
    # So that the timeout holds for all addresses of the host together.
    line._create_connection = lambda *_: connection(host, port, end)  # type: ignore[attr-defined]
    with contextlib.closing(line), cut_at(end, lambda: line.sock):
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        line.request("GET", target, headers={"User-Agent": "nqspy-probe", "Connection": "close"})
        answer = line.getresponse()
        left_until(end)  # cut off in the middle of its head it would look whole
        return Result(answer.status < 400, printable(f"status {answer.status} {answer.reason}"))


# ---------------------------------------------------------------- processes


def environment(probe: Probe) -> Mapping[str, str]:
    """The clean environment of a probe's command; where it is tried for a unit it is told which."""
    try:
        user = pwd.getpwuid(os.geteuid())
        who, home = user.pw_name, user.pw_dir
    except KeyError:
        who, home = str(os.geteuid()), "/"
    return {
        "PATH": _PATH, "HOME": home, "LOGNAME": who, "USER": who, "SHELL": "/bin/sh", "LANG": "C.UTF-8",
        "NQSPY_PROBE": probe.name,
    } | ({"NQSPY_UNIT": probe.unit} if probe.unit else {})  # fmt: skip


def _run(words: Sequence[str], probe: Probe, hand: Hand, end: float, telling: bool) -> Result:
    """Runs a command and kills what it leaves behind. ``telling``: its output is for people."""
    command = TimedCommand(words, environment=environment(probe), folder="/")
    try:
        status, output = run(command, hand, end)
    except NotRun as error:
        return Result(False, str(error))
    said = printable(output.decode(errors="replace"))
    if status == 0:
        return Result(True, said if telling else "it can be read")
    how = f"killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return Result(False, said or how)
