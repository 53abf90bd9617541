"""Changes of specifications (`Spec`): other PEs, shared parts, size as text, and options as shown."""

import typing
from collections.abc import Callable, Mapping
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, TypeVar

import msgspec
from msgspec import structs
from msgspec.structs import replace

from nqspy.model.arrays import counted
from nqspy.model.options import Option
from nqspy.model.requests import Ask, Request, Spec, finite
from nqspy.model.shapes import Layout, Sizes, reckoned, wall_by_speedup


def on_size(spec: Spec, pes: int) -> Spec:
    """Return a moldable specification that asks for ``pes`` PEs and the wall limit on them; unchanged if
    ``pes`` is none of its sizes."""
    mold = spec.mold
    if mold is None or pes not in mold.sizes:
        return spec
    return replace(spec, ask=replace(spec.ask, pes=pes, wall=mold.wall_on(pes)))


def while_waiting(spec: Spec) -> Spec:
    """Return a moldable specification that asks for its smallest size and shortest time; others unchanged."""
    mold = spec.mold
    if mold is None:
        return spec
    wall = min(mold.walls, default=mold.base)
    return replace(spec, ask=replace(spec.ask, pes=mold.sizes[0], wall=wall))


def sized(request: Request, pes: int) -> Request:
    """Return a moldable request on the size ``pes`` (`on_size`); unchanged if it is fixed or ``pes`` is 0."""
    if request.spec.mold is None or not pes:
        return request
    return structs.replace(request, spec=on_size(request.spec, pes))


def settled(spec: Spec) -> Spec:
    """Return a moldable specification as it waits, with wall limits computed; one size alone is fixed."""
    if spec.mold is None:
        return spec
    made = replace(spec, mold=reckoned(spec.mold))
    if len(spec.mold.sizes) == 1:
        return replace(on_size(made, spec.mold.sizes[0]), mold=None)
    return while_waiting(made)


def fixed(spec: Spec, pes: int) -> Spec:
    """Return a specification for ``pes`` PEs alone. Its wall limit is that of the size if it is one of
    ``mold``, else the one by its speedup, else as before."""
    made, mold = on_size(spec, pes), spec.mold
    wall = made.ask.wall if mold is None or pes in mold.sizes else wall_by_speedup(mold, pes) or made.ask.wall
    return replace(made, mold=None, ask=replace(made.ask, pes=pes, wall=wall))


def timed(spec: Spec, wall: int | None) -> Spec:
    """Return a moldable specification with another wall limit (ms): with a speedup on one PE, else on all."""
    assert spec.mold is not None
    return replace(spec, mold=replace(spec.mold, base=wall, walls=()))


def resized(former: Spec, spec: Spec, wall: int | None) -> Spec:
    """Return ``spec`` with gaps of its new mold filled from ``former``: its sizes, and its wall limit if the
    mold gives no times. ``wall``: the limit (ms) asked for in the same change; None: none was."""
    mold, before = spec.mold, former.mold or Sizes()
    assert mold is not None
    sizes = mold.sizes or before.sizes
    if wall is None and not mold.walls:
        wall = before.base if former.mold is not None else former.ask.wall
        wall = max(before.walls) if wall is None and before.walls and mold.speedup is None else wall
    return replace(spec, mold=replace(mold, sizes=sizes, base=wall))


def layout_on(former: Spec, pes: int | None) -> Layout | None:
    """Return the layout that ``former`` gets on ``pes`` PEs instead of its own number; ``pes`` None: on
    several sizes, where none made for one number fits. Every change of PEs must use this."""
    layout = former.layout
    if layout is None or former.mold is not None:
        return layout
    if pes is None:
        return layout if layout.cpus is None else None
    return layout.following(former.ask.pes, pes)


T = TypeVar("T")

_hints = typing.get_type_hints(Spec)
_PARTS = [f for f in msgspec.structs.fields(Spec) if _hints[f.name] not in (int, bool)]
_NAMES, _DEFAULTS = tuple(f.name for f in _PARTS), tuple(f.default for f in _PARTS)
_values = attrgetter(*_NAMES)


class Shared:
    """Store of parts of specifications, so that equal parts are one object, which saves memory."""

    def __init__(self) -> None:
        self._parts: dict[Any, Any] = {}

    def one(self, value: T) -> T:
        """Return the stored object that equals ``value``; store ``value`` if there is no such object."""
        found: T = self._parts.setdefault(value, value)
        return found

    def spec(self, spec: Spec) -> Spec:
        """Return the same object with its parts replaced by stored equal ones, which saves memory. Nothing
        else may refer to it yet, because it is changed."""
        share, values = self._parts.setdefault, _values(spec)
        for name, value in compress(zip(_NAMES, values), map(is_not, values, _DEFAULTS)):  # noqa: B905
            if (known := share(value, value)) is not value:
                msgspec.structs.force_setattr(spec, name, known)
        return spec


LITTLE = 2_048
"""Size (bytes of JSON) up to which a specification counts as 0: every request takes that much."""

_encode = msgspec.json.Encoder().encode


def text_size(spec: Spec) -> int:
    """Return the bytes of JSON that a specification takes in its event and its row, of an array in the rows
    of all indices too; 0 if one copy is not larger than `LITTLE`."""
    size = len(_encode(spec))
    return size * (1 + counted(spec.array)) if size > LITTLE else 0


Part = tuple[str, Callable[[Any], Any] | None]
"""A field below `Spec` as a dotted name, and the function that makes the value of an option of it, if any."""

_CONVERT: Mapping[str, Callable[[Any], Any]] = {"time": finite, "size": finite, "amounts": dict}
_WANTED: Mapping[str, Callable[[Ask], Any]] = {"ask/cpu": Ask.finite_cpu, "ask/memory": Ask.finite_memory}


def field_part(option: Option) -> Part:
    """Return the field of a `Spec` that an option is about, and the function that makes its value, if any."""
    limit = option.path.removeprefix("ask/")
    if "/" in limit and limit != option.path:
        return "ask.others", lambda others: finite(dict(others).get(limit)) if others else None
    return option.path.replace("/", "."), _CONVERT.get(option.unit)


def shown_part(option: Option) -> Part:
    """Return `field_part`; of CPU time and memory the limit of a process counts if the request has none."""
    return ("ask", _WANTED[option.path]) if option.path in _WANTED else field_part(option)
