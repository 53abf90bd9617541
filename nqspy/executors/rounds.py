"""The life of a shepherd: one attempt, and others while all goes well and there are any."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from nqspy.executors import bells, cage, forks, outset, records, traits
from nqspy.executors.attempt_reporter import AttemptReporter, Station
from nqspy.executors.shepherd import Shepherd
from nqspy.executors.spares import Message, Offer
from nqspy.system import urgency

_ATTEMPTS = 100
"""So many attempts one shepherd serves at most."""


def serve(order: dict[str, Any], station: Station, born: cage.Birthplace | None) -> None:
    """Lives the life of a shepherd (``born`` in the cgroup of its jobs); returns when all is done."""
    os.setsid()
    urgency.ordinary_children()
    os.umask(0)
    wake = bells.wake_on_children()
    forks.become_subreaper()
    me = station.identifier.of(os.getpid()).text()
    mine = traits.of_this_process()
    for left in reversed(range(_ATTEMPTS)):
        offer = Offer(station.offers, born is not None, mine)
        if not _serve(order, station, born, me, wake, offer.make if left else None):
            return
        message = offer.wait()
        if message is None:
            return
        order = _begin(message, station, born)


def _begin(message: Message, station: Station, born: cage.Birthplace | None) -> dict[str, Any]:
    """The next order; nothing of the one before holds for it."""
    text, (station.lock, *fds) = message
    order = outset.read(text.partition(b"\n")[2], fds, station)
    for fd in fds:
        os.close(fd)
    if not order["cpus"]:
        os.sched_setaffinity(0, station.cpus)
    if born is not None:
        born.begin()
    return order


def _serve(
    order: dict[str, Any],
    station: Station,
    born: cage.Birthplace | None,
    me: str,
    wake: int,
    ready: Callable[[], None] | None,
) -> bool:
    """One attempt; ``ready`` is called when nothing more has to be done for it but to tell its end. Whether
    that was told. Leaves silently when another has the claim."""
    folder = os.path.join(station.spool, records.folder_name(order["seq"], order["attempt"]))
    if order.get("deliver"):
        os.close(station.lock)
        os.chdir(folder)
        record = records.read(".", "exit")
        if record is not None:
            AttemptReporter(order, station).finish(record | {"once_more": True})
        return False
    if not outset.claimed(order, folder, me, station, born):
        return False
    # The lock is let go only now: whoever gets it knows that every order was claimed or never will be.
    os.close(station.lock)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # at a shutdown the job gets its own: record how it ends
    shepherd = Shepherd(order, station, born, wake, ready)
    try:
        return shepherd.live()
    except BaseException:
        shepherd.cage.kill()  # no job runs without somebody to watch over it
        raise
