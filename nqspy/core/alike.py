"""Reach of a refusal: a `jobselect` exit that refuses one request may name fields and bounds. The refusal
then applies to all waiting requests of the queue with the same values there."""

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
"""The fields of a request that a reach (`reasons.Reach`) may name."""

INFINITE = float("inf")
"""Value of an unlimited amount in the columns."""


def is_sound(reach: Reach) -> bool:
    """True if a reach names only fields of `NAMES`, and bounds only for those of `BOUNDED`."""
    return NAMES.issuperset([name for name, _ in reach.fields]) and all(
        name in BOUNDED for name, _, _ in reach.within
    )


def fields_of(request: Request, alike: Iterable[str]) -> Fields:
    """Return each field of ``alike`` (`reasons.ALIKE`) with its value in a request, in a fixed order;
    ``queue`` is left out. With ``name`` comes ``given``: 1 if the owner gave the name, else 0."""
    return tuple([(name, read(request)) for name, read in _readers(tuple(alike))])


@lru_cache(1_000)
def _readers(alike: tuple[str, ...]) -> tuple[tuple[str, Callable[[Request], Value]], ...]:
    names = {*alike, *(("given",) if "name" in alike else ())}
    return tuple((name, read) for name, read in _OF.items() if name in names)


def covers(reach: Reach, request: Request) -> bool:
    """True if a reach applies to a request: same queue, same values in its fields, all bounds respected."""
    if reach.queue != request.queue:
        return False
    for name, value in reach.fields:
        if _OF[name](request) != value:
            return False
    return lies_within(request, reach.within)


def lies_within(request: Request, bounds: Iterable[Bounds]) -> bool:
    """True if what a request asks for (PEs, ms, bytes) lies within all these bounds, ends included. A bound
    with None as its least number admits only requests without a limit."""
    for name, least, most in bounds:
        value = _OF[name](request)
        if least is None or not isinstance(value, int):
            if not least is value is None:
                return False
        elif value < least or (most is not None and value > most):
            return False
    return True


def reason_of(reasons: Reasons, request: Request) -> Reason | None:
    """Return the reason of the first reach of a pass that applies to a request; None: no reach does."""
    for reach in reasons.reach:
        if covers(reach, request):
            return reach.reason
    return None


def rows(site: Site, columns: Columns, fields: Fields, within: Iterable[Bounds] = ()) -> Mask:
    """Return a mask of a queue's rows with these values and within these bounds; none given: all rows."""
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
    """Yield number and reason for each waiting request of a queue that has no reason of its own in
    ``reasons`` and to which a reach applies; once for each such reach."""
    columns = site.columns(queue)
    for reach in reasons.reach if len(columns) else ():
        if reach.queue == queue:
            for seq in columns.seq[rows(site, columns, reach.fields, reach.within)].tolist():
                if seq not in reasons.own:
                    yield seq, reach.reason
