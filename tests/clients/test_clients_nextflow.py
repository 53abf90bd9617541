"""The command lines of Nextflow's executors `pbs` and `pbspro` (itself needs Java and a download), and how
it reads the answers: one line of `qsub`, `qstat` through grep with pipefail, identifiers as texts."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from clients.conftest import DRIVERS, Person
from daemon.live import PATIENCE, alive, until

pytestmark = pytest.mark.slow

SERVER = "$( qstat -B -f | awk -v ORS=' ' '$1 == \"Server:\" {print \"@\"$2}' )"


@dataclass(frozen=True)
class Kind:
    """An executor: what it writes into a task's head, how it asks, how it wants arrays."""

    name: str
    head: tuple[str, ...]
    asks: str
    array: str
    index: str


PBS = ("-l nodes=1:ppn=2", "-l walltime=00:02:00", "-l mem=100mb")
PBSPRO = ("-l select=1:ncpus=1:mem=100mb", "-l walltime=00:02:00")
KINDS = [
    Kind("pbs", PBS, "qstat -f -1", "-t 0-2", "PBS_ARRAYID"),
    Kind("pbspro", PBSPRO, f"qstat -f {SERVER}", "-J 0-2", "PBS_ARRAY_INDEX"),
]


def bash(person: Person, line: str, folder: Path | None = None) -> str:
    """A line of bash to its good end; both outputs."""
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], cwd=folder or person.folder, env=person.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        timeout=PATIENCE,
    )  # fmt: skip
    assert run.returncode == 0, f"{line}: {run.returncode} {run.stdout}"
    return run.stdout


def states(person: Person, kind: Kind) -> dict[str, str]:
    """Identifier and state of each job that is listed: two lines each, in this order."""
    lines = bash(person, f"{kind.asks} | {{ grep -E '(Job Id:|job_state =)' || true; }}").splitlines()
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    assert all("Job Id:" in one and "job_state =" in two for one, two in pairs), lines
    return {one.partition(":")[2].strip(): two.partition("=")[2].strip() for one, two in pairs}


def submit(person: Person, kind: Kind, name: str, head: tuple[str, ...], body: str) -> tuple[Path, str]:
    """Hands in a task from its own folder; the folder and the identifier."""
    folder = person.folder / name
    folder.mkdir()
    directives = [f"#PBS {each}" for each in (f"-N nf-{name}", "-j oe", *head)]
    first, *rest = body.splitlines()
    (folder / ".command.run").write_text("\n".join([first, *directives, f"NXF_CHDIR={folder}", *rest, ""]))
    message = bash(person, f"qsub -N nf-{name} .command.run", folder)
    assert len(message.splitlines()) == 1, message
    return folder, message.strip()


def task(person: Person, kind: Kind, name: str, line: str) -> tuple[Path, str]:
    (person.folder / name).with_suffix(".sh").write_text(f"{line}\n")
    body = (DRIVERS / "nextflow.sh").read_text().replace(".command.sh", f"../{name}.sh")
    return submit(person, kind, name, (f"-o {person.folder / name}/.command.log", *kind.head), body)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_task_is_handed_in_watched_and_stopped(person, kind):
    assert states(person, kind) == {}, "an empty queue is silence"
    slow, running = task(person, kind, "slow", "echo $$ > pid; exec sleep 600")
    quick, id = task(person, kind, "quick", "echo out; echo err >&2; exit 7")
    assert running in states(person, kind)
    assert person.live.ended(id)["exit_status"] == 7
    assert (quick / ".exitcode").read_text() == "7"
    assert sorted((quick / ".command.log").read_text().split()) == ["err", "out"]
    pid = person.number("slow/pid")
    assert states(person, kind) == {running: "R"}
    bash(person, f"qdel {running}")
    assert person.live.ended(running)["end_reason"] == "deleted"
    until(lambda: not alive(pid), "the task's process ends")
    assert (slow / ".exitcode").exists(), "the wrapper has its time to write how it ended"
    assert states(person, kind) == {}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_tasks_of_an_array_find_their_index(person, kind):
    body = f"#!/bin/bash\necho > $NXF_CHDIR/of.${kind.index}\n"
    folder, id = submit(person, kind, "array", (kind.array, "-o /dev/null"), body)
    assert "[]." in id
    person.live.ended(id)
    assert sorted(path.name for path in folder.glob("of.*")) == ["of.0", "of.1", "of.2"]
