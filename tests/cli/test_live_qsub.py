"""qsub against a real daemon: what is printed, runs and comes back; Slurm's words; the job log of NQS."""

import os
from pathlib import Path

import pytest


def test_the_identifier_stands_alone_and_the_end_can_be_read(office):
    done = office.run("qsub", "-s", "/bin/sh", "-N", "first", stdin="echo out; echo err >&2; exit 7\n").ok()
    assert done.out == f"{done.lines[0]}\n"
    assert not done.err, "the sentence is for terminals"
    seq, _, host = done.lines[0].partition(".")
    assert seq.isdigit()
    assert host
    job = office.ended(done.lines[0])
    assert (job["state"], job["exit_status"], job["exit_signal"], job["end_reason"]) == (
        "ended", 7, None, "exit",
    )  # fmt: skip
    assert office.text(f"first.o{seq}") == "out\n"
    assert office.text(f"first.e{seq}") == "err\n"
    assert (job["output"], job["error"]) == tuple(f"{office.work}/first.{stream}{seq}" for stream in "oe")


def test_arguments_and_the_environment_reach_the_script(office):
    script = office.write("args.sh", 'printf "%s|" "$@"; echo; echo "$COLOUR $ENVIRONMENT $PBS_JOBID"\n')
    done = office.run(
        "qsub", "-s", "/bin/sh", "-v", "COLOUR=light blue", str(script), "a b", "", "$HOME"
    ).ok()
    job = office.ended(done.lines[0])
    assert office.text(f"args.sh.o{job['seq']}") == f"a b||$HOME|\nlight blue BATCH {job['id']}\n"


def test_json_and_wait_and_exit_statuses(office):
    done = office.run("qsub", "-s", "/bin/sh", "--json", stdin="exit 0\n").ok()
    assert done.data["queue"] == "batch"
    assert set(done.data) >= {"id", "queue"}
    assert office.run("qsub", "-s", "/bin/sh", "--wait", stdin="exit 5\n").status == 5
    killed = office.run("qsub", "-s", "/bin/sh", "--wait", stdin="kill -9 $$\n")
    assert killed.status == 128 + 9


# ---------------------------------------------------------------- in the words of Slurm
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


# ---------------------------------------------------------------- the job log
def handed_in(office, *words, script="echo out; exit 3\n"):
    id = office.qsub(script, "-N", "logged", *words)
    return id, office.ended(id)["seq"]


def told(text, id):
    handed, started, ended = text.splitlines()[-3:]
    assert f"{id} logged of " in handed
    assert "submitted on" in handed
    assert "started: queue batch, attempt 1, " in started
    assert ": ended, exit status 3; " in ended


def test_a_log_has_a_file_of_its_own(office):
    id, seq = handed_in(office, "-J", "y")
    told(office.text(f"logged.l{seq}"), id)
    assert office.text(f"logged.o{seq}") == "out\n"
    id, seq = handed_in(office, "-j", "run.log")
    told(office.text("run.log"), id)
    assert not (office.work / f"logged.l{seq}").exists()


@pytest.mark.parametrize("words", [("-J", "m", "-eo"), ("-J", "m", "-ro", "-kj")])
def test_a_log_stands_behind_the_output_or_is_kept_where_that_is_written_in_place(office, words):
    id, seq = handed_in(office, *words)
    text, kept = office.text(f"logged.o{seq}"), Path.home() / f"logged.l{seq}"
    assert text.startswith("out\n")
    if "-kj" in words:
        told(kept.read_text(), id)
        kept.unlink()
        assert text == "out\n"
    else:
        told(text, id)
        assert not (office.work / f"logged.l{seq}").exists()


def test_nobody_gets_a_log_who_does_not_want_one(office):
    _, seq = handed_in(office, "-j", "no.log", "-J", "n")
    assert office.text(f"logged.o{seq}") == "out\n"
    assert not list(office.work.glob(f"*.l{seq}"))
    assert not (office.work / "no.log").exists()


def test_a_log_tells_who_ended_it(office):
    id = office.qsub("sleep 600\n", "-N", "logged", "-J", "y", "-l", "walltime=1")
    seq = office.ended(id)["seq"]
    # Signal 15, or status 143 where the shell outlived what it waited for.
    assert " (wall-clock limit of 1 s " in office.text(f"logged.l{seq}")
