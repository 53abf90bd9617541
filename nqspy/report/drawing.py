"""Pictures: boxes, lines and texts at positions of a page `WIDTH` wide, each of a kind with a colour; and a
picture as SVG."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

WIDTH, LEFT, RIGHT = 960, 44, 12
SHADES = 5
JOB_COLOURS = 6

COLOURS: Mapping[str, tuple[str, str]] = {
    "ink": ("#1b1f24", "#e6e8eb"),
    "rule": ("#c9ced6", "#4a515b"),
    "held": ("#9db8dd", "#41608c"),
    "used": ("#2f5d9c", "#a9c7f2"),
    "bad": ("#b3261e", "#ff8a80"),
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
"""Colours by kind, on a light and on a dark page."""

Place = tuple[float, float]
Rectangle = tuple[float, float, float, float]
"""Rectangle: x, y, width, height."""


class Boxes(Struct, frozen=True):
    """Filled rectangles of one ``kind`` (`COLOURS`); ``title``: text shown under a resting pointer."""

    kind: str
    rectangles: tuple[Rectangle, ...]
    title: str = ""


class Stroke(Struct, frozen=True):
    """A line through points, ``thick`` units wide."""

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
    """A picture `WIDTH` units wide and ``height`` units high; ``title`` and ``description`` tell its content
    in words. ``name``: what its ids in an SVG begin with (`svg_of`)."""

    name: str
    title: str
    description: str
    height: float
    shapes: tuple[Shape, ...]


def down(shape: Shape, by: float) -> Shape:
    """Return the shape moved down by ``by`` units."""
    if isinstance(shape, Boxes):
        return replace(shape, rectangles=tuple((x, y + by, w, h) for x, y, w, h in shape.rectangles))
    if isinstance(shape, Stroke):
        return replace(shape, places=tuple((x, y + by) for x, y in shape.places))
    return replace(shape, y=shape.y + by)


def stacked(name: str, title: str, drawings: Iterable[Drawing]) -> Drawing:
    """Return one drawing that shows these, one below the other, with their descriptions joined."""
    height, shapes, descriptions = 0.0, list[Shape](), list[str]()
    for drawing in drawings:
        shapes += [down(shape, height) for shape in drawing.shapes]
        height += drawing.height
        descriptions.append(drawing.description)
    return Drawing(name, title, " ".join(descriptions), height, tuple(shapes))


def legend(kind: str, x: float, text: str) -> tuple[Shape, Shape]:
    """Return a small box in the colour of ``kind`` at the top of a picture, and ``text`` to its right."""
    return Boxes(kind, ((x, 8, 12, 12),)), TextLine(x + 17, 18, text)


def svg_of(drawing: Drawing) -> str:
    """Return the picture as an SVG document, with colours for light and dark pages. The ids of its elements
    begin with the picture's name, so that several pictures fit on one page."""
    name, shown = drawing.name, ""
    for shape in drawing.shapes:
        if isinstance(shape, Boxes):
            title = f"<title>{escape(shape.title)}</title>" if shape.title else ""
            outlines = "".join(
                f"M{x} {y}h{width}v{height}h-{width}z"
                for x, y, width, height in (map(_short, box) for box in shape.rectangles)
            )
            shown += f'<path class="{shape.kind}" d="{outlines}">{title}</path>'
        elif isinstance(shape, Stroke):
            places, thick = "L".join(f"{_short(x)} {_short(y)}" for x, y in shape.places), _short(shape.thick)
            shown += f'<path class="line {shape.kind}" stroke-width="{thick}" d="M{places}"/>'
        else:
            place = f'x="{_short(shape.x)}" y="{_short(shape.y)}"'
            shown += f'<text class="ink" {place} text-anchor="{shape.anchor}">{escape(shape.text)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ceil(drawing.height)}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{escape(drawing.title)}</title>'
        f'<desc id="{name}-desc">{escape(drawing.description)}</desc><style>{_STYLE}</style>'
        f"{shown}</svg>"
    )


_LIGHT, _DARK = (";".join(f"--{kind}:{pair[page]}" for kind, pair in COLOURS.items()) for page in (0, 1))
_STYLE = (
    f"svg{{{_LIGHT}}}@media(prefers-color-scheme:dark){{svg{{{_DARK}}}}}"
    + "".join(f".{kind}{{fill:var(--{kind})}}.line.{kind}{{stroke:var(--{kind})}}" for kind in COLOURS)
    + "path.line{fill:none}text{font:12px system-ui,sans-serif}"
)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def full_hours(times: Sequence[str]) -> list[int]:
    """Return the indices of the times (RFC 3339) at full hours; of more than 14 every n-th, 14 at most."""
    full = [place for place, at in enumerate(times) if at[14:16] == "00"]
    return full[:: max(1, -(-len(full) // 14))]
