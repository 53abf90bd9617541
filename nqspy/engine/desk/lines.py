"""Names in settings are single lines: a line break in one would be a further line of ``snap`` and of files
made of it, another control character would reach a terminal. Texts (the command of a probe) may have those
that the command language can write: line ends and tabs."""

from collections.abc import Iterator
from typing import Any
from unicodedata import category

from nqspy.model.configure import OBJECTS, SINGLES, renamed
from nqspy.model.errors import BadValue
from nqspy.model.events import Change
from nqspy.model.site import Settings
from nqspy.model.tree import declared

_BREAKING = ("Cc", "Zl", "Zp", "Cs")
_SHOWN = 60


def check(settings: Settings, change: Change) -> None:
    """Raises BadValue for a path or value with a control character that may not stand there."""
    for path, text in _texts(renamed(change.path), change.value):
        allowed = "" if _is_name(settings, path) else "\n\t\r"
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


def _is_name(settings: Settings, path: str) -> bool:
    head, _, rest = path.partition("/")
    if head in SINGLES:
        known = declared(type(getattr(settings, SINGLES[head])))
    elif head in OBJECTS:
        known, rest = declared(OBJECTS[head][1]), rest.partition("/")[2]
    else:
        return True
    return rest in known and known[rest].unit != "text"
