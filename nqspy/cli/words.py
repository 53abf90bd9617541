"""Splitting a line into words as a shell does, without `shlex` (which costs the import of `re`)."""

from nqspy.cli.values import Wrong

_ESCAPED_IN_DOUBLE = '"\\$`'

AFTER_WORDS = ("ok", "any", "fail", "start", "each")
"""What a request may await of another one (`model.requests` has them for the engine)."""


def split(line: str) -> list[str]:
    """The words of a line: blanks part them, quotes and backslashes keep characters, a word that begins
    with ``#`` starts a comment. Nothing is expanded. Raises Wrong for an open quote."""
    words: list[str] = []
    at, end = 0, len(line)
    while True:
        while at < end and line[at] in " \t\r\n\f\v":
            at += 1
        if at >= end or line[at] == "#":
            return words
        word, at = _word(line, at)
        words.append(word)


def _word(line: str, at: int) -> tuple[str, int]:
    """The word that begins at ``at``, and the place after it."""
    parts: list[str] = []
    while at < len(line) and (char := line[at]) not in " \t\r\n\f\v":
        if char == "'":
            end = _closing(line, at, "'")
            parts.append(line[at + 1 : end])
            at = end + 1
        elif char == '"':
            text, at = _double(line, at)
            parts.append(text)
        elif char == "\\" and at + 1 < len(line):
            parts.append(line[at + 1])
            at += 2
        else:
            parts.append(char)
            at += 1
    return "".join(parts), at


def _double(line: str, at: int) -> tuple[str, int]:
    """The inside of a double-quoted piece that opens at ``at``, and the place after it."""
    parts: list[str] = []
    start, at = at, at + 1
    while at < len(line) and line[at] != '"':
        if line[at] == "\\" and line[at + 1 : at + 2] and line[at + 1] in _ESCAPED_IN_DOUBLE:
            at += 1
        parts.append(line[at])
        at += 1
    if at >= len(line):
        _closing(line, start, '"', len(line))
    return "".join(parts), at + 1


def _closing(line: str, at: int, quote: str, start: int | None = None) -> int:
    end = line.find(quote, at + 1 if start is None else start)
    if end < 0:
        raise Wrong(f"the quote {quote} at column {at + 1} is not closed")
    return end


def split_list(text: str) -> list[str]:
    """The pieces between commas; commas inside quotes or parentheses do not part, quotes are taken off."""
    pieces: list[str] = []
    piece, quote, depth = "", "", 0
    for char in text:
        if quote:
            quote, char = ("", "") if char == quote else (quote, char)
        elif char in "'\"":
            quote, char = char, ""
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "," and depth <= 0:
            pieces.append(piece)
            piece = ""
            continue
        piece += char
    if quote:
        raise Wrong(f"the quote {quote} is not closed")
    return [*pieces, piece]
