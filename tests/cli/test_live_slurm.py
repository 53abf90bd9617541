"""Slurm's scripts and ``nqspy submit`` against a real daemon."""

import os

SCRIPT = """#!/bin/bash
#SBATCH --job-name=model
#SBATCH --ntasks=2 --time=10
#SBATCH --mem=20M
shopt -q login_shell || echo plain
echo $SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_CPUS_ON_NODE $SLURM_MEM_PER_NODE $SLURM_JOB_PARTITION
echo $SLURM_SUBMIT_DIR $SLURM_JOB_NODELIST $MINE
pwd
echo error >&2
"""


def test_a_script_of_slurm_runs_as_it_is(office):
    office.write("model.sh", SCRIPT)
    done = office.run("qsub", "--dialect", "slurm", "model.sh", env={"MINE": "along"}).ok()
    job = office.ended(done.lines[0])
    seq, here, host = job["seq"], str(office.work), os.uname().nodename.partition(".")[0]
    assert office.text(f"slurm-{seq}.out").splitlines() == [
        "plain", f"{seq} model 2 2 20 batch", f"{here} {host} along", here, "error",
    ]  # fmt: skip
    assert (job["name"], job["exit_status"]) == ("model", 0)
    asked = job["requested"]
    assert (asked["pes"], asked["wall_s"], asked["memory_bytes"]) == (2, 600.0, 20 << 20)


def test_the_dialect_may_come_from_the_environment(office):
    office.write("env.sh", "#!/bin/sh\n#SBATCH -J fromenv -o %x.%j\n")
    job = office.ended(office.run("qsub", "env.sh", env={"NQSPY_DIALECT": "slurm"}).ok().lines[0])
    assert job["output"] == str(office.work / f"fromenv.{job['seq']}")


def test_chains_and_refusals(office):
    first = office.run("nqspy", "submit", "--hold", "--", "false").ok().lines[0]
    number = first.partition(".")[0]
    second = office.run("nqspy", "submit", f"--dependency=afternotok:{number}", "--", "true").ok().lines[0]
    office.run("qrls", first).ok()
    assert office.ended(first)["exit_status"] == 1
    assert office.ended(second)["exit_status"] == 0
    office.run("nqspy", "submit", "--partition=nowhere", "--", "true").refused("nqspy submit: ", "nowhere")
    assert "would be accepted" in office.run("nqspy", "submit", "--test-only", "--", "true").ok().out


def test_an_array_finds_its_index(office):
    body = "echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"
    office.write("a.sh", f"#!/bin/sh\n#SBATCH --array=2-4:2\n{body}\n")
    id = office.run("qsub", "--dialect", "slurm", "--wait", "a.sh").ok().lines[0]
    number = id.partition("[")[0].partition(".")[0]
    assert [office.text(f"slurm-{number}_{index}.out") for index in (2, 4)] == ["2 of 2\n", "4 of 2\n"]
