"""How tests of ``nqspy sim`` call it and make their workloads."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from typer.testing import CliRunner

from nqspy.model import events as ev
from nqspy.sim.batch import BatchRun
from nqspy.sim.command import app

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests" / "data" / "traces"


def call(*words: object):
    """Run the command in this process."""
    return CliRunner().invoke(app, [str(word) for word in words])


def data_of(*words: object) -> Any:
    """Return what the command prints with ``--json``."""
    answer = call(*words, "--json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


class KeptRun(BatchRun):
    """A run that stores its events."""

    def __init__(self, *given: Any) -> None:
        self.events: list[ev.Recorded] = []
        super().__init__(*given)

    def _follow(self, events: Sequence[ev.Recorded]) -> None:
        self.events += events
        super()._follow(events)


def program(
    *words: object, stdout: BinaryIO | int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process; ``environment`` is added."""
    return subprocess.run(
        [sys.executable, "-m", "nqspy.sim.command", *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        timeout=120,
    )


def refused(*words: object) -> str:
    """Return the one line of an error, and assert that nothing else is printed."""
    answer = call(*words)
    assert answer.exit_code == 1, answer.output
    assert not answer.stdout
    assert answer.stderr.count("\n") == 1
    return answer.stderr


def log(path: Path, *jobs: tuple[int, ...]) -> Path:
    """Write a log of jobs (submit, run, PEs; run time as estimate by default, no memory)."""
    with path.open("w") as file:
        for n, (submit, run, pes, *more) in enumerate(jobs, 1):
            estimate, memory = [*more, *(run, -1)[len(more) :]]
            message = f"{n} {submit} -1 {run} {pes} -1 -1 {pes} {estimate} {memory}"
            file.write(f"{message} 1 {n % 3} 1 -1 1 -1 -1 -1\n")
    return path
