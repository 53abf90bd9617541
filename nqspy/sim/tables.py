"""The results of simulated workloads as tables for people, and how far they are while they run."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from nqspy.rpc.messages import plain
from nqspy.sim.comparing import Compared
from nqspy.sim.rows import TextTable, comparison_table

PIPED = 240
"""Columns of a comparison that is read by no terminal."""


def show(tables: Iterable[TextTable]) -> None:
    """Prints them. What the terminal's encoding does not have is written as ``?``."""
    console = Console(highlight=False)
    for table in tables:
        _print(console, table)


def show_comparison(title: str, found: Sequence[Compared]) -> None:
    """Prints runs side by side: on a terminal as wide as that is."""
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=PIPED)
    table = comparison_table(title, found, "±" if console.encoding.startswith("utf") else "+-")
    _print(console, table)


def remark(text: str) -> None:
    """Prints a sentence below tables."""
    Console(highlight=False, markup=False).print(text)


def _print(console: Console, table: TextTable) -> None:
    shown = RichTable(
        title=escape(_known(console, table.title)), show_header=bool(table.heads), box=SIMPLE_HEAD
    )
    for place in range(len(table.heads) or len(table.rows[0])):
        head = table.heads[place] if table.heads else ""
        shown.add_column(head, justify="left" if place < table.left else "right")
    for row in table.rows:
        shown.add_row(*(escape(_known(console, cell)) for cell in row))
    console.print(shown)


def _known(console: Console, text: str) -> str:
    """The text as far as the terminal's encoding has it; what would do something to it made visible."""
    return plain(text).encode(console.encoding, "replace").decode(console.encoding)


@contextmanager
def progress(title: str, jobs: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, with an estimate of what is left; nothing where that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done: None
        return
    columns = (
        TextColumn(escape(_known(console, title))),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=jobs)
        yield lambda done: bar.update(task, completed=done)
