"""A drawing as PNG, by Pillow: that package (the extra `png`) need not be there for anything else."""

from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING, Any

from nqspy.report.drawing import COLOURS, WIDTH, Boxes, Drawing, Shape, Stroke
from nqspy.sim.batch import NotSimulated

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SCALE = 2
"""Pixels of one unit."""
SIZE = 12
MOST_PIXELS = 30_000
"""Of a side: what readers of PNG files are safe with."""

ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def png_of(drawing: Drawing) -> bytes:
    """The whole file, in the colours of a light page. Raises NotSimulated."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise NotSimulated(
            "PNG needs the package Pillow: pip install pillow; SVG needs nothing more"
        ) from None
    scale = max(1, min(SCALE, MOST_PIXELS // ceil(drawing.height)))
    image = Image.new("RGB", (WIDTH * scale, ceil(drawing.height) * scale), "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(SIZE * scale)
    for shape in drawing.shapes:
        _draw(pen, font, shape, scale)
    found = BytesIO()
    image.quantize(64).save(found, "png", optimize=True)
    return found.getvalue()


def _draw(pen: "ImageDraw", font: Any, shape: Shape, scale: int) -> None:
    if isinstance(shape, Boxes):
        for x, y, width, height in shape.rectangles:
            right, below = max(x, x + width - 1 / scale), max(y, y + height - 1 / scale)
            pen.rectangle(((x * scale, y * scale), (right * scale, below * scale)), _colour(shape.kind))
    elif isinstance(shape, Stroke):
        places = [(x * scale, y * scale) for x, y in shape.places]
        pen.line(places, _colour(shape.kind), round(shape.thick * scale), "curve")
    else:
        place = (shape.x * scale, shape.y * scale)
        pen.text(place, shape.text, _colour("ink"), font, ANCHORS[shape.anchor])


def _colour(kind: str) -> str:
    return COLOURS[kind][0]
