"""Pictures over time: PEs held and jobs waiting, a strip for each run; and Gantt charts of which PEs were
held when. A few jobs are boxes of their own; for many, time and PEs are cut into cells: the darker, the more
of it was held."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil

from nqspy.report.drawing import (
    JOB_COLOURS,
    SHADES,
    WIDTH,
    Boxes,
    Drawing,
    Rectangle,
    Shape,
    Stroke,
    TextLine,
    legend,
)
from nqspy.sim.pictures.axes import BELOW, FIRST, LEFT, RIGHT, TimeAxis, fitting, short_time
from nqspy.sim.runs import SimulatedRun
from nqspy.sim.trail import Trail

TOP = 34
STRIP, STRIP_GAP = 96, 26
CHART_GAP = 22
LEAST, MOST, ROW = 96, 256, 12
"""Height of a chart, and of a PE if there is room."""
FULL = 0.999
CELLS = 320
"""Most cells of a row: more would be narrower than three pixels."""


def utilisation(runs: Sequence[SimulatedRun]) -> Drawing:
    """Draw PEs held and jobs waiting over time, a strip for each run; nothing if no trails were stored."""
    return strips(_trails(runs))


def gantt(runs: Sequence[SimulatedRun]) -> Drawing:
    """Draw which PEs were held when, a chart for each run, all over the same time."""
    return chart(_trails(runs))


def _trails(runs: Sequence[SimulatedRun]) -> list[tuple[str, Trail]]:
    return [(run.label, run.trail) for run in runs if run.trail is not None]


def strips(trails: Sequence[tuple[str, Trail]], origin: str = FIRST) -> Drawing:
    """Draw a strip for each label and trail; ``origin``: text that names the time 0."""
    axis = TimeAxis(max((trail.end for _, trail in trails), default=1), origin)
    shapes: list[Shape] = [
        *legend("held", LEFT, "PEs held (full height: all of them)"),
        Stroke("wait", ((LEFT + 260, 14), (LEFT + 274, 14)), 1.2),
        TextLine(LEFT + 280, 18, "jobs waiting (full height: the most there were)"),
    ]
    y = float(TOP)
    for label, trail in trails:
        shapes += _strip(axis, y, label, trail)
        y += STRIP + STRIP_GAP
    shapes += axis.drawn(TOP, y - STRIP_GAP)
    parts = ", ".join(f"{label}: {_mean(trail) * 100:.1f} % of {trail.pes} PEs" for label, trail in trails)
    text = f"PEs held from the first submission to the last end: {parts or 'nothing ran'}."
    return Drawing("utilisation", "Utilisation over time", text, y - STRIP_GAP + BELOW, tuple(shapes))


def _strip(axis: TimeAxis, top: float, label: str, trail: Trail) -> Iterator[Shape]:
    """Yield PEs held as an area over the whole height, jobs waiting as a line scaled to their maximum."""
    base, waiting = top + STRIP, trail.waiting()
    most, area = max(waiting, default=0.0), list[Rectangle]()
    held = [round(each / trail.pes * STRIP, 1) for each in trail.held()]
    for height, run in groupby(range(len(held)), held.__getitem__):
        if height > 0:  # columns of equal height are one box
            columns = list(run)
            x = axis.x(columns[0] * trail.width)
            width = axis.x(min((columns[-1] + 1) * trail.width, trail.end)) - x
            area.append((x, base - height, width, height))
    yield Boxes("held", tuple(area))
    if most > 0:
        ends = [axis.x(min(column * trail.width, trail.end)) for column in range(len(waiting) + 1)]
        heights = [base - jobs / most * STRIP for jobs in waiting]
        line = [(x, y) for column, y in enumerate(heights) for x in ends[column : column + 2]]
        yield Stroke("wait", tuple(line), 1.2)
    yield Stroke("rule", ((LEFT, base), (WIDTH - RIGHT, base)))
    yield TextLine(LEFT - 8, top + 14, fitting(label), "end")
    yield TextLine(LEFT - 8, top + 32, f"{_mean(trail) * 100:.1f} % of {trail.pes} PEs", "end")
    yield TextLine(LEFT - 8, top + 50, f"{most:.{0 if most >= 10 else 1}f} waiting at most", "end")


def _mean(trail: Trail) -> float:
    """Return the fraction of the PEs that was held, from the first submission to the last end."""
    return sum(trail.held()) * trail.width / (trail.pes * trail.end) if trail.end else 0.0


def chart(trails: Sequence[tuple[str, Trail]], origin: str = FIRST) -> Drawing:
    """Draw a Gantt chart for each label and trail; ``origin``: text that names the time 0."""
    axis = TimeAxis(max((trail.end for _, trail in trails), default=1), origin)
    shapes, y = list[Shape](), float(TOP)
    if any(trail.boxes is not None for _, trail in trails):
        shapes.append(TextLine(LEFT, 18, "boxes: jobs"))
    if any(trail.boxes is None for _, trail in trails):
        shapes.append(TextLine(LEFT + 100, 18, "shades: part of the PEs that was held, up to"))
        for shade in range(1, SHADES + 1):
            x = LEFT + 330 + 76.0 * shade
            shapes += (
                Boxes(f"shade{shade}", ((x - 18, 8, 12, 12),)),
                TextLine(x, 18, f"{100 * shade // SHADES} %"),
            )
    for label, trail in trails:
        height = min(MOST, max(LEAST, ROW * trail.pes))
        shapes.append(TextLine(LEFT - 8, y + 14, fitting(label), "end"))
        shapes.append(TextLine(LEFT - 8, y + 30, "PE 0 above", "end"))
        shapes.append(TextLine(LEFT - 8, y + height - 2, f"PE {trail.pes - 1}", "end"))
        shapes += _jobs(axis, y, height, trail) if trail.boxes is not None else _cells(axis, y, height, trail)
        y += height + CHART_GAP
    shapes += axis.drawn(TOP, y - CHART_GAP)
    how = {True: "cells of time and PEs", False: "jobs one by one"}
    parts = ", ".join(f"{label}: {trail.pes} PEs, {how[trail.boxes is None]}" for label, trail in trails)
    text = f"PEs from top to bottom, time from left to right. {parts or 'Nothing ran'}."
    return Drawing("gantt", "PEs over time", text, y - CHART_GAP + BELOW, tuple(shapes))


def _jobs(axis: TimeAxis, top: float, height: float, trail: Trail) -> Iterator[Shape]:
    """Yield a box for each time that a job was on PEs."""
    one, inset = height / trail.pes, 0.3
    for box in trail.boxes or ():
        x, y = axis.x(box.begin), top + box.first * one
        width, tall = axis.x(box.end) - x, (box.last - box.first + 1) * one
        place = x, y + inset, max(0.7, width - inset), max(0.7, tall - 2 * inset)
        pes = f"PE {box.first}" if box.first == box.last else f"PEs {box.first}-{box.last}"
        title = f"job {box.number}, {pes}: {short_time(box.begin)} to {short_time(box.end)}"
        yield Boxes(f"job{box.number % JOB_COLOURS}", (place,), title)


def _cells(axis: TimeAxis, top: float, height: float, trail: Trail) -> Iterator[Shape]:
    """Yield a shape for each shade, with a rectangle for each row of neighbouring cells of that shade."""
    found: dict[int, list[Rectangle]] = {shade: [] for shade in range(1, SHADES + 1)}
    tall = height / trail.pes
    for row, amounts in enumerate(trail.rows()):
        pes = min(trail.per_row, trail.pes - row * trail.per_row)
        y, several = top + row * trail.per_row * tall, -(-len(amounts) // CELLS)
        cells = [amounts[n : n + several] for n in range(0, len(amounts), several)]
        held = [sum(cell) / len(cell) / pes for cell in cells]
        shades = [0 if part < 1 - FULL else min(SHADES, ceil(part / FULL * SHADES)) for part in held]
        wide = trail.width * several
        for shade, run in groupby(range(len(shades)), shades.__getitem__):
            if shade:
                numbers = list(run)
                x = axis.x(numbers[0] * wide)
                width = axis.x(min((numbers[-1] + 1) * wide, trail.end)) - x
                found[shade].append((x, y, width, pes * tall))
    for shade, rectangles in found.items():
        yield Boxes(f"shade{shade}", tuple(rectangles))
