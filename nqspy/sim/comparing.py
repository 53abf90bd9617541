"""Comparison of runs: means with 95 % confidence intervals, differences to the first label, seed by seed."""

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

from msgspec import Struct
from msgspec.structs import asdict

from nqspy.sim.runs import SimulatedRun

STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Quantiles of Student's t with 1, 2, ... degrees of freedom: 95 % lie within plus and minus this."""
NORMAL = 1.959964


class Estimate(Struct, frozen=True):
    """A mean; ``ci95``: half the width of its 95 % confidence interval, None for a single value."""

    mean: float
    ci95: float | None


class Compared(Struct, frozen=True):
    """Figures of the runs of one label: ``metrics``: means over its ``seeds``; ``differences``: means of the
    differences to the first label's runs with equal seeds (empty for the first label)."""

    label: str
    seeds: int
    metrics: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]

    def data(self) -> dict[str, object]:
        """Return the comparison for JSON."""
        shown = {name: asdict(found) for name, found in self.metrics.items()}
        for name, difference in self.differences.items():
            shown[name]["difference"] = asdict(difference)
        return {"label": self.label, "seeds": self.seeds, "metrics": shown}


def student(freedom: int) -> float:
    """Return the quantile of Student's t for ``freedom`` degrees of freedom: 95 % lie within +- it."""
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    z = NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def estimate(values: Sequence[float]) -> Estimate:
    """Estimate the mean of one or more independent values."""
    count = len(values)
    half = student(count - 1) * stdev(values) / sqrt(count) if count > 1 else None
    return Estimate(fmean(values), half)


def figures_of(found: SimulatedRun) -> dict[str, float]:
    """Return a run's figures by name; of a night also ``busy``, ``deviation_most``, ``order_kept``."""
    figures: dict[str, float] = asdict(found.metrics.overall())
    if "busy" in found.judged:
        figures["busy"] = found.judged["busy"]
        figures["deviation_most"] = max(map(abs, found.judged["deviation"].values()), default=0.0)
        figures["order_kept"] = float(found.judged["order_kept"])
    return figures


def compare(runs: Iterable[SimulatedRun]) -> list[Compared]:
    """Return a comparison for each label of the runs, in the order in which labels first occur."""
    by_label: dict[str, dict[int, dict[str, float]]] = {}
    for run in runs:
        by_label.setdefault(run.label, {})[run.seed] = figures_of(run)
    first, found = next(iter(by_label.values()), {}), list[Compared]()
    for label, by_seed in by_label.items():
        every, others = list(by_seed.values()), {} if by_seed is first else first
        names = [name for name in every[0] if all(name in figures for figures in every)]
        metrics = {name: estimate([figures[name] for figures in every]) for name in names}
        pairs = [(figures, others[seed]) for seed, figures in by_seed.items() if seed in others]
        both = [name for name in names if pairs and all(name in other for _, other in pairs)]
        differences = {name: estimate([own[name] - other[name] for own, other in pairs]) for name in both}
        found.append(Compared(label, len(every), metrics, differences))
    return found


def alike(found: Sequence[Compared]) -> bool:
    """True if there are several labels, and with each seed their figures equal those of the first label,
    to the last bit."""
    return len(found) > 1 and all(
        each.mean == 0 and not each.ci95 for one in found[1:] for each in one.differences.values()
    )
