"""Expected starts of requests that wait, in words: for ``qstat --why``, ``--eta`` and ``qsub --dry-run``."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nqspy.model.texts import aligned
from nqspy.report.time_text import when

Estimate = Mapping[str, Any]
"""``{start basis latest{start basis} probably{start basis} as_of}``: times as text or null, then ``basis``
says why it is not known. ``start`` and ``basis`` are those of ``probably``; ``as_of``: when it was asked."""

_WORDS = (("latest", "at the latest"), ("probably", "probably"))
_HEAD: tuple[str, ...] = ("request", "name", "owner", "queue", "at the latest", "probably")
SHOWN = 5
"""Requests that are named as those that have a basis in common."""


def both(estimate: Estimate) -> Iterator[tuple[str, str]]:
    """(``latest``, what is said of it), and the same of ``probably``."""
    for key, _ in _WORDS:
        found = estimate[key]
        start = when(found["start"], estimate.get("as_of")) if found["start"] else None
        yield key, _unknown(found) if start is None else f"it starts {start}, {found['basis']}"


def _unknown(found: Mapping[str, Any]) -> str:
    return f"unknown: {found['basis']}"


def eta_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """``qstat --eta``: a table of requests with their ``estimate``, in the order given; below, what the times
    rest on, and why others are not known."""
    if not rows:
        return "nothing waits\n"
    cells = [_HEAD]
    for row in rows:
        estimate = row["estimate"]
        starts = (estimate[key]["start"] for key, _ in _WORDS)
        times = (when(start, estimate.get("as_of")) if start else "-" for start in starts)
        cells.append((row["id"], row["name"], row["owner"], row["queue"], *times))
    return "".join(f"{line}\n" for line in [*aligned(cells), *_bases(rows)])


def _bases(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Each basis once, with whom it is said of: those whose start is not known by it, and where starts of
    one kind rest on several things."""
    known: dict[tuple[str, str], list[str]] = {}
    unknown: dict[tuple[str, str], list[str]] = {}
    for each in rows:
        for key, word in _WORDS:
            found = each["estimate"][key]
            kind, basis = (known, found["basis"]) if found["start"] else (unknown, _unknown(found))
            kind.setdefault((word, basis), []).append(each["id"])
    several = Counter(word for word, _ in known)
    for (word, basis), ids in known.items():
        yield f"{word}: {basis}" if several[word] == 1 else f"{_named(ids)} {word}: {basis}"
    for (word, basis), ids in unknown.items():
        yield f"{_named(ids)} {word}: {basis}"


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return f"{', '.join(ids[:SHOWN])}{more}"
