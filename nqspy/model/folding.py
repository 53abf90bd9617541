"""Lines for people: folded to the width of a terminal, between words only."""

from textwrap import wrap

WIDTH = 80
"""Columns of a terminal."""


def folded(line: str, hang: int = 2) -> str:
    """The line, or the lines that it takes, with ``hang`` blanks more than its own before those after the
    first. A word that is longer stays whole."""
    if len(line) <= WIDTH:
        return line
    own = line[: len(line) - len(line.lstrip())]
    found = wrap(
        line, WIDTH, initial_indent="", subsequent_indent=own + " " * hang, break_long_words=False,
        break_on_hyphens=False, drop_whitespace=True,
    )  # fmt: skip
    return "\n".join(found)
