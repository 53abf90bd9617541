"""The results of a simulated workload as tables for people, and how far it is while it runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from nqspy.sim.metrics import KINDS
from nqspy.sim.running import Simulated

MOST = 10
"""Rows of a table of groups or users: those that used most."""

HEADS = ("jobs", "wait mean s", "median s", "max s", "slowdown", "PE hours")


def show(found: Simulated, policy: str, kinds: tuple[str, ...] = KINDS) -> None:
    """Prints all of it."""
    console = Console(highlight=False)
    workload, all_of_it = found.workload, found.metrics.overall()
    rows = [
        ("jobs", f"{found.metrics.jobs}"),
        *((f"dropped: {reason}", f"{n}") for reason, n in workload.dropped.items() if n),
        *((("never ended", f"{found.left}"),) if found.left else ()),
        ("wait, mean", f"{all_of_it.wait_mean_s:.3f} s"),
        ("wait, median", f"{all_of_it.wait_median_s:g} s"),
        ("wait, longest", f"{all_of_it.wait_max_s:g} s"),
        ("bounded slowdown, mean", f"{all_of_it.bsld_mean:.4f}"),
        ("makespan", f"{all_of_it.makespan_s:g} s"),
        ("utilisation", f"{all_of_it.utilisation:.6f}"),
    ]
    table = RichTable(title=f"{workload.name} on {workload.pes} PEs, {policy}", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for kind in kinds:
        console.print(_parts(found, kind))


def _parts(found: Simulated, kind: str) -> RichTable:
    parts = found.metrics.parts(kind)
    shown = list(parts.items()) if kind == "size" else list(parts.items())[:MOST]
    more = f" (the {MOST} of {len(parts)} that used most)" if len(shown) < len(parts) else ""
    table = RichTable(title=f"by {kind}{more}")
    table.add_column(kind)
    for head in HEADS:
        table.add_column(head, justify="right")
    for name, each in shown:
        waits = (f"{each.wait_mean_s:.1f}", f"{each.wait_median_s:g}", f"{each.wait_max_s:g}")
        table.add_row(name, str(each.jobs), *waits, f"{each.bsld_mean:.2f}", f"{each.pe_seconds / 3600:.1f}")
    return table


@contextmanager
def progress(title: str, jobs: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, with an estimate of what is left; nothing where that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done: None
        return
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=jobs)
        yield lambda done: bar.update(task, completed=done)
