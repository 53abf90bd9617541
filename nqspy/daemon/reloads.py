"""Reloads of the exits, one at a time: files are loaded outside the engine's thread, nothing else waits."""

import re
from collections.abc import Callable
from functools import partial

from nqspy.daemon.inbox import EngineCall, Host
from nqspy.daemon.log import LOG
from nqspy.decider import loading
from nqspy.decider.loading import Loading
from nqspy.engine.handlers.people import role_of
from nqspy.model.commands import ReloadExits
from nqspy.model.errors import NqspyError
from nqspy.model.events import Alarm
from nqspy.model.people import Caller
from nqspy.userexit.hooks import shadows

AT_START = 2.0
"""Real seconds that a start waits for the exits; after that clients are served without them."""

_RELOAD = re.compile(r"^\s*relo\w*\s+e", re.IGNORECASE | re.MULTILINE)


class Reloads:
    """Reloads the exits; in the engine's thread. ``trouble``: alarm until the first exits are loaded."""

    def __init__(self, host: Host, go: Callable[[], None]) -> None:
        """``go``: does what had to wait for the exits of the start; raises NqspyError."""
        self._host, self._go = host, go
        self._waiting: list[Callable[[], bool]] = []
        self.trouble = ""

    def start(self) -> bool:
        """Load the exits at a start; return False if that takes longer than `AT_START` and goes on in the
        background. Until they are loaded nothing is decided, submitted or set."""
        first = Loading(self._host.decider, strict=False)
        if first.wait(AT_START):
            self._settle(first)
            return True
        first.when_over(lambda: self._host.inbox.put(EngineCall(partial(self._late, first))))
        text = "user exits are still being loaded; until then no job starts and no command is carried out"
        self.trouble = text
        LOG.warning("%s", text)
        return False

    def _settle(self, first: Loading) -> None:
        loading.settle(first)
        for problem in self._host.exits.problems:
            LOG.error("user exit left out: %s", problem)
        for note in shadows(self._host.exits.listing()):
            LOG.warning("user exit: %s", note)

    def _late(self, first: Loading) -> None:
        if not first.done or self._host.decider.loading is not first:
            return
        self._settle(first)
        self.trouble = ""
        try:
            self._go()
        except NqspyError as error:
            LOG.error("%s", error)
            self.trouble = str(error)

    def wanted(self, script: str, caller: Caller) -> bool:
        """True if a script of qmgr reloads exits, and its caller may do that."""
        return _RELOAD.search(script) is not None and self.allowed(caller)

    def allowed(self, caller: Caller) -> bool:
        """True if a caller may reload exits."""
        return role_of(self._host.engine.site.settings, caller) == "manager"

    def before(self, go: Callable[[], bool]) -> None:
        """Load the files in the background, after those loads that wait, and call ``go`` once they are loaded
        or refused. ``go`` returns True if it will call `over` itself; otherwise `over` is called after it."""
        self._waiting.append(go)
        if len(self._waiting) == 1:
            self._begin()

    def for_shift(self) -> None:
        """Load the files for a shift in the background, then reload the exits."""

        def as_owner() -> bool:
            reply = self._host.ask(ReloadExits(), self._host.owner)
            if reply.refusal is not None:
                self._host.note(Alarm("exits", str(reply.refusal)))
            return False

        self.before(as_owner)

    def _begin(self) -> None:
        later = Loading(self._host.decider, strict=True)
        later.when_over(lambda: self._host.inbox.put(EngineCall(self._finish)))

    def _finish(self) -> None:
        found = self._host.decider.loading
        if not isinstance(found, Loading) or not found.done or not self._waiting:
            return
        goes_on = False
        try:
            goes_on = self._waiting[0]()
        finally:
            if not goes_on:
                self.over()

    def over(self) -> None:
        """End the current reload, and begin the next one that waits."""
        del self._waiting[0]
        found = self._host.decider.loading
        if isinstance(found, Loading):
            found.drop()
        if self._waiting:
            self._begin()
