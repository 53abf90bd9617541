"""A position in a command that moves on as words are read; keywords may be any unique prefix."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import Struct

from nqspy.model.errors import BadValue
from nqspy.qmgr.lexer import Logical, ParseError, Token

_SHOWN = 6

T = TypeVar("T")


class Keyword(Struct, frozen=True):
    """A keyword: ``least`` letters always suffice; ``means``: the keyword that it stands for."""

    name: str
    least: int
    means: str

    @classmethod
    def spelt(cls, spelling: str, means: str = "") -> "Keyword":
        """Return the keyword for a spelling of the manual: the capitals of ``PER_Request`` suffice."""
        capitals = [place for place, char in enumerate(spelling, 1) if char.isupper()]
        name = spelling.lower()
        return cls(name, max(capitals, default=len(name)), means or name)


def keywords(*spellings: str) -> dict[str, Keyword]:
    """Return keywords by name, from spellings of the manual."""
    return {word.name: word for word in map(Keyword.spelt, spellings)}


def resolve(word: str, keywords: Iterable[Keyword]) -> list[Keyword]:
    """Return the keywords that ``word`` may mean, full or abbreviated: one if that is clear."""
    low = word.lower()
    found = [keyword for keyword in keywords if keyword.name.startswith(low)]
    exact = [keyword for keyword in found if keyword.name == low]
    if exact or len({keyword.means for keyword in found}) <= 1:
        return (exact or found)[:1]
    enough = [keyword for keyword in found if len(low) >= keyword.least]
    return enough if len(enough) == 1 else found


class Cursor:
    """Reads one command's tokens from left to right; methods raise ParseError where it does not fit."""

    def __init__(self, logical: Logical) -> None:
        self.tokens = logical.tokens
        self.rows = logical.rows
        self.at = 0

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or the one ``ahead`` positions behind it; at the end the ``end`` token."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def remaining(self) -> int:
        """Return the number of tokens that remain."""
        return len(self.tokens) - 1 - self.at

    def done(self) -> bool:
        """True if all tokens of the command have been read."""
        return self.peek().kind == "end"

    def skip(self, sign: str) -> bool:
        """Step over a sign if it comes next; return True if it did."""
        if self.peek().kind != sign:
            return False
        self.at += 1
        return True

    def more(self, some: bool = True) -> Iterator[None]:
        """Yield before each item between commas, to the end of the command; at least once if ``some``."""
        while some or not self.done():
            some = False
            self.skip(",")
            yield

    def fail(self, *expected: str, token: Token | None = None) -> ParseError:
        """Return the error for a token (default: the next) that is none of ``expected``, nearest first."""
        token = token or self.peek()
        near = difflib.get_close_matches(token.text.lower(), expected, n=3) if token.kind == "word" else []
        ordered = [*near, *(word for word in expected if word not in near)]
        shown = ", ".join(ordered[:_SHOWN]) + (", ..." if len(ordered) > _SHOWN else "")
        if token.kind == "end":
            problem = "the command is incomplete"
        elif token.kind == "word" and not expected:
            problem = f"{token.text!r} is one word too many"
        else:
            problem = f"{token.text!r} is not known here"
        end = "; the command should end before it" if token.kind != "end" else ""
        problem += f"; expected {shown}" if shown else end
        return ParseError(problem, token, ordered, self.rows.get(token.line, ""))

    def bad(self, problem: str, token: Token) -> ParseError:
        """Return the error about a token with the sentence ``problem``."""
        return ParseError(problem, token, (), self.rows.get(token.line, ""))

    def value(self, read: Callable[[str], T], token: Token) -> T:
        """Return what ``read`` makes of a word; its BadValue becomes an error about the word."""
        try:
            return read(token.text)
        except BadValue as error:
            raise self.bad(str(error), token) from None

    def word(self, what: str) -> Token:
        """Read and return the next word; ``what``: its name in an error."""
        token = self.peek()
        if token.kind != "word":
            raise self.fail(what)
        self.at += 1
        return token

    def name(self, what: str) -> str:
        """Read the next word and return its text, which must not be empty; ``what``: its name in an error."""
        token = self.word(what)
        if not token.text:
            raise self.bad(f"an empty word is not allowed here; expected {what}", token)
        return token.text

    def keyword(self, keywords: Mapping[str, Keyword], *also: str) -> str:
        """Read a keyword and return the one that it means; ``also``: other legal words, for the error."""
        found = self.may_be(keywords)
        if found is None:
            token = self.peek()
            names = [each.name for each in resolve(token.text, keywords.values())] if _is_plain(token) else []
            if len(names) < 2:
                raise self.fail(*keywords, *also)
            problem = f"{token.text!r} is ambiguous: {', '.join(names)}; write more letters"
            raise ParseError(problem, token, names, self.rows.get(token.line, ""))
        self.at += 1
        return found

    def may_be(self, keywords: Mapping[str, Keyword], ahead: int = 0) -> str | None:
        """Return the keyword that the token ``ahead`` positions on clearly means, else None; read nothing."""
        token = self.peek(ahead)
        if not _is_plain(token):
            return None
        if (exact := keywords.get(token.text.lower())) is not None:
            return exact.means
        found = resolve(token.text, keywords.values())
        return found[0].means if len(found) == 1 else None

    def listed(self) -> Iterator[bool]:
        """Yield before each item of a list ``(a, b)``, or of one item: True inside parentheses."""
        several, begun = self.skip("("), False
        while not (several and self.skip(")")) and (several or not begun):
            if begun:
                self.skip(",")
            begun = True
            yield several

    def words(self, what: str) -> list[Token]:
        """Read the words of a list ``(a, b)``, or one word; return them. ``what``: their name in an error."""
        found = []
        for several in self.listed():
            if self.peek().kind != "word":
                raise self.fail(what, *([")"] if several else []))
            found.append(self.word(what))
        return found

    def names(self, what: str) -> list[str]:
        """Read a list ``(a, b)``, or one name; return each name once, in order. ``what``: what an error
        says is expected."""
        return list(dict.fromkeys(token.text for token in self.words(what)))

    def end(self) -> None:
        """Raise ParseError unless the command has ended."""
        if not self.done():
            raise self.fail()


def _is_plain(token: Token) -> bool:
    return token.kind == "word" and not token.quoted and bool(token.text)
