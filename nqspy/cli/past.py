"""Changes that a file of qmgr's would have made in the past, told behind ``verify`` and ``plan``: ``nqspy
replay`` as a process of its own, beside the daemon."""

import os
import subprocess
import sys
from dataclasses import dataclass

from nqspy.cli import fast

LAST_NIGHT = "24h"
"""How far back a plan looks by itself, before the journal's last event."""
WITHIN = 10
"""Seconds that a plan's look back takes at most."""

OWNERS = "only the home's owner and root may read the journal"


@dataclass(frozen=True, slots=True)
class PastUnderFile:
    """``file`` as if it had been applied ``since`` a time ago; in the journal of ``home``."""

    home: str
    file: str
    since: str

    def tell(self, as_json: bool = False) -> int:
        """Prints all of it, however long it takes; gives the exit status. Raises Failure."""
        if not self._may_read():
            raise fast.Failure(f"nothing is gone through again: {OWNERS}")
        words = [*self._words(), *["--json"] * as_json]
        done = subprocess.run(words, check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode and (said := done.stderr.splitlines()):
            raise fast.Failure(_said(said[-1]))
        return done.returncode

    def close_plan(self) -> None:
        """Prints the last night's figures in a few lines, or in one why there are none."""
        fast.write(1, f"\n{self._last_night()}".encode())

    def _last_night(self) -> str:
        if not self._may_read():
            return _none(OWNERS)
        try:
            words = [*self._words(), "--brief"]
            done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=WITHIN)
        except subprocess.TimeoutExpired:
            return _none(f"it takes more than {WITHIN} s; --replay {self.since} waits for it")
        lines = done.stderr.splitlines() or ["it failed"]
        return done.stdout or _none(_said(lines[-1]))

    def _may_read(self) -> bool:
        return os.access(os.path.join(self.home, "nqs.db"), os.R_OK)

    def _words(self) -> list[str]:
        replay = [sys.executable, "-P", "-m", "nqspy.sim.replay.command", "--home", self.home]
        return [*replay, "--since", self.since, "--file", self.file]


def _said(line: str) -> str:
    """The problem without the name of the command that told it, which the user did not call."""
    return line.removeprefix("nqspy: ")


def _none(why: str) -> str:
    return f"the last night is not gone through again: {why}\n"
