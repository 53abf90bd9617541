"""State that outlives the exits' process and the daemon: the exits' answers about requests, their failures,
which exits are left out. It lies in two files of the home that only the daemon reads.

``exits.memory`` is a worker's state (`userexit.call_stats.SavedMemory`): the daemon stores it and hands it to
the next worker undecoded. The worker is asked for it soon after an exit failed, and sometimes after
passes."""

import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nqspy.decider import messages
from nqspy.decider.orders import Answer
from nqspy.system.private_files import write_private

LOG = logging.getLogger("nqspy.decider")

if TYPE_CHECKING:
    from nqspy.decider.backoff import Backoff

SOON = 1.0
"""Real seconds from a failure of an exit to storing the state."""
SELDOM = 30.0
"""Real seconds from a pass to storing the state."""
AT_END = 1.0
"""Real seconds that a stopping daemon waits for a worker's state."""

StartQuery = Callable[[messages.Order], Answer]


class SavedState:
    """Files of saved state, in the engine's thread. ``home``: their folder, None: nothing is saved."""

    def __init__(self, home: Path | None) -> None:
        self._home = home
        self._stamp = 0
        self._due: float | None = None
        self._asked: Answer | None = None
        self._writer: threading.Thread | None = None

    # ------------------------------------------------------------ the worker's

    def read(self) -> bytes:
        """Return the state that the last worker saved (``exits.memory``), as bytes; empty: there is none."""
        try:
            return (self._home / "exits.memory").read_bytes() if self._home is not None else b""
        except OSError:
            return b""

    def born(self) -> None:
        """Note that a new worker begins: its stamps count from 0."""
        self._stamp, self._asked = 0, None

    def note(self, stamp: int) -> None:
        """Schedule saving after an answer of a worker: after `SOON` if its ``stamp`` is another than before
        (a failure was added or forgotten), else after `SELDOM`."""
        if self._home is None:
            return
        pause = SOON if stamp != self._stamp else SELDOM
        self._stamp = stamp
        due = time.monotonic() + pause
        self._due = due if self._due is None else min(self._due, due)

    def timeout(self) -> float | None:
        """Return the real seconds until `check` has something to do; None: nothing."""
        if self._asked is not None:
            return 0.0 if self._asked.done() else None
        if self._due is None:
            return None
        return max(0.0, self._due - time.monotonic())

    def check(self, start_query: StartQuery) -> None:
        """Ask the worker for its state if that is due; if its answer has come, write that in a thread."""
        if self._asked is not None and self._asked.done():
            answer, self._asked = self._asked.result(), None
            writing = self._writer is not None and self._writer.is_alive()
            if isinstance(answer, messages.StateAnswered) and not writing:
                self._writer = threading.Thread(target=self._write, args=(answer.body,), name="exits-memory")
                self._writer.start()
        if self._asked is None and self._due is not None and time.monotonic() >= self._due:
            self._due, self._asked = None, start_query(messages.AskState(0, 0))

    def close(self, body: bytes) -> None:
        """Write the state of the last worker (empty: keep the file), after any write under way."""
        if self._writer is not None:
            self._writer.join()
        if body:
            self._write(body)

    def _write(self, body: bytes) -> None:
        self._put("exits.memory", body.decode("latin-1"))

    def _put(self, name: str, text: str) -> None:
        try:
            if self._home is not None:
                write_private(self._home / name, [text], encoding="latin-1")
        except OSError as error:
            LOG.warning("%s of the home could not be written: %s", name, error)

    # ------------------------------------------------------------ the daemon's own

    def save(self, backoff: "Backoff") -> None:
        """Write the record of lost workers and exits left out (``exits.strikes``)."""
        self._put("exits.strikes", json.dumps(backoff.dump(), ensure_ascii=True))

    def restore(self, backoff: "Backoff") -> None:
        """Read back into ``backoff`` what `save` wrote; do nothing without a file that can be read."""
        try:
            if self._home is not None:
                backoff.load(json.loads((self._home / "exits.strikes").read_text(encoding="latin-1")))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            LOG.warning("exits.strikes of the home is ignored: %s", error)
