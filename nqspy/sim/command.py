"""The command ``nqspy sim WORKLOAD``: a log or an invented workload on a simulated machine."""

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated, NoReturn

import typer

from nqspy.model.errors import NqspyError
from nqspy.model.units import parse_size
from nqspy.rpc.program import run
from nqspy.sim.batch import NotSimulated, Texts
from nqspy.sim.batch_policies import BATCH_POLICIES, SITE
from nqspy.sim.results import Results, Starts, opened
from nqspy.sim.running import Simulated, simulate
from nqspy.sim.tables import progress, show
from nqspy.sim.workloads.jobs import BadWorkload
from nqspy.sim.workloads.known import FILES, GENERATORS, open_workload
from nqspy.sim.workloads.wanted import Wanted

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

WorkloadArgument = Annotated[
    str,
    typer.Argument(metavar="WORKLOAD", help=", ".join((*(f"FILE{ending}" for ending in FILES), *GENERATORS))),
]
PesOption = Annotated[int | None, typer.Option("--pes", min=1, help="PEs; else as the workload says")]
MemoryOption = Annotated[
    str | None, typer.Option("--memory", help="memory of the machine (64gb); else it does not matter")
]
PolicyOption = Annotated[
    str | None,
    typer.Option("--policy", help=f"{', '.join(BATCH_POLICIES)}; else firstfit, or --config's own"),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="settings in qmgr's language instead of one plain queue")
]
SeedOption = Annotated[int, typer.Option("--seed", help="of an invented workload")]
JobsOption = Annotated[int | None, typer.Option("--jobs", min=1, help="of an invented workload")]
StartsOption = Annotated[
    Path | None,
    typer.Option("--starts", help="write `job_id start_time` lines here, in the workload's order"),
]
RequestsOption = Annotated[
    Path | None, typer.Option("--requests", help="write each job here as it ends: FILE.csv, .json or .jsonl")
]
JsonOption = Annotated[bool, typer.Option("--json", help="data instead of tables")]


@app.command()
def sim(
    workload: WorkloadArgument,
    pes: PesOption = None,
    memory: MemoryOption = None,
    policy: PolicyOption = None,
    config: ConfigOption = None,
    seed: SeedOption = 1,
    jobs: JobsOption = None,
    starts: StartsOption = None,
    requests: RequestsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a workload on a simulated machine: what waits how long under which policy."""
    try:
        room = None if memory is None else parse_size(memory)
        texts = settings_of(config, policy)
        found = open_workload(workload, Wanted(pes, room, seed, jobs))
        results: list[Results] = [Starts(starts)] if starts is not None else []
        results += [opened(requests)] if requests is not None else []
        began = perf_counter()
        with progress(found.name, found.count) as far:
            exact = policy is not None and BATCH_POLICIES[policy].exact
            done = simulate(found, texts, room, results, far, exact)
    except (BadWorkload, NotSimulated, NqspyError) as error:
        _fail(error)
    _tell(done, policy or (config.name if config is not None else DEFAULT), perf_counter() - began, as_json)


DEFAULT = "firstfit"


def settings_of(config: Path | None, policy: str | None) -> Texts:
    """The site, and behind it the policy. Raises NotSimulated."""
    name = policy if policy is not None or config is not None else DEFAULT
    if name is not None and name not in BATCH_POLICIES:
        raise NotSimulated(f"there is no policy {name}; there are {', '.join(BATCH_POLICIES)}")
    try:
        site = ("the plain site", SITE) if config is None else (str(config), config.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise NotSimulated(f"{config} cannot be read: {getattr(error, 'strerror', error)}") from None
    return [site] if name is None else [site, (f"policy {name}", BATCH_POLICIES[name].commands)]


def _tell(done: Simulated, policy: str, took: float, as_json: bool) -> None:
    if not as_json:
        show(done, policy)
        return
    speed = {"seconds": round(took, 3), "jobs_per_s": round(done.metrics.jobs / took, 1)}
    print(json.dumps({"policy": policy} | done.data() | speed, indent=2))


def _fail(text: object) -> NoReturn:
    print(f"nqspy: {text}", file=sys.stderr)
    raise SystemExit(1)


def main() -> None:
    """Entry point."""
    run(app, "nqspy sim")


if __name__ == "__main__":
    main()
