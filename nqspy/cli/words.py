"""Splitting a line into words as a shell does, without `shlex` (which would import `re`)."""

from nqspy.model.amounts import Wrong

_BLANKS = " \t\r\n\f\v"
_ESCAPED_IN_DOUBLE = '"\\$`'

LINE_AFTER = "after:"
"""Word in a line of a list that names a request to wait for."""
AFTER_WORDS = ("ok", "any", "fail", "start", "each")
"""Conditions of a dependency (`model.requests` has them for the engine)."""


def split(line: str) -> list[str]:
    """Return the words of a line as in a shell; ``#`` begins a comment. Raises Wrong for an open quote."""
    words: list[str] = []
    at, end = 0, len(line)
    while True:
        while at < end and line[at] in _BLANKS:
            at += 1
        if at >= end or line[at] == "#":
            return words
        word, at = _word(line, at)
        words.append(word)


def _word(line: str, at: int) -> tuple[str, int]:
    """Return the word that begins at ``at``, and the position behind it."""
    text, quote, opened = "", "", 0
    while at < len(line) and (quote or line[at] not in _BLANKS):
        char, after = line[at], line[at + 1 : at + 2]
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote, opened = char, at
        elif char == "\\" and after and (not quote or (quote == '"' and after in _ESCAPED_IN_DOUBLE)):
            text, at = text + after, at + 1
        else:
            text += char
        at += 1
    if quote:
        raise Wrong(f"the quote {quote} at column {opened + 1} is not closed")
    return text, at


def split_list(text: str) -> list[str]:
    """Return the pieces between commas that are not in quotes (removed) or parentheses. Raises Wrong."""
    pieces: list[str] = []
    piece, quote, depth = "", "", 0
    for char in text:
        if quote:
            quote, char = ("", "") if char == quote else (quote, char)
        elif char in "'\"":
            quote, char = char, ""
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth < 0:
                raise Wrong("a ) has no matching (")
        elif char == "," and not depth:
            pieces.append(piece)
            piece = ""
            continue
        piece += char
    if quote or depth:
        raise Wrong(f"the quote {quote} is not closed" if quote else "a ( has no matching )")
    return [*pieces, piece]


def split_variables(text: str) -> list[str]:
    """Return the items ``NAME`` and ``NAME=VALUE`` of ``-v`` and ``--export``. A comma ends an item unless a
    backslash stands before it or quotes enclose the whole value or item; other quotes and backslashes are
    bytes of the value. Raises Wrong."""
    items: list[str] = []
    at = 0
    while at <= len(text):
        while text[at : at + 1] == " ":
            at += 1
        item, at = _variable(text, at)
        name = item.partition("=")[0]
        letters = name.replace("_", "").replace(".", "").replace("-", "").replace("%", "")
        if item and (not name or name[0].isdigit() or not (letters + "a").isalnum()):
            raise Wrong(f"{item!r} is not NAME or NAME=VALUE; write a comma that belongs to a value as \\,")
        items += [item] if item else []
    return items


def _variable(text: str, start: int) -> tuple[str, int]:
    """Return the item that begins at ``start``, and the position behind its comma."""
    at, item = start, ""
    while at < len(text) and (char := text[at]) != ",":
        if char in "'\"" and (at == start or item.find("=") == len(item) - 1):
            end = _enclosing(text, at)
            return item + text[at + 1 : end], end + 2
        run = 0
        while text[at + run : at + run + 1] == "\\":
            run += 1
        if run and text[at + run : at + run + 1] == ",":
            item += "\\" * (run // 2) + "," * (run % 2)
            at += run + run % 2
        else:
            item += text[at : at + max(run, 1)]
            at += max(run, 1)
    return item, at + 1


def _enclosing(text: str, at: int) -> int:
    """Return the position of the quote that closes the one at ``at``, at an item's end. Raises Wrong."""
    end = at
    while (end := text.find(text[at], end + 1)) >= 0:
        if text[end + 1 : end + 2] in ("", ","):
            return end
    if text.find(text[at], at + 1) < 0:
        raise Wrong(f"the quote {text[at]} is not closed")
    raise Wrong(f"the quote {text[at]} at column {at + 1} encloses only a part of a value; enclose all of it")
