"""The command ``nqspy sim gang``: seed 000's experiment, space sharing beside the Gang Scheduler."""

import json
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from nqspy.rpc.program import run as run_app
from nqspy.sim.batch import NotSimulated
from nqspy.sim.gang.machines import CHOSEN, PER_PE, PES
from nqspy.sim.gang.run import GangOrder, GangRun
from nqspy.sim.workloads.jobs import MOST_JOBS, Workload
from nqspy.sim.workloads.t3d import t3d
from nqspy.sim.workloads.wanted import Wanted

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

YEAR = 365 * 24 * 3_600
"""In seconds."""


class T3dMachine(StrEnum):
    """Which of the two machines."""

    SPACE = "space"
    GANG = "gang"


@app.command("gang")
def gang(
    machine: Annotated[
        T3dMachine | None, typer.Option("--run", help="space sharing, or by class; else both, side by side")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="of the invented workload")] = 1,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, max=MOST_JOBS, help="else five weeks of it")
    ] = None,
    thin: Annotated[int, typer.Option("--thin", min=1, help="every so manieth job only")] = 1,
    per_pe: Annotated[
        int, typer.Option("--do-not-disturb", min=0, max=YEAR, help="seconds for each PE of a job")
    ] = PER_PE,
    as_json: Annotated[bool, typer.Option("--json", help="data instead of a table")] = False,
) -> None:
    """The T3D's work by space sharing and by the Gang Scheduler: utilisation, waits of interactive jobs."""
    try:
        work = t3d(Wanted(PES, None, seed, jobs))
        order = GangOrder(False, per_pe, thin=thin)
        found = {
            each.value: GangRun(work, replace(order, classes=each is T3dMachine.GANG)).figures().data()
            for each in ([machine] if machine is not None else T3dMachine)
        }
    except NotSimulated as error:
        print(f"nqspy: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    if as_json:
        print(json.dumps(found[machine.value] if machine is not None else found))
    else:
        console = Console()
        console.print(_table(work, found))
        console.print(CHOSEN.told())


def _table(work: Workload, found: dict[str, dict[str, Any]]) -> Table:
    table = Table(title=f"{work.name}: {work.count} jobs on {PES} PEs", title_justify="left")
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right")
    for title, read in _ROWS:
        table.add_row(title, *(read(each) for each in found.values()))
    return table


def _part(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} s"


_ROWS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("PEs used, whole weeks", lambda each: _part(each["utilisation"]["week"])),
    ("PEs used, working hours", lambda each: _part(each["utilisation"]["hours"])),
    ("interactive jobs of 64 PEs in working hours", lambda each: str(each["interactive64"]["jobs"])),
    ("... given PEs within 60 s", lambda each: _part(each["interactive64"]["within_60s"])),
    ("... mean wait", lambda each: _seconds(each["interactive64"]["mean_s"])),
    ("... 95 of 100 wait no longer than", lambda each: _seconds(each["interactive64"]["p95_s"])),
    ("time in which state was moved", lambda each: f"{each['swapping_s'] / 3600:.1f} h"),
    ("jobs preempted", lambda each: str(each["preempted"])),
    ("jobs left at the end", lambda each: str(each["jobs"]["left"])),
)


def main() -> None:
    """Entry point."""
    run_app(app, "nqspy sim gang")
