"""Values of attributes as PBS writes them: spans, sizes, numbers, lists of variables."""

import re
from collections.abc import Mapping
from functools import cached_property

import msgspec

from nqspy.report.time_text import clock_span

_ENCODE = msgspec.json.Encoder().encode
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?")
"""What JSON takes for a number; greater ones would not come back as they were."""

_FIRST = (
    "HOME", "LANG", "LOGNAME", "PATH", "MAIL", "SHELL", "TZ", "HOST", "WORKDIR", "SYSTEM", "QUEUE",
)  # fmt: skip
"""Variables of the submission in their order: programs look for WORKDIR before others."""
_TWINS = frozenset({f"QSUB_{name}" for name in (*_FIRST, "USER")})
"""Their NQS counterparts with the same values."""


def span(ms: int) -> str:
    """``HH:MM:SS``."""
    return clock_span(ms // 1000)


def kilobytes(size: int) -> str:
    """``65536kb``, rounded up."""
    return f"{-(-size // 1024)}kb"


def on_a_line(text: str) -> str:
    """A text without line breaks: newline, form feed, backslash as ``\\n``, ``\\f`` and two backslashes."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    return text.replace("\n", "\\n").replace("\f", "\\f") if "\n" in text or "\f" in text else text


def is_number(text: str) -> bool:
    """True if a text is written in JSON as a number."""
    return _NUMBER.fullmatch(text) is not None


def parsed(text: str) -> str | msgspec.Raw:
    """A text as JSON has it: what reads as a number is one."""
    return msgspec.Raw(text.encode()) if is_number(text) else text


def number_or_text(text: str | None) -> str | int | None:
    """A whole number where a text is one."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 18 else text


class VariableList:
    """``Variable_List`` in PBS's two forms, one for all requests that share an environment."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    @classmethod
    def of(cls, environment: bytes, workdir: str, queue: str) -> "VariableList":
        """Make the list of an environment, without the place and queue of the submission."""
        words = (word.partition("=") for word in environment.decode("utf-8", "replace").split("\0"))
        found = {name: value for name, equals, value in words if equals and name}
        found["PBS_O_WORKDIR"] = workdir
        if queue:
            found["PBS_O_QUEUE"] = queue
        first = [f"PBS_O_{name}" for name in _FIRST]
        order = [name for name in first if name in found] + [name for name in found if name not in first]
        return cls({name: found[name] for name in order if name not in _TWINS})

    @cached_property
    def text(self) -> str:
        """``NAME=value,…`` on one line: commas and backslashes in values are escaped."""
        items = self._variables.items()
        return ",".join([on_a_line(f"{name}={value}").replace(",", "\\,") for name, value in items])

    @cached_property
    def json(self) -> str:
        """An object, values as they are."""
        return _ENCODE({name: parsed(value) for name, value in self._variables.items()}).decode()
