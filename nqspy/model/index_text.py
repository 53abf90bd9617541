"""Sets of indices as people write them. It imports only `keys`: `qsub` reads an array by it at each start."""

from nqspy.model.keys import GREATEST_INDEX

MOST_INDICES = 1_000_000
"""How many indices an array may have."""
MOST_WRITTEN = 50_000
"""Pieces that a text may have."""


def read(text: str) -> list[tuple[int, int, int]]:
    """Return the runs that ``1-10,15,20-30:5`` names, as they were written. Raises ValueError."""
    pieces = text.split(",")
    if len(pieces) > MOST_WRITTEN:
        raise ValueError(f"{len(pieces)} pieces like 20-30:5 are more than the {MOST_WRITTEN} one may write")
    return checked([_run(piece.strip()) for piece in pieces])


def checked(runs: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return each run with the last index that it reaches. Raises ValueError."""
    found, total = [], 0
    for first, last, step in runs:
        if last > GREATEST_INDEX:
            raise ValueError(f"index {last} is above the greatest, {GREATEST_INDEX}")
        if not 0 <= first <= last or step < 1:
            raise ValueError(f"{first}-{last}:{step} is no run of indices from 0 to {GREATEST_INDEX}")
        more = (last - first) // step
        found.append((first, first + more * step, step if more else 1))
        total += more + 1
    # Counted as they are written: a few runs that overlap take as long as the indices in them.
    if total > MOST_INDICES:
        raise ValueError(f"{total} indices are more than the {MOST_INDICES} that an array may have")
    return found


def _run(piece: str) -> tuple[int, int, int]:
    first, dash, rest = piece.partition("-")
    last, colon, step = rest.partition(":")
    numbers = [first, *([last] if dash else []), *([step] if colon else [])]
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in numbers):
        raise ValueError(f"{piece[:80]!r} is no index; write them like 1-10,15,20-30:5")
    run = int(first), int(last or first), int(step or 1)
    if run[1] < run[0]:
        raise ValueError(f"{piece}: {run[1]} comes before {run[0]}")
    if not run[2]:
        raise ValueError(f"{piece}: a step is at least 1")
    return run
