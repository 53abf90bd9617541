"""A drawing as SVG."""

from collections.abc import Iterator
from html import escape
from math import ceil

from nqspy.report.drawing import colours_as_style, document
from nqspy.sim.pictures.shapes import KINDS, Boxes, Drawing, Rectangle, Shape, Stroke

_STYLE = (
    colours_as_style(KINDS)
    + "".join(f".{kind}{{fill:var(--{kind})}}" for kind in KINDS)
    + "path.line{fill:none}"
    + "".join(f".line.{kind}{{stroke:var(--{kind})}}" for kind in ("ink", "wait", "used", "rule"))
)


def svg_of(drawing: Drawing) -> str:
    """The whole file."""
    drawn = (_drawn(shape) for shape in drawing.shapes)
    height = ceil(drawing.height)
    return document(drawing.name, height, drawing.title, drawing.description, drawn, _STYLE)


def _drawn(shape: Shape) -> str:
    if isinstance(shape, Boxes):
        title = f"<title>{escape(shape.title)}</title>" if shape.title else ""
        return f'<path class="{shape.kind}" d="{"".join(_outlines(shape))}">{title}</path>'
    if isinstance(shape, Stroke):
        places = "L".join(f"{_short(x)} {_short(y)}" for x, y in shape.places)
        width = f' stroke-width="{_short(shape.thick)}"'
        return f'<path class="line {shape.kind}"{width} d="M{places}"/>'
    place = f'x="{_short(shape.x)}" y="{_short(shape.y)}"'
    return f'<text class="ink" {place} text-anchor="{shape.anchor}">{escape(shape.text)}</text>'


def _outlines(shape: Boxes) -> Iterator[str]:
    for box in shape.rectangles:
        yield _outline(box)


def _outline(box: Rectangle) -> str:
    x, y, width, height = map(_short, box)
    return f"M{x} {y}h{width}v{height}h-{width}z"


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
