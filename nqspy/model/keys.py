"""Requests, arrays and indices as integers: sequence number, and above it the index. Imports nothing."""

_NUMBER_BITS = 40
_NUMBERS = (1 << _NUMBER_BITS) - 1
_CODE_BITS = 22
_WHOLE = (1 << _CODE_BITS) - 1
"""Mark of a whole array above its number; the mark of an index is the index plus 1."""
GREATEST_INDEX = 4_000_000

PLAIN = _NUMBERS
"""The greatest number that a request which is no part of an array can have."""
ARRAYS = _WHOLE << _NUMBER_BITS
"""Difference between the key of an array and its sequence number."""


def array_key(number: int) -> int:
    """Return the key of the array with that sequence number."""
    return _WHOLE << _NUMBER_BITS | number


def member(array: int, index: int) -> int:
    """Return the key of an index of an array; ``array``: its key or its sequence number."""
    return (index + 1) << _NUMBER_BITS | (array & _NUMBERS)


def number_of(seq: int) -> int:
    """Return the sequence number in a key, as people see it: 17 of ``17``, ``17[]`` and ``17[3]``."""
    return seq & _NUMBERS


def is_array(seq: int) -> bool:
    """True if a key is that of a whole array."""
    return seq >> _NUMBER_BITS == _WHOLE


def index_of(seq: int) -> int | None:
    """Return the array index in a key; None: the key is that of a plain request or a whole array."""
    code = seq >> _NUMBER_BITS
    return code - 1 if 0 < code < _WHOLE else None


def array_of(seq: int) -> int | None:
    """Return the key of the array that an index belongs to; None: the key is not that of an index."""
    return None if seq <= _NUMBERS or index_of(seq) is None else array_key(number_of(seq))


def rank_of(seq: int) -> int:
    """Return a number that sorts requests by sequence number, an array after its indices."""
    return (seq & _NUMBERS) << _CODE_BITS | seq >> _NUMBER_BITS


def rank_in_list(seq: int) -> int:
    """Return a number that sorts requests by sequence number, an array before its indices."""
    return (seq & _NUMBERS) << _CODE_BITS | ((seq >> _NUMBER_BITS) + 1 & _WHOLE)


def name_of(seq: int) -> str:
    """Return the part of an identifier before the host: ``17``, ``17[]``, ``17[3]``."""
    if seq <= PLAIN:
        return str(seq)
    index = index_of(seq)
    return f"{number_of(seq)}[{'' if index is None else index}]"


MOST_INDICES = 1_000_000
"""Most indices of an array."""
MOST_WRITTEN = 50_000
"""Most ranges (separated by commas) in a text of indices."""


def read_indices(text: str) -> list[tuple[int, int, int]]:
    """Return the runs in a text like ``1-10,15,20-30:5``, as written; they may overlap. Raises ValueError."""
    pieces = text.split(",")
    if len(pieces) > MOST_WRITTEN:
        raise ValueError(f"{len(pieces)} ranges like 20-30:5 are too many; write at most {MOST_WRITTEN}")
    return checked_runs([_run(piece.strip()) for piece in pieces])


def checked_runs(runs: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return these runs, each ended where its step last reaches (1-10:4 at 9). Raises ValueError."""
    found, total = [], 0
    for first, last, step in runs:
        if last > GREATEST_INDEX:
            raise ValueError(f"index {last} is too large; the largest is {GREATEST_INDEX}")
        if not 0 <= first <= last or step < 1:
            raise ValueError(f"{first}-{last}:{step} is not a range of indices from 0 to {GREATEST_INDEX}")
        more = (last - first) // step
        found.append((first, first + more * step, step if more else 1))
        total += more + 1
    # Counted as they are written: a few runs that overlap take as long as the indices in them.
    if total > MOST_INDICES:
        raise ValueError(f"{total} indices are too many; an array may have at most {MOST_INDICES}")
    return found


def _run(piece: str) -> tuple[int, int, int]:
    first, dash, rest = piece.partition("-")
    last, colon, step = rest.partition(":")
    numbers = [first, *([last] if dash else []), *([step] if colon else [])]
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers):
        raise ValueError(f"{piece[:80]!r} is not an index; write indices like 1-10,15,20-30:5")
    run = int(first), int(last or first), int(step or 1)
    if run[1] < run[0]:
        raise ValueError(f"{piece}: {run[1]} is below {run[0]}; write the lower index first")
    if not run[2]:
        raise ValueError(f"{piece}: the step must be at least 1")
    return run
