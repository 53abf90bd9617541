"""The results of simulated workloads as tables for people, and how far they are while they run."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from nqspy.model.texts import grid
from nqspy.rpc.messages import plain
from nqspy.sim.comparing import Compared
from nqspy.sim.rows import TextTable, comparison_table

PIPED = 240
"""Columns of a table that is read by no terminal."""


def show(tables: Iterable[TextTable]) -> None:
    """Print tables, on a terminal as wide as that is."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED
    for table in tables:
        rows = [[plain(cell) for cell in row] for row in table.rows]
        heads = table.heads or ("", "")
        remark(f"{plain(table.title)}\n{grid(heads, rows, table.left, width=width)}")


def show_comparison(title: str, found: Sequence[Compared]) -> None:
    """Print runs side by side."""
    show([comparison_table(title, found, "±" if sys.stdout.encoding.lower().startswith("utf") else "+-")])


def remark(text: str) -> None:
    """Print a text; what the terminal's encoding does not have is written as ``?``."""
    encoding = sys.stdout.encoding
    print(text.encode(encoding, "replace").decode(encoding))


@contextmanager
def progress(title: str, jobs: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, with an estimate of what is left; nothing where that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done: None
        return
    columns = (
        TextColumn(escape(plain(title).encode(console.encoding, "replace").decode(console.encoding))),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=jobs)
        yield lambda done: bar.update(task, completed=done)
