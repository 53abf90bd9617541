"""Arrays among the requests that somebody names: whole (``17[]``), some indices (``17[3-9]``), or one.

What is done to indices that have not begun is done to the array, in one event however many they are. Where
the array cannot keep it (they are moved, say, and the others are not) they become requests of their own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import may_see
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.array_events import Parted
from nqspy.model.arrays import ArrayState
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.ids import Seq, array_key, index_of, member, parse_named
from nqspy.model.indices import Runs
from nqspy.model.people import Caller
from nqspy.model.requests import Request, Used

Do = Callable[[Request], object]
Some = Callable[[Request, Runs], object]
"""What is done to indices of an array that have not begun; the empty set: to the array as a whole."""


def each(
    tx: Transaction, ids: Sequence[str], do: Do, caller: Caller, some: Some | None = None
) -> dict[str, Any]:
    """Does something for each identifier, as far as possible: what was done, and each failure with its text.

    ``do`` is for requests; ``some`` for what has not begun of an array (None: ``do`` for the array, or for
    the indices named, which become requests of their own first).
    """
    tx.look_up_named(ids)
    done: list[str] = []
    failed: list[dict[str, Any]] = []
    for text in ids:
        try:
            part = _part_named(tx, text, caller)
            if part is None:
                request = tx.find(text, caller)
                do(request)
                done.append(tx.site.id_of(request.seq))
            else:
                part.each(do, some)
                done.append(part.name)
        except Refusal as refusal:
            failed.append({"id": text} | refusal.as_told())
    return {"done": done, "failed": failed}


@dataclass(slots=True)
class _Part:
    """Indices of an array that somebody named (None: all)."""

    tx: Transaction
    array: Request
    wanted: Runs | None
    refusals: list[Refusal] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The identifier."""
        full = self.tx.site.id_of(self.array.seq)
        return full if self.wanted is None else full.replace("[]", f"[{indices.show(self.wanted)}]", 1)

    @property
    def _state(self) -> ArrayState:
        assert self.array.array is not None
        return self.array.array

    def each(self, do: Do, some: Some | None) -> None:
        """Does it to the array, or the indices of it that have not begun, and to those that are requests of
        their own. Raises Refusal where nothing could be done."""
        left = self._state.left if self.wanted is None else indices.both(self._state.left, self.wanted)
        members, done = self._members(), 0
        if left:
            whole = self.wanted is None or (not members and left == self._state.left)
            done += self._tried(lambda: self._do(() if whole else left, do, some))
        for request in members:
            done += self._tried(lambda request=request: do(request))  # type: ignore[misc]
        if not done:
            raise self.refusals[0] if self.refusals else Refusal("has_ended", id=self.name)

    def _members(self) -> list[Request]:
        requests, wanted = self.tx.site.requests, self.wanted
        seqs = self.tx.site.members.get(self.array.seq, ())
        return [requests[seq] for seq in seqs if wanted is None or indices.has(wanted, index_of(seq) or 0)]

    def _do(self, left: Runs, do: Do, some: Some | None) -> None:
        if some is not None:
            some(self.array, left)
        elif not left:
            do(self.array)
        else:
            self.tx.emit(Parted(self.array.seq, left))
            for index in indices.each(left):
                do(self.tx.site.requests[member(self.array.seq, index)])

    def _tried(self, act: Callable[[], object]) -> bool:
        try:
            act()
        except Refusal as refusal:
            self.refusals.append(refusal)
            return False
        return True


def _part_named(tx: Transaction, text: str, caller: Caller) -> _Part | None:
    """What an identifier names of an array that has not ended; None where it names a request."""
    found = parse_named(text, tx.site.name)
    if found is None:
        return None
    ref, inside = found
    array = tx.site.requests.get(array_key(ref.seq))
    if array is None or array.array is None or not may_see(tx.site.settings, caller, array.spec):
        return None
    if not ref.whole or not inside:
        return _Part(tx, array, None)
    if inside.isdigit() and member(ref.seq, int(inside)) in tx.site.requests:
        return None
    return _Part(tx, array, _indices(tx, array, inside))


def _indices(tx: Transaction, array: Request, text: str) -> Runs:
    """The indices that are named of an array. Raises Refusal."""
    try:
        wanted = indices.read(text)
    except BadValue as error:
        raise Refusal("bad_indices", said=error) from None
    assert array.spec.array is not None
    if strange := indices.minus(wanted, array.spec.array.indices):
        known = indices.show(array.spec.array.indices)
        raise Refusal("no_such_index", id=tx.site.id_of(array.seq), some=indices.show(strange), known=known)
    return wanted


# ---------------------------------------------------------------- ends


def delete_left(tx: Transaction, array: Request, left: Runs, who: str, text: str = "") -> None:
    """Deletes indices that have not begun (the empty set: all that are left)."""
    assert array.array is not None
    lone = not array.array.begun and array.seq not in tx.site.members and not array.array.dropped
    if not left and lone:
        tx.emit(ev.Deleted(array.seq, who, text))
    elif left := left or array.array.left:
        tx.emit(ev.Deleted(array.seq, who, text, indices=left))


def end_if_over(tx: Transaction, seq: Seq, who: str, text: str = "") -> None:
    """Ends an array of which every index has ended: with the greatest exit status of theirs, or as one that
    was deleted where none has begun."""
    array = tx.site.requests.get(seq)
    if array is None or array.array is None or array.array.left or seq in tx.site.members:
        return
    state = array.array
    if not state.begun:
        tx.emit(ev.Deleted(seq, who, text))
        return
    used = Used(state.cpu, state.wall, state.memory)
    tx.emit(ev.Ended(seq, 0, "exit", state.worst, None, used, _how(state)))


def _how(state: ArrayState) -> str:
    counted = (("ended well", state.well), ("failed", state.badly), ("were deleted", state.dropped))
    return "of its indices " + ", ".join(f"{indices.count(runs)} {word}" for word, runs in counted if runs)
