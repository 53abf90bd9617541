"""Clears away the folders of attempts whose end is committed: later, when nothing is going on.

Some file systems avoid inodes that were freed a moment ago, so that making files gets slow after deletions
(measured: an ext4 without journal, a fifth of a short job's whole cost). So nothing is removed in a rush.
"""

import threading
from collections import deque

from nqspy.executors import scan

QUIET = 5.0
"""Real seconds without a new folder before clearing begins."""
MOST = 20_000
"""Folders that may lie about; beyond, the oldest are cleared at once."""
_STEP = 20


class SpoolCleaner:
    """A thread that sleeps until there is something to clear; what it leaves, the next scan finds."""

    def __init__(self, quiet: float = QUIET) -> None:
        """``quiet``: real seconds without a new folder before clearing begins."""
        self._quiet = quiet
        self._folders: deque[str] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def add(self, folder: str) -> None:
        """Has a folder removed at some time, unless output had to stay in it."""
        self._folders.append(folder)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="broom", daemon=True)
            self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    def close(self) -> None:
        """Ends the thread."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait()
            self._wake.clear()
            # Whether to stop is looked at after each clear: the word for it may just have been cleared.
            while self._folders and not self._stopping:
                if len(self._folders) > MOST or not self._wake.wait(self._quiet):
                    self._sweep()
                self._wake.clear()

    def _sweep(self) -> None:
        """Removes folders until a new one comes; at least one step."""
        for _ in range(_STEP):
            if self._folders:
                scan.remove(self._folders.popleft())
        while self._folders and not self._wake.is_set():
            scan.remove(self._folders.popleft())
