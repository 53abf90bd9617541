"""A shepherd's way to its owner's login (`login_env`): it reads what is kept, and has the starter take it
where there is none, or where it is out of date.

Standard library only.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from nqspy.executors import child, login_env, login_taker, patience
from nqspy.executors.attempt_reporter import AttemptReporter
from nqspy.executors.person import Person


class LoginSeeker:
    """Puts the login of a request's owner into its order (``kept``). ``told``: messages of the daemon that
    came meanwhile; ``note``: why the job has a plain environment, "" where it has that of a login."""

    def __init__(self, reporter: AttemptReporter, who: Person) -> None:
        self._reporter, self._order, self._who = reporter, reporter.order, who
        self._shell = self._order["shell"] or who.shell
        self._wanted = self._order["login"] == "once" and bool(login_env.family(self._shell))
        self._path = login_env.path_of(reporter.station.spool, who, self._shell)
        self.told: list[dict[str, Any]] = []
        self.note = ""

    def ready(self) -> str:
        """Have the login at hand, the first one waited for; return why the job may not begin, "" if it may.
        Raises Again, StoodStill."""
        if not self._wanted:
            return ""
        kept = login_env.read(self._path)
        if kept is None:
            kept = self._first()
        elif (age := kept.age(self._order["login_env"]["age"] / 1000)) != "fresh":
            kept = self._renewed(kept, login_env.CHANGED if age == "old" else 0.0)
        return self._settle(kept)

    def renew(self) -> str:
        """Take it again, as a profile was changed; the rest as `ready`."""
        kept = self._renewed(self._order["kept"], login_env.CHANGED)
        self._order["renewed"] = True
        return self._settle(kept)

    def _settle(self, kept: login_env.KeptLogin) -> str:
        self._order["kept"], self.note = kept, ""
        if kept.failed:
            said = f"the login shell {self._shell} of {self._who.name} gave no environment: {kept.failed}"
            if kept.failed == login_env.NO_ROOM:
                raise child.Again(said)
            if self._order["login_env"]["failed"] == "hold":
                return said
            self.note = f"it has a plain environment: {said}"
            self._reporter.tell("note", text=self.note)
        return ""

    def _first(self) -> login_env.KeptLogin:
        wall = self._order["limits"]["wall"]
        most = login_taker.DEADLINE + login_env.CHANGED + login_taker.LEAVE
        limit = most if wall is None else wall / 1000 / self._order["speed"]
        ended = self._wait(min(most, limit), self._hear)
        kept = login_env.read(self._path)
        if kept is None and (ended or limit < most):
            why = "was cut off" if ended else "took longer than its wall limit"
            raise child.Again(f"its owner's login {why}")
        # A check of the profiles would find them changed.
        self._order["renewed"] = kept is None
        self._reporter.tell("note")
        return kept or login_env.KeptLogin("", failed="it does not end")

    def _renewed(self, kept: login_env.KeptLogin, seconds: float) -> login_env.KeptLogin:
        self._wait(seconds, self._reporter.listen)
        return login_env.read(self._path) or kept

    def _hear(self) -> socket.socket:
        control = self._reporter.listen()
        self._reporter.tell("note", text=f"it waits for the login shell {self._shell} of {self._who.name}")
        return control

    def _wait(self, seconds: float, hear: Callable[[], socket.socket]) -> bool:
        """Ask for the login, and wait for it at most so long; return whether it is done."""
        reader, writer = os.pipe()
        try:
            asks = self._reporter.station.logins
            if asks is None:
                raise child.Again("its shepherd has no starter")
            message = login_env.request(self._who, self._shell)
            try:
                socket.send_fds(asks, [message], [writer])
            except OSError as error:
                raise child.Again(f"cannot ask for its owner's login: {error.strerror}") from None
            finally:
                os.close(writer)
            if not seconds:
                return False
            wait = patience.Wait(seconds, hear, at_once=True)
            ended = wait.read(reader)[1]
            self.told += wait.told
            if wait.kill is not None:
                raise child.StoodStill(wait)
            return ended
        finally:
            os.close(reader)
