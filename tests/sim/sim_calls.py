"""How tests of ``nqspy sim`` call it and make their workloads."""

import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

from typer.testing import CliRunner

from nqspy.sim.command import app

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests" / "data" / "traces"


def call(*words: object):
    """The command, in this process."""
    return CliRunner().invoke(app, [str(word) for word in words])


def program(
    *words: object, stdout: BinaryIO | int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The command as people call it; ``environment`` comes on top."""
    return subprocess.run(
        [sys.executable, "-m", "nqspy.sim.command", *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        timeout=120,
    )


def refused(*words: object) -> str:
    """The one line that it says of what is wrong, and nothing else."""
    answer = call(*words)
    assert answer.exit_code == 1, answer.output
    assert not answer.stdout
    assert answer.stderr.count("\n") == 1
    return answer.stderr


def log(path: Path, *jobs: tuple[int, int, int]) -> Path:
    """A log of jobs (submit, run, PEs)."""
    lines = [
        f"{n} {submit} -1 {run} {pes} -1 -1 {pes} {run} -1 1 {n % 3} 1 -1 1 -1 -1 -1\n"
        for n, (submit, run, pes) in enumerate(jobs, 1)
    ]
    path.write_text("".join(lines))
    return path
