"""What somebody is told who only asks (``qsub --dry-run``): when the request would start, and what becomes of
it then. The looking ahead takes long: it is done later, in another thread, on copies made now."""

from collections.abc import Callable, Sequence
from typing import Any

from nqspy.engine.handlers import shifts
from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import may_see
from nqspy.engine.zones import local
from nqspy.model.configure import copy_of
from nqspy.model.ids import Instant, Seq, array_of, full_id
from nqspy.model.people import Caller
from nqspy.model.requests import Request
from nqspy.model.settings import Settings


def foreseen(tx: Transaction, request: Request, caller: Caller) -> Callable[[float], dict[str, Any]]:
    """Gives ``estimate`` and ``note`` of a request that may be submitted, as fields of an answer; it waits at
    most so many real seconds, in any thread."""
    settings, zone, now = copy_of(tx.site.settings), tx.site.timezone, tx.now
    ahead = tx.decider.foresee(tx.site, request, tx.now, tx.samples)
    note, named = shifts.note(tx, request, settings), _namer(tx, settings, caller)

    def written(at: Instant) -> str:
        return local(at, zone).isoformat(timespec="milliseconds")

    def told(seconds: float) -> dict[str, Any]:
        outlook = ahead(seconds)
        return {"estimate": outlook.told(written, named, now), "note": note(outlook.probably.start)}

    return told


def _namer(tx: Transaction, settings: Settings, caller: Caller) -> Callable[[Sequence[Seq]], str]:
    """Requests in words; none is named where there is one that the caller may not see."""
    specs, host = {seq: each.spec for seq, each in tx.site.requests.items()}, tx.site.name

    def named(seqs: Sequence[Seq]) -> str:
        found = [specs.get(seq) or specs.get(array_of(seq) or Seq(0)) for seq in seqs]
        if not all(each is not None and may_see(settings, caller, each) for each in found):
            return "others"
        return ", ".join(full_id(seq, host) for seq in seqs)

    return named
