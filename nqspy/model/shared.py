"""Equal parts of many requests as one object: those of one list differ in a name and a date."""

import typing
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, TypeVar

import msgspec

from nqspy.model.requests import Spec

T = TypeVar("T")

_hints = typing.get_type_hints(Spec)
_PARTS = [f for f in msgspec.structs.fields(Spec) if _hints[f.name] not in (int, bool)]
_NAMES, _DEFAULTS = tuple(f.name for f in _PARTS), tuple(f.default for f in _PARTS)
_values = attrgetter(*_NAMES)


class Shared:
    """Knows the parts it has seen."""

    def __init__(self) -> None:
        self._parts: dict[Any, Any] = {}

    def one(self, value: T) -> T:
        """One object for equal values."""
        found: T = self._parts.setdefault(value, value)
        return found

    def spec(self, spec: Spec) -> Spec:
        """The same specification, its parts shared. It must be fresh: nobody else has it yet, so that equal
        parts put into it change nothing but memory."""
        share, values = self._parts.setdefault, _values(spec)
        for name, value in compress(zip(_NAMES, values), map(is_not, values, _DEFAULTS)):  # noqa: B905
            if (known := share(value, value)) is not value:
                msgspec.structs.force_setattr(spec, name, known)
        return spec
