"""How far a reason reaches: to the waiting requests of its queue that are alike in the fields it names."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nqspy.model.columns import Columns, Dictionary, Floats, Numbers
from nqspy.model.ids import Seq
from nqspy.model.reasons import BOUNDED, Bounds, Reach, Reason, Reasons
from nqspy.model.requests import Request, finite
from nqspy.model.site import Site

Mask = npt.NDArray[np.bool_]
Value = str | int | None
Fields = tuple[tuple[str, Value], ...]

_OF: dict[str, Callable[[Request], Value]] = {
    "owner": lambda r: r.owner,
    "group": lambda r: r.group,
    "name": lambda r: r.name,
    "given": lambda r: int(r.spec.name_given),
    "cpu": lambda r: r.spec.ask.finite_cpu(),
    "memory": lambda r: r.spec.ask.finite_memory(),
    "wall": lambda r: finite(r.spec.ask.wall),
    "pes": lambda r: r.spec.ask.pes,
}

NAMES = frozenset(_OF)
"""The fields that a reach may name."""

INFINITE = float("inf")
"""Unlimited, in the columns."""


def is_sound(reach: Reach) -> bool:
    """Whether it names fields that there are."""
    return NAMES.issuperset([name for name, _ in reach.fields]) and all(
        name in BOUNDED for name, _, _ in reach.within
    )


def fields_of(request: Request, alike: Iterable[str]) -> Fields:
    """What a request has in the fields that an exit named (`reasons.ALIKE`)."""
    return tuple([(name, read(request)) for name, read in _read(tuple(alike))])


@lru_cache(1_000)
def _read(alike: tuple[str, ...]) -> tuple[tuple[str, Callable[[Request], Value]], ...]:
    names = {*alike, *(("given",) if "name" in alike else ())}
    return tuple((name, read) for name, read in _OF.items() if name in names)


def covers(reach: Reach, request: Request) -> bool:
    """Whether a reason holds for this request too."""
    if reach.queue != request.queue:
        return False
    for name, value in reach.fields:
        if _OF[name](request) != value:
            return False
    return lies_within(request, reach.within)


def lies_within(request: Request, bounds: Iterable[Bounds]) -> bool:
    """Whether its numbers lie within all these bounds."""
    for name, least, most in bounds:
        value = _OF[name](request)
        if not _is_between(value, least, most):
            return False
    return True


def _is_between(value: Value, least: int | None, most: int | None) -> bool:
    if least is None or not isinstance(value, int):
        return least is value is None
    return least <= value and (most is None or value <= most)


def reason_of(reasons: Reasons, request: Request) -> Reason | None:
    """The reason that reaches a waiting request from another one, if any does."""
    for reach in reasons.reach:
        if covers(reach, request):
            return reach.reason
    return None


def rows(site: Site, columns: Columns, fields: Fields, within: Iterable[Bounds] = ()) -> Mask:
    """Which rows of a queue have these values, and lie within these bounds."""
    found: Mask | None = None
    for name, value in fields:
        equal: Mask = getattr(columns, name) == _number(site, name, value)
        found = equal if found is None else found & equal
    for name, least, most in within:
        between = _between(getattr(columns, name), least, most)
        found = between if found is None else found & between
    return ~np.zeros(len(columns), dtype=bool) if found is None else found


def _between(column: Floats, least: int | None, most: int | None) -> Mask:
    if least is None:
        found: Mask = column == INFINITE
    else:
        found = (column >= least) & (column < INFINITE if most is None else column <= most)
    return found


_NUMBERS: dict[str, Callable[[Dictionary], Numbers]] = {
    "owner": lambda numbers: numbers.owners,
    "group": lambda numbers: numbers.groups,
    "name": lambda numbers: numbers.names,
}


def _number(site: Site, name: str, value: Value) -> float:
    known = _NUMBERS.get(name)
    if known is not None:
        number = known(site.numbers).known(str(value))
        return -1 if number is None else number
    return INFINITE if value is None else float(value)


def reached(site: Site, reasons: Reasons, queue: str) -> Iterator[tuple[Seq, Reason]]:
    """The waiting requests of a queue that a reason reaches, none of which has one of its own."""
    columns = site.columns(queue)
    for reach in reasons.reach if len(columns) else ():
        if reach.queue == queue:
            for seq in columns.seq[rows(site, columns, reach.fields, reach.within)].tolist():
                if seq not in reasons.own:
                    yield seq, reach.reason
