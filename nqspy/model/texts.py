"""Times, lines and tables as text for people, folded only between words, usually to 80 columns."""

from collections.abc import Callable, Container, Iterable, Sequence
from datetime import datetime
from textwrap import wrap
from typing import TypeVar

T = TypeVar("T")

_DAYS = {-1: "yesterday ", 0: "today ", 1: "tomorrow "}
_WEEK = 7


def in_words(moment: datetime, now: datetime | None = None) -> str:
    """Return a time as text: ``today 14:05``, ``tomorrow 06:00``, ``Mon 06:00`` within a week, else (and
    without ``now``) ``2026-03-02 21:00``. Both arguments are on the site's clock."""
    clock = moment.strftime("%H:%M")
    days = None if now is None else (moment.date() - now.date()).days
    if days in _DAYS:
        return _DAYS[days] + clock
    if days is not None and 0 < days < _WEEK:
        return moment.strftime("%a ") + clock
    return f"{moment.date().isoformat()} {clock}"


def short(text: str) -> str:
    """Return date and time (``2026-03-02 21:00:00``) of an RFC 3339 text, without fraction and zone."""
    return f"{text[:10]} {text[11:19]}"


WIDTH = 80
"""Columns of a line; only a word that is longer by itself makes one longer."""
_LEAST = 20
"""Columns that the last column of a `table` gets in any case."""
_INDENT = "    "


def aligned(
    rows: Iterable[Sequence[str] | None], right: Container[int] = (), between: str = "  "
) -> list[str]:
    """Return a line for each row, its cells padded to equal columns with ``between`` between them. Columns in
    ``right`` (places from 0) are flush right. A row None becomes a dashed rule."""
    rows = list(rows)
    cells = (row for row in rows if row is not None)
    widths = [max(1, *map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in rows:
        row = ["-" * width for width in widths] if row is None else row
        padded = (
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(between.join(padded).rstrip())
    return lines


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table with heads and a rule; numbers flush right. Beyond `WIDTH` the last column is folded."""
    cells = [[str(cell) for cell in row] for row in rows]
    before = sum(max(map(len, column)) + 2 for column in list(zip(heads, *cells, strict=True))[:-1])
    room = max(_LEAST, WIDTH - before)
    lines: list[Sequence[str]] = []
    for *first, last in cells:
        long = len(last) > room
        parts = wrap(last, room, break_long_words=False, break_on_hyphens=False) if long else [last]
        lines += [[*first, parts[0]], *([*([""] * len(first)), part] for part in parts[1:])]
    columns = enumerate(zip(*rows, strict=True))
    numbers = [at for at, column in columns if all(isinstance(cell, int | float) for cell in column)]
    return "\n".join(aligned([heads, None, *lines], numbers))


def pairs(rows: Iterable[tuple[str, object]]) -> str:
    """Return a text with an indented line for each name and its value."""
    return "\n".join(f"  {name:<30}{value}" for name, value in rows)


def grid(
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    left: int = 1,
    foot: bool = False,
    width: int = WIDTH,
) -> str:
    """Return a table: heads (none if all are empty), a rule, and rows. The first ``left`` columns are flush
    left, the others flush right. ``foot``: the last row has a rule above it. If a row would be longer than
    ``width``, the last columns follow below each row as ``head: value``, folded between words."""
    cells = [[" ".join(str(value).split("\n")) for value in row] for row in rows]
    fit, length = 0, -1
    for column in zip(heads, *cells, strict=True):
        length += 1 + max(1, *map(len, column))
        fit += not fit or length <= width
    head, rule, *lines = aligned([heads[:fit], None, *(row[:fit] for row in cells)], range(left, fit), " ")
    found = [head, rule] if any(heads) else []
    for number, (line, row) in enumerate(zip(lines, cells, strict=True), 1):
        found += [rule] if foot and number == len(cells) else []
        found += [line, *_below(heads[fit:], row[fit:])]
    return "".join(line + "\n" for line in found)


def _below(heads: Sequence[str], values: Sequence[str]) -> list[str]:
    """Return values as lines, short ones side by side, long ones alone; empty ones are left out."""
    lines: list[str] = []
    alone = True
    for head, value in zip(heads, values, strict=True):
        value = value.strip()
        if value in ("", "-"):
            continue
        text = f"{head.strip().lower()}: {value}"
        if not alone and len(lines[-1]) + 3 + len(text) <= WIDTH:
            lines[-1] += "   " + text
        else:
            lines += _lines(text, _INDENT)
            alone = lines[-1] != _INDENT + text
    return lines


def counted(number: int, word: str) -> str:
    """Return a number with its word: ``1 request``, ``2 requests``."""
    return f"{number} {word}{'s' * (number != 1)}"


def some_of(things: Sequence[T], most: int, name_of: Callable[[T], str] = str) -> str:
    """Return the names of the first ``most`` things, and how many more there are: ``a, b and 3 more``."""
    more = f" and {len(things) - most} more" if len(things) > most else ""
    return ", ".join(map(name_of, things[:most])) + more


def percent(part: float | None) -> str:
    """Return a fraction (0 to 1) as text in per cent: ``12.5``; ``-`` for None."""
    return "-" if part is None else f"{part * 100:.1f}"


def points(deviation: float | None) -> str:
    """Return a deviation, given in percentage points, as text: ``+1.5``; ``-`` for None."""
    return "-" if deviation is None else f"{deviation:+.1f}"


def boxed(title: str, body: str) -> str:
    """Return a text under its title between two dashed rules, like NQS's summaries (nqs.md 3.4)."""
    rule = "-" * len(title)
    return f"{rule}\n{title}\n{rule}\n{body}"


def folded(line: str, hang: int = 2) -> str:
    """Return a line folded to `WIDTH`; further lines are indented by ``hang`` more blanks than the first."""
    if len(line) <= WIDTH:
        return line
    text = line.lstrip()
    return "\n".join(_lines(text, line.removesuffix(text), " " * hang))


def _lines(text: str, indent: str = "", more: str = "") -> list[str]:
    """Return a text in lines of at most `WIDTH` columns; further lines begin with ``indent`` and ``more``."""
    found = wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + more, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return found or [indent.rstrip()]
