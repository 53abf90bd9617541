"""The command ``nqspy sim psched --migration``: PSched's experiment (seed 002, 7; figure 9). 33 applications
are always there; running ones are moved together, or not, so that a wide one fits.

A workload (`psched`) and a site on the ordinary simulator. The text of seed 002 leaves open the mix of sizes,
the placement, the rule of the queue, the cycle and the cost of a move; `CHOSEN` says what is taken.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import fmean
from typing import Annotated, Any

import typer
from msgspec import Struct

from nqspy.engine.virtual.attempts import Run
from nqspy.model import events as ev
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant
from nqspy.model.requests import Request
from nqspy.model.texts import folded
from nqspy.rpc.program import run as run_app
from nqspy.sim.batch import BatchRun
from nqspy.sim.main import ONE_QUEUE
from nqspy.sim.tables import TextTable, remark, show
from nqspy.sim.workloads.jobs import MOST_JOBS, Wanted
from nqspy.sim.workloads.psched import AT_ONCE, JOBS, PES, SIZES, psched

PATIENCE, CYCLE, SETTLED, WIDE = 4_500, 10, 200, 64
"""Seconds for which an application lets others pass; seconds between two moves at least; ends before the
measurement begins; PEs from which an application counts as wide."""
CHOSEN = (
    f"Measured from the end of application {SETTLED} to that of the last one. An application gets the "
    "first block that is wide enough. Others may pass it until it has waited for longer than the patience. "
    "At most one is moved in a cycle, and only if such moves let one that waits start."
)


class PschedOrder(Struct, frozen=True):
    """An experiment. ``migration``: applications are moved; each move costs one ``cost`` s of its progress.
    ``patience`` (None: without end) and ``cycle`` in s."""

    migration: bool
    cost: int = 0
    patience: int | None = PATIENCE
    cycle: int = CYCLE

    def site(self) -> str:
        """Return the commands of qmgr for the machine."""
        patience = "unlimited" if self.patience is None else self.patience
        balance = f"set domain application balance_heartbeat={self.cycle}\n" if self.migration else ""
        return (
            f"{ONE_QUEUE}set domain application placement=first_block\n"
            f"set queue batch order=fcfs backfill=patient patience={patience}\n{balance}"
        )


class PschedRun(BatchRun):
    """A run of the experiment with a stream of applications by ``seed``, until ``count`` have ended; it is
    measured from the end number ``settled`` on. ``moves``: instant and request of each move; ``alone``: moves
    made while no application waited; ``scattered``: PEs given to one application with a gap."""

    def __init__(self, seed: int, order: PschedOrder, count: int = JOBS, settled: int = SETTLED) -> None:
        self._count, self._settled = count, settled
        self._active, self._done, self._busy, self._area = 0, 0, 0, 0
        self._at = self._since = Instant(0)
        self._waits = defaultdict[int, list[int]](list)
        self.moves: list[tuple[Instant, int]] = []
        self.alone = self.scattered = 0
        work = psched(Wanted(PES, None, seed, count + AT_ONCE))
        super().__init__(work, [("psched", order.site())], migration=1_000 * order.cost)

    def _run(self, request: Request) -> Run:
        job = self._jobs[request.seq]
        return Run(job.run, job.run * job.width, unlimited=True)  # a move may make it longer

    def _follow(self, events: Sequence[ev.Recorded]) -> None:
        for recorded in events:
            event, at = recorded.event, recorded.at
            self._area, self._at = self._area + self._busy * (at - self._at), at
            if isinstance(event, ev.Starting | ev.Migrated):
                self.scattered += len(event.pes) != event.pes[-1] - event.pes[0] + 1
            if isinstance(event, ev.Starting):
                self._busy += len(event.pes)
                self._active += 1
            elif isinstance(event, ev.Migrated):
                self.moves.append((at, event.seq))
                self.alone += self._active == AT_ONCE
            elif isinstance(event, ev.Ended):
                self._busy -= self._jobs[event.seq].width
                self._active -= 1
                self._done += 1
                if self._done == self._settled:
                    self._area, self._since = 0, at
        super()._follow(events)

    def figures(self) -> dict[str, Any]:
        """Run the experiment; return mean PEs busy, moves and waits (s) by size."""
        for number, each in enumerate(self, 1):
            if number > self._settled:
                self._waits[each.job.width].append(each.wait)
            if number == self._count:
                break
        span = self._at - self._since
        return {
            "pes_busy": self._area / span,
            "seconds": span / 1000,
            "moves": sum(at >= self._since for at, _ in self.moves),
            "wait_s": {"narrow": self._mean(0, WIDE - 1), "wide": self._mean(WIDE, PES)},
            "wait_s_by_pes": {str(pes): self._mean(pes, pes) for pes in SIZES},
            "applications_by_pes": {str(pes): len(self._waits[pes]) for pes in SIZES},
        }

    def _mean(self, least: int, most: int) -> float | None:
        waits = [wait for pes, some in self._waits.items() if least <= pes <= most for wait in some]
        return fmean(waits) / 1000 if waits else None


# ---------------------------------------------------------------- the command

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Migration(StrEnum):
    """Which runs to make."""

    YES = "yes"
    NO = "no"
    BOTH = "both"


_RUNS = {Migration.YES: (True,), Migration.NO: (False,), Migration.BOTH: (False, True)}
_TITLES = {False: "no migration", True: "migration"}


@app.command("psched")
def experiment(
    migration: Annotated[
        Migration, typer.Option("--migration", help="move running applications; both: side by side")
    ],
    seed: Annotated[int, typer.Option("--seed", help="of the stream of applications")] = 1,
    cost: Annotated[
        int, typer.Option("--cost", min=0, max=100_000, help="seconds without progress for each move")
    ] = 0,
    patience: Annotated[
        str,
        typer.Option("--patience", help="seconds for which an application lets others pass, or unlimited"),
    ] = str(PATIENCE),
    cycle: Annotated[
        int, typer.Option("--cycle", min=1, max=100_000, help="seconds between two moves at least")
    ] = CYCLE,
    jobs: Annotated[
        int, typer.Option("--jobs", min=SETTLED + 1, max=MOST_JOBS, help="applications that end in all")
    ] = JOBS,
    as_json: Annotated[bool, typer.Option("--json", help="data instead of tables")] = False,
) -> None:
    """Run PSched's experiment: PEs busy and waits by size, with and without migration."""
    if not patience.isdecimal() and patience != "unlimited":
        print(f"nqspy: --patience {patience!r} is no time; write seconds, or unlimited", file=sys.stderr)
        raise SystemExit(2)
    limit = int(patience) if patience.isdecimal() else None
    try:
        orders = [PschedOrder(moves, cost, limit, cycle) for moves in _RUNS[migration]]
        found = {_TITLES[each.migration]: PschedRun(seed, each, jobs).figures() for each in orders}
    except NqspyError as error:
        print(f"nqspy: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    if as_json:
        (first, *others) = found.values()
        print(json.dumps(found if others else first))
        return
    show(tables_of(f"psched-{seed}: {jobs} applications on {PES} PEs", found))
    remark(folded(CHOSEN))


def tables_of(title: str, found: Mapping[str, Mapping[str, Any]]) -> list[TextTable]:
    """Return the tables of these runs side by side: what was busy, then mean waits by size."""
    runs = list(found.values())
    rows = [
        ("mean PEs busy", *(f"{each['pes_busy']:.1f}" for each in runs)),
        ("moves", *(str(each["moves"]) for each in runs)),
        (f"mean wait below {WIDE} PEs", *(_seconds(each["wait_s"]["narrow"]) for each in runs)),
        (f"mean wait from {WIDE} PEs on", *(_seconds(each["wait_s"]["wide"]) for each in runs)),
    ]
    waits = [(pes, *(_seconds(each["wait_s_by_pes"][pes]) for each in runs)) for pes in map(str, SIZES)]
    return [
        TextTable(title, ("", *found), tuple(rows)),
        TextTable("mean wait by size", ("PEs", *found), tuple(waits)),
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} s"


def main() -> None:
    """Run ``nqspy sim psched --migration``."""
    run_app(app, "nqspy sim psched")
