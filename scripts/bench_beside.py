"""Figures of this checkout and of another one, measured in turn by the same scripts in one run."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
SLOWER = 1.05
"""Ratio by which a figure must be worse to be marked."""


def _measured(root: Path, name: str, quick: bool) -> dict[str, Any]:
    """Return the figures of a group of measurements by name, for the nqspy in the checkout ``root``."""
    python = root / ".venv" / "bin" / "python"
    env = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "NQSPY_BENCH_ROOT": str(root)}
    words = [
        str(python),
        str(HERE / "scripts" / "bench.py"),
        name,
        "--json",
        *["--quick"] * (quick and name != "memory"),
    ]
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"{name} cannot be measured in {root}", file=sys.stderr)
        return {}
    return {each["name"]: each for each in json.loads(done.stdout)}


def _pair(other: Path, name: str, quick: bool, *, other_first: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the figures of both checkouts, this one's first. The first one measured is often the slower:
    callers alternate the order (``other_first``)."""
    roots = (other, HERE) if other_first else (HERE, other)
    found = {root: _measured(root, name, quick) for root in roots}
    return found[HERE], found[other]


def beside(other: Path, names: list[str], turns: int, quick: bool) -> None:
    """Print a row for each figure that both have: medians over the turns, and the median of the ratios."""
    print(f"{'figure':<46} {'here':>12} {'there':>12} {'unit':<12} {'ratio':>6}")
    for name in names:
        pairs = [_pair(other, name, quick, other_first=bool(turn % 2)) for turn in range(turns)]
        for row in [each for each in pairs[0][0] if all(each in one for pair in pairs for one in pair)]:
            values = [(ours[row]["value"], theirs[row]["value"]) for ours, theirs in pairs]
            ratio = statistics.median(a / b if b else 1.0 for a, b in values)
            here, there = (statistics.median(some) for some in zip(*values, strict=True))
            unit = pairs[0][0][row]["unit"]
            worse = ratio < 1 / SLOWER if unit.endswith("/s") else ratio > SLOWER
            mark = "  worse" if worse else ""
            print(f"{row:<46} {here:12.2f} {there:12.2f} {unit:<12} {ratio:6.2f}{mark}", flush=True)
