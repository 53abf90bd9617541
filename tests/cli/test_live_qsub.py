"""qsub against a real daemon: what is printed, what runs, what comes back."""


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
