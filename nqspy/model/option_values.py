"""Values of options as user exits and JSON show them: no limit is None."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from nqspy.model.options import Option
from nqspy.model.requests import Ask, Spec, finite

_WANTED: Mapping[str, Callable[[Ask], Any]] = {"ask/cpu": Ask.finite_cpu, "ask/memory": Ask.finite_memory}
PLAIN = ("count", "number", "name", "names", "flag")
"""Units of options whose value is that of the field."""


def field_of(option: Option) -> str:
    """Return the field of an option as a dotted name below `Spec`."""
    return option.path.replace("/", ".")


def field_reader(option: Option) -> Callable[[Spec], Any]:
    """Return the function that reads the field of an option off a request's specification."""
    limit = option.path.removeprefix("ask/")
    if "/" in limit and limit != option.path:
        return lambda spec: finite(dict(spec.ask.others).get(limit))
    read = attrgetter(field_of(option))
    if option.unit in ("time", "size"):
        return lambda spec: finite(read(spec))
    return (lambda spec: dict(read(spec))) if option.unit == "amounts" else read


def reader(option: Option) -> Callable[[Spec], Any]:
    """Return the same function, except that of CPU time and memory the limit of each process counts if the
    request has none."""
    wanted = _WANTED.get(option.path)
    return field_reader(option) if wanted is None else lambda spec: wanted(spec.ask)
