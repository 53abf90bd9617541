"""A daemon that does not answer: it is restarting, so that waiting helps, or there is none."""

import os

from nqspy.rpc.home import LOST, STOPPED, UP, nobody_there, standing

FIRST_WORD = 0.3
"""Seconds after which a command says that it is waiting."""


def verdict(home: str, keyed: bool, repeat: bool, patient: bool, reached: bool, over: bool) -> str:
    """Return the reason to give up; empty if waiting helps: an unsent message may be sent later, a sent one
    if that does no harm; after a stop only commands that wait for an end go on. ``keyed``, ``repeat``,
    ``patient``: see `fast.DaemonConnection.send`; ``reached``: True if the daemon may have got it; ``over``:
    the time is up."""
    stands, safe = standing(home), keyed or repeat
    if stands == STOPPED:
        may_return = reached and safe and patient
    else:
        may_return = safe if reached else stands == UP or (keyed and stands == LOST)
    if may_return and not over:
        return ""
    if reached:
        return f"the nqsd in {home} stopped before it answered"
    if stands == UP:
        return f"the nqsd in {home} is starting or stopping and does not answer yet"
    return nobody_there(home)


def word(home: str, waited: float) -> str:
    """Return the line for a user at a terminal after ``waited`` seconds in vain; empty if it is too early."""
    away = f"the nqsd in {home} does not answer; waiting for it"
    return away if waited > FIRST_WORD and os.isatty(2) else ""
