"""Sizes, times and counts as people write them (nqs.md 2.2, interfaces.md 6), as whole numbers. Clients
import this file, so it imports nothing. `units` wraps it with the daemon's errors."""

UNLIMITED = -1
"""A limit that was asked for as ``unlimited``; None means it was not given at all."""

GREATEST = 2**62
"""Greatest size or time: rows, columns and JSON can hold it, with room to add."""

WORDS = ("unlimited", "infinity", "infinite")
"""Words for no limit."""

_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SUFFIXES = (("days", 86_400), ("day", 86_400), ("hours", 3_600), ("hour", 3_600), ("min", 60), ("sec", 1))
_LETTERS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


NO_SHELL = "{shell!r} is not a shell; give its whole path, such as /bin/sh"
"""Message about a path that cannot be a shell."""


class Wrong(ValueError):
    """A value that cannot be read; its text says what is wrong and what would be right."""


def late_warning(warning: str, limit: str) -> Wrong:
    """Return the error for a warning value above its limit, both as the user wrote them (``10:00``)."""
    return Wrong(f"the warning {warning} is above the limit {limit}; write a lower one")


def parse_size(text: str) -> int:
    """Return the bytes of ``115mw``, ``2.5gb``, ``1024``, rounded up; 1 word is 8 bytes. Raises Wrong."""
    if text.lower() in WORDS:
        return UNLIMITED
    low = text.strip().lower()
    factor = 1
    if low[-1:] in ("w", "b"):
        factor = 8 if low[-1] == "w" else 1
        low = low[:-1]
    if low[-1:] in _POWERS:
        factor *= 1024 ** _POWERS[low[-1]]
        low = low[:-1]
    wrong = f"{text!r} is not a size; write it like 600mb, 32mw or unlimited"
    return _whole([(low, factor)], wrong)


def parse_time(text: str) -> int:
    """Return the ms of ``600``, ``10:00``, ``1.5``, ``24h``, ``500ms``, rounded up. Raises Wrong."""
    if text.lower() in WORDS:
        return UNLIMITED
    low = text.strip().lower()
    wrong = f"{text!r} is not a time; write it like 600, 10:00, 1:00:00, 30min, 24h or unlimited"
    if low.endswith("ms"):
        return _whole([(low[:-2], 1)], wrong)
    for suffix, seconds in _SUFFIXES:
        if low.endswith(suffix):
            return _whole([(low.removesuffix(suffix).strip(), seconds * 1000)], wrong)
    if low[-1:] in _LETTERS:
        return _whole([(low[:-1], _LETTERS[low[-1]] * 1000)], wrong)
    parts = low.split(":")[::-1]
    if len(parts) > 4:
        raise Wrong(wrong)
    weights = (1_000, 60_000, 3_600_000, 86_400_000)
    return _whole(list(zip(parts, weights, strict=False)), wrong)


def parse_count(text: str, wanted: str = "whole number from 0 upward") -> int:
    """Return a whole number from 0 upward, or UNLIMITED. Raises Wrong, which names what is ``wanted``."""
    if text.lower() in (*WORDS, "unspecified"):
        return UNLIMITED
    if not (text.isascii() and text.isdigit()):
        raise Wrong(f"{text!r} is not a {wanted}")
    if len(text) > 15:
        raise Wrong(f"{text!r} is too large for a number")
    return int(text)


def parse_number(text: str, low: int, high: int) -> int:
    """Return a whole number, which may have a sign, from ``low`` to ``high``. Raises Wrong."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 15 or not low <= int(text) <= high:
        raise Wrong(f"{text!r} is not a whole number from {low} to {high}")
    return int(text)


def _whole(products: list[tuple[str, int]], wrong: str) -> int:
    """Return the sum of these decimal fractions, each times its factor, computed exactly and rounded up."""
    scale = max(len(digits.partition(".")[2]) for digits, _ in products)
    total = 0
    for digits, factor in products:
        before, _, after = digits.partition(".")
        both = before + after
        if not both or len(digits) > 20 or not both.isascii() or not both.isdigit():
            raise Wrong(wrong)
        total += int(both) * factor * 10 ** (scale - len(after))
    value: int = -(-total // 10**scale)
    if value > GREATEST:
        raise Wrong(wrong.replace("is not", "is too large for", 1))
    return value
