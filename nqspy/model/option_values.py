"""Values of options as reports and user exits show them: no limit is None."""

from collections.abc import Callable, Mapping
from typing import Any

from nqspy.model.options import Option
from nqspy.model.requests import Ask, finite

Part = tuple[str, Callable[[Any], Any] | None]
"""A field below `Spec` as a dotted name, and the function that makes the value of an option of it, if any."""

_CONVERT: Mapping[str, Callable[[Any], Any]] = {"time": finite, "size": finite, "amounts": dict}
_WANTED: Mapping[str, Callable[[Ask], Any]] = {"ask/cpu": Ask.finite_cpu, "ask/memory": Ask.finite_memory}


def field_part(option: Option) -> Part:
    """Return the field of an option and the function that makes its value."""
    limit = option.path.removeprefix("ask/")
    if "/" in limit and limit != option.path:
        return "ask.others", lambda others: finite(dict(others).get(limit)) if others else None
    return option.path.replace("/", "."), _CONVERT.get(option.unit)


def shown_part(option: Option) -> Part:
    """Return the same, except that of CPU time and memory the limit of each process counts if the request has
    none."""
    return ("ask", _WANTED[option.path]) if option.path in _WANTED else field_part(option)
