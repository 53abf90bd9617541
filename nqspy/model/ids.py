"""Instants, sequence numbers and identifiers of requests."""

from collections.abc import Collection
from typing import NewType

from nqspy.model.keys import GREATEST_INDEX as GREATEST_INDEX
from nqspy.model.keys import array_key as array_key
from nqspy.model.keys import array_of as array_of
from nqspy.model.keys import index_of as index_of
from nqspy.model.keys import is_array as is_array
from nqspy.model.keys import member as member
from nqspy.model.keys import name_of as name_of
from nqspy.model.keys import number_of as number_of
from nqspy.model.keys import rank_in_list as rank_in_list
from nqspy.model.keys import rank_of as rank_of

Instant = NewType("Instant", int)
"""Milliseconds since the epoch, UTC: no drift, exact ties, the same live and simulated."""

Seq = int
"""Identity of a request, array or index as one integer: of a request its sequence number, from 1 upward and
never reused; of an array, and of one index of it, that number with a mark above it (`keys`), so that
dictionaries, columns and rows need but one kind of number. `full_id` writes it for people."""

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def parse_named(text: str, names: Collection[str] | None) -> tuple[Seq, str] | None:
    """Return the request or array that ``17``, ``17.ymp``, ``17[].ymp`` or ``17.ymp@ymp`` names; for
    ``17[3-9]`` the array, and its indices as text (else empty). None: it is ill-formed, or its host is not in
    ``names`` (None: any host)."""
    name, _, _at = text.partition("@")
    number, bracket, rest = name.partition("[")
    inside, closed, after = rest.partition("]") if bracket else ("", "", "")
    if not bracket:
        number, dot, where = name.partition(".")
    else:
        dot, where = after[:1], after[1:]
    if not _is_number(number) or bool(bracket) != bool(closed):
        return None
    known = names is None or any(f"{where}.".startswith(f"{n}.") or n.startswith(f"{where}.") for n in names)
    if dot and not known:
        return None
    if bracket and after and dot != ".":
        return None
    return array_key(int(number)) if bracket else int(number), inside


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12


def request_named(text: str, names: Collection[str]) -> Seq | None:
    """Return the key of the one request, array or index (``17[3].ymp``) that an identifier names. None: it is
    ill-formed, has a host not in ``names``, or names several indices."""
    seq, some = parse_named(text, names) or (None, "")
    if seq is None or not some:
        return seq
    return member(seq, int(some)) if _is_number(some) and int(some) <= GREATEST_INDEX else None


def full_id(seq: Seq, host: str) -> str:
    """Return the identifier of a request: ``17.ymp``, an array ``17[].ymp``, or its index ``17[3].ymp``."""
    return f"{name_of(seq)}.{host}"
