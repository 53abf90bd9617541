"""``qdel --cascade``: what is deleted with requests, as it waits for them."""

from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import need_owner
from nqspy.model.commands import Delete
from nqspy.model.errors import Refusal
from nqspy.model.ids import Seq, array_of, is_array, rank_of, request_named
from nqspy.model.people import Caller
from nqspy.model.requests import STARTED
from nqspy.model.site import Site


def ids(tx: Transaction, command: Delete, caller: Caller) -> tuple[str, ...]:
    """The identifiers of a deletion, before each those of all that wait for it, directly or not, the latest
    first: so nobody is told that what he waited for has failed. What is not deleted itself takes nobody
    along."""
    known = (request_named(text, tx.site.names) for text in command.ids)
    named = {tx.site.named(seq) for seq in known if seq is not None}
    found: list[str] = []
    for text in command.ids:
        seq = _deleted(tx, command, text, caller)
        behind = dependants(tx.site, seq) if seq is not None else []
        found += [tx.site.id_of(each) for each in behind if each not in named]
        named.update(behind)
        found.append(text)
    return tuple(found)


def dependants(site: Site, seq: Seq) -> list[Seq]:
    """All that wait for a request, directly or not, the latest first; of an array for its indices too."""
    found: set[Seq] = set()
    left = [seq]
    while left:
        awaited = left.pop()
        more = set(site.dependants.get(awaited, ()))
        if is_array(awaited):
            parts = [each for each in site.dependants if array_of(each) == awaited]
            more.update(*(site.dependants[each] for each in parts))
        left += more - found
        found |= more
    return sorted(found, key=rank_of, reverse=True)


def _deleted(tx: Transaction, command: Delete, text: str, caller: Caller) -> Seq | None:
    """The request of that identifier if it will be deleted."""
    try:
        request = tx.find(text, caller)
        need_owner(tx.site, caller, request, "delete")
    except Refusal:
        return None  # the deletion itself says so
    if command.owner not in (None, request.owner):
        return None
    ends = command.kill or (command.signal is None and command.force)
    return request.seq if ends or request.state not in STARTED else None
