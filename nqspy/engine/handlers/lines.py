"""Names in settings are single lines: a line break in one would be a further line of ``snap`` and of files
made of it, another control character would reach a terminal. Texts (a command) may have those
that the command language can write: line ends and tabs."""

from collections.abc import Iterator
from typing import Any
from unicodedata import category

from nqspy.model import registry
from nqspy.model.configure import renamed
from nqspy.model.errors import BadValue
from nqspy.model.events import Change

_BREAKING = ("Cc", "Zl", "Zp", "Cs")
_SHOWN = 60


def check(change: Change) -> None:
    """Raises BadValue for a path or value with a control character that may not stand there."""
    for path, text in _texts(renamed(change.path), change.value):
        if text.isprintable():
            continue
        allowed = "" if _is_name(path) else "\n\t\r"
        if any(category(char) in _BREAKING and char not in allowed for char in text):
            where = change.path if change.path.isprintable() else "the path of a setting"
            raise BadValue(
                f"{where}: line breaks and other control characters cannot be part of it: {text[:_SHOWN]!a}"
            )


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """All texts of a change with the setting they belong to."""
    yield path, path
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _texts(f"{path}/{key}", one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(path, one)


def _is_name(path: str) -> bool:
    kind, _, _ = registry.split(path)
    known = registry.declared_at(path)
    return kind is None or (known is not None and known.unit != "text")
