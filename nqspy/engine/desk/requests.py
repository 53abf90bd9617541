"""What people and operators do with single requests: delete, hold, release, move, modify, rerun, suspend,
schedule."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from nqspy.core.accounting import health
from nqspy.core.preemption import comeback
from nqspy.core.queueing.limits import violation
from nqspy.core.queueing.route import may_enter
from nqspy.engine.desk.context import Desk
from nqspy.engine.desk.people import group_of, need, need_owner, need_to_be, role_of
from nqspy.engine.desk.room import Room
from nqspy.engine.desk.spec import check_spec
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Kill, Notify, Resume, Signal, Suspend
from nqspy.model.cause import Cause
from nqspy.model.errors import Refusal
from nqspy.model.lifecycle import ages_when_eligible
from nqspy.model.people import Caller
from nqspy.model.queues import Queue
from nqspy.model.requests import STARTED, Request, Spec, State
from nqspy.model.transitions import WAITING
from nqspy.model.tree import declared

_RANKS = {"system": 0, "first": 1, "next": 2, "now": 3}
"""``first``: the head of its queue; ``next``: ahead of everything; ``now``: in spite of limits."""
SIGNALS = 64
"""The greatest number of a signal (signal(7))."""
LONGEST_GRACE = 86_400
"""Seconds that `abort queue` may leave between TERM and KILL at most."""


def _wrong_state(desk: Desk, request: Request, what: str) -> Refusal:
    name = desk.site.id_of(request.seq)
    return Refusal(
        f"Request invalid for state of job {name}: it is {request.state.value}, {what}", "wrong_state", 168
    )


def delete(desk: Desk, command: cm.Delete, caller: Caller) -> Any:
    """Waiting requests are deleted; started ones get the signal that was asked for, whatever the dialect."""

    def one(request: Request) -> None:
        need_owner(desk.site, caller, request, "delete")
        if command.owner is not None and command.owner != request.owner:
            name = desk.site.id_of(request.seq)
            raise Refusal(f"{name} is not owned by {command.owner}", "not_permitted", 159)
        if request.state not in STARTED:
            drop(desk, request, caller.user)
        elif command.kill:
            end(desk, request, by(caller, request), signal=9)
        elif command.signal is not None:
            if not 0 < command.signal <= SIGNALS:
                raise Refusal(f"Unknown/illegal signal name: {command.signal}", "bad_value", 165)
            desk.act(Signal(request.seq, request.attempts, command.signal))
        elif command.force:
            end(desk, request, by(caller, request))
        else:
            raise _wrong_state(desk, request, "end it with -k or a signal")
        desk.dirty()

    return desk.each(command.ids, one, caller)


def drop(desk: Desk, request: Request, who: str, text: str = "") -> None:
    """Deletes a request that has not been started; its owner is told where somebody else did and that was
    asked for."""
    desk.emit(ev.Deleted(request.seq, who, text))
    mail = request.spec.mail
    if mail.abort and who != request.owner:
        name = desk.site.id_of(request.seq)
        said = f"Request {name} ({request.name}) was deleted by {who}. {text}"
        desk.act(Notify(mail.to or request.owner, f"nqspy: {name} deleted", said, request.seq))


def by(caller: Caller, request: Request) -> Cause:
    """The person who asks, as the owner of that request or as an operator."""
    return Cause("owner" if caller.user == request.owner else "operator", caller.user)


def end(desk: Desk, request: Request, cause: Cause, signal: int = 15, rerun: bool = False) -> None:
    """Asks for the end of a started request: TERM (or ``signal``), after the grace time KILL."""
    desk.emit(ev.Deleting(request.seq, request.attempts, str(cause), rerun, cause=cause))
    grace = 0 if signal == 9 else desk.site.settings.server.grace
    reason = "requeued" if rerun else "deleted"
    desk.act(Kill(request.seq, request.attempts, reason, grace, signal))


def hold(desk: Desk, command: cm.HoldRequests, caller: Caller) -> Any:
    """Held requests stay where they are until released; the letter says who may."""
    _check_letter(desk, command.letter, caller)

    def one(request: Request) -> None:
        need_owner(desk.site, caller, request, "hold")
        if request.state not in WAITING:
            raise _wrong_state(desk, request, "only a waiting one can be held")
        letter = command.letter or ("u" if request.owner == caller.user else "o")
        if letter not in request.holds:
            desk.emit(ev.Held((request.seq,), letter, caller.user, cause=by(caller, request)))
            desk.dirty()

    return desk.each(command.ids, one, caller)


def _check_letter(desk: Desk, letter: str | None, caller: Caller) -> None:
    if letter not in (None, "u", "o", "s"):
        raise Refusal(f"hold type {letter!r} is none of u, o, s", "bad_value", 166)
    if letter not in (None, "u") and role_of(desk.site.settings, caller) == "user":
        raise Refusal(f"Unauthorized Request: hold type {letter} needs an operator", "not_permitted", 159)


def release(desk: Desk, command: cm.ReleaseRequests, caller: Caller) -> Any:
    """Takes holds off: a user the own hold, an operator any."""
    _check_letter(desk, command.letter, caller)
    role = role_of(desk.site.settings, caller)
    letters = command.letter or ("u" if role == "user" else "uos")

    def one(request: Request) -> None:
        need_owner(desk.site, caller, request, "release")
        if request.state is not State.HELD:
            raise _wrong_state(desk, request, "it is not held")
        theirs = "".join(letter for letter in request.letters if letter in letters)
        if not theirs:
            name = desk.site.id_of(request.seq)
            raise Refusal(
                f"Unauthorized Request {name}: hold {request.letters} is not yours to release",
                "not_permitted",
                159,
            )
        aging = ages_when_eligible(desk.site, request.queue)
        desk.emit(ev.Released((request.seq,), theirs, caller.user, aging))
        desk.dirty()

    return desk.each(command.ids, one, caller)


def move(desk: Desk, command: cm.MoveRequests, caller: Caller) -> Any:
    """Waiting requests into another queue, if that takes them; ``source``: all of a queue."""
    queue = _queue(desk, command.queue)
    ids, user = command.ids, role_of(desk.site.settings, caller) == "user"
    if command.source is not None:
        need(desk.site.settings, caller, "operator", "moving a queue's requests")
        held = _requests_in(desk, command.source, lambda r: r.state in WAITING)
        ids = tuple(desk.site.id_of(request.seq) for request in held)

    def one(request: Request) -> None:
        need_owner(desk.site, caller, request, "move")
        if request.state not in WAITING:
            raise _wrong_state(desk, request, "only a waiting one can be moved")
        if user:
            _may_put(desk, request, queue, caller)
        if request.queue == queue.name:
            return
        _check_limits(desk, request.spec, queue)
        desk.emit(ev.Moved((request.seq,), queue.name, caller.user))
        desk.dirty()

    return desk.each(ids, one, caller)


def _check_limits(desk: Desk, spec: Spec, queue: Queue | None) -> None:
    wrong = violation(desk.site, spec, queue) if queue is not None and queue.kind == "batch" else None
    if wrong is not None:
        raise Refusal(wrong, "above_limit", 188)


def _may_put(desk: Desk, request: Request, queue: Queue, caller: Caller) -> None:
    """What holds for users and not for operators. Raises Refusal."""
    if not queue.enabled:
        raise Refusal(f"Queue is not enabled: {queue.name}", "queue_disabled", 173)
    if not may_enter(queue, caller.user, caller.groups):
        raise Refusal(f"Access to queue is denied: {queue.name}", "no_access", 174)
    if queue.pipeonly:
        raise Refusal(f"queue {queue.name} takes requests from pipe queues only", "pipe_only", 174)
    Room(desk).enter(request.owner, queue)


def modify(desk: Desk, command: cm.ModifyRequest, caller: Caller) -> Any:
    """Changes what waiting requests ask for, and the queue they wait in (``queue``), within its limits."""
    values, target = dict(command.values), None
    if "queue" in values:
        target = _queue(desk, str(values.pop("queue")))
    user = role_of(desk.site.settings, caller) == "user"

    def one(request: Request) -> None:
        need_owner(desk.site, caller, request, "modify")
        if request.state not in WAITING:
            raise _wrong_state(desk, request, "only a waiting one can be modified")
        for name in sorted({path.partition("/")[0] for path in values} & AS_OWNER):
            need_to_be(desk.site.settings, caller, request, f"changing the {name}")
        spec = _modified(request.spec, values)
        if "account" in values:
            group, account = group_of(desk.site.settings, caller, request.owner, spec.account)
            spec = replace(spec, group=group, account=account)
        check_spec(desk.site, spec)
        moves = target is not None and target.name != request.queue
        if moves and user and target is not None:
            _may_put(desk, request, target, caller)
        _check_limits(desk, spec, target or desk.site.settings.queues.get(request.queue))
        if values:
            desk.emit(ev.Modified(request.seq, spec, caller.user))
        if moves and target is not None:
            desk.emit(ev.Moved((request.seq,), target.name, caller.user))
        desk.dirty()

    return desk.each(command.ids, one, caller)


_SPEC_FIELDS = ("name", "priority", "eligible", "shell", "account", "rerunnable")
AS_OWNER = frozenset(("shell", "output", "workdir", "args", "environment", "script"))
"""What a request runs, and where it reads and writes, as its owner."""
_ASK_FIELDS = ("cpu", "cpu_process", "wall", "memory", "memory_process", "pes", "nice", "needs")


def _modified(spec: Spec, values: dict[str, Any]) -> Spec:
    for path, value in values.items():
        head, _, rest = path.partition("/")
        if head in _SPEC_FIELDS and not rest:
            spec = _with(spec, head, value)
            spec = replace(spec, name_given=True) if head == "name" else spec
        elif head == "ask" and rest in _ASK_FIELDS:
            spec = replace(spec, ask=_with(spec.ask, rest, value))
        elif head == "ask" and rest in declared(Queue):
            others = {name: each for name, each in spec.ask.others if name != rest}
            others |= {} if value is None else {rest: value}
            spec = replace(spec, ask=_with(spec.ask, "others", tuple(others.items())))
        else:
            raise Refusal(f"{path} of a request cannot be modified", "bad_value", 166)
    return spec


def _with(node: Any, name: str, value: Any) -> Any:
    """A spec (or what it asks) with another value of the right kind. Raises Refusal."""
    value = () if value is None and name == "needs" else value
    fields: dict[str, Any] = msgspec.to_builtins(node)
    try:
        return msgspec.convert(fields | {name: value}, type(node))
    except msgspec.ValidationError:
        raise Refusal(f"{value!r} is no {name} of a request", "bad_value", 166) from None


def rerun(desk: Desk, command: cm.RerunRequests, caller: Caller) -> Any:
    """Ends started requests and queues them again."""

    def one(request: Request) -> None:
        need_owner(desk.site, caller, request, "rerun")
        name = desk.site.id_of(request.seq)
        if request.state not in STARTED:
            raise _wrong_state(desk, request, "only a started one can be run again")
        if not request.spec.rerunnable:
            raise Refusal(f"job is not rerunnable {name}", "not_rerunnable", 190)
        if request.ending is not None and not request.ending.rerun:
            raise _wrong_state(desk, request, "and is being deleted")
        if request.state is State.EXITING:
            raise _wrong_state(desk, request, "its output is being delivered")
        end(desk, request, by(caller, request), rerun=True)

    return desk.each(command.ids, one, caller)


def suspend(desk: Desk, command: cm.SuspendRequests, caller: Caller) -> Any:
    """Stops started requests, or lets them go on."""
    need(desk.site.settings, caller, "operator", "suspending requests")

    def one(request: Request) -> None:
        if command.resume:
            if request.state is not State.SUSPENDED:
                raise _wrong_state(desk, request, "it is not suspended")
            _need_no_end(desk, request)
            pes = _pes_to_go_on(desk, request)
            _need_what_it_needs(desk, request)
            cause = by(caller, request)
            desk.emit(ev.Resumed(request.seq, request.attempts, caller.user, pes, cause=cause))
            desk.act(Resume(request.seq, request.attempts, cause, pes))
        else:
            if request.state is not State.RUNNING:
                raise _wrong_state(desk, request, "only a running one can be suspended")
            _need_no_end(desk, request)
            cause = by(caller, request)
            desk.emit(ev.Suspended(request.seq, request.attempts, caller.user, cause=cause))
            desk.act(Suspend(request.seq, request.attempts))
        desk.dirty()

    return desk.each(command.ids, one, caller)


def _need_no_end(desk: Desk, request: Request) -> None:
    """What is being ended, to run again or for good, ends: other orders would be without effect. Raises
    Refusal."""
    if request.ending:
        what = "it is to run again" if request.ending.rerun else "it is being deleted"
        raise _wrong_state(desk, request, f"and {what} ({request.ending})")


def _pes_to_go_on(desk: Desk, request: Request) -> tuple[int, ...]:
    """Others may have the PEs of a parked request: the PEs it goes on on then, none: those it had. Raises
    Refusal."""
    if not request.pes_released:
        return ()
    pes = comeback.free_for(desk.site, request)
    if len(pes) < len(request.pes):
        wanted = "a PE" if len(request.pes) == 1 else f"{len(request.pes)} PEs"
        raise _wrong_state(desk, request, f"it needs {wanted} to go on, and {len(pes) or 'none'} is free")
    return pes if pes != request.pes else ()


def _need_what_it_needs(desk: Desk, request: Request) -> None:
    """A broken resource is broken for operators too. Raises Refusal."""
    wished = health.wish(desk.site, request)
    if wished is not None:
        raise _wrong_state(desk, request, f"and {wished.until_then}")


def schedule(desk: Desk, command: cm.ScheduleRequest, caller: Caller) -> Any:
    """``schedule request``: at the head of its queue (first), ahead of everything (next), past the limits
    (now), as usual (system)."""
    need(desk.site.settings, caller, "operator", "schedule request")

    def one(request: Request) -> None:
        if request.state not in WAITING:
            raise _wrong_state(desk, request, "only a waiting one can be scheduled")
        desk.emit(ev.Ranked(request.seq, _RANKS[command.place], caller.user))
        desk.dirty()

    return desk.each(command.ids, one, caller)


def abort_queue(desk: Desk, command: cm.AbortQueue, caller: Caller) -> Any:
    """TERM, after some seconds KILL, to all running requests of a queue; the queue itself is unchanged."""
    need(desk.site.settings, caller, "operator", "abort queue")

    def one(request: Request) -> None:
        cause = by(caller, request)
        desk.emit(ev.Deleting(request.seq, request.attempts, caller.user, cause=cause))
        desk.act(
            Kill(request.seq, request.attempts, "deleted", min(max(0, command.seconds), LONGEST_GRACE) * 1000)
        )

    return _in_queue(desk, command.queue, lambda r: r.state in STARTED, one)


def purge_queue(desk: Desk, command: cm.PurgeQueue, caller: Caller) -> Any:
    """Drops all waiting requests of a queue; running ones stay."""
    need(desk.site.settings, caller, "operator", "purge queue")

    def one(request: Request) -> None:
        drop(desk, request, caller.user, f"queue {command.queue} was purged")

    return _in_queue(desk, command.queue, lambda r: r.state not in STARTED, one)


def _in_queue(desk: Desk, queue: str, which: Callable[[Request], bool], do: Callable[[Request], None]) -> Any:
    chosen = _requests_in(desk, queue, which)
    for request in chosen:
        do(request)
    desk.dirty()
    return {"done": [desk.site.id_of(r.seq) for r in chosen], "failed": []}


def _requests_in(desk: Desk, queue: str, which: Callable[[Request], bool]) -> list[Request]:
    name = _queue(desk, queue).name
    return [r for r in desk.site.requests.values() if r.queue == name and which(r)]


def _queue(desk: Desk, name: str) -> Queue:
    queue = desk.site.settings.queues.get(name)
    if queue is None:
        raise Refusal(f"Unknown queue {name}", "unknown_queue", 170)
    return queue
