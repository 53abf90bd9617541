"""What strikes: each fault is one function of the storm, and what it needs to be possible."""

import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random

from chaos.ledger import Ledger
from daemon.live import Live, until
from small_disk import fill

from nqspy.daemon.failpoints import VARIABLE
from nqspy.daemon.home import Home, running_pid
from nqspy.executors import proc

_pause = threading.Event().wait
RUNNING = ("commit", "committed", "hand", "handed", "reply", "replied", "sighted")
BACKUP = ("backup", "copied")
STARTING = ("scan", "scanned", "commit", "committed", "row", "hand", "handed")


class Storm:
    """The faults of one run over one home. ``small``: the home lies on a disk that can be filled."""

    def __init__(self, live: Live, ledger: Ledger, chance: Random, small: bool) -> None:
        self.live, self.ledger, self.chance = live, ledger, chance
        self.small = small
        self.home = Home(live.home)
        self.offset = 0
        self.clock = live.work / "clock.step"
        self.armed = ""

    # ------------------------------------------------------------ the daemon
    def pid(self) -> int | None:
        with suppress(OSError, ValueError):
            return running_pid(self.home)
        return None

    def start(self) -> None:
        """Starts the daemon, perhaps with a failpoint; one that dies by it is started again without."""
        armed = self._arms()
        for _ in range(4):
            begun, since = self.ledger.clock(), self.ledger.length()
            text = f"{armed};clock={self.clock}" if armed else f"clock={self.clock}"
            self.live.environment[VARIABLE] = text
            done = self.live.run("nqsd", "start")
            if done.status == 0:
                self.armed = armed
                return
            if not armed:
                self.ledger.broken("does not start", "", done.err)
            self.ledger.struck("killed while starting", begun, since, armed)
            armed = self._arms(STARTING) if self.chance.random() < 0.3 else ""
        raise AssertionError(f"the daemon does not start: {done}")

    def _arms(self, points: tuple[str, ...] = ()) -> str:
        dice = self.chance.random()
        if points or dice < 0.15:
            return f"{self.chance.choice(points or STARTING)}=kill@{self.chance.randint(1, 4)}"
        at = round(2 ** self.chance.uniform(1, 8))
        if dice < 0.5:
            return f"{self.chance.choice(RUNNING)}=kill@{at}"
        if dice < 0.55:
            return f"{self.chance.choice(BACKUP)}=kill@{self.chance.randint(1, 2)}"
        if dice < 0.6:
            return f"row=kill@{20 * at}"
        if dice < 0.75:
            return f"commit={self.chance.choice(('EIO', 'ENOSPC'))}@{at}x{self.chance.randint(1, 12)}"
        if dice < 0.8:
            return f"commit=stop@{at}"
        if dice < 0.85:
            return f"commit=unsynced@{at}"
        return ""

    def look(self) -> None:
        """Sees to a daemon that a failpoint has killed or stopped."""
        pid = self.pid()
        if pid is None:
            self.ledger.struck("killed at a failpoint", self.ledger.clock(), self.ledger.length(), self.armed)
            self.start()
        elif self.armed.startswith("commit=stop") and _is_stopped(pid):
            self._stand_still("stopped at a failpoint", pid)

    def strike(self, names: tuple[str, ...] = ()) -> None:
        """One fault, any or one of these."""
        weights: dict[str, tuple[int, Callable[[], None]]] = {
            "killed": (5, self.killed), "stopped": (3, self.stopped), "clock": (3, self.clock_step),
            "locked": (3, self.locked), "full": (2 if self.small else 0, self.full),
            "shepherd": (4, self.shepherd), "spawner": (2, self.spawner), "restarted": (2, self.restarted),
        }  # fmt: skip
        chosen = [name for name in weights if not names or name in names]
        name = self.chance.choices(chosen, [weights[name][0] for name in chosen])[0]
        weights[name][1]()

    # ------------------------------------------------------------ faults
    def killed(self) -> None:
        with self.ledger.striking("kill -9"):
            if (pid := self.pid()) is not None:
                proc.send([pid], signal.SIGKILL)
                until(lambda: self.pid() is None, "the end of the daemon")
        if self.chance.random() < 0.3:
            _pause(self.chance.uniform(0.1, 2.0))
        self.start()

    def restarted(self) -> None:
        way = self.chance.choice(("", "", "--requeue"))
        with self.ledger.striking("stop", way):
            self.live.run("nqsd", "stop", *filter(None, (way,)))
            until(lambda: self.pid() is None, "the end of the daemon")
        self.start()

    def stopped(self) -> None:
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGSTOP)
            self._stand_still("SIGSTOP", pid)

    def _stand_still(self, what: str, pid: int) -> None:
        with self.ledger.striking(what), suppress(ProcessLookupError):
            _pause(self.chance.uniform(0.5, 6.0))
            os.kill(pid, signal.SIGCONT)

    def clock_step(self) -> None:
        step = self.chance.choice((1_000, 60_000, 3_600_000, 86_400_000)) * self.chance.choice((1, -1))
        with self.ledger.striking("clock stepped", f"{step / 1000:+.0f} s"):
            self.offset += step
            new = self.clock.with_suffix(".new")
            new.write_text(str(self.offset))
            new.replace(self.clock)

    def locked(self) -> None:
        other = closing(sqlite3.connect(self.home.database, isolation_level=None, timeout=5))
        with suppress(sqlite3.OperationalError), self.ledger.striking("database locked"), other as locking:
            locking.execute("BEGIN IMMEDIATE")
            _pause(self.chance.uniform(0.5, 6.0))
            locking.execute("ROLLBACK")

    def full(self) -> None:
        """Nothing more fits on the disk with database and spool."""
        ballast = self.live.home / "ballast"
        with self.ledger.striking("disk full"):
            fill(ballast)
            _pause(self.chance.uniform(0.5, 4.0))
            ballast.unlink()

    def shepherd(self) -> None:
        """Up to three shepherds die, and their jobs are nobody's."""
        found = [pid for pid, folder in self._helpers() if folder.startswith(str(self.home.spool))]
        for pid in self.chance.sample(found, min(len(found), self.chance.randint(1, 3))):
            with self.ledger.striking("shepherd killed", str(pid)):
                proc.send([pid], signal.SIGKILL)

    def spawner(self) -> None:
        for pid, folder in self._helpers():
            if folder == "/":
                with self.ledger.striking("spawner killed"):
                    proc.send([pid], signal.SIGKILL)

    def _helpers(self) -> list[tuple[int, str]]:
        """Spawner and shepherds of this home, with the folders they stand in."""
        found = []
        for pid in self.live.leftovers():
            with suppress(OSError):
                if b"executors/spawner.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append((pid, os.readlink(f"/proc/{pid}/cwd")))
        return found

    def calm(self) -> None:
        """The last fault is over: the daemon is up and nothing is armed any more."""
        pid = self.pid()
        if pid is not None and _is_stopped(pid):
            os.kill(pid, signal.SIGCONT)
        if pid is None or self.armed:
            self.live.run("nqsd", "stop")
            until(lambda: self.pid() is None, "the end of the daemon")
            self.chance = Calm()
            self.start()


class Calm(Random):
    """Chance that arms nothing any more."""

    def random(self) -> float:
        """The greatest there is."""
        return 0.99


def _is_stopped(pid: int) -> bool:
    seen = proc.stat(pid)
    return seen is not None and seen.state == "T"
