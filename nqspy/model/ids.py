"""Names of things: instants, sequence numbers and request identifiers."""

from collections.abc import Collection
from dataclasses import dataclass
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
"""Identity of whatever can hold PEs, as one integer: of a request its sequence number, from 1 upward and
never reused; of an array, and of one index of it, that number with a mark above it (`keys`), so that
dictionaries, columns and rows need but one kind of number. `JobRef` is the same for people."""

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True, order=True)
class JobRef:
    """Identity of whatever can hold PEs, as people write it: a request (``17.ymp``), an array (``whole``:
    ``17[].ymp``), or one index of it (``17[3].ymp``)."""

    seq: int
    index: int | None = None
    whole: bool = False

    @classmethod
    def of(cls, seq: Seq) -> "JobRef":
        """Return the same of a number."""
        return cls(number_of(seq), index_of(seq), is_array(seq))

    @property
    def key(self) -> Seq:
        """The number of it."""
        if self.whole:
            return array_key(self.seq)
        return self.seq if self.index is None else member(self.seq, self.index)

    def full(self, host: str) -> str:
        """The identifier people see."""
        return f"{name_of(self.key)}.{host}"

    @classmethod
    def parse(cls, text: str, names: Collection[str]) -> "JobRef | None":
        """Return what ``17``, ``17.ymp``, ``17[].ymp``, ``17[3].ymp`` or ``17.ymp@ymp`` names; None when it
        names nothing of a home with these ``names``."""
        found = parse_named(text, names)
        if found is None:
            return None
        ref, some = found
        if not some:
            return ref
        return cls(ref.seq, int(some)) if _is_number(some) and int(some) <= GREATEST_INDEX else None


def parse_named(text: str, names: Collection[str] | None) -> tuple[JobRef, str] | None:
    """Return what an identifier names, and of ``17[3-9]`` the indices as they are written (else empty).
    ``names``: all that its home has had (None: any)."""
    name, _, _at = text.partition("@")
    number, bracket, rest = name.partition("[")
    inside, closed, after = rest.partition("]") if bracket else ("", "", "")
    if not bracket:
        number, dot, where = name.partition(".")
    else:
        dot, where = after[:1], after[1:]
    if not _is_number(number) or bool(bracket) != bool(closed):
        return None
    as_named = names is None or any(
        f"{where}.".startswith(f"{n}.") or n.startswith(f"{where}.") for n in names
    )
    if dot and not as_named:
        return None
    if bracket and after and dot != ".":
        return None
    return JobRef(int(number), None, bool(bracket)), inside


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12


def request_named(text: str, names: Collection[str]) -> Seq | None:
    """Return what an identifier names; None when it names nothing of a home with these names, or several
    indices."""
    found = JobRef.parse(text, names)
    return found.key if found is not None else None


def full_id(seq: Seq, host: str) -> str:
    """The identifier of a request."""
    return f"{name_of(seq)}.{host}"
