"""The daemon as answers see it: the state to read, and a few things to ask for."""

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
        """Open both readers; the database must exist."""
        self.live = Reader(self._database)
        self._open.append(self.live)
        self.reports = Reader(self._database)
        self._open.append(self.reports)

    def close(self) -> None:
        """Close both readers of the store."""
        while self._open:
            self._open.pop(0).close()


class SiteClock(Protocol):
    """The site's clock."""

    @property
    def text(self) -> str:
        """Return the clock's setting, empty for the wall clock."""

    @property
    def accelerated(self) -> bool:
        """True if it is not the wall clock."""

    @property
    def speed(self) -> float:
        """Return how many times faster than real time the clock runs."""

    def now(self) -> Instant:
        """Return the site's present time, in ms since the epoch."""


class RealRunTimes(Protocol):
    """Real run times of attempts, even if the site's clock was set meanwhile."""

    def unset(self, seq: Seq, now: Instant) -> Instant:
        """Return the instant that the clock would show if it had not been set since the attempt's start."""


class HomeFolder(Protocol):
    """The home's folder, and the spool in it."""

    @property
    def path(self) -> Path:
        """Return the path of the home's folder."""

    @property
    def spool(self) -> Path:
        """Return the folder with the files of attempts: output, exit records."""


class LastTry(Protocol):
    """The last try of a watched resource."""

    @property
    def at(self) -> Instant:
        """Return the instant of the try by the site's clock."""

    @property
    def text(self) -> str:
        """Return the sentence that the probe gave on what it found."""


class ExitReloads(Protocol):
    """Reloads of exits: the files are loaded in the background before the command is carried out."""

    def allowed(self, caller: Caller) -> bool:
        """True if the caller may reload exits."""

    def wanted(self, script: str, caller: Caller) -> bool:
        """True if a script of qmgr reloads exits, and its caller may."""

    def before(self, go: Callable[[], bool]) -> None:
        """Load the files in the background; once they are loaded or refused, call ``go`` in the engine's
        thread. ``go`` returns True if it will call `over` itself; otherwise that is done for it."""

    def over(self) -> None:
        """Note that the reload is done: the next one that waits begins."""


class Serving(Protocol):
    """The daemon that answers questions. Site, plan and samples are read only: commands change them.
    ``written``: cached parts of lists. Other threads may only use ``clock``, ``server``,
    ``readers.reports``."""

    engine: Engine
    exits: RemoteExits
    decider: DeciderClient
    server: RpcServer
    readers: Readers
    written: Written

    @property
    def home(self) -> HomeFolder:
        """Return the daemon's home."""

    @property
    def clock(self) -> SiteClock:
        """Return the site's clock."""

    @property
    def run_times(self) -> RealRunTimes:
        """Return the real run times of attempts."""

    @property
    def reloads(self) -> ExitReloads:
        """Return the background loader of exits."""

    def ask(self, command: Command, caller: Caller) -> Reply:
        """Carry out one command now, with the pass that it needs; return its reply."""

    def ask_all(self, commands: Sequence[Command], caller: Caller) -> list[Reply]:
        """Carry out commands in one transaction, each accepted or refused by itself; return their replies."""

    def commit(self) -> None:
        """Commit now the events that the engine would commit later because no caller waits for them."""

    def stop(self, mode: str) -> None:
        """Stop the daemon: ``leave`` running requests, ``drain`` or ``requeue`` them first."""

    def reload_queues(self) -> str:
        """Apply the changed files of ``queues.d``; return a sentence on what changed. Raises NqspyError."""

    def alarms(self) -> list[str]:
        """Return a line for each problem of the installation."""

    def last_try(self, resource: str) -> LastTry | None:
        """Return the last try of a watched resource; None before its first."""

    def sent(self, size: int) -> None:
        """Note the bytes of a sent answer: soon afterwards freed memory is given back to the system."""
