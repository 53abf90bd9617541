"""The pictures of runs and their files: SVG, or PNG by Pillow (the extra `png`)."""

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Literal

from msgspec import Struct

from nqspy.report.drawing import COLOURS, WIDTH, Boxes, Drawing, Stroke, stacked, svg_of
from nqspy.sim.comparing import compare
from nqspy.sim.pictures.bars import comparison, waits
from nqspy.sim.pictures.over_time import gantt, utilisation
from nqspy.sim.results import writing
from nqspy.sim.runs import SimulatedRun
from nqspy.sim.workloads.jobs import NotSimulated

DRAWN: Mapping[str, Callable[[Sequence[SimulatedRun]], Drawing]] = {
    "utilisation": utilisation,
    "gantt": gantt,
    "waits": waits,
    "comparison": lambda runs: comparison(compare(runs)),
}
"""Functions that draw pictures, by name: to add one is a function and a line above."""

SCALE = 2
"""Pixels of one unit."""
SIZE = 12
MOST_PIXELS = 30_000
"""Most pixels of a side that readers of PNG files can be expected to accept."""

ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def png_of(drawing: Drawing) -> bytes:
    """Return a drawing as a PNG file, in the colours of a light page. Raises NotSimulated without Pillow."""
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
        if isinstance(shape, Boxes):
            colour = COLOURS[shape.kind][0]
            for x, y, width, height in shape.rectangles:
                right, below = max(x, x + width - 1 / scale), max(y, y + height - 1 / scale)
                pen.rectangle(((x * scale, y * scale), (right * scale, below * scale)), colour)
        elif isinstance(shape, Stroke):
            places = [(x * scale, y * scale) for x, y in shape.places]
            pen.line(places, COLOURS[shape.kind][0], round(shape.thick * scale), "curve")
        else:
            place = (shape.x * scale, shape.y * scale)
            pen.text(place, shape.text, COLOURS["ink"][0], font, ANCHORS[shape.anchor])
    found = BytesIO()
    image.quantize(64).save(found, "png", optimize=True)
    return found.getvalue()


FORMATS: Mapping[str, Callable[[Drawing], bytes]] = {
    ".svg": lambda drawing: svg_of(drawing).encode("utf-8", "replace"),
    ".png": png_of,
}

OTHERS = frozenset({".gif", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".pdf", ".eps", ".ps"})
"""Endings of pictures that cannot be drawn: they mean no folder."""


def names_of(runs: int, seeds: int) -> list[str]:
    """Return the names of the pictures of ``runs`` variants: with several ``seeds`` only ``comparison``; else
    all, ``comparison`` only for several variants."""
    if seeds > 1:
        return ["comparison"]
    return [name for name in DRAWN if runs > 1 or name != "comparison"]


class PictureFile(Struct, frozen=True):
    """A file that was asked for, with the pictures ``names`` one below the other."""

    path: Path
    names: tuple[str, ...]

    def write(self, runs: Sequence[SimulatedRun]) -> None:
        """Draw the pictures and write the file. Raises NotSimulated."""
        drawing, *more = (DRAWN[name](runs) for name in self.names)
        if more:
            drawing = stacked(self.path.stem, f"Simulated: {self.path.stem}", (drawing, *more))
        write(self.path, FORMATS[self.path.suffix.lower()](drawing))


def files_of(path: Path, names: Sequence[str]) -> list[PictureFile]:
    """Return the files that ``--pictures PATH`` means: a file (by its ending) with the picture of its name,
    else with all of ``names``; otherwise a folder (made if missing) with SVGs. Raises NotSimulated."""
    if path.suffix.lower() in FORMATS and not path.is_dir():
        if path.stem in DRAWN and path.stem not in names:
            there = ", ".join(names)
            raise NotSimulated(f"{path}: these runs have no such picture; there are {there}")
        own = (path.stem,) if path.stem in names else tuple(names)
        return [PictureFile(writable(path), own)]
    if path.suffix.lower() in OTHERS and not path.is_dir():
        raise NotSimulated(f"{path}: pictures are written as {' or '.join(FORMATS)}")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotSimulated(f"{path} cannot be used as a folder for pictures: {error.strerror}") from None
    return [PictureFile(writable(path / f"{name}.svg"), (name,)) for name in names]


def writable(path: Path) -> Path:
    """Return the path; before any run, raise NotSimulated if it cannot be written. Leaves no file there."""
    was_there = path.exists()
    write(path, b"", "ab")
    if not was_there:
        path.resolve().unlink(missing_ok=True)
    return path


def write(path: Path, content: bytes, mode: Literal["wb", "ab"] = "wb") -> None:
    """Write a file, or append to it (mode ``ab``). Raises NotSimulated."""
    with writing(path), path.open(mode) as file:
        file.write(content)
