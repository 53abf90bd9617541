"""Commands on running requests that do not end them (signal, message), and the exchange of two waiting
requests."""

from typing import Any

from msgspec.structs import replace

from nqspy.engine.handlers.arrays import each
from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import need_owner
from nqspy.engine.handlers.requests import SIGNALS
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Signal, WriteOutput
from nqspy.model.columns import place_of
from nqspy.model.errors import Refusal
from nqspy.model.indices import Runs
from nqspy.model.people import Caller
from nqspy.model.requests import Request, State
from nqspy.model.transitions import WAITING

LINE_MAX = 4_000
"""Most characters of a message: a datagram can carry them in any encoding."""
_RUNNING = (State.RUNNING, State.SUSPENDED)


def signal(tx: Transaction, command: cm.SignalRequests, caller: Caller) -> Any:
    """Send a signal to all processes of running or suspended requests; 0 only checks that they run."""
    if not 0 <= command.signal <= SIGNALS:
        raise Refusal("bad_signal", signal=command.signal)

    def one(request: Request) -> None:
        need_owner(tx.site, caller, request, "signal")
        if request.state not in _RUNNING or request.array is not None:
            id = tx.site.id_of(request.seq)
            raise Refusal("no_signal_now", id=id, state=request.state.value)
        if command.signal:
            tx.act(Signal(request.seq, request.attempts, command.signal))

    return each(tx, command.ids, one, caller, lambda array, _: one(array))


def message(tx: Transaction, command: cm.WriteMessage, caller: Caller) -> Any:
    """Write a line into outputs (``streams``) of running or suspended requests, in the commands' order."""
    text = command.message.removesuffix("\n")
    plain = text.replace("\t", "").replace("\n", "")
    if not plain or not plain.isprintable() or len(text) > LINE_MAX or not command.streams:
        raise Refusal("bad_line", most=LINE_MAX)

    def one(request: Request) -> None:
        need_owner(tx.site, caller, request, "write to")
        if request.state not in _RUNNING or request.array is not None:
            id = tx.site.id_of(request.seq)
            raise Refusal("no_message_now", id=id, state=request.state.value)
        tx.act(WriteOutput(request.seq, request.attempts, f"{text}\n", command.streams))

    return each(tx, command.ids, one, caller, lambda array, _: one(array))


def exchange(tx: Transaction, command: cm.ExchangeRequests, caller: Caller) -> Any:
    """Exchange the places of two waiting requests of one queue: dates and, if they have one owner,
    priorities. If one is refused, neither changes."""
    if len(command.ids) != 2:
        raise Refusal("two_requests", count=len(command.ids))
    found: list[Request] = []

    def one(request: Request) -> None:
        need_owner(tx.site, caller, request, "order")
        if request.state not in WAITING:
            id = tx.site.id_of(request.seq)
            raise Refusal("not_waiting", id=id, state=request.state.value, done="ordered")
        found.append(request)

    def some(array: Request, pending: Runs) -> None:
        if pending:
            raise Refusal("whole_array", id=tx.site.id_of(array.seq))
        one(array)

    answer = each(tx, command.ids, one, caller, some)
    if answer["failed"]:
        return answer | {"done": []}
    if len(found) != 2:  # indices of an array that are requests of their own
        raise Refusal("two_requests", count=len(found))
    first, second = found
    _exchange(tx, first, second, caller)
    return answer


def _exchange(tx: Transaction, one: Request, other: Request, caller: Caller) -> None:
    if one is other:
        return
    ids = {"id": tx.site.id_of(one.seq), "other": tx.site.id_of(other.seq)}
    if one.queue != other.queue:
        raise Refusal("other_queue", id=ids["id"], other=ids["other"], queue=one.queue, there=other.queue)
    if one.rank != other.rank:
        raise Refusal("other_rank", id=ids["id"], other=ids["other"])
    places = [(each.date_in_queue, place_of(each)) for each in (other, one)]
    for request, (date, place) in zip((one, other), places, strict=True):
        tx.emit(ev.Redated((request.seq,), date, None, caller.user, place))
    priorities = one.spec.priority, other.spec.priority
    if one.owner == other.owner and priorities[0] != priorities[1]:
        for request, priority in zip((one, other), reversed(priorities), strict=True):
            tx.emit(ev.Modified(request.seq, replace(request.spec, priority=priority), caller.user))
    tx.dirty()
