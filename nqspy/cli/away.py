"""Waiting for a daemon that does not answer because it restarts, or saying that there is none.
Only loaded then."""

import os

from nqspy.rpc.home import LOST, STOPPED, UP, nobody_there, not_yet, standing, waiting_for

FIRST_WORD = 0.3
"""Seconds after which a command says that it waits."""


class Away:
    """A daemon that does not answer one message. ``keyed``, ``repeat``, ``patient``: see
    `fast.Daemon.send`."""

    def __init__(self, home: str, *, keyed: bool, repeat: bool, patient: bool) -> None:
        self._home, self._keyed, self._safe, self._patient = home, keyed, keyed or repeat, patient
        self._told = False

    def verdict(self, reached: bool, over: bool) -> str:
        """The reason to give up; empty where waiting is of use. ``reached``: the message may have been
        taken; ``over``: it was waited for long enough."""
        stands = standing(self._home)
        return self._sentence(stands, reached) if over or not self._may_return(stands, reached) else ""

    def word(self, waited: float) -> str:
        """The line that a person reads, once, after ``waited`` seconds of waiting; else empty."""
        if waited <= FIRST_WORD or self._told or not os.isatty(2):
            return ""
        self._told = True
        return waiting_for(self._home)

    def _may_return(self, stands: str, reached: bool) -> bool:
        """True if the message may still be answered. One that was not sent yet may be sent later, a sent one
        only where that does no harm. After a stop only a command that waits for an end goes on."""
        if reached and not self._safe:
            return False
        if stands == STOPPED:
            return reached and self._patient
        return stands == UP or reached or (self._keyed and stands == LOST)

    def _sentence(self, stands: str, reached: bool) -> str:
        if reached:
            return f"the nqsd in {self._home} went away before it answered"
        return not_yet(self._home) if stands == UP else nobody_there(self._home)
