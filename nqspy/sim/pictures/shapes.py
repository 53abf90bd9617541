"""What pictures are made of: boxes, lines and words at places of a page `WIDTH` wide, each of a kind that has
a colour. Who writes a file (`svg`, `png`) knows no more than these."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from nqspy.report.drawing import COLOURS

Place = tuple[float, float]
Rectangle = tuple[float, float, float, float]
"""x, y, width, height."""

SHADES = 5
JOB_COLOURS = 6

KINDS: Mapping[str, tuple[str, str]] = {
    "wait": ("#c2410c", "#fdba74"),
    "shade1": ("#dce6f4", "#26364d"),
    "shade2": ("#b6cbe8", "#34507a"),
    "shade3": ("#86a8d8", "#4f74aa"),
    "shade4": ("#5581bf", "#7ba3dc"),
    "shade5": ("#2f5d9c", "#a9c7f2"),
    "job0": ("#7aa6d8", "#5b8fc9"),
    "job1": ("#e5a667", "#c98f4f"),
    "job2": ("#86bf8a", "#5fa366"),
    "job3": ("#c795c9", "#a975ad"),
    "job4": ("#d9cc6f", "#b3a648"),
    "job5": ("#9a9fd6", "#7d83c4"),
}
"""Kinds that only these pictures have, as `COLOURS`."""

ALL_KINDS: Mapping[str, tuple[str, str]] = {**COLOURS, **KINDS}


class Boxes(Struct, frozen=True):
    """Filled rectangles of one kind; ``title``: what a pointer is told that rests on them."""

    kind: str
    rectangles: tuple[Rectangle, ...]
    title: str = ""


class Stroke(Struct, frozen=True):
    """A line through places."""

    kind: str
    places: tuple[Place, ...]
    thick: float = 1.0


class TextLine(Struct, frozen=True):
    """A line of text; ``anchor``: start, middle or end of it is at the place."""

    x: float
    y: float
    text: str
    anchor: str = "start"


Shape = Boxes | Stroke | TextLine


class Drawing(Struct, frozen=True):
    """A picture: its title and description say in words what it shows; ``name`` is that of its file."""

    name: str
    title: str
    description: str
    height: float
    shapes: tuple[Shape, ...]


def down(shape: Shape, by: float) -> Shape:
    """The shape, further down."""
    if isinstance(shape, Boxes):
        return replace(shape, rectangles=tuple((x, y + by, w, h) for x, y, w, h in shape.rectangles))
    if isinstance(shape, Stroke):
        return replace(shape, places=tuple((x, y + by) for x, y in shape.places))
    return replace(shape, y=shape.y + by)


def stacked(name: str, title: str, drawings: Iterable[Drawing]) -> Drawing:
    """One below the other."""
    height, shapes, told = 0.0, list[Shape](), list[str]()
    for drawing in drawings:
        shapes += [down(shape, height) for shape in drawing.shapes]
        height += drawing.height
        told.append(drawing.description)
    return Drawing(name, title, " ".join(told), height, tuple(shapes))
