"""Runs compared: bars for each metric, with 95 % confidence intervals where there are several seeds."""

from collections.abc import Iterator, Mapping, Sequence

from nqspy.report.drawing import WIDTH, Boxes, Drawing, Shape, Stroke, TextLine
from nqspy.sim.comparing import Compared, Estimate
from nqspy.sim.pictures.axes import LEFT, RIGHT, AmountAxis, fitting

NAME = "comparison"
PANELS: Mapping[str, str] = {
    "wait_mean_s": "mean wait, s",
    "bsld_mean": "mean bounded slowdown",
    "utilisation": "utilisation",
    "busy": "busy share of the night",
    "deviation_most": "largest quota deviation, points",
}
"""What is drawn, where it was measured."""
TOP, HEAD, BAR, GAP, NUMBER = 12, 24, 20, 16, 150


def comparison(found: Sequence[Compared]) -> Drawing:
    """A panel for each metric of `PANELS`, in it a bar for each label."""
    shapes, y = list[Shape](), float(TOP)
    for metric, title in PANELS.items():
        rows = [(each.label, each.metrics[metric]) for each in found if metric in each.metrics]
        if rows:
            shapes += _panel(y, title, rows)
            y += HEAD + BAR * len(rows) + GAP
    return Drawing(NAME, "Runs compared", _told(found), y, tuple(shapes))


def _panel(top: float, title: str, rows: Sequence[tuple[str, Estimate]]) -> Iterator[Shape]:
    ends = [end for _, each in rows for end in _ends(each)]
    axis = AmountAxis(ends, LEFT, WIDTH - RIGHT - NUMBER)
    yield TextLine(LEFT, top + 14, title)
    for place, (label, each) in enumerate(rows):
        y = top + HEAD + place * BAR
        left, right = sorted((axis.x(0), axis.x(each.mean)))
        yield TextLine(LEFT - 8, y + 12, fitting(label), "end")
        yield Boxes("held", ((left, y + 2, max(0.5, right - left), BAR - 6),))
        if each.ci95 is not None:
            yield from _whisker(axis, y + BAR / 2 - 1, each)
        yield TextLine(WIDTH - RIGHT, y + 12, told(each), "end")


def _whisker(axis: AmountAxis, y: float, each: Estimate) -> Iterator[Shape]:
    low, high = (axis.x(end) for end in _ends(each))
    yield Stroke("ink", ((low, y), (high, y)), 1.5)
    for x in (low, high):
        yield Stroke("ink", ((x, y - 4), (x, y + 4)), 1.5)


def _ends(each: Estimate) -> tuple[float, float]:
    half = each.ci95 or 0.0
    return each.mean - half, each.mean + half


def told(each: Estimate) -> str:
    """A mean and half its interval, as a picture says it."""
    return _short(each.mean) + ("" if each.ci95 is None else f" ± {_short(each.ci95)}")


def _short(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 1_000 else f"{number:.3g}"


def _told(found: Sequence[Compared]) -> str:
    said = (f"{each.label} {told(each.metrics['wait_mean_s'])} s" for each in found)
    seeds = max((each.seeds for each in found), default=0)
    over = f" over {seeds} seeds, with 95 % confidence intervals" if seeds > 1 else ""
    return f"Mean waits{over}: {', '.join(said)}."
