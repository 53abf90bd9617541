"""Arrays among the requests that a command names: whole (``17[]``), some indices (``17[3-9]``), or one.

A change of indices that have not begun is made in the array, by one event for all of them. If the array
cannot represent it (some are moved and others are not), they become requests of their own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from nqspy.engine.handlers import alter
from nqspy.engine.handlers.context import Transaction
from nqspy.engine.handlers.people import may_see
from nqspy.engine.lifecycle import ages_when_eligible
from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.arrays import ArrayState
from nqspy.model.endings import DELETED
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.events import Parted
from nqspy.model.ids import Seq, array_key, index_of, member, parse_named, request_named
from nqspy.model.indices import Runs
from nqspy.model.people import Caller
from nqspy.model.requests import Request, State, Used
from nqspy.model.transitions import born

PARTS = 1_000
"""Most indices that one command makes requests of their own: each is stored, and takes memory."""
PIECES = 2 * indices.MOST_RUNS
"""Most runs (ranges of indices) that an array may be stored as after a command."""
_APART = 4
"""Factor on `PIECES`: a command that would leave more runs than that, before adjacent ones are joined, is
refused without joining them."""

Do = Callable[[Request], object]
Some = Callable[[Request, Runs], object]
"""Function that acts on indices of an array that have not begun (empty: on all of them, by the array)."""


def each(
    tx: Transaction, ids: Sequence[str], do: Do, caller: Caller, some: Some | None = None
) -> dict[str, Any]:
    """Act on each named request, array or index. Return ``{"done": [...], "failed": [...]}``: identifiers,
    and refusals with their identifiers. ``do`` acts on a request, ``some`` on indices that have not begun
    (None: `do` on each)."""
    tx.look_up_named(ids)
    tx.parts = 0
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
            failed.append({"id": text} | refusal.as_message())
    return {"done": done, "failed": failed}


@dataclass(slots=True)
class _Part:
    """The indices of an array that a command names (``wanted`` None: all)."""

    tx: Transaction
    array: Request
    wanted: Runs | None
    refusals: list[Refusal] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Identifier of the part, such as ``17[3-9]``."""
        full = self.tx.site.id_of(self.array.seq)
        return full if self.wanted is None else full.replace("[]", f"[{indices.show(self.wanted)}]", 1)

    @property
    def _state(self) -> ArrayState:
        assert self.array.array is not None
        return self.array.array

    def each(self, do: Do, some: Some | None) -> None:
        """Act on the array or its indices, begun (``do``) or not (``some``). Raises the first refusal if
        nothing could be done."""
        pending = self._state.left if self.wanted is None else indices.both(self._state.left, self.wanted)
        requests, wanted, done = self.tx.site.requests, self.wanted, 0
        seqs = self.tx.site.members.get(self.array.seq, ())
        members = [requests[s] for s in seqs if wanted is None or indices.has(wanted, index_of(s) or 0)]
        if pending and pending != self._state.left:
            # Without these the array may not have too many runs: each change stores them.
            kinds = (self._state.left, self._state.ready, *(held.indices for held in self._state.held))
            most = max(sum(map(len, kinds)), PIECES)
            apart = chain.from_iterable(indices.pieces(kind, pending) for kind in kinds)
            many = len(list(islice(apart, _APART * most + 1))) > _APART * most
            if many or sum(len(indices.minus(kind, pending)) for kind in kinds) + len(pending) > most:
                raise Refusal("many_pieces", id=self.tx.site.id_of(self.array.seq), most=PIECES)
        if pending:
            whole = self.wanted is None or (not members and pending == self._state.left)
            done += self._do(() if whole else pending, do, some)
        for request in members:
            done += self._tried(lambda request=request: do(request))  # type: ignore[misc]
        if not done:
            raise self.refusals[0] if self.refusals else Refusal("has_ended", id=self.name)

    def _do(self, pending: Runs, do: Do, some: Some | None) -> int:
        """Act on the indices ``pending`` that have not begun (empty: on the array); return the number of
        successes."""
        if some is not None:
            return self._tried(lambda: some(self.array, pending))
        if not pending:
            return self._tried(lambda: do(self.array))
        state = self._state  # try one index of each kind: ready, held alike, or with the same wait
        kinds = state.ready, *(held.indices for held in state.held), *(runs for _, runs in state.awaiting)
        some_of = (indices.both(pending, kind) for kind in kinds)
        would = [self._would(do, index) for index in sorted({each[0][0] for each in some_of if each})]
        if not any(would):
            return would.count(False)
        own = parted(self.tx, self.array, pending)
        return sum(self._tried(lambda request=request: do(request)) for request in own)  # type: ignore[misc]

    def _would(self, do: Do, index: int) -> bool | None:
        """True if ``do`` would change an index that has not begun; None: it was refused (`refusals`)."""
        alone = born(self.array, member(self.array.seq, index))
        try:
            return self.tx.would(lambda: do(alone))
        except Refusal as refusal:
            self.refusals.append(refusal)
            return None

    def _tried(self, act: Callable[[], object]) -> bool:
        try:
            act()
        except Refusal as refusal:
            self.refusals.append(refusal)
            return False
        return True


def _part_named(tx: Transaction, text: str, caller: Caller) -> _Part | None:
    """Return the part of an array that an identifier names; None: it names a single request, or no array that
    the caller may see. Raises Refusal for unknown indices."""
    found = parse_named(text, tx.site.names)
    if found is None:
        return None
    seq, inside = found
    array = tx.site.requests.get(array_key(seq))
    if array is None or array.array is None or not may_see(tx.site.settings, caller, array.spec):
        return None
    if not inside:
        return _Part(tx, array, None)
    if request_named(text, tx.site.names) in tx.site.requests:
        return None
    try:
        wanted = indices.read(inside)
    except BadValue as error:
        raise Refusal("bad_indices", reason=error) from None
    assert array.spec.array is not None
    known = array.spec.array.indices
    if strange := indices.brief(indices.pieces(wanted, known)):
        raise Refusal("no_such_index", id=tx.site.id_of(array.seq), some=strange, known=indices.brief(known))
    return _Part(tx, array, wanted)


def parted(tx: Transaction, array: Request, pending: Runs) -> Iterator[Request]:
    """Make these indices, which have not begun, requests of their own and return them. Raises Refusal if a
    command makes more than `PARTS`."""
    tx.parts += indices.count(pending)
    if tx.parts > PARTS:
        raise Refusal("many_parts", id=tx.site.id_of(array.seq), count=tx.parts, most=PARTS)
    tx.emit(Parted(array.seq, pending))
    return (tx.site.requests[member(array.seq, index)] for index in indices.each(pending))


def release_some(
    tx: Transaction, array: Request, pending: Runs, letters: str, caller: Caller, lenient: bool
) -> None:
    """Remove holds (``letters``) from an array and its indices that have not begun (``pending``; empty: all),
    whether the array or they are held. Raises Refusal if there are none to remove, unless ``lenient``."""
    assert array.array is not None
    if pending and array.unmet and "s" in letters:  # only they no longer wait for the array's prerequisites
        for request in parted(tx, array, pending):
            theirs = "".join(letter for letter in request.letters if letter in letters)
            alter.remove_holds(tx, request, theirs, caller)
        return
    concerned = [each for each in array.array.held if not pending or indices.both(each.indices, pending)]
    own = {*array.holds} if pending else {*array.letters}
    held = own.union(*(each.letters for each in concerned), "s" if array.array.awaiting else "")
    if lenient and not (held and letters):
        return
    if not held:
        raise Refusal("not_held", id=tx.site.id_of(array.seq), state=array.shown_state.value)
    theirs = "".join(sorted(held.intersection(letters)))
    if not theirs:
        raise Refusal("not_your_hold", id=tx.site.id_of(array.seq), letters="".join(sorted(held)))
    aging = array.state is not State.QUEUED and ages_when_eligible(tx.site, array.queue)
    tx.emit(ev.Released((array.seq,), theirs, caller.user, aging, pending))
    tx.dirty()


# ---------------------------------------------------------------- ends


def delete_indices(tx: Transaction, array: Request, pending: Runs, who: str, text: str = "") -> None:
    """Delete the indices ``pending`` of an array, which have not begun (empty: all that have not)."""
    assert array.array is not None
    lone = not array.array.begun and array.seq not in tx.site.members and not array.array.dropped
    if not pending and lone:
        tx.emit(ev.Deleted(array.seq, who, text))
    elif pending := pending or array.array.left:
        tx.emit(ev.Deleted(array.seq, who, text, indices=pending))


def end_if_over(tx: Transaction, seq: Seq, who: str) -> None:
    """End an array if its last index is over, with the greatest exit status; delete it if none began."""
    array = tx.site.requests.get(seq)
    if array is None or array.array is None or array.array.left or seq in tx.site.members:
        return
    state = array.array
    if not state.begun:
        tx.emit(ev.Deleted(seq, who))
        return
    used = Used(state.cpu, state.wall, state.memory)
    status = max(state.worst, DELETED if state.dropped else 0)
    counted = (("ended well", state.well), ("failed", state.badly), ("were deleted", state.dropped))
    how = ", ".join(f"{indices.count(runs)} {word}" for word, runs in counted if runs)
    tx.emit(ev.Ended(seq, 0, "exit", status, None, used, f"indices: {how}"))
