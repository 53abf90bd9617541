"""What a command does when nobody answers: waits for a daemon that is restarting, or says that there is none.
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
        """Why nothing comes of it; empty where waiting is of use. ``reached``: the message may have been
        taken; ``over``: it was waited for long enough."""
        stands = standing(self._home)
        return self._sentence(stands, reached) if over or not self._may_return(stands, reached) else ""

    def word(self, waited: float) -> str:
        """What a person is told, once, after ``waited`` seconds of waiting; else empty."""
        if waited <= FIRST_WORD or self._told or not os.isatty(2):
            return ""
        self._told = True
        return waiting_for(self._home)

    def _may_return(self, stands: str, reached: bool) -> bool:
        """What was not sent yet may always be sent later, what was only where that does no harm; to a daemon
        that was stopped nobody comes back but who waits for an end."""
        if reached and not self._safe:
            return False
        if stands == STOPPED:
            return reached and self._patient
        return stands == UP or reached or (self._keyed and stands == LOST)

    def _sentence(self, stands: str, reached: bool) -> str:
        if reached:
            return f"the nqsd in {self._home} went away before it answered"
        return not_yet(self._home) if stands == UP else nobody_there(self._home)
