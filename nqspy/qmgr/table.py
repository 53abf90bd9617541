"""A table for people: columns under their heads."""

import textwrap
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns under their heads; a column of numbers stands to the right. Where rows would be longer than 80
    columns the last one is folded between its words."""
    cells = [[str(cell) for cell in row] for row in rows]
    before = sum(max(len(row[i]) for row in [list(heads), *cells]) + 2 for i in range(len(heads) - 1))
    cells = [more for row in cells for more in _folded(row, max(20, 80 - before))]
    widths = [max(len(row[i]) for row in [list(heads), *cells]) for i in range(len(heads))]
    right = [bool(rows) and all(isinstance(row[i], (int, float)) for row in rows) for i in range(len(heads))]
    lines = [list(heads), ["-" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(
            c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def pairs(rows: Iterable[tuple[str, object]]) -> str:
    """A line for each name with its value."""
    return "\n".join(f"  {name:<30}{value}" for name, value in rows)


def _folded(row: list[str], width: int) -> list[list[str]]:
    if len(row[-1]) <= width:
        return [row]
    parts = textwrap.wrap(row[-1], width, break_long_words=False, break_on_hyphens=False)
    return [[*row[:-1], parts[0]], *([*([""] * (len(row) - 1)), part] for part in parts[1:])]
