"""Texts about errors of exits (their own text is site code), and about files that are no exits."""

import traceback
from collections.abc import Sequence
from pathlib import Path

from nqspy.model.errors import Refusal
from nqspy.userexit.guard import Guard


def sayable(text: str) -> str:
    """Return a text that can be sent and stored: lone surrogates (from file names) are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def describe(error: BaseException) -> str:
    """Return an error in one line: its class and its text."""
    try:
        # A request or a view has its own text for a missing name.
        lacks = getattr(type(error.obj), "_lacks", None) if isinstance(error, AttributeError) else None
        message = str(error) if lacks is None else str(lacks(getattr(error, "name", "")))
        text = sayable(" ".join(message.split()).split(" (/")[0])
    except Exception:
        text = ""
    text = text if len(text) <= 300 else text[:297] + "..."
    name = sayable(type(error).__name__)
    if name in ("BadValue", "Nonsense", "Overrun"):
        return text
    return f"{name}: {text}" if text else name


def unloadable(problems: Sequence[str]) -> Refusal:
    """Return the refusal of a reload for these lines (errors): it quotes the first and counts the others."""
    if len(problems) == 1:
        return Refusal("bad_exit", reason=problems[0])
    return Refusal("bad_exits", reason=problems[0], more=len(problems) - 1)


def described(guard: Guard, path: Path, error: BaseException) -> tuple[str, str]:
    """Return an error in one line with the line number in the exit, and its traceback."""
    file = str(path)
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    try:  # an error's own text is site code too
        text = guard.call(describe, (error,), 50)
        trace = guard.call(traceback_of, (error, file), 1_000)
    except BaseException:
        text, trace = sayable(type(error).__name__), ""
    return text + (f" (line {lines[-1]})" if lines else ""), trace


def traceback_of(error: BaseException, file: str) -> str:
    """Return an error with its traceback from the exit's own file on."""
    where = error.__traceback__
    while where is not None and where.tb_frame.f_code.co_filename != file:
        where = where.tb_next
    return sayable("".join(traceback.format_exception(type(error), error, where)))
