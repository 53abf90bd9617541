"""Lines for people: folded to the width of a terminal, between words only."""

from textwrap import wrap

WIDTH = 80
"""Columns of a line; only a word that is longer by itself makes one longer."""


def lines(text: str, indent: str = "", more: str = "") -> list[str]:
    """A text in lines of at most `WIDTH` columns; further lines begin with ``indent`` and ``more``."""
    found = wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + more, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return found or [indent.rstrip()]


def folded(line: str, hang: int = 2) -> str:
    """The line, or the lines that it takes, with ``hang`` blanks more than its own before those after the
    first."""
    if len(line) <= WIDTH:
        return line
    text = line.lstrip()
    return "\n".join(lines(text, line.removesuffix(text), " " * hang))
