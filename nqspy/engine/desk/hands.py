"""What the hands report: attempts that run, have used, have ended, were never begun or are lost."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nqspy.engine.desk import strays
from nqspy.engine.desk.context import Desk
from nqspy.model import events as ev
from nqspy.model import sightings as si
from nqspy.model.actions import Forget, Kill, Notify, Resume, Suspend
from nqspy.model.cause import HANDS
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Ending, Request, State, Used

NO_TRACE = "its folder in the spool is gone"
"""What is said of an attempt that ran and left no trace."""
UNSURE = "processes of it may still run"
"""Why a request whose end was lost is held and not run again."""
LOSSES = 3
"""Attempts in a row, each lost within `executors.scan.BRIEF` seconds, after which a request is held: a job
that kills its own shepherd would be run again without end."""
KILLED = f"its shepherd was killed {LOSSES} times in a row; release runs it again"


def take(desk: Desk, sighting: si.Sighting) -> None:
    """Turns a sighting into events. One that names an attempt no longer in force only lets the hands forget
    it, or end it."""
    if isinstance(sighting, si.SeenStray):
        strays.take(desk, sighting)
        return
    request = desk.site.started.get(sighting.seq)
    if request is None or request.attempts != sighting.attempt:
        if isinstance(sighting, si.SeenRunning):
            desk.act(Kill(sighting.seq, sighting.attempt, "deleted", 0, 9))
        elif not isinstance(sighting, (si.SeenUse, si.SeenExiting)):
            desk.act(Forget(sighting.seq, sighting.attempt))
        return
    _TAKERS[type(sighting)](desk, request, sighting)


def adopt(desk: Desk, sighting: si.Sighting) -> None:
    """A sighting of the scan after a restart: what was ordered and may not have been obeyed is ordered
    again."""
    take(desk, sighting)
    request = desk.site.started.get(sighting.seq)
    if request is None or not isinstance(sighting, (si.SeenRunning, si.SeenExiting)):
        return
    if request.ending:
        reason = "requeued" if request.ending.rerun else "deleted"
        desk.act(Kill(request.seq, request.attempts, reason, desk.site.settings.server.grace))
    elif request.pause is not None:
        desk.act(Suspend(request.seq, request.attempts, page_out=request.pause.preempted))
    elif request.run.resumed is not None:
        # Perhaps it was not told that it moved.
        desk.act(Resume(request.seq, request.attempts, pes=request.pes))


def _to_run_again(request: Request) -> bool:
    return request.ending is not None and request.ending.rerun


def _deleter(request: Request) -> str | None:
    """Who wants it deleted, None where nobody does."""
    order = request.ending
    return str(order.cause) if order is not None and not order.rerun else None


def _used(desk: Desk, request: Request, told: Used) -> Used:
    """The most that was ever told of this attempt: a late sample must not take use back."""
    others = (request.used, desk.samples.get(request.seq, Used()))
    return Used(
        max(told.cpu, *(used.cpu for used in others)),
        max(told.wall, *(used.wall for used in others)),
        max(told.memory, *(used.memory for used in others)),
    )


def _mail(desk: Desk, request: Request, what: str, text: str) -> None:
    name, mail = desk.site.id_of(request.seq), request.spec.mail
    text = f"Request {name} ({request.name}) {what}{text}"
    desk.act(Notify(mail.to or request.owner, f"nqspy: {name} {what}", text, request.seq))


def _running(desk: Desk, request: Request, sighting: si.SeenRunning) -> None:
    _begun(desk, request)


def _begun(desk: Desk, request: Request, began: Instant | None = None) -> None:
    if request.run.starting:
        desk.emit(ev.Started(request.seq, request.attempts, request.pes, began))
        if request.spec.mail.begin:
            _mail(desk, request, "has begun", f" on {len(request.pes)} PE(s)")


def _has_run(desk: Desk, request: Request, used: Used) -> None:
    """One of which nobody had told that it runs: it began as long ago as it ran, not when that is known."""
    if request.run.starting:
        began = Instant(max(request.run.started, desk.now - used.wall)) if used.wall else None
        _begun(desk, request, began)


def _exiting(desk: Desk, request: Request, sighting: si.SeenExiting) -> None:
    """Its PEs are free at once: how long its output takes is its owner's doing."""
    _has_run(desk, request, sighting.used)
    if request.state is not State.EXITING:
        desk.emit(ev.Exiting(request.seq, request.attempts, _used(desk, request, sighting.used)))
        desk.dirty()


def _ended(desk: Desk, request: Request, sighting: si.SeenEnded) -> None:
    _has_run(desk, request, sighting.ending.used)
    if _to_run_again(request):
        _requeue(desk, request, str(request.ending), _used(desk, request, sighting.ending.used))
    elif sighting.ending.reason == "requeued":
        # It was to be run again, and deleted before its end came.
        finish(desk, request, replace(sighting.ending, reason="deleted"))
    else:
        finish(desk, request, sighting.ending)
    _done(desk, request, sighting)


def _done(desk: Desk, request: Request, sighting: si.Sighting) -> None:
    desk.act(Forget(request.seq, sighting.attempt))
    desk.dirty()


def _requeue(desk: Desk, request: Request, text: str, used: Used, losses: int = 0) -> None:
    desk.emit(ev.Requeued(request.seq, request.attempts, text, used, losses))
    if request.spec.mail.rerun:
        _mail(desk, request, "is queued again", f": {text}")


def finish(desk: Desk, request: Request, ending: Ending) -> None:
    """Ends a request, and has its owner told where that was asked for or something went wrong."""
    used = _used(desk, request, ending.used)
    text = ending.text or (str(request.ending or "") if ending.reason == "deleted" else "")
    desk.emit(
        ev.Ended(
            request.seq, request.attempts, ending.reason, ending.status, ending.signal,
            used, text, ending.stdout, ending.stderr,
        )
    )  # fmt: skip
    bad = ending.reason not in ("exit", "deleted")
    if request.spec.mail.end or (request.spec.mail.abort and bad):
        _mail(desk, request, "ended", f": {_how(replace(ending, text=text))}")


def _how(ending: Ending) -> str:
    words: list[str] = [ending.reason]
    if ending.status is not None:
        words.append(f"exit status {ending.status}")
    if ending.signal is not None:
        words.append(f"signal {ending.signal}")
    return ", ".join(words) + (f". {ending.text}" if ending.text else "")


def _not_started(desk: Desk, request: Request, sighting: si.SeenNotStarted) -> None:
    """It would fail the same way again: it waits, held, until its owner (or an operator) has mended what is
    wrong and releases it."""
    seq, deleter = request.seq, _deleter(request)
    desk.emit(ev.Requeued(seq, request.attempts, sighting.text))
    if deleter is not None:
        desk.emit(ev.Deleted(seq, deleter))
    else:
        desk.emit(_held(seq, sighting.text))
        _mail(desk, request, "is held", f": {sighting.text}")
    _done(desk, request, sighting)


def _void(desk: Desk, request: Request, sighting: si.SeenVoid) -> None:
    if not request.run.starting:
        # It was seen to run: what it left in the spool has gone, and nobody knows what it has done.
        _lost(desk, request, si.SeenLost(request.seq, sighting.attempt, Used(), NO_TRACE, unsure=True))
        return
    seq, deleter = request.seq, _deleter(request)
    desk.emit(ev.Requeued(seq, request.attempts, f"never begun: {sighting.text}", losses=request.losses))
    if deleter is not None:
        desk.emit(ev.Deleted(seq, deleter))
    _done(desk, request, sighting)


def _lost(desk: Desk, request: Request, sighting: si.SeenLost) -> None:
    """Nobody saw its end: run again or failed, as the site says (``set lost_request``) where nobody asked
    for its end."""
    policy = desk.site.settings.server.lost_request == "rerun" and request.spec.rerunnable
    again = _to_run_again(request) or (policy and request.ending is None)
    used = _used(desk, request, sighting.used)
    name = desk.site.id_of(request.seq)
    what, losses = "ended", _losses(request, sighting)
    if again:
        _requeue(desk, request, sighting.text or "its end was lost", used, losses % LOSSES)
        what = "run again"
    else:
        finish(desk, request, Ending("lost", None, None, used, sighting.text or "nobody saw its end"))
    if sighting.unsure:
        what = _keep_back(desk, request, again)
    elif again and losses >= LOSSES:
        desk.emit(_held(request.seq, KILLED))
        _mail(desk, request, "is held", f": {KILLED}")
        what = f"held: {KILLED}"
    if sighting.unsure or not sighting.text:  # what a restart of the machine has ended is told in one
        desk.alarm(
            "hands", f"the end of request {name} was lost; it is {what}", f"the end of {name} was lost"
        )
    _done(desk, request, sighting)


def _held(seq: Seq, text: str) -> ev.Held:
    return ev.Held((seq,), "u", str(HANDS), text, cause=HANDS)


def _losses(request: Request, sighting: si.SeenLost) -> int:
    """How many there are in a row with this one. What a restart of the machine or a wish for another run has
    ended counts for nothing."""
    if sighting.text or request.ending:
        return request.losses
    return request.losses + 1 if sighting.brief else 0


def _keep_back(desk: Desk, request: Request, again: bool) -> str:
    """Two attempts must not run side by side: one whose processes may run on is held. Gives what is told."""
    if not again:
        return f"ended, but {UNSURE}"
    desk.emit(_held(request.seq, f"{UNSURE}: look for them, then release it"))
    _mail(desk, request, "is held", f": its end was lost, and {UNSURE}")
    return f"held, for {UNSURE}: look for them, then release it"


_Taker = Callable[[Desk, Request, Any], None]
_TAKERS: dict[type[si.Sighting], _Taker] = {
    si.SeenRunning: _running,
    si.SeenExiting: _exiting,
    si.SeenEnded: _ended,
    si.SeenNotStarted: _not_started,
    si.SeenVoid: _void,
    si.SeenLost: _lost,
}
