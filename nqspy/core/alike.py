"""Reach of a refusal: the other waiting requests of the queue to which it applies too, because they have
equal values in the fields that it names."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, reduce
from operator import and_

import numpy as np
import numpy.typing as npt

from nqspy.model.columns import Columns, Floats
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
"""Value of an unlimited amount in the columns."""


def is_sound(reach: Reach) -> bool:
    """True if a reach names only fields of `NAMES`, and bounds only for those of `BOUNDED`."""
    return NAMES.issuperset([name for name, _ in reach.fields]) and all(
        name in BOUNDED for name, _, _ in reach.within
    )


def fields_of(request: Request, alike: Iterable[str]) -> Fields:
    """Return the values of a request in the fields that an exit named (`reasons.ALIKE`)."""
    return tuple([(name, read(request)) for name, read in _readers(tuple(alike))])


@lru_cache(1_000)
def _readers(alike: tuple[str, ...]) -> tuple[tuple[str, Callable[[Request], Value]], ...]:
    names = {*alike, *(("given",) if "name" in alike else ())}
    return tuple((name, read) for name, read in _OF.items() if name in names)


def covers(reach: Reach, request: Request) -> bool:
    """True if the reason of a reach, given for another request, also applies to this one."""
    if reach.queue != request.queue:
        return False
    for name, value in reach.fields:
        if _OF[name](request) != value:
            return False
    return lies_within(request, reach.within)


def lies_within(request: Request, bounds: Iterable[Bounds]) -> bool:
    """True if the numbers that a request asks for (PEs, ms, bytes) lie within all these bounds."""
    for name, least, most in bounds:
        value = _OF[name](request)
        if least is None or not isinstance(value, int):
            if not least is value is None:
                return False
        elif value < least or (most is not None and value > most):
            return False
    return True


def reason_of(reasons: Reasons, request: Request) -> Reason | None:
    """Return the first reason, given for another request, that also applies to this one; None: no reason."""
    for reach in reasons.reach:
        if covers(reach, request):
            return reach.reason
    return None


def rows(site: Site, columns: Columns, fields: Fields, within: Iterable[Bounds] = ()) -> Mask:
    """Return a mask of the rows of a queue that have these values and lie within these bounds."""
    masks: list[Mask] = [getattr(columns, name) == _number(site, name, value) for name, value in fields]
    for name, least, most in within:
        column: Floats = getattr(columns, name)
        if least is None:
            masks.append(column == INFINITE)
        else:
            masks += [column >= least, column < INFINITE if most is None else column <= most]
    return reduce(and_, masks) if masks else np.ones(len(columns), dtype=bool)


def _number(site: Site, name: str, value: Value) -> float:
    if name in ("owner", "group", "name"):
        number = getattr(site.numbers, f"{name}s").known(str(value))
        return -1 if number is None else float(number)
    return INFINITE if value is None else float(value)


def reached(site: Site, reasons: Reasons, queue: str) -> Iterator[tuple[Seq, Reason]]:
    """Yield the waiting requests of a queue that have no reason of their own and to which the reason of
    another request applies, each with that reason."""
    columns = site.columns(queue)
    for reach in reasons.reach if len(columns) else ():
        if reach.queue == queue:
            for seq in columns.seq[rows(site, columns, reach.fields, reach.within)].tolist():
                if seq not in reasons.own:
                    yield seq, reach.reason
