"""What a command line of ``nqspy sim`` asks for, from its words to what is written and printed."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nqspy.sim.batch import NotSimulated
from nqspy.sim.comparing import alike, compare
from nqspy.sim.page import page
from nqspy.sim.parallel import run_all
from nqspy.sim.pictures.album import PictureFile, files_of, names_of, writable, write
from nqspy.sim.results import Results, Starts, opened
from nqspy.sim.rows import tables_of
from nqspy.sim.runs import RunTask, SimulatedRun, begun, run_task, workload_of
from nqspy.sim.tables import progress, remark, show, show_comparison
from nqspy.sim.variants import Variant, count_of, variants_of
from nqspy.sim.workloads.known import GENERATORS
from nqspy.sim.workloads.wanted import Wanted

MOST_RUNS = 10_000
"""Of one command: what came of each is kept until all are done."""


class SimOrder(Struct, frozen=True):
    """The words of a command line, as `command` explains them; ``wanted`` holds its first seed."""

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
        """Seeds of each variant."""
        return self.seeds or 1

    def tasks(self) -> list[RunTask]:
        """All runs: by variant, then by seed. Raises NotSimulated."""
        count = self.many * count_of(self.policy, self.vary)
        if count > MOST_RUNS:
            raise NotSimulated(
                f"--policy, --vary and --seeds make {count} runs, {MOST_RUNS} at most are made"
            )
        variants, config = variants_of(self.policy, self.vary), _read(self.config)
        numbers = range(self.wanted.seed, self.wanted.seed + self.many)
        return [self._task(variant, seed, config) for variant in variants for seed in numbers]

    def _task(self, variant: Variant, seed: int, config: tuple[str, str] | None) -> RunTask:
        pictured = self.many == 1 and bool(self.pictures or self.html)
        drawn = self.seeds is not None
        return RunTask(self.workload, replace(self.wanted, seed=seed), variant, config, drawn, pictured)


def _read(config: Path | None) -> tuple[str, str] | None:
    try:
        return None if config is None else (config.name, config.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise NotSimulated(f"{config} cannot be read: {getattr(error, 'strerror', error)}") from None


def carry_out(order: SimOrder, took: Callable[[], float]) -> None:
    """Runs all of it, writes its files and prints what came of it; ``took``: seconds since it began. Raises
    BadWorkload, NotSimulated and NqspyError."""
    tasks = order.tasks()
    if len(tasks) > 1 and (order.starts or order.requests):
        raise NotSimulated(f"--starts and --requests write the jobs of a single run; here are {len(tasks)}")
    names = names_of(len(tasks) // order.many, order.many)
    files = [file for path in order.pictures for file in files_of(path, names)]
    _each_its_own(order, files)
    if order.html is not None:
        writable(order.html)
    runs = _run(order, tasks)
    _write(order, files, runs, names)
    if len(runs) == 1 and order.seeds is None:
        _tell_one(runs[0], took(), order.as_json)
    else:
        _tell_all(runs, took(), order.as_json)


def _each_its_own(order: SimOrder, files: Sequence[PictureFile]) -> None:
    """What is written overwrites nothing that is read, and nothing else that is written. Raises
    NotSimulated."""
    used = {} if order.workload in GENERATORS else {Path(order.workload).resolve(): "the workload"}
    used |= {} if order.config is None else {order.config.resolve(): "--config"}
    written = [("--starts", order.starts), ("--requests", order.requests), ("--html", order.html)]
    for option, path in (*written, *(("--pictures", file.path) for file in files)):
        if path is None or path.is_char_device():
            continue
        if other := used.get(path.resolve()):
            raise NotSimulated(f"{option} would overwrite {path}, which is {other}: say another file")
        used[path.resolve()] = f"what {option} writes"


def _run(order: SimOrder, tasks: Sequence[RunTask]) -> list[SimulatedRun]:
    first = begun(tasks) if len(tasks) > 1 else workload_of(tasks[0])
    title = first.name if len(tasks) == 1 else f"{order.workload}, {len(tasks)} runs"
    results = _results(order)
    with progress(title, first.count * len(tasks)) as far:
        if len(tasks) == 1:
            return [run_task(tasks[0], results, far)]
        return run_all(tasks, order.processes, far)


def _results(order: SimOrder) -> list[Results]:
    found: list[Results] = [Starts(order.starts)] if order.starts is not None else []
    return found + ([opened(order.requests)] if order.requests is not None else [])


def _write(
    order: SimOrder, files: Sequence[PictureFile], runs: Sequence[SimulatedRun], names: Sequence[str]
) -> None:
    for file in files:
        file.write(runs)
    if order.html is not None:
        write(order.html, page(_title(runs), runs, names).encode("utf-8", "replace"))


def _title(runs: Sequence[SimulatedRun]) -> str:
    found, seeds = runs[0].found, {run.seed for run in runs}
    workload = found.workload if len(seeds) == 1 else found.workload.removesuffix(f"-{runs[0].seed}")
    return f"{workload} on {found.pes} PEs"


# ---------------------------------------------------------------- told


def _tell_one(run: SimulatedRun, took: float, as_json: bool) -> None:
    if not as_json:
        show(tables_of(run.found, run.label))
        return
    speed = {"seconds": round(took, 3), "jobs_per_s": round(run.found.metrics.jobs / took, 1)}
    _print({"policy": run.label} | run.found.data() | speed)


def _tell_all(runs: Sequence[SimulatedRun], took: float, as_json: bool) -> None:
    found = compare(runs)
    if as_json:
        each = [{"label": run.label, "seed": run.seed} | run.found.data() for run in runs]
        _print({"comparison": [one.data() for one in found], "runs": each, "seconds": round(took, 3)})
        return
    show_comparison(_title(runs), found)
    if alike(runs):
        remark("all runs came out alike: what differs between them makes no difference here")


def _print(data: dict[str, Any]) -> None:
    print(json.dumps(data, indent=2))
