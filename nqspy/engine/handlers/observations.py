"""Reports of the executor: attempts that run, have used, have ended, were never begun, or are lost."""

from collections.abc import Sequence

from msgspec.structs import replace

from nqspy.engine.handlers import request_mail
from nqspy.engine.handlers.context import Transaction
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.actions import Adjust, Forget, Kill, Resume, SetAside, Suspend, TakeTurns
from nqspy.model.cause import EXECUTOR
from nqspy.model.ids import DAY, MINUTE, SECOND, Instant, Seq, number_of
from nqspy.model.requests import Ending, Request, Retry, State, Used
from nqspy.model.texts import some_of

NO_TRACE = "its folder in the spool is gone"
"""Text about an attempt that ran and left no trace."""
UNSURE = "some of its processes may still run"
"""Why a request whose end was lost is held and not run again."""
FIRST_RETRY, LAST_RETRY = 2 * SECOND, 5 * MINUTE
"""Shortest and longest back-off (ms) after an attempt that could not begin for a cause outside the queue."""
MOST_RETRIES = DAY // LAST_RETRY
"""Retries in a row after which a request is held: they take a day."""
LOSSES = 3
"""Attempts in a row, each lost within `executors.scan.BRIEF` seconds, after which a request is held: a job
that kills its own shepherd would be run again without end."""
CHECK = f"{UNSURE}: check for them, then release it with qrls"
KILLED = f"its shepherd was killed {LOSSES} times in a row; release it with qrls to run it again"


def apply(tx: Transaction, observation: ob.Observation) -> None:
    """Turn an observation into events. An attempt that is not the present one of a started request is killed
    if it runs; else its spool is removed, or set aside."""
    if isinstance(observation, ob.ObservedStray):  # a later attempt must not mistake it for its own
        alive = observation.fate == "alive"
        if alive or (observation.fate != "later" and _is_unknown(tx, observation)):
            tx.act(SetAside(observation.seq, observation.attempt))
        return
    request = tx.site.started.get(observation.seq)
    if request is None or request.attempts != observation.attempt:
        if isinstance(observation, ob.ObservedRunning):
            tx.act(Kill(observation.seq, observation.attempt, "deleted", 0, 9))
        elif not isinstance(observation, (ob.ObservedUse, ob.ObservedNote, ob.ObservedExiting)):
            tx.act(Forget(observation.seq, observation.attempt))
        return
    match observation:
        case ob.ObservedRunning():
            _begun(tx, request)
        case ob.ObservedMovedOut():
            # Others may have its PEs now; one that was let go on meanwhile has them still.
            if request.pause is not None and request.pause.leaving:
                duration = tx.now - request.pause.at
                tx.emit(ev.MovedOut(request.seq, request.attempts, duration, observation.paged))
                tx.dirty()
        case ob.ObservedExiting(_, _, reported, text):
            _begun(tx, request, reported.wall)
            if request.state is not State.EXITING:  # its PEs are free at once, its output may take long
                tx.emit(ev.Exiting(request.seq, request.attempts, _used(tx, request, reported), text))
                tx.dirty()
            if text:
                name = tx.site.id_of(request.seq)
                tx.alarm("hands", f"the output of {name} is not delivered yet: {text}", text)
        case ob.ObservedEnded(_, _, ending):
            _begun(tx, request, ending.used.wall)
            if request.ending is not None and request.ending.rerun:
                used = _used(tx, request, ending.used)
                _requeue(tx, request, str(request.ending), used, outputs=(ending.stdout, ending.stderr))
            else:  # one that was to be run again may have been deleted before its end came
                reason = "deleted" if ending.reason == "requeued" else ending.reason
                finish(tx, request, replace(ending, reason=reason))
            _done(tx, request, observation)
        case ob.ObservedNotStarted():
            _not_started(tx, request, observation)
        case ob.ObservedVoid():
            _void(tx, request, observation)
        case ob.ObservedLost():
            _lost(tx, request, observation)
        case _:
            raise TypeError(f"no observation that says what became of an attempt: {observation}")


def adopt(tx: Transaction, observation: ob.Observation) -> None:
    """Apply an observation of the scan after a restart, and repeat orders that may not have been
    carried out."""
    apply(tx, observation)
    request = tx.site.started.get(observation.seq)
    if request is None or not isinstance(observation, (ob.ObservedRunning, ob.ObservedExiting)):
        return
    if request.run.adjusted:
        tx.act(Adjust(request.seq, request.attempts))
    if tx.site.domain_of(request.queue).depth > 1:
        tx.act(TakeTurns(request.seq, request.attempts))
    if request.ending:
        reason = "requeued" if request.ending.rerun else "deleted"
        tx.act(Kill(request.seq, request.attempts, reason, tx.site.settings.server.grace))
    elif request.pause is not None:
        pause = request.pause
        pages = pause.preempted or pause.leaving
        tx.act(Suspend(request.seq, request.attempts, page_out=pages, leaving=pause.leaving))
    elif request.run.resumed is not None or request.run.migrated is not None:
        # It may not have got its new PEs.
        tx.act(Resume(request.seq, request.attempts, pes=request.pes))


def _deleter(request: Request) -> str | None:
    """Return the person or rule that ordered the deletion of a request; None: it is not being deleted."""
    order = request.ending
    return str(order.cause) if order is not None and not order.rerun else None


def _used(tx: Transaction, request: Request, reported: Used) -> Used:
    """Return the most use reported of the present attempt so far: a late report must not lower it."""
    sampled = tx.samples.get(request.seq)
    most = request.used.most(reported)
    return most if sampled is None else sampled.most(most)


def _begun(tx: Transaction, request: Request, ran: int = 0) -> None:
    """Record the begin of an attempt; if first seen after it ``ran`` (ms), it is dated back."""
    run = request.run
    if run.starting:
        began = Instant(max(run.started, tx.now - ran)) if ran else None
        tx.emit(ev.Started(request.seq, request.attempts, run.pes, began))
        request_mail.begun(tx, request, len(run.pes))


def _done(tx: Transaction, request: Request, observation: ob.Observation) -> None:
    tx.act(Forget(request.seq, observation.attempt))
    tx.dirty()


def _requeue(
    tx: Transaction,
    request: Request,
    text: str,
    used: Used,
    losses: int = 0,
    outputs: tuple[str | None, str | None] = (None, None),
) -> None:
    """Make a request wait again after its attempt ran. ``outputs``: paths of that attempt's output;
    ``losses``: attempts lost in a row."""
    tx.emit(ev.Requeued(request.seq, request.attempts, text, used, losses, outputs[0] or "", outputs[1]))
    request_mail.requeued(tx, request, text)


def finish(tx: Transaction, request: Request, ending: Ending) -> None:
    """End a request as ``ending`` says; mail that to its owner if asked for."""
    used = _used(tx, request, ending.used)
    text = ending.text or (str(request.ending or "") if ending.reason == "deleted" else "")
    tx.emit(
        ev.Ended(
            request.seq, request.attempts, ending.reason, ending.status, ending.signal,
            used, text, ending.stdout, ending.stderr,
        )
    )  # fmt: skip
    request_mail.ended(tx, request, replace(ending, text=text))


def _not_started(tx: Transaction, request: Request, observation: ob.ObservedNotStarted) -> None:
    """Hold a request that would fail again in the same way, until its owner (or an operator) has repaired the
    cause and releases it. An application ends, because the caller that waits for it watches no queue."""
    seq, deleter = request.seq, _deleter(request)
    if deleter is None and request.spec.caller is not None:
        finish(tx, request, Ending("not_started", text=observation.text))
        _done(tx, request, observation)
        return
    tx.emit(ev.Requeued(seq, request.attempts, observation.text))
    if deleter is not None:
        tx.emit(ev.Deleted(seq, deleter))
    else:
        tx.emit(_held(seq, observation.text))
        request_mail.held(tx, request, observation.text)
    _done(tx, request, observation)


def _void(tx: Transaction, request: Request, observation: ob.ObservedVoid) -> None:
    if not request.run.starting:
        # It was seen to run: its files in the spool are gone, and what it did is unknown.
        _lost(tx, request, ob.ObservedLost(request.seq, observation.attempt, Used(), NO_TRACE, unsure=True))
        return
    seq, deleter = request.seq, _deleter(request)
    name, retry = tx.site.id_of(seq), None
    if observation.later:
        text = observation.text
        if request.retry is None and text not in tx.site.causes_of_retries():  # the first that waits for it
            tx.alarm("hands", f"{name} cannot start and is tried again: {text}", f"{name} cannot start")
        times = request.retry.times + 1 if request.retry is not None else 1
        pause = min(FIRST_RETRY << min(times - 1, 10), LAST_RETRY)
        retry = Retry(Instant(tx.now + pause), times, text)
    if retry is not None and retry.times > MOST_RETRIES and deleter is None:
        given_up = f"{observation.text}; it was tried again for a day"
        held = "it is held; once that is repaired, release it with qrls"
        fate = held if request.spec.caller is None else "it has ended"
        tx.alarm("hands", f"{name} could not start: {given_up}; {fate}", f"{name} could not start")
        _not_started(tx, request, ob.ObservedNotStarted(seq, observation.attempt, given_up))
        return
    text = f"the job did not start: {observation.text}"
    tx.emit(ev.Requeued(seq, request.attempts, text, losses=request.losses, retry=retry))
    if deleter is not None:
        tx.emit(ev.Deleted(seq, deleter))
    _done(tx, request, observation)


def _lost(tx: Transaction, request: Request, observation: ob.ObservedLost) -> None:
    """Queue a request again or end it, because its attempt's end was not seen: as the order to end it says,
    if there is one, else by ``set lost_request``."""
    policy = tx.site.settings.server.lost_request == "rerun" and request.spec.rerunnable
    again = policy if request.ending is None else request.ending.rerun
    used = _used(tx, request, observation.used)
    name = tx.site.id_of(request.seq)
    what, losses = "it is recorded as lost", request.losses
    if not (observation.text or request.ending):  # else the machine was restarted, or its end was ordered
        losses = losses + 1 if observation.brief else 0
    if again:
        outputs = observation.stdout, observation.stderr
        _requeue(tx, request, observation.text or "its end was not seen", used, losses % LOSSES, outputs)
        what = "it is queued again"
    else:
        finish(tx, request, Ending("lost", None, None, used, observation.text or "its end was not seen"))
    if observation.unsure and again:  # two attempts must not run side by side
        tx.emit(_held(request.seq, CHECK))
        request_mail.held(tx, request, f"its end was not seen, and {CHECK}")
        what = f"it is held: {CHECK}"
    elif observation.unsure:
        what += f", but {UNSURE}"
    elif again and losses >= LOSSES:
        tx.emit(_held(request.seq, KILLED))
        request_mail.held(tx, request, KILLED)
        what = f"it is held: {KILLED}"
    if observation.unsure or not observation.text:  # a restart of the machine gives one alarm for all
        subject = f"the end of request {name} was not seen"
        tx.alarm("hands", f"{subject}; {what}", subject)
    _done(tx, request, observation)


def _held(seq: Seq, text: str) -> ev.Held:
    return ev.Held((seq,), "u", str(EXECUTOR), text, cause=EXECUTOR)


_NAMED = 20


def _is_unknown(tx: Transaction, stray: ob.ObservedStray) -> bool:
    """True if the database cannot have ordered that attempt."""
    request = tx.site.to_be(stray.seq)
    return number_of(stray.seq) >= tx.site.next_seq or (
        request is not None and request.attempts < stray.attempt
    )


def report_strays(tx: Transaction, observations: Sequence[ob.Observation]) -> None:
    """Raise an alarm for each kind of unexpected attempt (`_FOUND`) in the observations of a restart."""
    found: dict[str, list[ob.Observation]] = {}
    for stray in observations:
        if isinstance(stray, ob.ObservedStray):
            if stray.fate in ("alive", "later") or _is_unknown(tx, stray):
                found.setdefault(stray.fate if stray.fate in ("alive", "later") else "over", []).append(stray)
        elif isinstance(stray, ob.ObservedLost) and stray.text and not stray.unsure:
            found.setdefault("lost", []).append(stray)
    for kind, (subject, text) in _FOUND.items():
        if some := found.get(kind):
            names = [f"{tx.site.id_of(s.seq)} (attempt {s.attempt})" for s in some]
            tx.alarm("hands", f"{text}: {some_of(names, _NAMED)}", subject)


_UNHEARD = "jobs that are not in the database"
_FOUND = {
    "alive": (_UNHEARD, "killed, because the database has no record of this run"),
    "over": (_UNHEARD, "no record of this run in the database (is it an older copy?)"),
    "later": ("jobs of a later nqspy", "started by a later version of nqspy and not touched by this one"),
    "lost": ("lost requests", "lost when the machine was restarted"),
}
