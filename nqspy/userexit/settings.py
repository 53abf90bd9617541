"""Settings of an exit module: declared in its file, changed by ``set exit NAME SETTING=VALUE``."""

import math
import sys
from collections.abc import Mapping
from typing import Any, Generic, Literal, NoReturn, TypeVar, get_args, overload

from nqspy.model.errors import BadValue, listed
from nqspy.model.units import UNLIMITED, parse_count, parse_size, parse_time

T = TypeVar("T")

Unit = Literal["memory", "size", "time", "count", "number", "percent", "text", "flag", "names"]
"""memory and size: bytes; time: ms; count: whole number from 0; these four may be ``unlimited``, which reads
as infinity. number: any number; percent: 0 to 100; text; flag: on or off; names: a tuple of words."""

UNITS: tuple[str, ...] = get_args(Unit)
RESERVED = ("enabled", "budget")
"""Settings that every exit has; a file must not declare them."""

_put = object.__setattr__
_FLAGS = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}


def read(unit: str, text: str) -> Any:
    """Return the value that a text means in the given `Unit`. Raises BadValue."""
    if unit in ("memory", "size", "time", "count"):
        parse = {"time": parse_time, "count": parse_count}.get(unit, parse_size)
        value = parse(text.strip())
        return math.inf if value == UNLIMITED else value
    if unit in ("number", "percent"):
        shown = text.strip()
        try:
            number = float(shown.removesuffix("%") if unit == "percent" else shown)
        except ValueError:
            raise BadValue(f"{shown!r} is not a number") from None
        if not math.isfinite(number) or (unit == "percent" and not 0 <= number <= 100):
            raise BadValue(
                f"{shown!r} is not a {'percentage from 0 to 100' if unit == 'percent' else 'number'}"
            )
        return int(number) if number.is_integer() else number
    if unit == "flag":
        if text.strip().lower() not in _FLAGS:
            raise BadValue(f"{text!r} must be on or off")
        return _FLAGS[text.strip().lower()]
    if unit == "names":
        return tuple(text.strip().strip("()").replace(",", " ").split())
    return text


class Setting(Generic[T]):
    """A setting of an exit module. ``value``: its value in force, which a call also returns; ``text``: the
    same as it was written. Read only, because passes read it thousands of times.

    The setting itself is not its value: testing or comparing it raises TypeError, so that a forgotten
    ``.value`` shows at once.
    """

    __slots__ = ("default", "doc", "line", "name", "text", "unit", "value")
    name: str
    unit: str
    default: str
    doc: str
    line: int
    text: str
    value: T

    def __init__(self, name: str, unit: str, default: str, doc: str, line: int = 0) -> None:
        given = {"name": name, "unit": unit, "default": default, "doc": doc, "line": line}
        for attribute, value in given.items():
            _put(self, attribute, value)
        self.apply(None)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"setting {self.name} is read only; change it with set exit ... {self.name}=...")

    def __call__(self) -> T:
        return self.value

    def apply(self, text: str | None) -> None:
        """Set the value from a text (None: the default). Raises BadValue; the value stays as it was then."""
        text = self.default if text is None else text
        _put(self, "value", read(self.unit, text))
        _put(self, "text", text)

    def __repr__(self) -> str:
        return f"<setting {self.name}={self.text}>"

    def _misused(self, *_: object) -> NoReturn:
        raise TypeError(f"{self.name} is a setting; read its value with {self.name}.value")

    __bool__ = _misused
    __lt__ = __le__ = __gt__ = __ge__ = _misused
    __eq__ = _misused
    __hash__ = object.__hash__


@overload
def setting(
    name: str, unit: Literal["memory", "size", "time", "count", "number", "percent"], default: str, doc: str
) -> Setting[float]: ...
@overload
def setting(name: str, unit: Literal["text"], default: str, doc: str) -> Setting[str]: ...
@overload
def setting(name: str, unit: Literal["flag"], default: str, doc: str) -> Setting[bool]: ...
@overload
def setting(name: str, unit: Literal["names"], default: str, doc: str) -> Setting[tuple[str, ...]]: ...


def setting(name: str, unit: str, default: str, doc: str) -> Setting[Any]:
    """Declare a setting of this exit module, at the top level of its file; its value is ``.value``.

    ``default`` is written as a person would: ``setting("hmax", "memory", "115mw", "what it means")``. Raises
    BadValue for an unknown unit, a bad name, or a default that does not fit.
    """
    if not name.isidentifier() or name in RESERVED:
        raise BadValue(f"{name!r} is not a name for a setting")
    if unit not in UNITS:
        raise BadValue(f"{unit!r} is not a unit of a setting; units: {', '.join(UNITS)}")
    return Setting(name, unit, str(default), doc, sys._getframe(1).f_lineno)


def check(declared: Mapping[str, Mapping[str, str]], exit: str, name: str, text: str) -> None:
    """Raise BadValue unless an exit is ``declared`` (with the units of its settings), has this setting, and
    accepts the text as its value."""
    if exit not in declared:
        raise BadValue(f"no exit {exit} is loaded; loaded exits: {listed(declared)}")
    known = declared[exit]
    if name not in known:
        raise BadValue(f"exit {exit} has no setting {name}; settings: {listed((*RESERVED, *known))}")
    read(known[name], text)
