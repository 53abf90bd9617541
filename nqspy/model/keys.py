"""Requests, arrays and their indices as one integer each: the sequence number, and above it which index of
an array it is. It imports nothing: what starts processes has it too."""

_NUMBER_BITS = 40
_NUMBERS = (1 << _NUMBER_BITS) - 1
_CODE_BITS = 22
_WHOLE = (1 << _CODE_BITS) - 1
"""The mark of a whole array; an index is marked with one more than itself."""
GREATEST_INDEX = 4_000_000


PLAIN = _NUMBERS
"""The greatest number that a request which is no part of an array can have."""
ARRAYS = _WHOLE << _NUMBER_BITS
"""What the number of an array is above its sequence number."""


def array_key(number: int) -> int:
    """The array of that sequence number."""
    return _WHOLE << _NUMBER_BITS | number


def member(array: int, index: int) -> int:
    """One index of an array."""
    return (index + 1) << _NUMBER_BITS | (array & _NUMBERS)


def number_of(seq: int) -> int:
    """The sequence number that people see."""
    return seq & _NUMBERS


def is_array(seq: int) -> bool:
    """Whether it is a whole array."""
    return seq >> _NUMBER_BITS == _WHOLE


def index_of(seq: int) -> int | None:
    """Which index of an array it is; None of a request of its own and of a whole array."""
    code = seq >> _NUMBER_BITS
    return code - 1 if 0 < code < _WHOLE else None


def array_of(seq: int) -> int | None:
    """The array that an index belongs to; None where it is none."""
    return None if seq <= _NUMBERS or index_of(seq) is None else array_key(number_of(seq))


def rank_of(seq: int) -> int:
    """What puts requests in the order of their numbers, an array behind those of its indices that are
    requests of their own."""
    return (seq & _NUMBERS) << _CODE_BITS | seq >> _NUMBER_BITS


def rank_in_list(seq: int) -> int:
    """Return a number that sorts a list by sequence numbers, an array before its indices."""
    return (seq & _NUMBERS) << _CODE_BITS | ((seq >> _NUMBER_BITS) + 1 & _WHOLE)


def name_of(seq: int) -> str:
    """Return the part of an identifier before the host: ``17``, ``17[]``, ``17[3]``."""
    if seq <= PLAIN:
        return str(seq)
    index = index_of(seq)
    return f"{number_of(seq)}[{'' if index is None else index}]"
