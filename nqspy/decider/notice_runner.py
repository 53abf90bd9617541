"""Calls notice hooks of exits, in a worker that follows no events; only the next notice waits for one."""

import logging
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from nqspy.decider import messages, sandbox
from nqspy.decider.client import DeciderClient
from nqspy.decider.process import WorkerProcess
from nqspy.decider.worker import NoticeTask
from nqspy.userexit.loader import Source

LOG = logging.getLogger("nqspy.decider")

WALL = 30.0
"""Real seconds that a notice may take for each exit."""
FILES = 256
FORK = 10.0


class NoticeRunner:
    """Calls notice hooks by a worker process, forked when needed. `give` waits, so it runs in a thread of its
    own; ``in_engine`` has a function called in the engine's thread, which forks."""

    def __init__(self, client: DeciderClient, in_engine: Callable[[Callable[[], None]], None]) -> None:
        self._client, self._in_engine = client, in_engine
        self._worker: WorkerProcess | None = None
        self._born_with: object = None
        self._stale = False
        self._ids = count(1)
        self.failing: dict[str, str] = {}
        """Notices that failed last, by exit and hook: what was wrong."""

    def give(self, hook: str, arguments: dict[str, Any]) -> None:
        """Call this notice hook of every exit that has it, and record failures in ``failing``. Kill the
        worker if they do not return in time."""
        worker = self._living()
        if worker is None:
            return
        seconds = WALL * max(1, len(self._client.registry.of(hook)))
        try:
            answer = worker.ask(messages.GiveNotice(next(self._ids), 0, hook, arguments)).result(seconds)
        except TimeoutError:
            self._failed(worker, hook, f"did not return within {WALL:.0f} s")
            worker.kill("a notice did not return")
            return
        if answer is None:
            self._failed(worker, hook, f"ended its process: {worker.how}")
        elif isinstance(answer, messages.NoticeGiven):
            for name in self._client.registry.of(hook):
                self.failing.pop(f"{name}.{hook}", None)
            for failure in answer.failures:
                self.failing[f"{failure.exit}.{hook}"] = f"exit {failure.exit}: {failure.text}"
                LOG.error("exit %s: %s\n%s", failure.exit, failure.text, failure.traceback)

    def _failed(self, worker: WorkerProcess, hook: str, how: str) -> None:
        call = worker.heartbeat.read()
        name = call.exit if call else "?"
        self.failing[f"{name}.{hook}"] = f"exit {name}: {hook} {how}"
        LOG.error("exit %s: %s %s", name, hook, how)

    def close(self) -> None:
        """End the worker process for notices."""
        if self._worker is not None:
            self._worker.kill("the daemon ends")

    def ready(self) -> None:
        """Fork a worker if there is none, or mark it for replacement if exits or settings have changed. Call
        this in the engine's thread before each notice."""
        if self._worker is None or self._worker.dead:
            self._check()
        elif self._born() != self._born_with:
            self._stale = True

    def _living(self) -> WorkerProcess | None:
        if self._worker is not None and not self._worker.dead and not self._stale:
            return self._worker
        done = threading.Event()

        def check() -> None:
            try:
                self._check()
            finally:
                done.set()

        self._in_engine(check)
        return self._worker if done.wait(FORK) else None

    def _check(self) -> None:
        """Replace a worker that is dead, or has other exits or settings; only in the engine's thread."""
        born, self._stale = self._born(), False
        if born != self._born_with:
            self.failing.clear()  # the exits have changed
        if self._worker is not None and (self._worker.dead or born != self._born_with):
            self._worker.kill("the exits are others now")
            self._worker = None
        if self._worker is None and born[0]:
            try:
                site, user = self._client.site, self._client.user
                box = sandbox.Sandbox(site.settings.decider.memory, False, FILES, user)
                work = NoticeTask(self._client.folder, born[0], site)
                self._worker = WorkerProcess("notices", work, box, lambda process, what: None)
                self._born_with = born
            except OSError as error:
                LOG.error("a notice was not given, because no process can be started for it: %s", error)

    def _born(self) -> tuple[tuple[Source, ...], dict[str, tuple[bool, dict[str, str]]]]:
        known = self._client.site.settings.exits
        sources = tuple(s for s in self._client.sources if s.path.stem not in self._client.backoff.out)
        return sources, {name: (each.enabled, dict(each.values)) for name, each in known.items()}
