"""Results of runs as rows of texts: tables, one page of HTML without other files, and progress."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape

from msgspec import Struct
from rich.console import Console
from rich.markup import escape as unmarked
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from nqspy.model.texts import grid
from nqspy.report.drawing import svg_of
from nqspy.report.night_pages import page_html, table_html
from nqspy.rpc.messages import plain
from nqspy.sim.comparing import Compared, Estimate, compare
from nqspy.sim.metrics import KINDS
from nqspy.sim.pictures.album import DRAWN
from nqspy.sim.runs import SimulatedRun

MOST = 10
"""Most rows of a table of groups or users: those that used most."""
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
"""Columns of a comparison, and the formats of their numbers."""
WHOLE = 1_000
"""Value from which numbers of a comparison are written without a fraction."""
PIPED = 240
"""Columns of a table that no terminal reads."""


class TextTable(Struct, frozen=True):
    """A table. ``words``: so many columns are texts, others numbers; without ``heads``: names and values."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


def tables_of(found: SimulatedRun) -> list[TextTable]:
    """Return all tables of one run."""
    title = f"{found.workload} on {found.pes} PEs, {found.label}"
    tables = [TextTable(title, (), tuple(_overall(found)))]
    for kind in KINDS:
        parts = found.metrics.parts(kind)
        shown = list(parts.items()) if kind == "size" else list(parts.items())[:MOST]
        more = f" (the {MOST} of {len(parts)} that used most)" if len(shown) < len(parts) else ""
        rows = tuple(
            (name, str(each.jobs), f"{each.wait_mean_s:.1f}", f"{each.wait_median_s:g}",
             f"{each.wait_max_s:g}", f"{each.bsld_mean:.2f}", f"{each.pe_seconds / 3600:.1f}")
            for name, each in shown
        )  # fmt: skip
        tables.append(TextTable(f"by {kind}{more}", (kind, *HEADS), rows))
    return tables


def _overall(found: SimulatedRun) -> Iterator[tuple[str, str]]:
    metrics = found.metrics.overall()
    yield "jobs", f"{found.metrics.jobs}"
    for reason, n in found.dropped.items():
        yield f"dropped: {reason}", f"{n}"
    if found.unended:
        yield "never ended", f"{found.unended}"
    yield "wait, mean", f"{metrics.wait_mean_s:.1f} s"
    yield "wait, median", f"{metrics.wait_median_s:g} s"
    yield "wait, longest", f"{metrics.wait_max_s:g} s"
    yield "bounded slowdown, mean", f"{metrics.bsld_mean:.2f}"
    yield "makespan", f"{metrics.makespan_s:g} s"
    yield "utilisation", f"{metrics.utilisation * 100:.1f} %"
    if "busy" in found.judged:
        yield "night: CPUs busy", f"{found.judged['busy'] * 100:.1f} %"
        for name, points in found.judged["deviation"].items():
            yield f"night: quota deviation of {name}", f"{points:+.2f} points"
        yield "night: order of the lists", "kept" if found.judged["order_kept"] else "changed"


def comparison_table(title: str, found: Sequence[Compared], between: str = "±") -> TextTable:
    """Return a table with a row for each label; ``between``: sign between a mean and half its interval."""
    names = [name for name in COMPARED if any(name in each.metrics for each in found)]
    heads = ["run", COMPARED[names[0]][0], "difference", *(COMPARED[name][0] for name in names[1:])]
    rows = []
    for each in found:
        cells = [each.label]
        for name in names:
            form = COMPARED[name][1]
            cells.append(_written(each.metrics.get(name), form, between))
            if name == "wait_mean_s":
                cells.append(_written(each.differences.get(name), "+" + form, between))
        rows.append(tuple(cells))
    seeds = max((each.seeds for each in found), default=1)
    over = f"; means over {seeds} seeds, {between} 95 % confidence intervals" if seeds > 1 else ""
    return TextTable(title + over, tuple(heads), tuple(rows))


def _written(found: Estimate | None, form: str, between: str) -> str:
    if found is None:
        return ""
    if abs(found.mean) >= WHOLE:
        form = form[:-2] + "0f"
    mean = format(found.mean, form)
    return mean if found.ci95 is None else f"{mean} {between} {format(found.ci95, form.removeprefix('+'))}"


def show(tables: Iterable[TextTable]) -> None:
    """Print tables, as wide as the terminal, else `PIPED` columns."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED
    for table in tables:
        rows = [[plain(cell) for cell in row] for row in table.rows]
        heads = table.heads or ("", "")
        remark(f"{plain(table.title)}\n{grid(heads, rows, table.words, width=width)}")


def show_comparison(title: str, found: Sequence[Compared]) -> None:
    """Print a comparison of runs."""
    show([comparison_table(title, found, "±" if sys.stdout.encoding.lower().startswith("utf") else "+-")])


def remark(text: str) -> None:
    """Print a text on stdout; characters that its encoding lacks become ``?``."""
    encoding = sys.stdout.encoding
    print(text.encode(encoding, "replace").decode(encoding))


@contextmanager
def progress(title: str, jobs: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr, if it is a terminal; yield a function that gets the number of ended jobs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done: None
        return
    text = unmarked(plain(title).encode(console.encoding, "replace").decode(console.encoding))
    columns = (TextColumn(text), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=jobs)
        yield lambda done: bar.update(task, completed=done)


def page(title: str, runs: Sequence[SimulatedRun], names: Iterable[str]) -> str:
    """Return an HTML page: pictures (`album.names_of`) and tables; for several seeds only comparisons."""
    drawings = [DRAWN[name](runs) for name in names]
    pictures = (f"<h2>{escape(drawing.title)}</h2><figure>{svg_of(drawing)}</figure>" for drawing in drawings)
    tables = [comparison_table("Compared", compare(runs))] if len(runs) > 1 else []
    if len({run.seed for run in runs}) == 1:
        tables += [table for run in runs for table in tables_of(run)]
    shown = ""
    for table in tables:
        body = ""
        for row in table.rows:
            cells = (f"<td{' class=n' * (n >= table.words)}>{escape(s)}</td>" for n, s in enumerate(row))
            body += f"<tr>{''.join(cells)}</tr>"
        shown += table_html(table.title, table.heads, body)
    return page_html(title, "".join(pictures) + shown)
