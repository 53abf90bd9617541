"""Parser of qmgr's language: from text to commands, and the keywords that may stand at a place in it."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from nqspy.model import commands
from nqspy.model.commands import Command, Configure
from nqspy.qmgr import orders, rules
from nqspy.qmgr.cursor import Cursor, keywords
from nqspy.qmgr.grammar import ABSENT, FORMS, TREE, Form
from nqspy.qmgr.lexer import Logical, ParseError, Token, logical_lines
from nqspy.qmgr.rules import ClientWord, Order, Rule

__all__ = [
    "ClientWord", "Order", "ParseError", "Parsed", "completions", "opens_block", "parse_text",
]  # fmt: skip

RULES: dict[str, Rule] = {
    form.rule: getattr(rules if hasattr(rules, form.rule) else orders, form.rule) for form in FORMS
}
"""Functions of the rules, by name."""

_END = keywords("end")


class Parsed(Struct, frozen=True):
    """A command, its first line's number, and its text (continued lines joined, without comments)."""

    command: Order
    line: int
    text: str


def parse_text(text: str, source: str = "") -> list[Parsed]:
    """Return all commands of a file or script; errors and the journal name ``source``. Raises ParseError."""
    return list(read_text(text, source))


def read_text(text: str, source: str = "") -> Iterator[Parsed]:
    """Yield the commands one by one, so that a long text is read in slices. Raises ParseError."""
    try:
        lines = logical_lines(text)
        for logical in lines:
            if _is_end(logical):
                raise Cursor(logical).bad("'end' needs a 'define shift' before it", logical.tokens[0])
            form, command = _parse(logical)
            if form.rule == "define_shift":
                command = _with_lines(command, logical, lines)
            if source and isinstance(command, Configure):
                command = replace(command, source=source)
            yield Parsed(command, logical.line, logical.text)
    except ParseError as error:
        error.source = source
        raise


def completions(text_before_cursor: str) -> list[str]:
    """Return the keywords that may stand at the cursor, given the beginning of the word there."""
    text, typed = text_before_cursor, ""
    try:
        found = list(logical_lines(text))
        tokens = list(found[-1].tokens[:-1]) if found else []
        rows = found[-1].rows if found else {1: text}
        last = tokens[-1] if tokens else None
        if last is not None and last.kind == "word" and not last.quoted and text[-1:] == last.text[-1:]:
            typed = tokens.pop().text
        cursor = Token("cursor", typed, max(rows), len(text) - len(typed) + 1)
        _parse(Logical((*tokens, cursor, cursor), text, rows, 1))
    except ParseError as error:
        partial = error.word.lower()
        candidates = error.expected if error.column == len(text) - len(partial) + 1 else ()
        return sorted(word for word in candidates if " " not in word and word.startswith(partial))
    return []


def opens_block(text: str) -> bool:
    """True if a line is a ``define shift``, so that the lines up to ``end`` belong to it."""
    try:
        return any(_parse(logical)[0].rule == "define_shift" for logical in logical_lines(text))
    except ParseError:
        return False


def _parse(logical: Logical) -> tuple[Form, Order]:
    cursor = Cursor(logical)
    words = (cursor.peek().text.lower(), cursor.peek(1).text.lower())
    if words in ABSENT:
        message = f"'{' '.join(words)}' has no meaning here: {ABSENT[words]}; remove the line"
        raise cursor.bad(message, cursor.peek())
    node = TREE
    while node.below:
        if node.form is not None and (cursor.done() or cursor.may_be(node.keywords) is None):
            break
        node = node.below[cursor.keyword(node.keywords)]
    form = node.form
    assert form is not None
    command = RULES[form.rule](cursor, form)
    cursor.end()
    return form, command


def _with_lines(head: Order, logical: Logical, lines: Iterator[Logical]) -> Command:
    texts: list[str] = []
    encoded = []
    for inner in lines:
        if _is_end(inner):
            break
        form, command = _parse(inner)
        changes = command.changes if isinstance(command, Configure) else ()
        about_shifts = any(change.path.startswith("shift/") for change in changes)
        if not isinstance(command, commands.IN_SHIFTS) or about_shifts:
            allowed = "settings, reload exits, abort or purge queue, hold or release request"
            problem = f"'{' '.join(form.words)}' is not allowed in a shift; allowed: {allowed}"
            raise Cursor(inner).bad(problem, inner.tokens[0])
        encoded.append(commands.encode(command))
        texts.append(inner.text)
    else:
        problem = "'define shift' needs its commands on the next lines, and 'end' on a line of its own"
        raise Cursor(logical).bad(problem, logical.tokens[0])
    assert isinstance(head, Configure)
    [change] = head.changes
    value = change.value | {"lines": texts, "commands": encoded}
    return Configure((replace(change, value=value),))


def _is_end(logical: Logical) -> bool:
    return len(logical.tokens) == 2 and Cursor(logical).may_be(_END) is not None and len(logical.text) == 3
