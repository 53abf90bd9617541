"""Probes of resources, by real time, on threads of their own; changes of state go into the inbox."""

import contextlib
import http.client
import os
import pwd
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from msgspec import Struct

from nqspy.core import health
from nqspy.daemon.log import LOG
from nqspy.model.health import Probe, ResourceState, address_of, kind_of
from nqspy.model.ids import Instant
from nqspy.model.observations import ObservedResource
from nqspy.model.units import format_exact
from nqspy.system.run_with_timeout import (
    CommandRunner,
    NotRun,
    TimedCommand,
    connection,
    cut_at,
    run,
    seconds_until,
)

MOST = 8
"""Most threads that try probes."""

Result = tuple[bool, str]
"""Result of a try: True if the resource is well, and a line about it."""


class Last(Struct, frozen=True):
    """The last try of a probe: its instant by the site's clock, and its result."""

    at: Instant
    good: bool
    text: str


@dataclass(slots=True)
class _Watch:
    """A probe under watch; ``due``: monotonic time of its next try."""

    probe: Probe
    count: health.Count
    due: float
    busy: bool = False
    last: Last | None = None
    runner: CommandRunner = field(default_factory=CommandRunner)


class Probes:
    """Tries a site's probes; calls ``put`` with changed states, from any thread. ``now``: site's clock."""

    def __init__(self, put: Callable[[ObservedResource], None], now: Callable[[], Instant]) -> None:
        self._put, self._now = put, now
        self._watches: dict[str, _Watch] = {}
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._waiting = self._closed = False

    def follow(self, probes: Mapping[str, Probe], known: Mapping[str, ResourceState]) -> None:
        """Watch exactly these probes; try new and changed ones at once. ``known``: resources' last states."""
        with self._changed:
            for name in self._watches.keys() - probes.keys():
                self._watches.pop(name).runner.stop()
            for name, probe in probes.items():
                watch = self._watches.get(name)
                if watch is not None and watch.probe == probe:
                    continue
                count, now = health.Count(known[name].state if name in known else None), time.monotonic()
                if watch is None:
                    self._watches[name] = _Watch(probe, count, now)
                else:  # the try under way does not count
                    watch.probe, watch.count, watch.due = probe, count, now
                    watch.runner.cut()
            for _ in range(min(MOST, len(self._watches)) - len(self._threads)):
                self._threads.append(threading.Thread(target=self._work, name="probe", daemon=True))
                self._threads[-1].start()
            self._changed.notify_all()

    def last(self, name: str) -> Last | None:
        """Return the last try of a probe; None before its first."""
        watch = self._watches.get(name)
        return watch.last if watch is not None else None

    def close(self) -> None:
        """Stop trying, and kill running commands."""
        with self._changed:
            self._closed = True
            for watch in self._watches.values():
                watch.runner.stop()
            self._changed.notify_all()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            watch, probe = job
            started = time.monotonic()
            try:
                result = attempt(probe, watch.runner)
            except Exception:
                LOG.exception("probe %s could not be tried", probe.name)
                result = False, "internal error, see the daemon's log"
            try:
                self._report(watch, probe, result, started)
            except Exception:
                LOG.exception("the result of probe %s could not be reported", probe.name)

    def _next(self) -> tuple[_Watch, Probe] | None:
        """Wait until a probe is due and return it; None at the end. Only one thread waits for the time."""
        with self._changed:
            while not self._closed:
                idle = (watch for watch in self._watches.values() if not watch.busy)
                watch = min(idle, key=lambda watch: watch.due, default=None)
                if watch is None or self._waiting:
                    self._changed.wait()
                elif (wait := watch.due - time.monotonic()) > 0:
                    self._waiting = True
                    self._changed.wait(wait)
                    self._waiting = False
                else:
                    watch.busy = True
                    self._changed.notify()
                    return watch, watch.probe
        return None

    def _report(self, watch: _Watch, probe: Probe, result: Result, started: float) -> None:
        with self._changed:
            watch.busy = False
            self._changed.notify_all()
            if self._closed or self._watches.get(probe.name) is not watch or watch.probe is not probe:
                return
            watch.due = max(time.monotonic(), started + probe.every / 1000)
            watch.last = Last(self._now(), *result)
            changed = watch.count.record(probe, result[0])
            if changed is not None:
                self._put(ObservedResource(probe.name, changed, result[1]))


SHOWN = 200
"""Most characters of output in the text of a result."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def attempt(probe: Probe, runner: CommandRunner) -> Result:
    """Try a probe once; return the result. Never raise for a fault of the resource."""
    kind, value = kind_of(probe)
    end = time.monotonic() + probe.timeout / 1000
    late = f"no answer within {format_exact(probe.timeout)}"
    try:
        if kind == "tcp":
            host, port = address_of(value) or ("", 0)
            connection(host, port, end).close()
            return True, "it accepts a connection"
        if kind == "http":
            return _fetch(value, end)
        if kind == "file":
            head = [shutil.which("head") or "head", "-c", "1", "--", value]
            return _run(head, probe, runner, end, telling=False)
        return _run(["/bin/sh", "-c", value], probe, runner, end, telling=True)
    except TimeoutError:
        return False, late
    except (OSError, ValueError, http.client.HTTPException) as error:
        return False, late if time.monotonic() >= end else printable(str(error)) or repr(error)[:SHOWN]


def printable(text: str) -> str:
    """Return the last line that has text, at most SHOWN characters, without control characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in lines[-1])[:SHOWN] if lines else ""


def _fetch(url: str, end: float) -> Result:
    """Return the result of a request to a URL, by its status; follow no redirections, use no proxies."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    port = parts.port or (443 if secure else 80)
    made = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    line = made(host, port, timeout=seconds_until(end))
    # The timeout is for all addresses of the host together.
    line._create_connection = lambda *_: connection(host, port, end)  # type: ignore[attr-defined]
    with contextlib.closing(line), cut_at(end, lambda: line.sock):
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        line.request("GET", target, headers={"User-Agent": "nqspy-probe", "Connection": "close"})
        answer = line.getresponse()
        seconds_until(end)  # an answer cut off in its head would look complete
        return answer.status < 400, printable(f"status {answer.status} {answer.reason}")


def environment(probe: Probe) -> Mapping[str, str]:
    """Return the environment of a probe's command: a clean one, with the unit that is tried."""
    try:
        user = pwd.getpwuid(os.geteuid())
        who, home = user.pw_name, user.pw_dir
    except KeyError:
        who, home = str(os.geteuid()), "/"
    return {
        "PATH": _PATH, "HOME": home, "LOGNAME": who, "USER": who, "SHELL": "/bin/sh", "LANG": "C.UTF-8",
        "NQSPY_PROBE": probe.name,
    } | ({"NQSPY_UNIT": probe.unit} if probe.unit else {})  # fmt: skip


def _run(words: Sequence[str], probe: Probe, runner: CommandRunner, end: float, telling: bool) -> Result:
    """Run a command, kill processes that remain, and return the result. ``telling``: show its output."""
    command = TimedCommand(words, environment=environment(probe), folder="/")
    try:
        status, output = run(command, runner, end)
    except NotRun as error:
        return False, str(error)
    text = printable(output.decode(errors="replace"))
    if status == 0:
        return True, text if telling else "it can be read"
    how = f"killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return False, text or how
