"""Waits by size class: of each run and class the middle half of the waits, their median and mean, and what
nine in ten lie between."""

from collections.abc import Iterator, Mapping, Sequence

from nqspy.report.drawing import JOB_COLOURS, Boxes, Drawing, Shape, Stroke, TextLine
from nqspy.sim.metrics import Spread, first_size
from nqspy.sim.pictures.axes import BELOW, LEFT, WaitAxis, fitting
from nqspy.sim.runs import SimulatedRun

NAME = "waits"
TOP, BAR, GAP = 52, 14, 12


def waits(runs: Sequence[SimulatedRun]) -> Drawing:
    """Size classes from top to bottom, in each of them the runs."""
    spreads = [run.found.metrics.spreads("size") for run in runs]
    classes = sorted({name for each in spreads for name in each}, key=first_size)
    axis = WaitAxis(max((each.high for found in spreads for each in found.values()), default=0.0))
    shapes, y = list(_legend([run.label for run in runs])), float(TOP)
    for name in classes:
        shapes.append(TextLine(LEFT - 8, y + 11, f"{name} PE{'s' * (name != '1')}", "end"))
        for place, found in enumerate(spreads):
            if name in found:
                shapes += _bar(axis, y, place, found[name])
            y += BAR
        y += GAP
    shapes = [*axis.drawn(TOP, max(y - GAP, TOP)), *shapes]
    return Drawing(
        NAME, "Waits by size class", _told(runs, spreads), max(y, TOP) + BELOW - GAP, tuple(shapes)
    )


def _bar(axis: WaitAxis, y: float, run: int, found: Spread) -> Iterator[Shape]:
    middle, x = y + BAR / 2, axis.x
    yield Stroke("ink", ((x(found.low), middle), (x(found.high), middle)))
    left = x(found.lower)
    box = left, y + 2, max(1.0, x(found.upper) - left), BAR - 4
    yield Boxes(_kind(run), (box,), f"{found.jobs} jobs, median {found.median:g} s, mean {found.mean:.1f} s")
    yield Stroke("ink", ((x(found.median), y + 1), (x(found.median), y + BAR - 1)), 2)
    yield Boxes("bad", ((x(found.mean) - 2, middle - 2, 4, 4),))
    yield TextLine(axis.end, y + 11, f"{found.jobs} jobs")


def _kind(run: int) -> str:
    return f"job{run % JOB_COLOURS}"


def _legend(labels: Sequence[str]) -> Iterator[Shape]:
    said = "box: middle half; line: 90 %; bar in it: median; dot: mean; the axis is logarithmic"
    yield TextLine(LEFT, 18, said)
    if len(labels) > 1:
        room = (JOB_COLOURS * 130) / max(JOB_COLOURS, len(labels))
        for run, label in enumerate(labels):
            yield Boxes(_kind(run), ((LEFT + run * room, 28, 12, 12),))
            yield TextLine(LEFT + run * room + 16, 38, fitting(label, int(room / 8)))


def _told(runs: Sequence[SimulatedRun], spreads: Sequence[Mapping[str, Spread]]) -> str:
    said = [
        f"{run.label}: " + ", ".join(f"{name} PEs {each.median:g} s" for name, each in found.items())
        for run, found in zip(runs, spreads, strict=True)
        if found
    ]
    return f"Median waits by size class. {'; '.join(said) or 'Nothing ran'}."
