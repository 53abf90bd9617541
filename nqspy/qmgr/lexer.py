"""Words of the command language with their places, and the error that points at one of them."""

import difflib
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
"""What editors of Windows begin a file with."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}
"""What a backslash and a letter stand for between double quotes."""
_INDICES = re.compile(r"\d+\[[\d,:-]*\]")
"""What an identifier like ``17[1-9:2,20].ymp`` begins with: its commas are its own."""
_WORD = re.compile(rf"""(?:[^{_BLANKS}{re.escape("".join(_SIGNS))}"'\\]|\\(?!\Z))*""")
"""A word goes on to a blank, a sign, a quote, or the ``\\`` that ends the line."""
_SHOWN = 6


class Token(Struct, frozen=True):
    """A word or sign with its place, both from 1. ``quoted`` words are never keywords.

    Two kinds stand for no text: ``end`` (the command is over) and ``cursor`` (where a person asks for
    completions; its text is what stands before it).
    """

    kind: Kind
    text: str
    line: int
    column: int
    quoted: bool = False


class ParseError(NqspyError):
    """A command that cannot be read. ``expected``: what would have been legal at that place, nearest first.

    Its text is one line with the place; `caret` shows it in the source.
    """

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
        """The line of the source with a ``^`` under the first letter of the word."""
        begin = max(0, self.column - _WINDOW // 2) if len(self.row) > _WINDOW else 0
        row = self.row[begin : begin + _WINDOW]
        before = row[: self.column - 1 - begin].ljust(self.column - 1 - begin)
        blanks = "".join("\t" if char == "\t" else " " for char in before)
        return f"{row}\n{blanks}^"


_WINDOW = 1_000
"""Characters of a line that an error shows, and of a problem that it tells."""


def unexpected(token: Token, expected: Sequence[str], row: str) -> ParseError:
    """The error for a word that is none of ``expected``; what is spelt nearest to it is named first."""
    near = difflib.get_close_matches(token.text.lower(), expected, n=3) if token.kind == "word" else []
    ordered = [*near, *(word for word in expected if word not in near)]
    shown = ", ".join(ordered[:_SHOWN]) + (", ..." if len(ordered) > _SHOWN else "")
    if token.kind == "end":
        problem = "the command ends too early"
    elif token.kind == "word" and not expected:
        problem = f"{token.text!r} is too much here"
    else:
        problem = f"{token.text!r} is not known here"
    wanted = f"; expected {shown}" if shown else "; the command should end before it" * (token.kind != "end")
    return ParseError(problem + wanted, token, ordered, row)


class Row(Struct, frozen=True):
    """A line of text, read: its tokens, its text without comment and ``\\``, and whether the next line
    continues it."""

    tokens: tuple[Token, ...]
    text: str
    continued: bool


def read_row(text: str, line: int) -> Row:
    """The tokens of one line. A ``#`` or ``!`` that begins a word begins a comment. Raises ParseError for an
    open quote."""
    bare = text.rstrip(_BLANKS)
    tokens: list[Token] = []
    at = 0
    while at < len(bare):
        char = bare[at]
        if char in _COMMENT:
            return Row(tuple(tokens), bare[:at].strip(_BLANKS), False)
        if char == "\\" and at == len(bare) - 1:
            return Row(tuple(tokens), bare[:at].strip(_BLANKS), True)
        if char in _BLANKS:
            at += 1
        elif char in _SIGNS:
            tokens.append(Token(_SIGNS[char], char, line, at + 1))
            at += 1
        else:
            token, at = _word(bare, line, at)
            tokens.append(token)
    return Row(tuple(tokens), bare.strip(_BLANKS), False)


def _word(text: str, line: int, start: int) -> tuple[Token, int]:
    """A word of bare and quoted parts without blanks between them: ``"dom ain":o`` is one."""
    token, at = _part(text, line, start)
    while at < len(text) and text[at] not in _BLANKS and text[at] not in _SIGNS and text[at:] != "\\":
        more, at = _part(text, line, at)
        token = Token("word", token.text + more.text, line, start + 1, quoted=True)
    return token, at


def _part(text: str, line: int, start: int) -> tuple[Token, int]:
    return (_quoted if text[start] in "\"'" else _bare)(text, line, start)


def _bare(text: str, line: int, start: int) -> tuple[Token, int]:
    indices = _INDICES.match(text, start)
    found = _WORD.match(text, indices.end() if indices is not None else start)
    assert found is not None  # nothing is a match too
    return Token("word", text[start : found.end()], line, start + 1), found.end()


def _quoted(text: str, line: int, start: int) -> tuple[Token, int]:
    quote, at, found = text[start], start + 1, ""
    while at < len(text) and text[at] != quote:
        if quote == '"' and text[at] == "\\" and at + 1 < len(text):
            at += 1
            if text[at] not in _ESCAPES:
                place = Token("word", text[at - 1 : at + 1], line, at)
                raise ParseError(
                    f"\\{text[at]} stands for nothing; write \\\\ for a backslash", place, (), text
                )
            found += _ESCAPES[text[at]]
        else:
            found += text[at]
        at += 1
    token = Token("word", found, line, start + 1, quoted=True)
    if at >= len(text):
        raise ParseError(f"the quote {quote} that begins here is not closed", token, (quote,), text)
    return token, at + 1


class Logical(Struct, frozen=True):
    """A command as written, perhaps over several lines: tokens with an ``end`` behind them, its text in
    one line, and the lines by number."""

    tokens: tuple[Token, ...]
    text: str
    rows: dict[int, str]
    line: int


def logical_lines(text: str, first: int = 1) -> list[Logical]:
    """The commands of a text: blank lines and comments left out, continued lines joined. Raises
    ParseError."""
    return list(each_line(text, first))


def each_line(text: str, first: int = 1) -> Iterator[Logical]:
    """Yield the commands of a text one by one. Raises ParseError."""
    tokens: list[Token] = []
    texts: list[str] = []
    rows: dict[int, str] = {}
    for line, row_text in enumerate(text.removeprefix(_MARK).split("\n"), first):
        row = read_row(row_text, line)
        rows[line] = row_text.rstrip(_BLANKS)
        tokens += row.tokens
        texts += [row.text] if row.text else []
        if row.continued or (texts and not row.text and row_text.strip(_BLANKS)):
            continue  # a comment between the lines of a command does not end it
        yield from _finish(tokens, texts, rows)
        tokens, texts, rows = [], [], {}
    yield from _finish(tokens, texts, rows)


def _finish(tokens: list[Token], texts: list[str], rows: dict[int, str]) -> Iterator[Logical]:
    if tokens:
        last = max(rows)
        end = Token("end", "", last, len(rows[last]) + 1)
        yield Logical((*tokens, end), " ".join(texts), rows, tokens[0].line)
