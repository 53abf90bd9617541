"""Plain tables: heads, a dashed rule under them, columns as wide as they need, 80 columns at most
unless a caller says more."""

from collections.abc import Sequence

from nqspy.model import texts
from nqspy.model.texts import WIDTH

_INDENT = "    "


def grid(
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    left: int = 1,
    foot: bool = False,
    width: int = WIDTH,
) -> str:
    """Heads (none where all are empty), rule and rows; the first ``left`` columns are flush left, the others
    flush right. ``foot``: the last row stands under a rule of its own.

    Where a row would be longer than ``width`` the last columns stand in lines of their own under each row,
    ``head: value``, folded between words.
    """
    cells = [[" ".join(str(value).split("\n")) for value in row] for row in rows]
    widths = [max(len(head), *(len(row[i]) for row in cells), 1) if cells else len(head)
              for i, head in enumerate(heads)]  # fmt: skip
    kept = _fitting(widths, width)
    form = " ".join(f"%-{w}s" if i < left else f"%{w}s" for i, w in enumerate(widths[:kept]))
    rule = " ".join("-" * width for width in widths[:kept])
    lines = [form % tuple(heads[:kept]), rule] if any(heads) else []
    for number, row in enumerate(cells, 1):
        if foot and number == len(cells):
            lines.append(rule)
        lines.append(form % tuple(row[:kept]))
        lines += _below(heads[kept:], row[kept:])
    return "".join(line.rstrip() + "\n" for line in lines)


def _fitting(widths: Sequence[int], most: int) -> int:
    """How many columns fit beside each other, at least one."""
    kept, length = 0, -1
    while kept < len(widths) and length + 1 + widths[kept] <= most:
        length += 1 + widths[kept]
        kept += 1
    return max(1, kept)


def _below(heads: Sequence[str], values: Sequence[str]) -> list[str]:
    """Short values side by side, long ones in lines of their own; empty ones are left out."""
    lines: list[str] = []
    alone = True
    for head, value in zip(heads, values, strict=True):
        value = value.strip()
        if value in ("", "-"):
            continue
        said = f"{head.strip().lower()}: {value}"
        if not alone and len(lines[-1]) + 3 + len(said) <= WIDTH:
            lines[-1] += "   " + said
        else:
            lines += texts.lines(said, _INDENT)
            alone = lines[-1] != _INDENT + said
    return lines


def percent(part: float | None) -> str:
    """A fraction as a cell, ``12.5``; ``-`` for None."""
    return "-" if part is None else f"{part * 100:.1f}"


def points(deviation: float | None) -> str:
    """A deviation in percentage points as a cell, ``+1.5``; ``-`` for None."""
    return "-" if deviation is None else f"{deviation:+.1f}"


def boxed(title: str, body: str) -> str:
    """A body under its title between two dashed rules, as NQS heads its summaries (nqs.md 3.4)."""
    rule = "-" * len(title)
    return f"{rule}\n{title}\n{rule}\n{body}"
