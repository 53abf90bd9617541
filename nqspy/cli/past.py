"""Show changes that a file of qmgr would have made in the past: ``nqspy replay`` in a separate process."""

import os
import subprocess
import sys

from nqspy.cli import fast

LAST_NIGHT = "24h"
"""Time before the journal's last event at which the replay behind a plan begins."""
WITHIN = 10
"""Seconds that a replay behind a plan may take."""

OWNERS = "only the owner of the home and root may read the journal"


def report(home: str, file: str, since: str, as_json: bool = False) -> int:
    """Replay the journal from ``since`` on with the commands in ``file``; print what would have changed;
    return the exit status. Raises Failure."""
    if not _may_read(home):
        raise fast.Failure(f"nothing is replayed: {OWNERS}")
    words = [*_words(home, file, since), *["--json"] * as_json]
    done = subprocess.run(words, check=False, stderr=subprocess.PIPE, text=True)
    if done.returncode and (errors := done.stderr.splitlines()):
        raise fast.Failure(errors[-1].removeprefix("nqspy: "))  # which the user did not call
    return done.returncode


def close_plan(home: str, file: str, since: str) -> int:
    """Print in a few lines what ``file`` would have changed from ``since`` on, or why not; return 0."""
    why, text = OWNERS, ""
    if _may_read(home):
        try:
            words = [*_words(home, file, since), "--brief"]
            done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=WITHIN)
            why = (done.stderr.splitlines() or ["it failed"])[-1].removeprefix("nqspy: ")
            text = done.stdout
        except subprocess.TimeoutExpired:
            why = f"it takes more than {WITHIN} s; use --replay {since} to wait for it"
    fast.write(1, ("\n" + (text or f"the last night is not replayed: {why}\n")).encode())
    return 0


def _may_read(home: str) -> bool:
    return os.access(os.path.join(home, "nqs.db"), os.R_OK)


def _words(home: str, file: str, since: str) -> list[str]:
    replay = [sys.executable, "-P", "-m", "nqspy.sim.replay.command", "--home", home]
    return [*replay, "--since", since, "--file", file]
