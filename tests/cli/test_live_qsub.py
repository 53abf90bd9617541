"""qsub against a real daemon: what is printed, what runs, what comes back."""

import os
import stat
from datetime import datetime, timedelta


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
    assert (job["output"], job["error"]) == (
        str(office.work / f"first.o{seq}"),
        str(office.work / f"first.e{seq}"),
    )


def test_use_is_measured(office):
    script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.1\n"
    used = office.ended(office.submit(script))["used"]
    assert 0.05 < used["cpu_s"] <= used["wall_s"]
    assert used["wall_s"] >= 0.1
    assert used["memory_bytes"] > 0


def test_arguments_and_the_environment_reach_the_script(office):
    script = office.write("args.sh", 'printf "%s|" "$@"; echo; echo "$COLOUR $ENVIRONMENT $PBS_JOBID"\n')
    done = office.run(
        "qsub", "-s", "/bin/sh", "-v", "COLOUR=light blue", str(script), "a b", "", "$HOME"
    ).ok()
    job = office.ended(done.lines[0])
    assert office.text(f"args.sh.o{job['seq']}") == f"a b||$HOME|\nlight blue BATCH {job['id']}\n"


def test_outputs_go_where_they_are_told_to(office):
    (office.work / "sub").mkdir()
    id = office.qsub("umask; echo out; echo err >&2\n", "-o", "sub/out.txt", "-e", str(office.work / "err"))
    job = office.ended(id)
    assert office.text("sub/out.txt").endswith("out\n")
    assert office.text("err") == "err\n"
    assert job["output"] == str(office.work / "sub/out.txt")
    assert (office.work / "err").stat().st_uid == os.getuid()
    both = office.ended(office.qsub("echo out; echo err >&2\n", "-j", "oe", "-o", "both"))
    assert office.text("both") == "out\nerr\n"
    assert both["end_reason"] == "exit"


def test_an_output_that_cannot_be_written_is_kept_in_the_spool(office):
    job = office.ended(office.qsub("echo precious\n", "-o", "nowhere/at/all"))
    assert job["exit_status"] == 0
    kept = [path.read_text() for path in (office.home / "spool").glob(f"{job['seq']}.1/stdout")]
    assert kept == ["precious\n"]
    told = office.run("qstat", "-fx", job["id"]).ok().out.replace("\n\t", "")
    assert str(office.home / "spool" / f"{job['seq']}.1") in told


def test_json_and_wait_and_exit_statuses(office):
    done = office.run("qsub", "-s", "/bin/sh", "--json", stdin="exit 0\n").ok()
    assert done.data["queue"] == "batch"
    assert set(done.data) >= {"id", "queue"}
    assert office.run("qsub", "-s", "/bin/sh", "--wait", stdin="exit 5\n").status == 5
    killed = office.run("qsub", "-s", "/bin/sh", "--wait", stdin="kill -9 $$\n")
    assert killed.status == 128 + 9


def test_a_key_makes_a_repetition_safe(office):
    first = office.qsub("echo once\n", "--key", "payroll-march")
    assert office.qsub("echo once\n", "--key", "payroll-march") == first
    other = office.run("qsub", "-s", "/bin/sh", "--key", "payroll-march", stdin="echo twice\n")
    other.refused("payroll-march")
    office.ended(first)
    assert office.qsub("echo once\n", "--key", "payroll-march") == first, "its record is still kept"


def test_dry_run_says_where_it_would_go_and_submits_nothing(office):
    before = office.client.call("status")["events"]
    done = office.run("qsub", "--dry-run", "-N", "trial", stdin="true\n").ok()
    assert "trial" in done.out
    assert "batch" in done.out
    assert office.client.call("status")["events"] == before


def test_a_date_keeps_it_waiting(office):
    date = (datetime.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    id = office.qsub("true\n", "-a", date)
    job = office.job(id)
    assert (job["state"], job["position"], job["priority"]) == ("waiting", None, None)
    assert job["eligible"][:16] == date
    assert office.why(id)["reason"]["code"] == "DATE"
    office.run("qdel", id).ok()


def test_a_near_date_starts_it_by_itself(office):
    at = datetime.now().astimezone() + timedelta(seconds=0.4)
    job = office.ended(office.submit("true", eligible=at))
    assert job["started"] >= job["eligible"]
    assert datetime.fromisoformat(job["started"]) < at + timedelta(seconds=5)


def test_a_list_is_submitted_in_its_order_as_one(office):
    for name in ("one", "two"):
        office.write(f"{name}.sh", f"#QSUB -s /bin/sh\necho {name} $1\n")
    office.write("night.list", "# the night\n-N first one.sh\n\n-N second two.sh 'x y'\n-N third -h one.sh\n")
    done = office.run("qsub", "--list", "night.list", "--key", "night-1").ok()
    seqs = [int(line.partition(".")[0]) for line in done.lines]
    assert seqs == [seqs[0], seqs[0] + 1, seqs[0] + 2]
    assert office.ended(done.lines[1])["name"] == "second"
    assert office.text(f"second.o{seqs[1]}") == "two x y\n"
    assert office.job(done.lines[2])["state"] == "held"
    assert office.run("qsub", "--list", "night.list", "--key", "night-1").ok().lines == done.lines
    office.run("qdel", done.lines[2]).ok()


def test_an_error_in_any_line_of_a_list_leaves_all_of_it_out(office):
    office.write("good.sh", "#QSUB -s /bin/sh\ntrue\n")
    office.write("bad.list", "good.sh\ngood.sh\n-q nowhere good.sh\n")
    before = office.client.call("status")["events"]
    office.run("qsub", "--list", "bad.list").refused("line 3")
    assert office.client.call("status")["events"] == before
    office.write("two.list", "-h good.sh\n-h good.sh\n")
    found = office.run("qsub", "--json", "--list", "two.list").ok().data
    assert [each["queue"] for each in found] == ["batch", "batch"]
    office.run("qdel", *(each["id"] for each in found)).ok()


def test_what_cannot_be_submitted_is_refused_in_one_line(office):
    office.run("qsub", "-q", "nowhere", stdin="true\n").refused("nowhere", "batch")
    office.set("set per_request cpu_limit=600 batch")
    office.run("qsub", "-lT", "10:01", stdin="true\n").refused("600", "batch")
    office.set("set per_request cpu_limit=unlimited batch")
    office.set("disable queue batch")
    office.run("qsub", stdin="true\n").refused("batch", "not enabled")
    office.set("enable queue batch")


def test_identifiers_are_never_given_twice(live):
    held = [live.submit("true", held=True) for _ in range(3)]
    live.run("qdel", *held).ok()
    live.kill()
    live.start()
    seqs = [int(id.partition(".")[0]) for id in held]
    assert int(live.submit("true").partition(".")[0]) == max(seqs) + 1


def test_the_job_runs_with_the_rights_and_umask_of_who_submitted(office):
    old = os.umask(0o027)
    try:
        job = office.ended(office.qsub("id -u; echo $HOME; pwd\n", "-N", "who"))
    finally:
        os.umask(old)
    uid, home, folder = office.text(f"who.o{job['seq']}").splitlines()
    assert int(uid) == os.getuid()
    assert folder == str(office.work), "the queue starts in the folder of the submission"
    assert home
    assert stat.S_IMODE((office.work / f"who.o{job['seq']}").stat().st_mode) == 0o640
