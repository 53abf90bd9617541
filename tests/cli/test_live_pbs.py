"""``qsub`` in the dialect of PBS against a real daemon, and what programs written for PBS do with it."""

import os
import re
import stat

import pytest


def hand_in(office, head, *words, body="true\n", **more):
    """Submit a script in PBS's dialect, for a shell without a login (profiles take time); return `qsub`'s
    output."""
    office.write("pbs.sh", f"#!/bin/sh\n{head}\n{body}")
    return office.run("qsub", "-S", "/bin/sh", *words, "pbs.sh", **more)


def test_waiting_for_one_that_is_deleted_before_it_ran_gives_three(office):
    office.write("held.sh", "#PBS -h -W block=true -S /bin/sh\n")
    with office.spawn("qsub", "held.sh") as waiting:
        id = waiting.stdout.readline().strip()
        office.run("qdel", id).ok()
        assert waiting.wait(60) == 3


def test_a_job_starts_where_it_says_with_the_umask_it_says(office):
    there = office.work / "there"
    there.mkdir(exist_ok=True)
    done = hand_in(office, "#PBS -d there -W umask=077 -N where", body="pwd; umask\n").ok()
    seq = office.ended(done.lines[0])["seq"]
    folder, umask = office.text(f"where.o{seq}").split()
    assert (folder, int(umask, 8)) == (str(there), 0o077)
    assert stat.S_IMODE((office.work / f"where.o{seq}").stat().st_mode) == 0o600


def test_what_is_refused_has_the_status_of_pbs(office):
    for options, status, words in (
        ("-q nowhere", 170, ("Unknown queue nowhere",)),
        ("-W depend=afterok:999999", 206, ("Invalid Job Dependency",)),
        ("-l select=3:ncpus=1", 188, ("Job violates queue and/or server resource limits", "3 PEs")),
    ):
        assert hand_in(office, f"#PBS {options}").refused(*words).status == status


def test_a_queue_may_be_named_with_this_server_and_with_no_other(office):
    for destination in (f"batch@{os.uname().nodename}", "@localhost"):
        id = hand_in(office, f"#PBS -h -q {destination}").ok().lines[0]
        assert office.job(id)["queue"] == "batch"
        office.run("qdel", id).ok()
    hand_in(office, "#PBS -q batch@elsewhere").refused("cannot connect to server elsewhere")


def test_output_in_a_folder_is_named_by_the_identifier(office):
    (office.work / "logs").mkdir()
    body = "echo out; echo err >&2\n"
    id = hand_in(office, f"#PBS -o logs/ -e {office.work}/logs", body=body).ok().lines[0]
    job = office.ended(id)
    assert office.text(f"logs/{id}.OU") == "out\n"
    assert office.text(f"logs/{id}.ER") == "err\n"
    assert job["output"] == str(office.work / f"logs/{id}.OU")


def environment(office, head, *words, **more):
    """Return the environment of a job submitted like this, and the request."""
    id = hand_in(office, f"{head}\n#PBS -N env -j oe", *words, body="env -0; echo\n", **more).ok().lines[0]
    job = office.ended(id)
    pairs = office.text(f"env.o{job['seq']}").split("\0")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}, job


def test_the_environment_of_a_job_is_that_of_pbs(office):
    env = {"LANG": "C.UTF-8", "TZ": "Europe/Paris", "PATH": f"/mine:{os.environ['PATH']}"}
    found, job = environment(office, "#PBS -l ncpus=2 -v PBS_JOBNAME=wrong,MINE=1", env=env)
    host = os.uname().nodename
    expected = {
        "PBS_JOBID": job["id"], "PBS_JOBNAME": "env", "PBS_QUEUE": "batch", "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_O_WORKDIR": str(office.work), "PBS_O_HOST": host, "PBS_O_QUEUE": "batch",
        "PBS_O_SYSTEM": "Linux",
        "PBS_O_LANG": "C.UTF-8", "PBS_O_TZ": "Europe/Paris",
        "PBS_O_PATH": env["PATH"], "NCPUS": "2", "OMP_NUM_THREADS": "2", "MINE": "1",
        "PBS_JOBDIR": str(office.work),
    }  # fmt: skip
    assert {name: found.get(name) for name in expected} == expected
    assert "/mine" not in found["PATH"], "the caller's search path comes with -V only"
    whole, _ = environment(office, "#PBS -V", env=env)
    assert whole["PATH"] == env["PATH"]


@pytest.mark.parametrize(
    ("resources", "lines", "ncpus", "threads"),
    [("ncpus=2", 1, "2", "2"), ("select=1:ncpus=2:ompthreads=4+1", 2, "2", "4")],
)
def test_the_file_of_hosts_has_a_line_for_each_process(office, resources, lines, ncpus, threads):
    body = 'cat $PBS_NODEFILE; echo "$NCPUS $OMP_NUM_THREADS $PBS_NP"\n'
    office.set("set machine pes=4")
    id = hand_in(office, f"#PBS -N hosts -l {resources}", body=body).ok().lines[0]
    *hosts, last = office.text(f"hosts.o{office.ended(id)['seq']}").splitlines()
    office.set("set machine pes=2")
    assert hosts == [os.uname().nodename.partition(".")[0]] * lines
    assert last == f"{ncpus} {threads} {lines}"


def test_what_a_job_brings_along_replaces_what_is_no_variable_of_pbs(office):
    found, _ = environment(office, "#PBS -v OMP_NUM_THREADS=7,TMPDIR=/var/tmp,PBS_NODEFILE=/none")
    assert (found["OMP_NUM_THREADS"], found["TMPDIR"]) == ("7", "/var/tmp")
    assert found["PBS_NODEFILE"] != "/none"


INTERPRETERS = [
    ("#!/bin/bash -e", 'shopt -q login_shell || echo plain; echo "$1"\n', "plain one"),
    ("#!/usr/bin/env python3", "import sys; print('py', sys.argv[1])\n", "py one"),
]


@pytest.mark.parametrize(("first", "body", "message"), INTERPRETERS)
def test_the_first_line_of_a_script_decides_who_reads_it(office, first, body, message):
    office.write("named.sh", f"{first}\n#PBS -N named\n{body}")
    job = office.ended(office.run("qsub", "named.sh", "one").ok().lines[0])
    assert job["exit_status"] == 0
    assert " ".join(office.text(f"named.o{job['seq']}").split()).endswith(message)


def test_an_option_or_the_site_decides_before_the_script(office):
    office.write("py.sh", "#!/usr/bin/env python3\n#PBS -N read\necho shell\n")
    for words in (("-S", "/bin/sh"), ("-s", "/bin/bash")):
        seq = office.ended(office.run("qsub", *words, "py.sh").ok().lines[0])["seq"]
        assert office.text(f"read.o{seq}") == "shell\n"
    office.set("set shell_strategy fixed=(/bin/sh)")
    seq = office.ended(office.run("qsub", "py.sh").ok().lines[0])["seq"]
    office.set("set shell_strategy login")
    assert office.text(f"read.o{seq}").endswith("shell\n")


def test_an_interpreter_that_is_not_there_is_told_in_the_error_file(office):
    office.write("none.sh", "#!/no/such/program -x\n#PBS -N none\n")
    job = office.ended(office.run("qsub", "none.sh").ok().lines[0])
    assert job["exit_status"] == 127
    assert "/no/such/program" in office.text(f"none.e{job['seq']}")


# ---------------------------------------------------------------- what programs written for PBS do
def poll(office, *ids, options=()):
    """Return the jobs of one poll, as PSI/J makes it."""
    return office.run("qstat", "-f", "-F", "json", *options, *ids).ok().data["Jobs"]


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -KILL $$; sleep 60", 265)])
def test_a_program_reads_how_a_job_ended_as_a_number(office, script, status):
    id = office.qsub(script, "-N", "job-1", "-l", "walltime=0:3:0")
    office.ended(id)
    job = poll(office, id, options=["-x"])[id]
    assert (job["job_state"], job["Exit_status"]) == ("F", status)
    assert type(job["Exit_status"]) is int
    assert (job["Job_Name"], job["Resource_List"]["walltime"]) == ("job-1", "00:03:00")
    told = f"qstat: {id} Job has finished, use -x or -H to obtain historical job information\n"
    for options in ((), ("-f",), ("-a",), ("-f", "-F", "json")):
        done = office.run("qstat", *options, id)
        assert (done.status, done.err) == (35, told)


def test_a_job_that_runs_is_listed_under_the_identifier_that_qsub_printed(office):
    id = office.qsub("trap 'exit 9' TERM; sleep 60 & wait")
    office.running(id)
    shown = office.run("qstat", "-f", "-1", "batch").ok().lines
    told = [line for line in shown if "Job Id:" in line or "job_state =" in line]
    assert told == [f"Job Id: {id}", "    job_state = R"]
    server = re.search("^Server: (.+)$", office.run("qstat", "-B", "-f").ok().out, re.MULTILINE)[1]
    assert f"Job Id: {id}" in office.run("qstat", "-f", f"@{server}").ok().lines
    job = poll(office, id)[id]
    assert (job["job_state"], job["substate"]) == ("R", 42)
    assert re.fullmatch(r"[^/]+/\d+", job["exec_host"])
    assert office.run("qselect", "-s", "R").ok().lines == [id]
    assert f"jobs = {id}/" in office.run("pbsnodes", "-a").ok().out
    assert office.run("qstat", "-r").ok().lines[5].split()[0] == id
    office.run("qdel", id).ok()
    office.ended(id)
    gone = poll(office, id, options=["-x"])[id]
    assert (gone["Exit_status"], gone["end_reason"]) == (9, "deleted")
    assert office.run("qselect", "-x", "-s", "F", "-N", gone["Job_Name"]).ok().lines[-1] == id
