"""What must hold of an array in every state."""

from collections.abc import Iterable

from nqspy.model import indices
from nqspy.model.errors import BrokenSite
from nqspy.model.ids import Seq, index_of, is_array
from nqspy.model.requests import Request


def check_array(request: Request, members: Iterable[Seq]) -> None:
    """Each index is in one place: it has not begun, is a request of its own (``members``), or has ended.
    Raises BrokenSite."""
    seq, state, spec = request.seq, request.array, request.spec.array
    ensure(is_array(seq) == (state is not None), f"{seq} is half an array")
    if state is None or spec is None:
        return
    own = indices.of(index_of(each) or 0 for each in members)
    seen: indices.Runs = ()
    for runs in (state.left, own, state.well, state.badly, state.dropped):
        ensure(not indices.both(seen, runs), f"an index of {seq} is in two places")
        seen = indices.plus(seen, runs)
    ensure(not indices.minus(spec.indices, seen), f"{seq} has lost an index")
    ensure(not indices.minus(seen, spec.indices), f"{seq} has an index too many")
    kept = indices.plus(state.all_held, state.all_awaiting)
    ensure(not indices.minus(kept, state.left), f"{seq} keeps indices that it has not")
    ensure(not indices.both(kept, state.ready), f"{seq} has indices that are ready and are kept")
    ensure(not indices.minus(state.left, indices.plus(kept, state.ready)), f"{seq} has forgotten an index")


def ensure(holds: bool, text: str) -> None:
    """Raises BrokenSite with that text unless it holds."""
    if not holds:
        raise BrokenSite(text)
