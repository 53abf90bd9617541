"""The command ``nqspy sim WORKLOAD``: a workload on a simulated machine, under one policy or several."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from nqspy.model.errors import NqspyError
from nqspy.model.units import parse_size
from nqspy.rpc.messages import plain
from nqspy.rpc.program import run
from nqspy.sim.comparing import alike, compare
from nqspy.sim.pictures.album import PictureFile, files_of, names_of, writable, write
from nqspy.sim.policies import POLICY_NAMES, count_of, variants_of
from nqspy.sim.results import Results, Starts, opened
from nqspy.sim.runs import RunTask, SimulatedRun, begun, run_all, run_task, workload_of
from nqspy.sim.tables import page, progress, remark, show, show_comparison, tables_of
from nqspy.sim.workloads.jobs import MOST_JOBS, NotSimulated, Wanted
from nqspy.sim.workloads.known import FILES, GENERATORS

MOST_RUNS = 10_000
"""Most runs of one command: all results are stored until the end."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class SimOrder(Struct, frozen=True):
    """The options of a command line, as `sim` explains them; ``wanted.seed`` is the first seed."""

    workload: str
    wanted: Wanted
    policy: str | None = None
    config: Path | None = None
    vary: tuple[str, ...] = ()
    seeds: int | None = None
    processes: int | None = None
    starts: Path | None = None
    requests: Path | None = None
    pictures: tuple[Path, ...] = ()
    html: Path | None = None
    as_json: bool = False

    @property
    def many(self) -> int:
        """Return the number of seeds with which each variant is run."""
        return self.seeds or 1

    def tasks(self) -> list[RunTask]:
        """Return the tasks of all runs: by variant, then by seed. Raises NotSimulated for more than
        `MOST_RUNS`, wrong options, or a file that cannot be read."""
        runs = self.many * count_of(self.policy, self.vary)
        if runs > MOST_RUNS:
            raise NotSimulated(f"--policy, --vary and --seeds make {runs} runs, {MOST_RUNS} at most are made")
        drawn, pictured = self.seeds is not None, self.many == 1 and bool(self.pictures or self.html)
        try:
            config = None if self.config is None else (self.config.name, self.config.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", error)
            raise NotSimulated(f"{self.config} cannot be read: {why}") from None
        return [
            RunTask(self.workload, replace(self.wanted, seed=seed), variant, config, drawn, pictured)
            for variant in variants_of(self.policy, self.vary)
            for seed in range(self.wanted.seed, self.wanted.seed + self.many)
        ]


def carry_out(order: SimOrder, began: float) -> None:
    """Make all runs, write files, print results. ``began``: value of `perf_counter` when the command began,
    for the duration that is printed. Raises NqspyError."""
    tasks = order.tasks()
    if len(tasks) > 1 and (order.starts or order.requests):
        raise NotSimulated(f"--starts and --requests need a single run; these are {len(tasks)}")
    names = names_of(len(tasks) // order.many, order.many)
    files = [file for path in order.pictures for file in files_of(path, names)]
    _each_its_own(order, files)
    if order.html is not None:
        writable(order.html)
    work = begun(tasks) if len(tasks) > 1 else workload_of(tasks[0])
    results: list[Results] = [] if order.starts is None else [Starts(order.starts)]
    results += [] if order.requests is None else [opened(order.requests)]
    named = work.name if len(tasks) == 1 else f"{order.workload}, {len(tasks)} runs"
    with progress(named, work.count * len(tasks)) as done:
        alone = len(tasks) == 1
        runs = [run_task(tasks[0], results, done)] if alone else run_all(tasks, order.processes, done)
    for file in files:
        file.write(runs)
    seeds, first = {run.seed for run in runs}, runs[0]
    name = first.workload if len(seeds) == 1 else first.workload.removesuffix(f"-{first.seed}")
    title = f"{name} on {first.pes} PEs"
    if order.html is not None:
        write(order.html, page(title, runs, names).encode("utf-8", "replace"))
    _print(title, runs, perf_counter() - began, order)


def _each_its_own(order: SimOrder, files: Sequence[PictureFile]) -> None:
    """Raise NotSimulated if a written file would overwrite one that is read, or another written one."""
    used = {} if order.workload in GENERATORS else {Path(order.workload).resolve(): "the workload"}
    used |= {} if order.config is None else {order.config.resolve(): "--config"}
    written = [("--starts", order.starts), ("--requests", order.requests), ("--html", order.html)]
    for option, path in (*written, *(("--pictures", file.path) for file in files)):
        if path is None or path.is_char_device():
            continue
        if other := used.get(path.resolve()):
            raise NotSimulated(f"{option} would overwrite {path}, which is {other}: choose another file")
        used[path.resolve()] = f"what {option} writes"


def _print(title: str, runs: Sequence[SimulatedRun], seconds: float, order: SimOrder) -> None:
    first, found = runs[0], compare(runs)
    one = len(runs) == 1 and order.seeds is None
    if order.as_json:
        if one:
            speed = {"seconds": round(seconds, 3), "jobs_per_s": round(first.metrics.jobs / seconds, 1)}
            data = {"policy": first.label} | first.data() | speed
        else:
            each = [{"label": run.label, "seed": run.seed} | run.data() for run in runs]
            data = {"comparison": [one.data() for one in found], "runs": each, "seconds": round(seconds, 3)}
        print(json.dumps(data, indent=2))
    elif one:
        show(tables_of(first))
    else:
        show_comparison(title, found)
        if alike(found):
            remark("all runs have the same result: the settings that differ have no effect here")


PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="P[,P...]",
        help=f"one or several of {', '.join(POLICY_NAMES)}; default: firstfit, or that of --config",
    ),
]
VaryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="SETTING=V[,V...]",
        help="a setting with several values, as after `set` in qmgr: 'sched_factor share=0,10,20'",
    ),
]


@app.command()
def sim(
    workload: Annotated[
        str,
        typer.Argument(metavar="WORKLOAD", help=", ".join((*(f"FILE{each}" for each in FILES), *GENERATORS))),
    ],
    pes: Annotated[
        int | None, typer.Option("--pes", min=1, help="PEs; default: those of the workload")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", help="memory of the machine (64gb); default: enough")
    ] = None,
    policy: PolicyOption = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="file of qmgr commands instead of one plain queue")
    ] = None,
    vary: VaryOption = None,
    seed: Annotated[int, typer.Option("--seed", help="of a generated workload")] = 1,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, help="number of seeds, from --seed on; of a log: random weeks"),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, max=MOST_JOBS, help="number of jobs of a generated workload"),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, help="processes for several runs; default: the number of CPUs"),
    ] = None,
    starts: Annotated[
        Path | None,
        typer.Option("--starts", help="write `job_id start_time` lines here, in the workload's order"),
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option("--requests", help="write each job here as it ends: FILE.csv, .json or .jsonl"),
    ] = None,
    pictures: Annotated[
        list[Path] | None,
        typer.Option(
            "--pictures", metavar="FOLDER|FILE", help="draw: a folder of SVGs, or FILE.svg, FILE.png"
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="write everything as one page here")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Run a workload on a simulated machine: how long jobs wait under which policy."""
    began = perf_counter()
    try:
        room = None if memory is None else parse_size(memory)
        order = SimOrder(
            workload, Wanted(pes, room, seed, jobs), policy, config, tuple(vary or ()), seeds, processes,
            starts, requests, tuple(pictures or ()), html, as_json,
        )  # fmt: skip
        carry_out(order, began)
    except NqspyError as error:
        print(f"nqspy: {plain(str(error)).translate({10: ' '})}", file=sys.stderr)
        raise SystemExit(1) from None


def main() -> None:
    """Run ``nqspy sim``; ``gang``, and ``psched`` with ``--migration``, are experiments with options of their
    own."""
    if sys.argv[1:2] == ["gang"]:
        from nqspy.sim.gang import main as gang

        del sys.argv[1]
        gang()
    if sys.argv[1:2] == ["psched"] and any(word.partition("=")[0] == "--migration" for word in sys.argv):
        from nqspy.sim.psched import main as experiment

        del sys.argv[1]
        experiment()
    run(app, "nqspy sim")


if __name__ == "__main__":
    main()
