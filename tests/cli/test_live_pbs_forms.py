"""What programs written for PBS do with a real daemon: submit, poll, read how it ended."""

import re

import pytest


def poll(office, *ids, options=()):
    """The jobs of one poll, as PSI/J makes it."""
    return office.run("qstat", "-f", "-F", "json", *options, *ids).ok().data["Jobs"]


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 3", 3), ("kill -KILL $$; sleep 60", 265)],
)
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


def test_some_unknown_do_not_keep_the_others_from_being_shown(office):
    id = office.qsub("true", "-h")
    done = office.run("qstat", "-xf", "-Fjson", id, "4711")
    server = id.partition(".")[2]
    assert (done.status, done.err) == (153, f"qstat: Unknown Job Id 4711.{server}\n")
    assert done.data["Jobs"][id]["Hold_Types"] == "u"
    listed = office.run("qstat", "-u", done.data["Jobs"][id]["euser"]).ok().out.splitlines(keepends=True)
    assert id in [line.split()[0] for line in listed[2:] if line.strip()]
    assert all(line.strip() for line in listed[2:]), "no empty line may follow the second one"
    office.run("qdel", id).ok()


def test_a_queue_without_jobs_is_silence(office):
    for options in ((), ("-f", "-1"), ("-n", "-s", "-1"), ("-F", "dsv", "-f")):
        done = office.run("qstat", *options, "batch").ok()
        assert (done.out, done.err) == ("", "")
    assert "Jobs" not in office.run("qstat", "-f", "-F", "json", "batch").ok().data
