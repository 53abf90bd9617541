"""Values of attributes as PBS writes them: spans, sizes, numbers, lists of variables."""

import re
from collections.abc import Mapping
from functools import cached_property

import msgspec

from nqspy.report.time_text import clock_span

_ENCODE = msgspec.json.Encoder().encode
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?")
"""Pattern of a number in JSON; greater ones would not come back unchanged."""

_FIRST = (
    "HOME", "LANG", "LOGNAME", "PATH", "MAIL", "SHELL", "TZ", "HOST", "WORKDIR", "SYSTEM", "QUEUE",
)  # fmt: skip
"""Variables of the submission in order: programs look for WORKDIR before others."""
_TWINS = frozenset({f"QSUB_{name}" for name in (*_FIRST, "USER")})
"""Variables of NQS with the same values."""


def span(ms: int) -> str:
    """Return a time in ms as ``HH:MM:SS``."""
    return clock_span(ms // 1000)


def kilobytes(size: int) -> str:
    """Return bytes as ``65536kb``, rounded up."""
    return f"{-(-size // 1024)}kb"


def on_a_line(text: str) -> str:
    """Return a text on one line: newline, form feed and backslash are escaped with a backslash."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    return text.replace("\n", "\\n").replace("\f", "\\f") if "\n" in text or "\f" in text else text


def is_number(text: str) -> bool:
    """True if a text is a number as JSON writes it (not ``007``), of at most 18 digits before the point."""
    return _NUMBER.fullmatch(text) is not None


def parsed(text: str) -> str | msgspec.Raw:
    """Return a text for JSON: as a number if it is written like one (``12``, ``1.5``, not ``007``)."""
    return msgspec.Raw(text.encode()) if is_number(text) else text


def number_or_text(text: str | None) -> str | int | None:
    """Return a text as a whole number if it is one of digits only, else unchanged."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 18 else text


class VariableList:
    """``Variable_List`` in PBS's two forms, one object for all requests that share an environment."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    @classmethod
    def of(cls, environment: bytes, workdir: str, queue: str) -> "VariableList":
        """Return the list for an environment (``NAME=value`` separated by null bytes), with the submission's
        folder ``workdir`` and queue."""
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
        """Return ``NAME=value,…`` on one line: commas and backslashes in values are escaped."""
        items = self._variables.items()
        return ",".join([on_a_line(f"{name}={value}").replace(",", "\\,") for name, value in items])

    @cached_property
    def json(self) -> str:
        """Return a JSON object, with the values as they are."""
        return _ENCODE({name: parsed(value) for name, value in self._variables.items()}).decode()
