"""Gantt charts: which PEs were held when. While there are few, each job is a box of its own; of many, time
and PEs are cut into cells, the darker the more of it was held."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil

from nqspy.report.drawing import JOB_COLOURS, SHADES, Boxes, Drawing, Rectangle, Shape, TextLine
from nqspy.sim.pictures.axes import BELOW, FIRST, LEFT, TimeAxis, fitting, short_time
from nqspy.sim.runs import SimulatedRun
from nqspy.sim.trail import PeBox, Trail

NAME = "gantt"
TOP, GAP = 34, 22
LEAST, MOST, ROW = 96, 256, 12
"""Height of a chart; of a PE where there is room."""
FULL = 0.999
CELLS = 320
"""Of a row at most: finer ones would be narrower than three pixels."""


def gantt(runs: Sequence[SimulatedRun]) -> Drawing:
    """A chart for each run, all over one time."""
    return chart([(run.label, run.found.trail) for run in runs if run.found.trail is not None])


def chart(trails: Sequence[tuple[str, Trail]], origin: str = FIRST) -> Drawing:
    """A chart for each label and what it is drawn from; ``origin``: what times are counted from."""
    axis = TimeAxis(max((trail.end for _, trail in trails), default=1), origin)
    shapes, y = list(_legend([trail for _, trail in trails])), float(TOP)
    for label, trail in trails:
        height = min(MOST, max(LEAST, ROW * trail.pes))
        shapes.append(TextLine(LEFT - 8, y + 14, fitting(label), "end"))
        shapes += _pe_numbers(y, height, trail)
        shapes += _jobs(axis, y, height, trail) if trail.boxes is not None else _cells(axis, y, height, trail)
        y += height + GAP
    shapes += axis.drawn(TOP, y - GAP)
    return Drawing(NAME, "PEs over time", _told(trails), y - GAP + BELOW, tuple(shapes))


def _jobs(axis: TimeAxis, top: float, height: float, trail: Trail) -> Iterator[Shape]:
    """Each stay of a job on PEs."""
    one, inset = height / trail.pes, 0.3
    for box in trail.boxes or ():
        x, y = axis.x(box.begin), top + box.first * one
        width, tall = axis.x(box.end) - x, (box.last - box.first + 1) * one
        place = x, y + inset, max(0.7, width - inset), max(0.7, tall - 2 * inset)
        yield Boxes(f"job{box.number % JOB_COLOURS}", (place,), _title(box))


def _title(box: PeBox) -> str:
    pes = f"PE {box.first}" if box.first == box.last else f"PEs {box.first}-{box.last}"
    return f"job {box.number}, {pes}: {short_time(box.begin)} to {short_time(box.end)}"


def _cells(axis: TimeAxis, top: float, height: float, trail: Trail) -> Iterator[Shape]:
    """A shape for each shade."""
    found: dict[int, list[Rectangle]] = {shade: [] for shade in range(1, SHADES + 1)}
    tall = height / trail.pes
    for row, amounts in enumerate(trail.rows()):
        pes = min(trail.per_row, trail.pes - row * trail.per_row)
        y = top + row * trail.per_row * tall
        for shade, (x, width) in _runs_of_a_shade(axis, trail, amounts, pes):
            found[shade].append((x, y, width, pes * tall))
    for shade, rectangles in found.items():
        yield Boxes(f"shade{shade}", tuple(rectangles))


def _runs_of_a_shade(
    axis: TimeAxis, trail: Trail, amounts: Sequence[float], pes: int
) -> Iterator[tuple[int, tuple[float, float]]]:
    """Neighbouring cells of one shade as (shade, (place, width)); none where nothing was held."""
    several = -(-len(amounts) // CELLS)
    cells = [amounts[n : n + several] for n in range(0, len(amounts), several)]
    shades = [_shade(sum(cell) / len(cell) / pes) for cell in cells]
    wide = trail.width * several
    for shade, run in groupby(range(len(shades)), lambda n: shades[n]):
        if shade:
            numbers = list(run)
            x = axis.x(numbers[0] * wide)
            yield shade, (x, axis.x(min((numbers[-1] + 1) * wide, trail.end)) - x)


def _shade(part: float) -> int:
    """0 where nothing was held, the last where everything was."""
    return 0 if part < 1 - FULL else min(SHADES, ceil(part / FULL * SHADES))


def _pe_numbers(top: float, height: float, trail: Trail) -> Iterator[Shape]:
    yield TextLine(LEFT - 8, top + 30, "PE 0 above", "end")
    yield TextLine(LEFT - 8, top + height - 2, f"PE {trail.pes - 1}", "end")


def _legend(trails: Sequence[Trail]) -> Iterator[Shape]:
    if any(trail.boxes is not None for trail in trails):
        yield TextLine(LEFT, 18, "boxes: jobs")
    if any(trail.boxes is None for trail in trails):
        yield TextLine(LEFT + 100, 18, "shades: part of the PEs that was held, up to")
        for shade in range(1, SHADES + 1):
            x = LEFT + 330 + 76.0 * shade
            yield Boxes(f"shade{shade}", ((x - 18, 8, 12, 12),))
            yield TextLine(x, 18, f"{100 * shade // SHADES} %")


def _told(trails: Sequence[tuple[str, Trail]]) -> str:
    shown: Mapping[bool, str] = {True: "cells of time and PEs", False: "jobs one by one"}
    said = (f"{label}: {trail.pes} PEs, {shown[trail.boxes is None]}" for label, trail in trails)
    return f"PEs from top to bottom, time from left to right. {', '.join(said) or 'Nothing ran'}."
