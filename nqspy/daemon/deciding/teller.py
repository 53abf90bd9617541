"""Gives the exits' notices in a child of their own, which knows no site: nothing waits for them but the next
notice."""

import queue
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from nqspy.daemon.deciding import rights, words
from nqspy.daemon.deciding.child import Notices
from nqspy.daemon.deciding.parent import Parent
from nqspy.daemon.deciding.process import Gone, Process
from nqspy.daemon.log import LOG
from nqspy.model.site import Site
from nqspy.userexit.loader import Source

WALL = 30.0
"""Real seconds that a notice may take."""
FILES = 256
FORK = 10.0


class Teller:
    """``tell`` is called by the notices' thread; children are forked in the engine's (``in_engine``)."""

    def __init__(self, parent: Parent, in_engine: Callable[[Callable[[], None]], None]) -> None:
        self._parent, self._in_engine = parent, in_engine
        self._child: Process | None = None
        self._born_with: object = None
        self._stale = False
        self._ids = count(1)
        self.failing: dict[str, str] = {}
        """Notices that failed last, by exit and hook: what was wrong."""

    def tell(self, hook: str, arguments: dict[str, Any]) -> None:
        """Gives a notice to every exit that has it. One that does not come back is ended."""
        child = self._living()
        if child is None:
            return
        id = next(self._ids)
        child.send(words.Tell(id, 0, hook, arguments))
        end = time.monotonic() + WALL * max(1, len(self._parent.roster.of(hook)))
        while (left := end - time.monotonic()) > 0:
            try:
                word = child.mailbox.get(timeout=left)
            except queue.Empty:
                break
            if isinstance(word, Gone):
                self._failed(child, hook, f"ended its process: {word.how}")
                return
            if isinstance(word, words.Told) and word.id == id:
                for name in self._parent.roster.of(hook):
                    self.failing.pop(f"{name}.{hook}", None)
                for each in word.failures:
                    self.failing[f"{each.exit}.{hook}"] = f"exit {each.exit}: {each.text}"
                    LOG.error("exit %s: %s\n%s", each.exit, each.text, each.traceback)
                return
        self._failed(child, hook, f"did not come back within {WALL:.0f} s")
        child.kill("a notice did not come back")

    def _failed(self, child: Process, hook: str, how: str) -> None:
        call = child.page.read()
        name = call.exit if call else "?"
        self.failing[f"{name}.{hook}"] = f"exit {name}: {hook} {how}"
        LOG.error("exit %s: %s %s", name, hook, how)

    def close(self) -> None:
        """Ends the child."""
        if self._child is not None:
            self._child.kill("the daemon ends")

    def ready(self) -> None:
        """In the engine's thread, before a notice is to be given: there is a child, and it is looked at
        whether the exits are others by now."""
        if self._child is None or self._child.dead:
            self._look()
        elif self._born() != self._born_with:
            self._stale = True

    def _living(self) -> Process | None:
        if self._child is not None and not self._child.dead and not self._stale:
            return self._child
        done = threading.Event()

        def look() -> None:
            try:
                self._look()
            finally:
                done.set()

        self._in_engine(look)
        return self._child if done.wait(FORK) else None

    def _look(self) -> None:
        """In the engine's thread: a child that lives, born with the exits and settings in force."""
        born, self._stale = self._born(), False
        if born != self._born_with:
            self.failing.clear()  # they are others now
        if self._child is not None and (self._child.dead or born != self._born_with):
            self._child.kill("the exits are others now")
            self._child = None
        if self._child is None and born[0]:
            try:
                self._child, self._born_with = self._fork(born[0], self._parent.site), born
            except OSError as error:
                LOG.error("a notice is not given: no process for it can be begun: %s", error)

    def _born(self) -> tuple[tuple[Source, ...], dict[str, tuple[bool, dict[str, str]]]]:
        known = self._parent.site.settings.exits
        sources = tuple(s for s in self._parent.sources if s.path.stem not in self._parent.strikes.out)
        return sources, {name: (each.enabled, dict(each.values)) for name, each in known.items()}

    def _fork(self, sources: tuple[Source, ...], site: Site) -> Process:
        jail = rights.Jail(site.settings.decider.memory, False, FILES, self._parent.user)
        work = Notices(self._parent.folder, sources, site)
        return Process("notices", work, jail, lambda process, what: process.mailbox.put(what))
