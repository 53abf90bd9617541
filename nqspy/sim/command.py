"""The command ``nqspy sim WORKLOAD``: a log or an invented workload on a simulated machine, under one policy
or several of them."""

import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated, NoReturn

import typer

from nqspy.model.errors import NqspyError
from nqspy.model.units import parse_size
from nqspy.rpc.messages import plain
from nqspy.rpc.program import run
from nqspy.sim.batch import NotSimulated
from nqspy.sim.orders import SimOrder, carry_out
from nqspy.sim.variants import POLICY_NAMES
from nqspy.sim.workloads.jobs import MOST_JOBS, BadWorkload
from nqspy.sim.workloads.known import FILES, GENERATORS
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
    typer.Option(
        "--policy",
        metavar="P[,P...]",
        help=f"{', '.join(POLICY_NAMES)}; several side by side; else firstfit, or --config's own",
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="settings in qmgr's language instead of one plain queue")
]
VaryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="SETTING=V[,V...]",
        help="what follows `set` in qmgr, with one value after the other: 'sched_factor share=0,10,20'",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="of an invented workload")]
SeedsOption = Annotated[
    int | None,
    typer.Option("--seeds", min=1, help="so many seeds, from --seed on; of a log: weeks drawn from it"),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", min=1, max=MOST_JOBS, help="of an invented workload")
]
ProcessesOption = Annotated[
    int | None, typer.Option("--processes", min=1, help="for several runs; else as many as there are CPUs")
]
StartsOption = Annotated[
    Path | None,
    typer.Option("--starts", help="write `job_id start_time` lines here, in the workload's order"),
]
RequestsOption = Annotated[
    Path | None, typer.Option("--requests", help="write each job here as it ends: FILE.csv, .json or .jsonl")
]
PicturesOption = Annotated[
    list[Path] | None,
    typer.Option("--pictures", metavar="FOLDER|FILE", help="draw: a folder of SVGs, or FILE.svg, FILE.png"),
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="write everything as one page here")]
JsonOption = Annotated[bool, typer.Option("--json", help="data instead of tables")]


@app.command()
def sim(
    workload: WorkloadArgument,
    pes: PesOption = None,
    memory: MemoryOption = None,
    policy: PolicyOption = None,
    config: ConfigOption = None,
    vary: VaryOption = None,
    seed: SeedOption = 1,
    seeds: SeedsOption = None,
    jobs: JobsOption = None,
    processes: ProcessesOption = None,
    starts: StartsOption = None,
    requests: RequestsOption = None,
    pictures: PicturesOption = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a workload on a simulated machine: what waits how long under which policy."""
    began = perf_counter()
    try:
        room = None if memory is None else parse_size(memory)
        carry_out(
            SimOrder(
                workload, Wanted(pes, room, seed, jobs), policy, config, tuple(vary or ()), seeds, processes,
                starts, requests, tuple(pictures or ()), html, as_json,
            ),
            lambda: perf_counter() - began,
        )  # fmt: skip
    except (BadWorkload, NotSimulated, NqspyError) as error:
        _fail(error)


def _fail(text: object) -> NoReturn:
    print(f"nqspy: {plain(str(text)).translate({10: ' '})}", file=sys.stderr)
    raise SystemExit(1)


def main() -> None:
    """Entry point. ``nqspy sim gang`` is an experiment with options of its own."""
    if sys.argv[1:2] == ["gang"]:
        from nqspy.sim.gang import main as gang

        del sys.argv[1]
        gang()
    run(app, "nqspy sim")


if __name__ == "__main__":
    main()
