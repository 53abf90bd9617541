"""Commands on single requests: delete, hold, release, move, modify, rerun, suspend, schedule. Each returns
which of the named requests are done and which are refused (`arrays.each`)."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from nqspy.core import health, resume
from nqspy.core.classes import BUMPER, is_served
from nqspy.core.consumables import resolved, sets_variables
from nqspy.engine.handlers import alter, request_mail
from nqspy.engine.handlers.alter import by
from nqspy.engine.handlers.arrays import delete_indices, each, release_some
from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import group_of, need, need_entry, need_owner, need_to_be, role_of
from nqspy.engine.handlers.queue_quota import QueueQuota
from nqspy.engine.handlers.sizes import reshaped
from nqspy.engine.handlers.spec import check_class, check_limits, check_spec
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.actions import Adjust, Kill, Resume, Signal, Suspend
from nqspy.model.cause import Cause
from nqspy.model.errors import Refusal
from nqspy.model.indices import Runs
from nqspy.model.options import OPTIONS
from nqspy.model.people import Caller
from nqspy.model.queues import Queue
from nqspy.model.reasons import ReasonCode, reason_kinds
from nqspy.model.requests import PRIME, STARTED, Pause, Request, Spec, State
from nqspy.model.site import Site
from nqspy.model.transitions import WAITING
from nqspy.model.tree import declared

RANKS = {"system": 0, "first": 1, "next": 2, "now": 3, "prime": PRIME}
"""Ranks by the words of `ScheduleRequest`; first: of its queue; next: of all; now: in spite of limits; prime:
in spite of limits and alone."""
SIGNALS = 64
"""The greatest number of a signal (signal(7))."""
LONGEST_LIST = 1 << 31
"""Number of mails to send if a command does not limit them."""
LONGEST_GRACE = 86_400
"""Most seconds between TERM and KILL for `abort queue`."""
(_COMES_BACK,) = reason_kinds(
    ReasonCode.NO_PES,
    comes_back="{user} resumed it; it goes on when {pes:1 PE is|* PEs are} free for it",
)


def _wrong_state(tx: Transaction, request: Request, kind: str, **values: str) -> Refusal:
    """Return a refusal (``kind``: its code) that names a request and its state."""
    return Refusal(kind, id=tx.site.id_of(request.seq), state=request.shown_state.value, **values)


def _need_waiting(tx: Transaction, request: Request, done: str) -> None:
    """Raise Refusal unless a request waits; ``done``: action for its text, such as ``moved``."""
    if request.state not in WAITING:
        raise _wrong_state(tx, request, "not_waiting", done=done)


def delete(tx: Transaction, command: cm.Delete, caller: Caller) -> Any:
    """Delete the named requests that wait. End started ones (``force``: by TERM; ``kill``: by KILL), or send
    them ``signal``; without these refuse them."""
    mails = LONGEST_LIST if command.mails is None else command.mails

    def may_delete(request: Request) -> None:
        need_owner(tx.site, caller, request, "delete")
        if command.owner is not None and command.owner != request.owner:
            raise Refusal("not_owned_by", id=tx.site.id_of(request.seq), owner=command.owner)

    def one(request: Request) -> None:
        nonlocal mails
        may_delete(request)
        if request.state not in STARTED:
            mails -= drop(tx, request, caller.user, notify=mails > 0)
        elif command.kill:
            end(tx, request, by(caller, request), signal=9)
        elif command.signal is not None:
            if not 0 < command.signal <= SIGNALS:
                raise Refusal("bad_signal", signal=command.signal)
            tx.act(Signal(request.seq, request.attempts, command.signal))
        elif command.force:
            end(tx, request, by(caller, request))
        else:
            raise _wrong_state(tx, request, "started")
        tx.dirty()

    def some(array: Request, pending: Runs) -> None:
        nonlocal mails
        may_delete(array)
        mails -= drop(tx, array, caller.user, notify=mails > 0, pending=pending)
        tx.dirty()

    ids = alter.with_dependants(tx, command, caller) if command.cascade else command.ids
    return alter.forgiven(tx, command, each(tx, ids, one, caller, some))


def drop(
    tx: Transaction, request: Request, who: str, text: str = "", notify: bool = True, pending: Runs = ()
) -> bool:
    """Delete a request that has not started, or the indices ``pending`` of an array (empty: all). Return True
    if its owner gets mail (``notify``, and asked for)."""
    if request.array is None:
        tx.emit(ev.Deleted(request.seq, who, text))
    else:
        delete_indices(tx, request, pending, who, text)
    name = tx.site.id_of(request.seq).replace("[]", f"[{indices.brief(pending)}]", 1)
    return notify and request_mail.deleted(tx, request, name, who, text)


def end(tx: Transaction, request: Request, cause: Cause, signal: int = 15, rerun: bool = False) -> None:
    """Order the end of a started request by TERM (or ``signal``), then KILL after the grace time; ``rerun``:
    then it is queued again."""
    tx.emit(ev.Deleting(request.seq, request.attempts, str(cause), rerun, cause=cause))
    grace = 0 if signal == 9 else tx.site.settings.server.grace
    reason = "requeued" if rerun else "deleted"
    tx.act(Kill(request.seq, request.attempts, reason, grace, signal))


def hold(tx: Transaction, command: cm.HoldRequests, caller: Caller) -> Any:
    """Hold requests until they are released; the letters (u, o, s) determine the right needed for that."""
    alter.check_letters(tx, command.letter, caller)

    def one(request: Request) -> None:
        need_owner(tx.site, caller, request, "hold")
        _need_waiting(tx, request, "held")
        usual = "u" if request.owner == caller.user else "o"
        alter.put_holds(tx, request, alter.letters_of(command.letter, usual), caller)

    def some(array: Request, pending: Runs) -> None:
        if not pending:
            return one(array)
        need_owner(tx.site, caller, array, "hold")
        usual = "u" if array.owner == caller.user else "o"
        for letter in alter.letters_of(command.letter, usual):
            tx.emit(ev.Held((array.seq,), letter, caller.user, cause=by(caller, array), indices=pending))
        return tx.dirty()

    return each(tx, command.ids, one, caller, some)


def release(tx: Transaction, command: cm.ReleaseRequests, caller: Caller) -> Any:
    """Remove holds from requests: of kind u as their owner, of any kind as an operator."""
    alter.check_letters(tx, command.letter, caller)
    role = role_of(tx.site.settings, caller)
    letters = alter.letters_of(command.letter, "u" if role == "user" else "uos")

    def one(request: Request) -> None:
        need_owner(tx.site, caller, request, "release")
        if request.state is not State.HELD and not (command.lenient and request.state in WAITING):
            raise _wrong_state(tx, request, "not_held")
        theirs = "".join(letter for letter in request.letters if letter in letters)
        if theirs:
            alter.remove_holds(tx, request, theirs, caller)
        elif request.letters and letters:
            raise Refusal("not_your_hold", id=tx.site.id_of(request.seq), letters=request.letters)

    def some(array: Request, pending: Runs) -> None:
        need_owner(tx.site, caller, array, "release")
        release_some(tx, array, pending, letters, caller, command.lenient or not letters)

    return each(tx, command.ids, one, caller, some)


def move(tx: Transaction, command: cm.MoveRequests, caller: Caller) -> Any:
    """Move waiting requests to another queue that takes them; ``source``: all that wait in this queue."""
    queue = _queue(tx, command.queue)
    ids, user = command.ids, role_of(tx.site.settings, caller) == "user"
    if command.source is not None:
        need(tx.site.settings, caller, "operator", "moving a queue's requests")
        held = _requests_in(tx, command.source, lambda r: r.state in WAITING)
        ids = tuple(tx.site.id_of(request.seq) for request in held)

    def one(request: Request) -> None:
        if command.source is not None and request.queue != command.source:
            return  # an index of one of its arrays that waits elsewhere
        need_owner(tx.site, caller, request, "move")
        _need_waiting(tx, request, "moved")
        if request.queue == queue.name:
            return
        if user:
            _may_put(tx, request, queue, caller)
        check_limits(tx.site, request.spec, queue)
        tx.emit(ev.Moved((request.seq,), queue.name, caller.user))
        tx.dirty()

    return each(tx, ids, one, caller)


def _may_put(tx: Transaction, request: Request, queue: Queue, caller: Caller) -> None:
    """Raise Refusal unless a user may move a request into a queue, by access, ``pipeonly`` and quotas."""
    need_entry(tx.site, queue, caller.user, caller.groups)
    if queue.pipeonly:
        raise Refusal("pipe_only", queue=queue.name)
    QueueQuota(tx).enter(request, queue)


def modify(tx: Transaction, command: cm.ModifyRequest, caller: Caller) -> Any:
    """Change fields of requests, their holds (``holds``: exactly these) and their queue (``queue``), within
    its limits; of running ones only the fields in `alter.WHILE_RUNNING` and the mail."""
    values, target = dict(command.values), None
    if "queue" in values:
        target = _queue(tx, str(values.pop("queue")))
    owner, holds = values.pop("owner", None), None
    if "holds" in values:
        letters = values.pop("holds")
        alter.check_letters(tx, "" if letters is None else letters, caller)
        holds = alter.letters_of(letters, "")
    user = role_of(tx.site.settings, caller) == "user"

    def one(request: Request) -> None:
        need_owner(tx.site, caller, request, "modify")
        alter.need_fitting(tx, request, values, owner)
        started = request.state in STARTED
        if started:
            alter.need_alterable(tx, request, command.values)
        else:
            _need_waiting(tx, request, "modified")
        for name in sorted({path.partition("/")[0] for path in values} & AS_OWNER):
            need_to_be(tx.site.settings, caller, request, f"changing the {name}")
        spec = _modified(tx.site, request.spec, values)
        spec = replace(spec, ask=resolved(tx.site, spec.ask)) if "ask/consumables" in values else spec
        if request.spec.uid == 0 and sets_variables(tx.site, request.spec.ask, spec.ask):
            need_to_be(tx.site.settings, caller, request, "changing the consumables")
        if "account" in values:
            group, account = group_of(tx.site.settings, caller, request.owner, spec.account)
            spec = replace(spec, group=group, account=account)
        if not started:
            spec = reshaped(tx.site, request.spec, spec, values)
        check_spec(tx.site, spec)
        if "job_class" in values:
            check_class(tx.site, spec, caller.groups if user else None)
        if started:
            alter.need_lower(tx, request, spec, user)
        moves = target is not None and target.name != request.queue
        if moves and user and target is not None:
            _may_put(tx, request, target, caller)
        if not started or "ask/wall" in values:
            check_limits(tx.site, spec, target or tx.site.settings.queues.get(request.queue))
        if holds is not None:
            alter.set_holds(tx, request, holds, caller)
        if values:
            room = QueueQuota(tx)  # the journal keeps the specification once more
            room.add_blobs(spec)
            room.accept()
            tx.emit(ev.Modified(request.seq, spec, caller.user))
        if started:
            tx.act(Adjust(request.seq, request.attempts))
        if moves and target is not None:
            tx.emit(ev.Moved((request.seq,), target.name, caller.user))
        tx.dirty()

    return each(tx, command.ids, one, caller)


MODIFIABLE = frozenset(option.path for option in OPTIONS if option.when)
AS_OWNER = frozenset(("workdir", "args", "environment", "script")) | {
    option.path.partition("/")[0] for option in OPTIONS if option.as_owner
}
"""Fields that determine what a request runs, reads and writes as its owner."""


def _modified(site: Site, spec: Spec, values: dict[str, Any]) -> Spec:
    for path, value in values.items():
        head, _, rest = path.partition("/")
        if head == "ask" and path in MODIFIABLE and "/" not in rest:
            spec = replace(spec, ask=alter.having(spec.ask, rest, value))
        elif head == "ask" and rest in declared(Queue):
            others = {name: each for name, each in spec.ask.others if name != rest}
            others |= {} if value is None else {rest: value}
            spec = replace(spec, ask=alter.having(spec.ask, "others", tuple(others.items())))
        elif path == head and path in MODIFIABLE:
            spec = alter.having(spec, head, value)
            spec = replace(spec, name_given=True) if head == "name" else spec
        else:
            spec = alter.altered(site, spec, head, rest, value)
    return spec


def rerun(tx: Transaction, command: cm.RerunRequests, caller: Caller) -> Any:
    """End started requests by TERM (``force``: by KILL), and queue them again."""

    def one(request: Request) -> None:
        need_owner(tx.site, caller, request, "rerun")
        if request.state not in STARTED:
            raise _wrong_state(tx, request, "not_started")
        if not request.spec.rerunnable:
            raise Refusal("not_rerunnable", id=tx.site.id_of(request.seq))
        if request.ending is not None and not request.ending.rerun:
            raise _wrong_state(tx, request, "deleted_not_rerun")
        if request.state is State.EXITING:
            raise _wrong_state(tx, request, "in_delivery")
        end(tx, request, by(caller, request), signal=9 if command.force else 15, rerun=True)

    return each(tx, command.ids, one, caller)


def suspend(tx: Transaction, command: cm.SuspendRequests, caller: Caller) -> Any:
    """Suspend running requests, or with ``resume`` let suspended ones go on: operators all, owners theirs in
    queues that go by class, where a suspended job gives up its PEs and comes back by its class."""

    def one(request: Request) -> None:
        by_class = is_served(tx.site, request.queue)
        if by_class:
            need_owner(tx.site, caller, request, "resume" if command.resume else "suspend")
        else:
            need(tx.site.settings, caller, "operator", "suspending requests outside of queues by class")
        _need_no_end(tx, request)
        if command.resume:
            _let_go_on(tx, request, caller, by_class)
        else:
            _stop(tx, request, caller, by_class)
        tx.dirty()

    return each(tx, command.ids, one, caller)


def _stop(tx: Transaction, request: Request, caller: Caller, by_class: bool) -> None:
    """Suspend a running request. ``by_class``: it gives up its PEs; one that gave way already stays away."""
    cause, pause = by(caller, request), request.pause
    if by_class and pause is not None and _gives_up(pause) and not pause.cause.is_person:
        tx.emit(ev.PauseChanged(request.seq, request.attempts, caller.user, cause, cause=cause))
        return
    if request.state is not State.RUNNING:
        raise _wrong_state(tx, request, "not_running")
    tx.emit(ev.Suspended(request.seq, request.attempts, caller.user, leaving=by_class, cause=cause))
    tx.act(Suspend(request.seq, request.attempts, page_out=by_class, leaving=by_class))


def _let_go_on(tx: Transaction, request: Request, caller: Caller, by_class: bool) -> None:
    """Resume a suspended request at once, or one that a person suspended by class when its turn comes."""
    pause = request.pause
    if pause is None:
        raise _wrong_state(tx, request, "not_suspended")
    if pause.cause.kind != "owner":
        need(tx.site.settings, caller, "operator", f"resuming what {pause.cause} suspended")
    cause = by(caller, request)
    if by_class and _gives_up(pause) and pause.cause.is_person:
        text = _COMES_BACK(BUMPER.name, caller.user, len(request.pes)).text
        tx.emit(ev.PauseChanged(request.seq, request.attempts, caller.user, BUMPER, text, cause=cause))
        return
    pes = _pes_to_go_on(tx, request)
    wished = health.wish(tx.site, request)
    if wished is not None:  # a broken resource is broken for operators too
        raise _wrong_state(tx, request, "resource_broken", reason=wished.until_then)
    tx.emit(ev.Resumed(request.seq, request.attempts, caller.user, pes, cause=cause))
    tx.act(Resume(request.seq, request.attempts, cause, pes))


def _gives_up(pause: Pause) -> bool:
    """True if a suspended request has given up its PEs, or will have after its move."""
    return pause.pes_released or pause.leaving


def _need_no_end(tx: Transaction, request: Request) -> None:
    """Raise Refusal for a request that is being ended: other orders would have no effect."""
    if request.ending:
        rerun, ending = request.ending.rerun, str(request.ending)
        raise _wrong_state(tx, request, "is_to_rerun" if rerun else "in_deletion", ending=ending)


def _pes_to_go_on(tx: Transaction, request: Request) -> tuple[int, ...]:
    """Return the PEs on which a suspended request is to go on; empty: on those that it had. Raises Refusal if
    too few are free."""
    if not request.pes_released:
        return ()
    pes = resume.free_for(tx.site, request)
    if len(pes) < len(request.pes):
        wanted = "a PE" if len(request.pes) == 1 else f"{len(request.pes)} PEs"
        free = f"{len(pes)} are" if len(pes) > 1 else f"{len(pes) or 'none'} is"
        raise _wrong_state(tx, request, "no_pe_free", wanted=wanted, free=free)
    return pes if pes != request.pes else ()


def schedule(tx: Transaction, command: cm.ScheduleRequest, caller: Caller) -> Any:
    """Set the rank of requests: first of its queue, next of all, now (past limits), prime (past limits and
    alone, with its applications; also while it runs), or system (as usual)."""
    need(tx.site.settings, caller, "operator", "schedule request")

    def one(request: Request) -> None:
        if command.place != "prime" and request.rank != PRIME:
            _need_waiting(tx, request, "scheduled")
        rank, seqs = RANKS[command.place], [request.seq]
        if PRIME in (rank, request.rank):
            id = tx.site.id_of(request.seq)
            seqs += [each.seq for each in tx.site.requests.values() if each.spec.within == id]
        for seq in seqs:
            tx.emit(ev.Ranked(seq, rank, caller.user))
        tx.dirty()

    return each(tx, command.ids, one, caller)


def abort_queue(tx: Transaction, command: cm.AbortQueue, caller: Caller) -> Any:
    """End all running requests of a queue by TERM, and KILL after ``seconds``; its settings do not change."""
    need(tx.site.settings, caller, "operator", "abort queue")

    def one(request: Request) -> None:
        cause = by(caller, request)
        tx.emit(ev.Deleting(request.seq, request.attempts, caller.user, cause=cause))
        grace = min(max(0, command.seconds), LONGEST_GRACE) * 1000
        tx.act(Kill(request.seq, request.attempts, "deleted", grace))

    return _in_queue(tx, command.queue, lambda r: r.state in STARTED, one)


def purge_queue(tx: Transaction, command: cm.PurgeQueue, caller: Caller) -> Any:
    """Delete all waiting requests of a queue; running ones stay."""
    need(tx.site.settings, caller, "operator", "purge queue")

    def one(request: Request) -> None:
        drop(tx, request, caller.user, f"queue {command.queue} was purged")

    def waits(request: Request) -> bool:
        return request.state not in STARTED and (request.array is None or bool(request.array.left))

    return _in_queue(tx, command.queue, waits, one)


def _in_queue(
    tx: Transaction, queue: str, which: Callable[[Request], bool], do: Callable[[Request], None]
) -> Any:
    chosen = _requests_in(tx, queue, which)
    for request in chosen:
        do(request)
    tx.dirty()
    return {"done": [tx.site.id_of(r.seq) for r in chosen], "failed": []}


def _requests_in(tx: Transaction, queue: str, which: Callable[[Request], bool]) -> list[Request]:
    name = _queue(tx, queue).name
    return [r for r in tx.site.requests.values() if r.queue == name and which(r)]


def _queue(tx: Transaction, name: str) -> Queue:
    queue = tx.site.settings.queues.get(name)
    if queue is None:
        raise Refusal("unknown_queue", queue=name)
    return queue
