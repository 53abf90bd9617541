"""Words of the command language with their places, and the error that points at one of them."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from nqspy.model.errors import NqspyError

Kind = Literal["word", "(", ")", ",", "=", "end", "cursor"]

_BLANKS = " \t\r\f\v"
_SIGNS: dict[str, Kind] = {"(": "(", ")": ")", ",": ",", "=": "="}
_COMMENT = "#!"
_MARK = "\ufeff"
"""Mark with which Windows editors begin a file."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}
"""Characters that a backslash and a letter mean between double quotes."""
_INDICES = re.compile(r"\d+\[[\d,:-]*\]")
"""Pattern of the begin of an identifier like ``17[1-9:2,20].ymp``, whose commas belong to it."""
_WORD = re.compile(rf"""(?:[^{_BLANKS}{re.escape("".join(_SIGNS))}"'\\]|\\(?!\Z))*""")
"""Pattern of a word: it ends at a space, a sign, a quote, or a backslash at the line's end."""


class Token(Struct, frozen=True):
    """A word or sign; ``line`` and ``column`` count from 1; ``quoted``: True if it cannot be a keyword;
    ``end`` has no text, ``cursor`` (of `completions`) has what is typed."""

    kind: Kind
    text: str
    line: int
    column: int
    quoted: bool = False


class ParseError(NqspyError):
    """Raised for a command that cannot be read. ``expected``: what is legal there, nearest first."""

    def __init__(
        self, problem: str, place: Token, expected: Sequence[str] = (), row: str = "", source: str = ""
    ) -> None:
        half = _WINDOW // 2
        problem = problem if len(problem) <= _WINDOW else f"{problem[:half]} ... {problem[-half:]}"
        super().__init__(problem)
        self.problem = problem
        self.line = place.line
        self.column = place.column
        self.word = place.text
        self.expected = tuple(expected)
        self.row = row
        self.source = source

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}: {self.problem}"
        return f"{self.source}, {where}" if self.source else where

    def caret(self) -> str:
        """Return the line of the source with a ``^`` under the first letter of the word."""
        begin = max(0, self.column - _WINDOW // 2) if len(self.row) > _WINDOW else 0
        row = self.row[begin : begin + _WINDOW]
        before = row[: self.column - 1 - begin].ljust(self.column - 1 - begin)
        blanks = "".join("\t" if char == "\t" else " " for char in before)
        return f"{row}\n{blanks}^"


_WINDOW = 1_000
"""Most characters that an error shows of a line, or of a problem."""


def _row(text: str, line: int) -> tuple[list[Token], str, bool]:
    """Return a line's tokens, its text, and True if it goes on. Raises ParseError for an open quote."""
    bare = text.rstrip(_BLANKS)
    tokens: list[Token] = []
    at, stop = 0, len(bare) - bare.endswith("\\")
    while at < stop and bare[at] not in _COMMENT:
        if bare[at] in _BLANKS:
            at += 1
        elif bare[at] in _SIGNS:
            tokens.append(Token(_SIGNS[bare[at]], bare[at], line, at + 1))
            at += 1
        else:
            token, at = _word(bare, line, at, stop)
            tokens.append(token)
    return tokens, bare[:at].strip(_BLANKS), bare[at:] == "\\"


def _word(text: str, line: int, start: int, stop: int) -> tuple[Token, int]:
    """Return the word at ``start``, perhaps with quoted parts like ``"dom ain":o``, and its end."""
    parts: list[str] = []
    at = start
    while at < stop and text[at] not in _BLANKS and text[at] not in _SIGNS:
        begin = at
        if text[at] in "\"'":
            part, at = _quoted(text, line, at)
        else:
            indices = _INDICES.match(text, at)
            found = _WORD.match(text, indices.end() if indices is not None else at)
            assert found is not None  # an empty match counts too
            at = found.end()
            part = text[begin:at]
        parts.append(part)
    return Token("word", "".join(parts), line, start + 1, len(parts) > 1 or text[start] in "\"'"), at


def _quoted(text: str, line: int, start: int) -> tuple[str, int]:
    quote, at, found = text[start], start + 1, ""
    while at < len(text) and text[at] != quote:
        char = text[at]
        if quote == '"' and char == "\\" and at + 1 < len(text):
            at += 1
            if text[at] not in _ESCAPES:
                place = Token("word", text[at - 1 : at + 1], line, at)
                problem = f"\\{text[at]} is not an escape; write \\\\ for a backslash"
                raise ParseError(problem, place, (), text)
            char = _ESCAPES[text[at]]
        found += char
        at += 1
    if at >= len(text):
        place = Token("word", found, line, start + 1, quoted=True)
        raise ParseError(f"the quote {quote} is not closed", place, (quote,), text)
    return found, at + 1


class Logical(Struct, frozen=True):
    """A command, perhaps of several lines: tokens and an ``end``, its text in one line, lines by number."""

    tokens: tuple[Token, ...]
    text: str
    rows: dict[int, str]
    line: int


def logical_lines(text: str, first: int = 1) -> Iterator[Logical]:
    """Yield a text's commands: continued lines are joined, comments removed; ``first``: number of its first
    line. Raises ParseError."""
    tokens: list[Token] = []
    texts: list[str] = []
    rows: dict[int, str] = {}
    lines = text.removeprefix(_MARK).split("\n")
    for line, row in enumerate(lines, first):
        more, content, continued = _row(row, line)
        rows[line] = row.rstrip(_BLANKS)
        tokens += more
        texts += [content] if content else []
        last = line == first + len(lines) - 1
        if not last and (continued or (texts and not content and rows[line].strip(_BLANKS))):
            continue  # a comment between the lines of a command does not end it
        if tokens:
            end = Token("end", "", line, len(rows[line]) + 1)
            yield Logical((*tokens, end), " ".join(texts), rows, tokens[0].line)
        tokens, texts, rows = [], [], {}
