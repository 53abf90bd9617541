"""Pictures of bars: runs compared by their metrics, with 95 % confidence intervals over several seeds; waits
by size class: the middle half, median and mean, and the range of nine in ten."""

from collections.abc import Iterator, Mapping, Sequence

from nqspy.report.drawing import JOB_COLOURS, WIDTH, Boxes, Drawing, Shape, Stroke, TextLine
from nqspy.sim.comparing import Compared, Estimate
from nqspy.sim.metrics import Spread, first_size
from nqspy.sim.pictures.axes import BELOW, LEFT, RIGHT, WaitAxis, fitting
from nqspy.sim.runs import SimulatedRun

PANELS: Mapping[str, str] = {
    "wait_mean_s": "mean wait, s",
    "bsld_mean": "mean bounded slowdown",
    "utilisation": "utilisation",
    "busy": "busy share of the night",
    "deviation_most": "largest quota deviation, points",
}
"""Metrics that are compared, if they were measured."""
PANELS_TOP, PANEL_HEAD, PANEL_BAR, PANEL_GAP, NUMBER = 12, 24, 20, 16, 150
TOP, BAR, GAP = 52, 14, 12


def comparison(found: Sequence[Compared]) -> Drawing:
    """Draw a panel for each metric of `PANELS`, with a bar for each label."""
    shapes, y = list[Shape](), float(PANELS_TOP)
    for metric, title in PANELS.items():
        rows = [(each.label, each.metrics[metric]) for each in found if metric in each.metrics]
        if rows:
            shapes += _panel(y, title, rows)
            y += PANEL_HEAD + PANEL_BAR * len(rows) + PANEL_GAP
    parts = ", ".join(f"{each.label} {written(each.metrics['wait_mean_s'])} s" for each in found)
    seeds = max((each.seeds for each in found), default=0)
    over = f" over {seeds} seeds, with 95 % confidence intervals" if seeds > 1 else ""
    return Drawing("comparison", "Runs compared", f"Mean waits{over}: {parts}.", y, tuple(shapes))


def _panel(top: float, title: str, rows: Sequence[tuple[str, Estimate]]) -> Iterator[Shape]:
    amounts = [each.mean + sign * (each.ci95 or 0.0) for _, each in rows for sign in (-1, 1)]
    low, high = min(0.0, *amounts), max(0.0, *amounts)
    scale = (WIDTH - RIGHT - NUMBER - LEFT) / ((high - low) or 1.0)

    def x(amount: float) -> float:
        return LEFT + (amount - low) * scale

    yield TextLine(LEFT, top + 14, title)
    for place, (label, each) in enumerate(rows):
        y = top + PANEL_HEAD + place * PANEL_BAR
        left, right = sorted((x(0), x(each.mean)))
        yield TextLine(LEFT - 8, y + 12, fitting(label), "end")
        yield Boxes("held", ((left, y + 2, max(0.5, right - left), PANEL_BAR - 6),))
        if each.ci95 is not None:
            ends, middle = (x(each.mean - each.ci95), x(each.mean + each.ci95)), y + PANEL_BAR / 2 - 1
            yield Stroke("ink", tuple((end, middle) for end in ends), 1.5)
            yield from (Stroke("ink", ((end, middle - 4), (end, middle + 4)), 1.5) for end in ends)
        yield TextLine(WIDTH - RIGHT, y + 12, written(each), "end")


def written(each: Estimate) -> str:
    """Return a mean and half its interval as text for a picture."""
    numbers = [each.mean] if each.ci95 is None else [each.mean, each.ci95]
    return " ± ".join(f"{number:.0f}" if abs(number) >= 1_000 else f"{number:.3g}" for number in numbers)


def waits(runs: Sequence[SimulatedRun]) -> Drawing:
    """Draw the waits by size class, from top to bottom; in each class a bar for each run."""
    spreads = [run.metrics.spreads() for run in runs]
    classes = sorted({name for each in spreads for name in each}, key=first_size)
    axis = WaitAxis(max((each.high for found in spreads for each in found.values()), default=0.0))
    text = "box: middle half; line: 90 %; bar in it: median; dot: mean; the axis is logarithmic"
    shapes, y = list[Shape]([TextLine(LEFT, 18, text)]), float(TOP)
    room = (JOB_COLOURS * 130) / max(JOB_COLOURS, len(runs))
    for place, run in enumerate(runs if len(runs) > 1 else ()):
        shapes.append(Boxes(f"job{place % JOB_COLOURS}", ((LEFT + place * room, 28, 12, 12),)))
        shapes.append(TextLine(LEFT + place * room + 16, 38, fitting(run.label, int(room / 8))))
    for name in classes:
        shapes.append(TextLine(LEFT - 8, y + 11, f"{name} PE{'s' * (name != '1')}", "end"))
        for place, found in enumerate(spreads):
            if name in found:
                shapes += _bar(axis, y, place, found[name])
            y += BAR
        y += GAP
    shapes = [*axis.drawn(TOP, max(y - GAP, TOP)), *shapes]
    parts = "; ".join(
        f"{run.label}: " + ", ".join(f"{name} PEs {each.median:g} s" for name, each in found.items())
        for run, found in zip(runs, spreads, strict=True)
        if found
    )
    text = f"Median waits by size class. {parts or 'Nothing ran'}."
    return Drawing("waits", "Waits by size class", text, max(y, TOP) + BELOW - GAP, tuple(shapes))


def _bar(axis: WaitAxis, y: float, run: int, found: Spread) -> Iterator[Shape]:
    middle, x = y + BAR / 2, axis.x
    yield Stroke("ink", ((x(found.low), middle), (x(found.high), middle)))
    left = x(found.lower)
    box = left, y + 2, max(1.0, x(found.upper) - left), BAR - 4
    text = f"{found.jobs} jobs, median {found.median:g} s, mean {found.mean:.1f} s"
    yield Boxes(f"job{run % JOB_COLOURS}", (box,), text)
    yield Stroke("ink", ((x(found.median), y + 1), (x(found.median), y + BAR - 1)), 2)
    yield Boxes("bad", ((x(found.mean) - 2, middle - 2, 4, 4),))
    yield TextLine(axis.end, y + 11, f"{found.jobs} jobs")
