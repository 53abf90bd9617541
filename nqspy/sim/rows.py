"""The results of runs as rows of texts: what tables and pages show alike."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from nqspy.sim.comparing import Compared, Estimate
from nqspy.sim.metrics import KINDS, Figures
from nqspy.sim.running import Simulated

MOST = 10
"""Rows of a table of groups or users: those that used most."""

HEADS = ("jobs", "wait mean s", "median s", "max s", "slowdown", "PE hours")

COMPARED: Mapping[str, tuple[str, str]] = {
    "wait_mean_s": ("mean wait s", ".1f"),
    "wait_median_s": ("median s", ".1f"),
    "wait_max_s": ("longest s", ".0f"),
    "bsld_mean": ("slowdown", ".2f"),
    "utilisation": ("utilised", ".3f"),
    "makespan_s": ("makespan s", ".0f"),
    "busy": ("busy", ".3f"),
    "deviation_most": ("deviation", ".2f"),
    "order_kept": ("order kept", ".2f"),
}
"""Columns of a comparison, and how their numbers are written."""

WHOLE = 1_000
"""From here on numbers of a comparison are written without a fraction."""


class TextTable(Struct, frozen=True):
    """``left``: so many columns are words, the others numbers; no ``heads``: names and their values."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


def tables_of(found: Simulated, label: str, kinds: tuple[str, ...] = KINDS) -> list[TextTable]:
    """All of one run."""
    title = f"{found.workload} on {found.pes} PEs, {label}"
    return [TextTable(title, (), tuple(_overall(found))), *(_parts(found, kind) for kind in kinds)]


def _overall(found: Simulated) -> Iterator[tuple[str, str]]:
    metrics = found.metrics.overall()
    yield "jobs", f"{found.metrics.jobs}"
    for reason, n in found.dropped.items():
        yield f"dropped: {reason}", f"{n}"
    if found.left:
        yield "never ended", f"{found.left}"
    yield "wait, mean", f"{metrics.wait_mean_s:.3f} s"
    yield "wait, median", f"{metrics.wait_median_s:g} s"
    yield "wait, longest", f"{metrics.wait_max_s:g} s"
    yield "bounded slowdown, mean", f"{metrics.bsld_mean:.4f}"
    yield "makespan", f"{metrics.makespan_s:g} s"
    yield "utilisation", f"{metrics.utilisation:.6f}"
    if "busy" in found.judged:
        yield from _judged(found)


def _judged(found: Simulated) -> Iterator[tuple[str, str]]:
    yield "the night: CPUs busy", f"{found.judged['busy'] * 100:.1f} %"
    for name, points in found.judged["deviation"].items():
        yield f"the night: {name} off its quota", f"{points:+.2f} points"
    yield "the night: order of the lists", "kept" if found.judged["order_kept"] else "changed"


def _parts(found: Simulated, kind: str) -> TextTable:
    parts = found.metrics.parts(kind)
    shown = list(parts.items()) if kind == "size" else list(parts.items())[:MOST]
    more = f" (the {MOST} of {len(parts)} that used most)" if len(shown) < len(parts) else ""
    rows = tuple((name, *_part(each)) for name, each in shown)
    return TextTable(f"by {kind}{more}", (kind, *HEADS), rows)


def _part(each: Figures) -> tuple[str, ...]:
    waits = (f"{each.wait_mean_s:.1f}", f"{each.wait_median_s:g}", f"{each.wait_max_s:g}")
    return str(each.jobs), *waits, f"{each.bsld_mean:.2f}", f"{each.pe_seconds / 3600:.1f}"


# ---------------------------------------------------------------- several


def comparison_table(title: str, found: Sequence[Compared], between: str = "±") -> TextTable:
    """A row for each label; ``between``: a mean and half its 95 % confidence interval. Differences of mean
    waits are to the first row, over the same seeds."""
    names = [name for name in COMPARED if any(name in each.metrics for each in found)]
    heads = ["run", COMPARED[names[0]][0], "difference", *(COMPARED[name][0] for name in names[1:])]
    rows = [(each.label, *_cells(each, names, between)) for each in found]
    seeds = max((each.seeds for each in found), default=1)
    over = f"; means over {seeds} seeds, {between} 95 % confidence intervals" if seeds > 1 else ""
    return TextTable(title + over, tuple(heads), tuple(rows))


def _cells(each: Compared, names: Sequence[str], between: str) -> Iterator[str]:
    for name in names:
        form = COMPARED[name][1]
        yield _written(each.metrics[name], form, between) if name in each.metrics else ""
        if name == "wait_mean_s":
            other = each.differences.get(name)
            yield "" if other is None else _written(other, "+" + form, between)


def _written(found: Estimate, form: str, between: str) -> str:
    if abs(found.mean) >= WHOLE:
        form = form[:-2] + "0f"
    mean = format(found.mean, form)
    return mean if found.ci95 is None else f"{mean} {between} {format(found.ci95, form.removeprefix('+'))}"
