"""Values of settings: from a word of a command to the stored value, and back to an equal word."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from nqspy.model import cron, units
from nqspy.model.errors import BadValue
from nqspy.model.tree import Declared, check_value
from nqspy.qmgr.cursor import Cursor, Keyword, keywords
from nqspy.qmgr.lexer import Token

FLAGS = {
    word: Keyword.spelt(word, means)
    for means, words in (("on", ("on", "yes", "true")), ("off", ("off", "no", "false")))
    for word in words
}
"""Words of a flag."""

NOTHING = ("auto", "none", "unlimited", "unspecified")
"""Words that reset a setting to nothing (if it has such a state)."""

_WHAT = {
    "count": "a whole number or unlimited",
    "number": "a whole number",
    "time": "a time like 600, 10:00 or 24h",
    "size": "a size like 600mb or 32mw",
    "percent": "a percentage like 20%, or unlimited",
    "name": "a name",
    "names": "a list like (a, b)",
    "text": "a text",
    "crons": 'a list of cron times like ("30 8 * * mon-fri")',
    "flag": "on or off",
    "amounts": "a list like (gpu=2, matlab=1), or none",
}
_NUMBERS = ("count", "number", "time", "size", "percent")
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/@+-*%[]~$")


def what(info: Declared) -> str:
    """Return the form of a setting's values in words, for errors and help."""
    if info.words:
        several = f"{info.nothing_written} or a list of" if info.unit == "names" else "one of"
        return f"{several} {', '.join(info.words)}"
    text, may_be_none, _ = _WHAT[info.unit].partition(" or unlimited")
    return f"{text} or {info.nothing_written}" if may_be_none and info.can_be_none else text.rstrip(",")


def read(cursor: Cursor, info: Declared) -> Any:
    """Read and return a setting's value, behind an optional ``=``. Raises ParseError."""
    given = cursor.skip("=")
    if info.unit == "flag":
        if not given and cursor.may_be(FLAGS) is None:
            return True  # the bare word, as in "create batch_queue night pipeonly"
        return cursor.keyword(FLAGS) == "on"
    if info.unit == "names":
        if not info.words:
            found = [token.text for token in cursor.words(what(info))]
            return found if info.distinct else list(dict.fromkeys(found))
        nothing = keywords(info.nothing) if info.nothing else {}
        if cursor.may_be(nothing) is not None:  # the word that stands for no list
            cursor.keyword(nothing)
            return None
        allowed, found = keywords(*info.words), []
        for several in cursor.listed():
            token = cursor.peek()
            if token.kind == "word" and token.text in info.fixed:
                raise cursor.bad(f"{token.text} is always on; leave it out", token)
            found.append(cursor.keyword(allowed, *([")"] if several else [*nothing, "("])))
        return list(dict.fromkeys(found))
    if info.unit == "amounts":
        if is_word(cursor.peek(), *NOTHING):
            cursor.word(what(info))
            return []
        return read_amounts(cursor, what(info))
    if info.unit == "crons":
        return [cursor.value(_cron, token) for token in cursor.words(what(info))]
    [value] = read_several(cursor, info, 1)
    return value


def is_word(token: Token, *words: str) -> bool:
    """True if a token is one of these words, in any case and without quotes."""
    return token.kind == "word" and not token.quoted and token.text.lower() in words


def read_amounts(cursor: Cursor, what: str) -> list[str]:
    """Return the items of ``(gpu=2, matlab=1)``, each name once. Raises ParseError."""
    found: dict[str, int] = {}
    for _ in cursor.listed():
        name = cursor.word(what)
        if not cursor.skip("="):
            raise cursor.fail("=")
        token = cursor.word("a whole number")
        nothing = token.text.lower() in NOTHING
        number = units.UNLIMITED if nothing else cursor.value(units.parse_count, token)
        if number == units.UNLIMITED or name.text in found:
            text = "is named twice" if name.text in found else "needs a number here, or leave it out"
            raise cursor.bad(f"{name.text} {text}", name)
        found[name.text] = number
    return [f"{name}={number}" for name, number in found.items()]


def read_several(cursor: Cursor, info: Declared, most: int) -> list[Any]:
    """Read one value of a setting, or up to ``most`` in parentheses; return them as a list."""
    if info.words:
        return [cursor.keyword(keywords(*info.words))]
    start = cursor.peek()
    tokens = cursor.words(what(info))
    if not 0 < len(tokens) <= most:
        amount = "one value" if most == 1 else f"one to {most} values"
        raise cursor.bad(f"{info.name} needs {amount} here, not {len(tokens)}", start)
    return [convert(cursor, info, token) for token in tokens]


def convert(cursor: Cursor, info: Declared, token: Token) -> Any:
    """Return the value that one word means; None for a word of `NOTHING`. Raises ParseError at that word."""
    if not token.quoted and token.text.lower() in (*NOTHING, info.nothing):
        if info.can_be_none:
            return None
        if info.unit in _NUMBERS:
            raise cursor.bad(f"{info.name} cannot be {token.text.lower()}; expected {what(info)}", token)

    def read(text: str) -> Any:
        try:
            value = _parse(info, text)
            check_value(info, value)
            return value
        except BadValue as error:
            forms = str(error).removesuffix(" or unlimited")
            if forms == str(error):
                raise
            nothing = f"{forms} or {info.nothing_written}"  # a word of its own, or none
            raise BadValue(nothing if info.can_be_none else " or ".join(forms.rsplit(", ", 1))) from None

    return cursor.value(read, token)


def _parse(info: Declared, text: str) -> Any:
    if info.unit in ("name", "text"):
        return text
    if info.unit == "percent":
        return units.parse_percent(text)
    if (info.low or 0) < 0 and text[:1] == "-" and text[1:].isdigit():
        return -units.parse_count(text[1:])
    reader = {"time": units.parse_time, "size": units.parse_size}.get(info.unit)
    wanted = f"whole number from {info.low or 0} " + ("upward" if info.high is None else f"to {info.high}")
    wanted += f" or {info.nothing_written}" if info.can_be_none else ""
    value = reader(text) if reader is not None else units.parse_count(text, wanted)
    return None if value == units.UNLIMITED else value


def _cron(text: str) -> str:
    """Return a cron expression of five fields, which must fire at some time. Raises BadValue."""
    if len(text.split()) != 5:
        wanted = '(it needs 5 fields); write it like "30 8 * * mon-fri"'
        raise BadValue(f"{text!r} is not a cron time {wanted}")
    cron.read(text)
    return " ".join(text.split())


def quote(text: str) -> str:
    """Return a text written so that it is read as one word and unchanged."""
    plain = text and set(text) <= _SAFE and text.lower() not in NOTHING
    if plain:
        return text
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    for char, escape in (("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        shown = shown.replace(char, escape)
    return f'"{shown}"'


def write_names(names: tuple[str, ...] | list[str]) -> str:
    """Return a list written as commands have it: ``(a, b)``, names quoted where needed."""
    return f"({', '.join(quote(name) for name in names)})"


_WRITERS: dict[str, Callable[[Any], str]] = {
    "flag": lambda value: "on" if value else "off",
    "names": write_names,
    "crons": write_names,
    "amounts": lambda amounts: f"({', '.join(amounts)})",
    "time": units.format_time,
    "size": units.format_size,
    "percent": lambda value: f"{Decimal(repr(value)).normalize():f}%",
}


def write(info: Declared, value: Any) -> str:
    """Return a setting's value as text, in the form that `read` reads; None as the word for nothing."""
    if value is None:
        return info.nothing_written
    if info.words and value in info.words:
        return str(value)  # also where it is "none"
    writer = _WRITERS.get(info.unit)
    return writer(value) if writer is not None else quote(str(value))


def written(settings: Iterable[tuple[str, Declared, Any]]) -> dict[str, str]:
    """Return settings of an object (`tree.items`, `tree.changed`) by path, in the form that `read` reads."""
    return {path: write(info, value) for path, info, value in settings}
