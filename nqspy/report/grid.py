"""Plain tables: heads, a dashed rule under them, columns as wide as they need."""

from collections.abc import Sequence


def grid(heads: Sequence[str], rows: Sequence[Sequence[object]], left: int = 1, foot: bool = False) -> str:
    """Heads, rule and rows; the first ``left`` columns are flush left, the others flush right. ``foot``: the
    last row stands under a rule of its own."""
    cells = [[str(value) for value in row] for row in rows]
    widths = [max(len(head), *(len(row[i]) for row in cells), 1) if cells else len(head)
              for i, head in enumerate(heads)]  # fmt: skip
    form = " ".join(f"%-{w}s" if i < left else f"%{w}s" for i, w in enumerate(widths))
    rule = " ".join("-" * width for width in widths)
    lines = [form % tuple(heads), rule, *(form % tuple(row) for row in cells)]
    if foot and cells:
        lines.insert(len(lines) - 1, rule)
    return "".join(line.rstrip() + "\n" for line in lines)


def boxed(title: str, body: str) -> str:
    """A body under its title between two dashed rules, as NQS heads its summaries (nqs.md 3.4)."""
    rule = "-" * len(title)
    return f"{rule}\n{title}\n{rule}\n{body}"
