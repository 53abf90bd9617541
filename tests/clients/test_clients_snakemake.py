"""Snakemake with its executor cluster-generic, as they are."""

import re
import shutil
import signal
from pathlib import Path

import pytest
from clients.conftest import DRIVERS, Person
from daemon.live import PATIENCE, alive, until

pytestmark = pytest.mark.slow

SUBMIT = "qsub -V -N {rule}.{jobid} -l select=1:ncpus={threads}:mem={resources.mem_mb}mb -l walltime=0:05:00"
STATUS = ("--cluster-generic-status-cmd", str(DRIVERS / "status.sh"))


def words(person: Person, *targets: str) -> list[str]:
    """How Snakemake is called for these, in a folder with a workflow."""
    shutil.copy(DRIVERS / "Snakefile", person.folder)
    return [
        str(Path(person.python).parent / "snakemake"), *targets,
        "--executor", "cluster-generic", "--jobs", "3",
        "--cluster-generic-submit-cmd", f"{SUBMIT} -j oe -o {person.folder}",
        "--cluster-generic-cancel-cmd", "qdel", "--seconds-between-status-checks", "1",
        "--latency-wait", "30", "--default-resources", "mem_mb=300",
    ]  # fmt: skip


def id_in(message: str) -> str:
    """The identifier of the only job that Snakemake says it has handed in."""
    [id] = re.findall("external jobid '(.+?)'", message)
    return id


@pytest.mark.parametrize("status", [(), STATUS], ids=["markers", "status"])
def test_a_workflow_runs_as_requests(person, status):
    person.call(*words(person), *status)
    rows = [line.split() for line in (person.folder / "all.txt").read_text().splitlines()]
    assert [number for number, _ in rows] == ["1", "2"]
    jobs = [person.live.job(id) for _, id in rows]
    assert jobs[0]["id"] != jobs[1]["id"]
    for job in jobs:
        assert (job["exit_status"], job["requested"]["memory_bytes"]) == (0, 300 << 20)
        assert job["name"].startswith("part.")


def test_a_status_command_tells_that_a_job_failed(person):
    with person.begin(*words(person, "fails"), *STATUS) as run:
        message, _ = run.communicate(timeout=2 * PATIENCE)
    assert run.returncode == 1, message
    assert "Error in rule fails" in message
    assert person.live.job(id_in(message))["exit_status"] == 1


def test_who_interrupts_a_workflow_deletes_its_requests(person):
    with person.begin(*words(person, "slow")) as run:
        try:
            pid = person.number("slow.pid", run)
            run.send_signal(signal.SIGINT)
            message, _ = run.communicate(timeout=PATIENCE)
        finally:
            run.kill()
    assert person.live.ended(id_in(message))["end_reason"] == "deleted", message
    until(lambda: not alive(pid), "the process ends")
