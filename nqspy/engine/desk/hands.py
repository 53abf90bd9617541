"""What the hands report: attempts that run, have used, have ended, were never begun or are lost."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nqspy.engine.desk.context import Desk
from nqspy.model import events as ev
from nqspy.model import sightings as si
from nqspy.model.actions import Forget, Kill, Notify, Suspend
from nqspy.model.requests import Ending, Request, State, Used


def take(desk: Desk, sighting: si.Sighting) -> None:
    """Turns a sighting into events. One that names an attempt no longer in force only lets the hands forget
    it."""
    request = desk.site.started.get(sighting.seq)
    if request is None or request.attempt != sighting.attempt:
        if isinstance(sighting, (si.SeenEnded, si.SeenNotStarted, si.SeenLost)):
            desk.act(Forget(sighting.seq, sighting.attempt))
        elif isinstance(sighting, si.SeenRunning):
            desk.act(Kill(sighting.seq, sighting.attempt, "deleted", 0, 9))
        return
    _TAKERS[type(sighting)](desk, request, sighting)


def _running(desk: Desk, request: Request, sighting: si.SeenRunning) -> None:
    if request.starting:
        desk.emit(ev.Started(request.seq, request.attempt, request.pes))


def _found_running(desk: Desk, request: Request) -> None:
    """After a restart: what was ordered and not yet obeyed is ordered again."""
    if request.ending:
        rerun = request.ending.startswith("rerun")
        grace = desk.site.settings.server.grace
        desk.act(Kill(request.seq, request.attempt, "requeued" if rerun else "deleted", grace))
    elif request.state is State.SUSPENDED:
        desk.act(Suspend(request.seq, request.attempt))


def adopt(desk: Desk, sighting: si.Sighting) -> None:
    """A sighting of the scan after a restart."""
    take(desk, sighting)
    request = desk.site.started.get(sighting.seq)
    if request is not None and isinstance(sighting, si.SeenRunning):
        _found_running(desk, request)


def _ended(desk: Desk, request: Request, sighting: si.SeenEnded) -> None:
    if request.starting:
        desk.emit(ev.Started(request.seq, request.attempt, request.pes))
    if request.ending.startswith("rerun"):
        desk.emit(ev.Requeued(request.seq, request.attempt, request.ending, sighting.ending.used))
    else:
        finish(desk, request, sighting.ending)
    desk.act(Forget(request.seq, request.attempt))
    desk.dirty()


def finish(desk: Desk, request: Request, ending: Ending) -> None:
    """Ends a request, and has its owner told where that was asked for or something went wrong."""
    used = replace(ending.used, memory=max(ending.used.memory, request.used.memory))
    used = replace(used, cpu=max(used.cpu, request.used.cpu))
    desk.emit(
        ev.Ended(
            request.seq, request.attempt, ending.reason, ending.status, ending.signal,
            used, ending.text, ending.stdout, ending.stderr,
        )
    )  # fmt: skip
    bad = ending.reason not in ("exit", "deleted")
    if request.spec.mail.end or (request.spec.mail.abort and bad):
        name = desk.site.id_of(request.seq)
        how = f"exit status {ending.status}" if ending.status is not None else f"signal {ending.signal}"
        text = f"Request {name} ({request.name}) ended: {ending.reason}, {how}. {ending.text}"
        desk.act(Notify(request.spec.mail.to or request.owner, f"nqspy: {name} ended", text, request.seq))


def _not_started(desk: Desk, request: Request, sighting: si.SeenNotStarted) -> None:
    """It would fail the same way again: it waits, held, until somebody has mended what is wrong."""
    seq = request.seq
    desk.emit(ev.Requeued(seq, request.attempt, sighting.text))
    desk.emit(ev.Held((seq,), "s", "hands", sighting.text))
    name = desk.site.id_of(seq)
    desk.act(Notify(request.spec.mail.to or request.owner, f"nqspy: {name} is held", sighting.text, seq))
    desk.act(Forget(seq, sighting.attempt))
    desk.dirty()


def _void(desk: Desk, request: Request, sighting: si.SeenVoid) -> None:
    if request.ending and not request.ending.startswith("rerun"):
        desk.emit(ev.Requeued(request.seq, request.attempt, "never begun"))
        desk.emit(ev.Deleted(request.seq, request.ending.removeprefix("deleted by ")))
    else:
        desk.emit(ev.Requeued(request.seq, request.attempt, "never begun: the daemon stopped before"))
    desk.act(Forget(request.seq, sighting.attempt))
    desk.dirty()


def _lost(desk: Desk, request: Request, sighting: si.SeenLost) -> None:
    """Nobody saw its end: run again or failed, as the site says (``set lost_request``)."""
    again = desk.site.settings.server.lost_request == "rerun" and request.spec.rerunnable
    used = Used(max(sighting.used.cpu, request.used.cpu), sighting.used.wall, request.used.memory)
    name = desk.site.id_of(request.seq)
    if again and not request.ending.startswith("deleted"):
        desk.emit(ev.Requeued(request.seq, request.attempt, "its end was lost", used))
    else:
        finish(desk, request, Ending("lost", None, None, used, "nobody saw its end"))
    desk.emit(
        ev.Alarm("hands", f"the end of request {name} was lost; it is {'run again' if again else 'ended'}")
    )
    desk.act(Forget(request.seq, sighting.attempt))
    desk.dirty()


_Taker = Callable[[Desk, Request, Any], None]
_TAKERS: dict[type[si.Sighting], _Taker] = {
    si.SeenRunning: _running,
    si.SeenEnded: _ended,
    si.SeenNotStarted: _not_started,
    si.SeenVoid: _void,
    si.SeenLost: _lost,
}
