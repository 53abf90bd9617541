"""Utilisation over time: PEs that were held, and the jobs that waited, a strip for each run."""

from collections.abc import Iterator, Sequence

from nqspy.report.drawing import WIDTH, Boxes, Drawing, Shape, Stroke, TextLine
from nqspy.sim.pictures.axes import BELOW, FIRST, LEFT, RIGHT, TimeAxis, fitting
from nqspy.sim.runs import SimulatedRun
from nqspy.sim.trail import Trail

NAME = "utilisation"
TOP, STRIP, GAP = 34, 96, 26


def utilisation(runs: Sequence[SimulatedRun]) -> Drawing:
    """A strip for each run, all over one time; empty where nothing ran."""
    return strips([(run.label, run.found.trail) for run in runs if run.found.trail is not None])


def strips(trails: Sequence[tuple[str, Trail]], origin: str = FIRST) -> Drawing:
    """A strip for each label and what it is drawn from; ``origin``: what times are counted from."""
    axis = TimeAxis(max((trail.end for _, trail in trails), default=1), origin)
    shapes, y = list(_legend()), float(TOP)
    for label, trail in trails:
        shapes += _strip(axis, y, label, trail)
        y += STRIP + GAP
    shapes += axis.drawn(TOP, y - GAP)
    return Drawing(NAME, "Utilisation over time", _told(trails), y - GAP + BELOW, tuple(shapes))


def _strip(axis: TimeAxis, top: float, label: str, trail: Trail) -> Iterator[Shape]:
    """PEs held as an area over the whole height, jobs waiting as a line over the height of the most."""
    base, waiting = top + STRIP, trail.waiting()
    most = max(waiting, default=0.0)
    yield Boxes("held", tuple(_area(axis, base, trail)))
    if most > 0:
        yield Stroke("wait", tuple(_steps(axis, base, trail, waiting, most)), 1.2)
    yield Stroke("rule", ((LEFT, base), (WIDTH - RIGHT, base)))
    yield TextLine(LEFT - 8, top + 14, fitting(label), "end")
    yield TextLine(LEFT - 8, top + 32, f"{_mean(trail) * 100:.1f} % of {trail.pes} PEs", "end")
    yield TextLine(LEFT - 8, top + 50, f"{_whole(most)} waiting at most", "end")


def _area(axis: TimeAxis, base: float, trail: Trail) -> Iterator[tuple[float, float, float, float]]:
    """Columns of one height are one box."""
    begin, held = 0, [*(round(each / trail.pes * STRIP, 1) for each in trail.held()), -1.0]
    for column, height in enumerate(held):
        if height != held[begin]:
            if held[begin] > 0:
                x, end = axis.x(begin * trail.width), axis.x(min(column * trail.width, trail.end))
                yield x, base - held[begin], end - x, held[begin]
            begin = column


def _steps(
    axis: TimeAxis, base: float, trail: Trail, waiting: Sequence[float], most: float
) -> Iterator[tuple[float, float]]:
    """A line that is level through each column."""
    for column, jobs in enumerate(waiting):
        y = base - jobs / most * STRIP
        yield axis.x(column * trail.width), y
        yield axis.x(min((column + 1) * trail.width, trail.end)), y


def _mean(trail: Trail) -> float:
    """Part of the PEs that were held, from the first submission to the last end."""
    return sum(trail.held()) * trail.width / (trail.pes * trail.end) if trail.end else 0.0


def _whole(jobs: float) -> str:
    return f"{jobs:.0f}" if jobs >= 10 else f"{jobs:.1f}"


def _legend() -> Iterator[Shape]:
    yield Boxes("held", ((LEFT, 8, 12, 12),))
    yield TextLine(LEFT + 17, 18, "PEs held (full height: all of them)")
    yield Stroke("wait", ((LEFT + 260, 14), (LEFT + 274, 14)), 1.2)
    yield TextLine(LEFT + 280, 18, "jobs waiting (full height: the most there were)")


def _told(trails: Sequence[tuple[str, Trail]]) -> str:
    said = (f"{label}: {_mean(trail) * 100:.1f} % of {trail.pes} PEs" for label, trail in trails)
    return f"PEs held from the first submission to the last end: {', '.join(said) or 'nothing ran'}."
