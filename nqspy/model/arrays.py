"""Arrays of requests: their specification (`ArraySpec`), the state of their indices (`ArrayState`), and its
changes by events. A waiting array is one request with a multiplicity. An index becomes a request of its own
when it starts, or when something concerns it alone (a move). The array has facts about the others."""

from functools import reduce
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nqspy.model import indices
from nqspy.model.ids import Seq
from nqspy.model.indices import Runs


class ArraySpec(Struct, frozen=True):
    """The indices of an array, and how many of them may run at a time (None: any number)."""

    indices: Runs
    limit: int | None = None


class HeldIndices(Struct, frozen=True, omit_defaults=True):
    """Indices held by ``letters`` (u, o, s); ``text``: why; ``never``: why they wait in vain, if they do."""

    indices: Runs
    letters: str
    text: str = ""
    never: str = ""


class ArrayState(Struct, frozen=True, omit_defaults=True):
    """State of the indices of an array. ``left``: not begun. Of these, ``ready`` may start as soon as the
    array may; the others are ``held``, or each waits for its index of another array (``awaiting``, by that
    array). ``begun``: some index has begun. Of the ended ones, ``well`` ended with exit status 0, ``badly``
    otherwise; ``dropped`` were deleted before they began. ``worst``: greatest exit status so far. ``cpu``,
    ``wall``, ``memory``: use of all indices together (ms, ms, most bytes of one)."""

    left: Runs
    ready: Runs
    held: tuple[HeldIndices, ...] = ()
    awaiting: tuple[tuple[Seq, Runs], ...] = ()
    begun: bool = False
    well: Runs = ()
    badly: Runs = ()
    dropped: Runs = ()
    worst: int = 0
    cpu: int = 0
    wall: int = 0
    memory: int = 0

    @property
    def all_held(self) -> Runs:
        """All held indices, for whatever reason."""
        return reduce(indices.plus, (each.indices for each in self.held), ())

    @property
    def all_awaiting(self) -> Runs:
        """All indices that wait for an index of another array."""
        return reduce(indices.plus, (runs for _, runs in self.awaiting), ())


def counted(spec: ArraySpec | None) -> int:
    """Return how many requests a submission counts as: an array as the number of its indices."""
    return 1 if spec is None else indices.count(spec.indices)


def begin(spec: ArraySpec, each: tuple[Seq, ...]) -> ArrayState:
    """Return the state at submission. ``each``: arrays; an index waits for the same index of each of them."""
    awaiting = tuple((seq, spec.indices) for seq in each)
    return ArrayState(spec.indices, () if each else spec.indices, awaiting=awaiting)


def _settled(state: ArrayState, touched: Runs, **changes: Any) -> ArrayState:
    """Return the state with these changes, and with ``ready`` computed anew for the indices ``touched``."""
    made: ArrayState = replace(state, **changes)
    if not made.held and not made.awaiting:
        return replace(made, ready=made.left)
    free = indices.both(made.left, touched)
    for blocked in (*(each.indices for each in made.held), *(runs for _, runs in made.awaiting)):
        free = indices.minus(free, blocked)
    return replace(made, ready=indices.plus(indices.minus(state.ready, touched), free))


def leave(state: ArrayState, index: int) -> ArrayState:
    """Return the state after an index became a request of its own."""
    if indices.has(state.ready, index):
        remaining, ready = indices.drop(state.left, index), indices.drop(state.ready, index)
        return replace(state, left=remaining, ready=ready)
    return _without(state, ((index, index, 1),))


def _without(state: ArrayState, cut: Runs) -> ArrayState:
    """Return the state without these indices, held, awaiting or not."""
    return _settled(
        state,
        cut,
        left=indices.minus(state.left, cut),
        held=tuple(
            replace(each, indices=rest) for each in state.held if (rest := indices.minus(each.indices, cut))
        ),
        awaiting=_not_awaiting(state.awaiting, cut),
    )


def _not_awaiting(
    awaiting: tuple[tuple[Seq, Runs], ...], removed: Runs, of: Seq | None = None
) -> tuple[tuple[Seq, Runs], ...]:
    cut = ((seq, indices.minus(runs, removed) if of in (None, seq) else runs) for seq, runs in awaiting)
    return tuple((seq, runs) for seq, runs in cut if runs)


def _gathered(held: list[HeldIndices]) -> tuple[HeldIndices, ...]:
    """Return these held indices with those joined that have the same letters and reason."""
    found: dict[tuple[str, str, str], HeldIndices] = {}
    for each in held:
        alike = each.letters, each.text, each.never
        before = found.get(alike)
        runs = each.indices if before is None else indices.plus(before.indices, each.indices)
        found[alike] = replace(each, indices=runs)
    return tuple(found.values())


def begun(state: ArrayState) -> ArrayState:
    """Return the state after an index has begun."""
    return state if state.begun else replace(state, begun=True)


def dropped(state: ArrayState, removed: Runs) -> ArrayState:
    """Return the state after these indices were deleted before they began."""
    removed = indices.both(state.left, removed)
    return replace(_without(state, removed), dropped=indices.plus(state.dropped, removed))


def hold(state: ArrayState, some: Runs, letter: str, text: str, never: str = "") -> ArrayState:
    """Return the state with one more hold letter on these indices, and its reason (see `HeldIndices`)."""
    some = touched = indices.both(state.left, some)
    held: list[HeldIndices] = []
    for each in state.held:
        both = indices.both(each.indices, some)
        letters = "".join(sorted({*each.letters, letter}))
        held += [HeldIndices(both, letters, text, never or each.never)] if both else []
        rest = indices.minus(each.indices, both)
        held += [replace(each, indices=rest)] if rest else []
        some = indices.minus(some, both)
    held += [HeldIndices(some, letter, text, never)] if some else []
    return _settled(state, touched, held=_gathered(held))


def release(state: ArrayState, some: Runs, letters: str) -> ArrayState:
    """Return the state without these hold letters on these indices. If ``s`` is one of the letters, these
    indices no longer wait for other arrays either."""
    held: list[HeldIndices] = []
    for each in state.held:
        both = indices.both(each.indices, some)
        rest = indices.minus(each.indices, both)
        held += [replace(each, indices=rest)] if rest else []
        still = "".join(letter for letter in each.letters if letter not in letters)
        held += [replace(each, indices=both, letters=still)] if both and still else []
    awaiting = _not_awaiting(state.awaiting, some) if "s" in letters else state.awaiting
    return _settled(state, some, held=_gathered(held), awaiting=awaiting)


def met(state: ArrayState, array: Seq, some: Runs) -> ArrayState:
    """Return the state after these indices no longer wait for their indices of the array ``array``."""
    return _settled(state, some, awaiting=_not_awaiting(state.awaiting, some, array))


def failed(state: ArrayState, array: Seq, some: Runs, text: str) -> ArrayState:
    """Return the state after these indices turned out to wait in vain for another array: held with ``s``."""
    return hold(met(state, array, some), some, "s", text, text)


def removed(state: ArrayState, index: int) -> ArrayState:
    """Return the state after an index that was a request of its own was deleted before it began."""
    return replace(state, dropped=indices.add(state.dropped, index))


def ended(state: ArrayState, index: int, status: int, used: tuple[int, int, int]) -> ArrayState:
    """Return the state after an index ended with that exit status and use (CPU ms, wall ms, bytes)."""
    well, badly = state.well, state.badly
    return replace(
        state, well=indices.add(well, index) if not status else well,
        badly=indices.add(badly, index) if status else badly, worst=max(state.worst, status),
        cpu=state.cpu + used[0], wall=state.wall + used[1], memory=max(state.memory, used[2]),
    )  # fmt: skip
