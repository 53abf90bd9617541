"""A daemon that does not answer: it restarts, so that waiting is of use, or there is none."""

import os

from nqspy.rpc.home import LOST, STOPPED, UP, nobody_there, not_yet, standing, waiting_for

FIRST_WORD = 0.3
"""Seconds after which a command says that it waits."""


def verdict(home: str, keyed: bool, repeat: bool, patient: bool, reached: bool, over: bool) -> str:
    """The reason to give up; empty where waiting is of use: an unsent message may be sent later, a sent one
    if that does no harm, and after a stop only by a command that waits for an end. ``keyed``, ``repeat``,
    ``patient``: see `fast.DaemonConnection.send`; ``reached``: the message may have been taken; ``over``:
    time is up."""
    stands, safe = standing(home), keyed or repeat
    if stands == STOPPED:
        may_return = reached and safe and patient
    else:
        may_return = safe if reached else stands == UP or (keyed and stands == LOST)
    if may_return and not over:
        return ""
    if reached:
        return f"the nqsd in {home} went away before it answered"
    return not_yet(home) if stands == UP else nobody_there(home)


def word(home: str, waited: float) -> str:
    """The line that a person reads after ``waited`` seconds of waiting; else empty."""
    return waiting_for(home) if waited > FIRST_WORD and os.isatty(2) else ""
