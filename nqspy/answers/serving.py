"""The daemon as answers see it: the state to read, and the few things that they may have done."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from nqspy.decider.client import DeciderClient
from nqspy.decider.remote_exits import RemoteExits
from nqspy.engine.handlers.context import Reply
from nqspy.engine.loop import Engine
from nqspy.model.commands import Command
from nqspy.model.ids import Instant, Seq
from nqspy.model.people import Caller
from nqspy.report.pbs_forms import Written
from nqspy.rpc.server import RpcServer
from nqspy.store.reader import Reader


class Readers:
    """Readers of the store: ``live`` for short reads of the engine's thread, ``reports`` for long ones."""

    live: Reader
    reports: Reader

    def __init__(self, database: Path) -> None:
        self._database = database
        self._open: list[Reader] = []

    def open(self) -> None:
        """Open them, after the database exists."""
        self.live = Reader(self._database)
        self._open.append(self.live)
        self.reports = Reader(self._database)
        self._open.append(self.reports)

    def close(self) -> None:
        """Close them: all commits are then in the one file."""
        while self._open:
            self._open.pop(0).close()


class SiteClock(Protocol):
    """The site's clock."""

    @property
    def text(self) -> str:
        """The setting, empty for the wall clock."""

    @property
    def accelerated(self) -> bool:
        """True if it is not the wall clock."""

    @property
    def speed(self) -> float:
        """Seconds of it in one second."""

    def now(self) -> Instant:
        """The site's time."""


class RealRunTimes(Protocol):
    """Run times of attempts, whatever the site's clock was set to meanwhile."""

    def unset(self, seq: Seq, now: Instant) -> Instant:
        """Return the instant that the clock would show if it had not been set since the attempt's start."""


class HomeFolder(Protocol):
    """The home's folder and the spool in it."""

    @property
    def path(self) -> Path:
        """The folder."""

    @property
    def spool(self) -> Path:
        """Folder of the attempts' files."""


class LastTry(Protocol):
    """The last try of a watched resource."""

    @property
    def at(self) -> Instant:
        """Instant of the try by the site's clock."""

    @property
    def text(self) -> str:
        """Text of the try."""


class ExitReloads(Protocol):
    """`reload exits`: the files are loaded in the background before the command is carried out."""

    def allowed(self, caller: Caller) -> bool:
        """True if the caller may reload exits."""

    def wanted(self, script: str, caller: Caller) -> bool:
        """True if a script of qmgr reloads exits, and its caller may."""

    def before(self, go: Callable[[], bool]) -> None:
        """Load the files, then call ``go``, which returns True if it goes on and calls `over` at its end."""

    def over(self) -> None:
        """Note that the reload is done."""


class Serving(Protocol):
    """A daemon that answers questions. Site, plan and samples are read only: commands change them.
    ``written``: stored parts of lists. Other threads may use ``clock``, ``server``, ``readers.reports``
    alone."""

    engine: Engine
    exits: RemoteExits
    decider: DeciderClient
    server: RpcServer
    readers: Readers
    written: Written

    @property
    def home(self) -> HomeFolder:
        """The daemon's home."""

    @property
    def clock(self) -> SiteClock:
        """The site's clock."""

    @property
    def run_times(self) -> RealRunTimes:
        """Real run times of attempts."""

    @property
    def reloads(self) -> ExitReloads:
        """The background loader of exits."""

    def ask(self, command: Command, caller: Caller) -> Reply:
        """Carry out one command now, with the pass that it needs."""

    def ask_all(self, commands: Sequence[Command], caller: Caller) -> list[Reply]:
        """Carry out several commands in one transaction, each for itself."""

    def commit(self) -> None:
        """Commit events for which no caller has waited yet."""

    def stop(self, mode: str) -> None:
        """Stop the daemon: ``leave`` running requests, ``drain`` or ``requeue`` them first."""

    def reload_queues(self) -> str:
        """Apply the changed files of ``queues.d``; return a sentence. Raises NqspyError."""

    def alarms(self) -> list[str]:
        """Return a line for each problem of the installation."""

    def last_try(self, resource: str) -> LastTry | None:
        """Return the last try of a resource, None before its first."""

    def sent(self, size: int) -> None:
        """Note bytes of a sent answer: freed memory goes back to the system soon."""
