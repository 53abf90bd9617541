"""The machine's torus: where a PE lies. For people and programs that care; PEs are given by their numbers.

``shape=8x8x4`` counts PEs along x, y and z, as BASE does in the seed's display: its T3D has 8x4x8 PEs, four
rows of nodes with two PEs each, and a job in the third row has base 004 (z, y, x). Numbers run along x first,
then y, then z, so the ``pes_per_node`` PEs of a node are neighbours along x and have numbers without a gap.
"""

from collections.abc import Collection, Iterable
from functools import cache
from math import prod
from typing import TYPE_CHECKING

from msgspec import Struct

from nqspy.model.errors import BadValue
from nqspy.model.machine import Machine

if TYPE_CHECKING:
    from nqspy.model.settings import Settings

Coordinate = tuple[int, int, int]
"""x, y and z of a PE, each from 0."""


class Torus(Struct, frozen=True):
    """PEs along x, y and z, of which ``per_node`` beside each other along x are a node."""

    x: int
    y: int
    z: int
    per_node: int = 1

    @property
    def pes(self) -> int:
        """How many there are."""
        return self.x * self.y * self.z

    @property
    def nodes(self) -> Coordinate:
        """Nodes along x, y and z."""
        return self.x // self.per_node, self.y, self.z

    def at(self, pe: int) -> Coordinate:
        """Where a PE lies. Its node is at the same y and z, and at ``x // per_node``."""
        return pe % self.x, pe // self.x % self.y, pe // (self.x * self.y)

    def __str__(self) -> str:
        return f"{self.x}x{self.y}x{self.z}"


def read(shape: str, per_node: int = 1) -> Torus:
    """The torus that a text like ``8x8x4`` says. Raises BadValue."""
    words = shape.split("x")
    if len(words) != 3 or not all(w.isascii() and w.isdigit() and len(w) < 8 and int(w) for w in words):
        raise BadValue(f"{shape[:40]!r} is no shape; write PEs along x, y and z: 8x8x4")
    x, y, z = map(int, words)
    return Torus(x, y, z, per_node)


def torus_of(machine: Machine) -> Torus | None:
    """The torus of a machine; None where none is said."""
    return None if machine.shape is None else _read_once(machine.shape, machine.pes_per_node)


_read_once = cache(read)


def base_in(torus: Torus, pes: Collection[int]) -> tuple[int, Coordinate] | None:
    """BASE: the lowest of some PEs, and where it lies; None where there are no PEs."""
    base = min(pes, default=None)
    return None if base is None else (base, torus.at(base))


def base_of(pes: Collection[int], torus: Torus | None) -> str | None:
    """The same for people, ``64 (0,0,1)``; None also where no shape is said."""
    found = None if torus is None else base_in(torus, pes)
    return None if found is None else f"{found[0]} ({written(found[1])})"


def written(coordinate: Coordinate) -> str:
    """``0,0,1``."""
    return ",".join(map(str, coordinate))


def check(settings: "Settings", touched: Collection[str] | None) -> Iterable[str]:
    """What is wrong with the shape, in lines that say which would be right."""
    machine = settings.machine
    if machine.shape is None or (touched is not None and "machine" not in touched):
        return
    try:
        torus = read(machine.shape, machine.pes_per_node)
    except BadValue as error:
        yield f"machine: {error}"
        return
    pes, per_node = machine.pes, machine.pes_per_node
    if pes is None:
        yield f"machine: a shape needs the number of PEs beside it: set machine pes={torus.pes} shape={torus}"
    elif torus.pes != pes:
        fitting = suggestion(pes, per_node)
        yield f"machine: shape={torus} has {torus.pes} PEs, the machine {pes}; {fitting}"
    elif torus.x % per_node:
        fitting = suggestion(pes, per_node)
        yield f"machine: {torus.x} PEs along x are no whole nodes of pes_per_node={per_node}; {fitting}"


def suggestion(pes: int, per_node: int) -> str:
    """A shape that would do for so many PEs: the one whose sides differ least."""
    if pes % per_node:
        return f"{pes} PEs are no whole nodes of pes_per_node={per_node}"
    sides = [n for n in range(1, pes + 1) if pes % n == 0]
    shapes = ((x, y, pes // (x * y)) for x in sides if x % per_node == 0 for y in sides if pes % (x * y) == 0)
    found = min(shapes, key=lambda each: (sum(each), [-side for side in each]))
    assert prod(found) == pes
    return f"shape={'x'.join(map(str, found))} would fit"
