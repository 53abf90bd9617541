"""qdel, qhold, qrls, qmove and qcat against a real daemon."""

import re
import signal
from datetime import datetime
from pathlib import Path

import pytest
from daemon.live import until
from stillness import stands_still

from nqspy.cli.spec import SUMMARIES

LOOP = "trap 'echo caught; exit 3' TERM; echo up; while :; do sleep 0.02; done"


def test_a_waiting_request_is_deleted_and_a_running_one_ends_by_term(office):
    held, running = office.submit("true", held=True), office.submit(LOOP, name="looper")
    office.running(running)
    office.run("qdel", held, running).ok()
    assert (office.ended(held)["end_reason"], office.ended(held)["exit_status"]) == ("deleted", None)
    ended = office.ended(running)
    assert (ended["end_reason"], ended["exit_status"]) == ("deleted", 3)
    assert office.text(f"looper.o{ended['seq']}") == "up\ncaught\n", "what it wrote is delivered"


def test_kill_ends_at_once_what_does_not_listen(office):
    office.set("set grace 20")
    id = office.submit("trap '' TERM; echo deaf; while :; do sleep 0.02; done")
    office.running(id)
    office.run("qdel", "-k", id).ok()
    ended = office.ended(id)
    assert (ended["end_reason"], ended["exit_signal"]) == ("deleted", signal.SIGKILL)
    office.set("set grace 10")


def test_after_the_grace_time_term_becomes_kill(office):
    office.set("set grace 1")
    id = office.submit("trap '' TERM; while :; do sleep 0.02; done")
    office.running(id)
    office.run("qdel", id).ok()
    assert office.ended(id)["exit_signal"] == signal.SIGKILL
    office.set("set grace 10")


def test_in_the_nqs_dialect_a_running_one_needs_k_or_a_signal(office):
    id = office.submit("trap 'exit 4' USR1; while :; do sleep 0.02; done")
    office.running(id)
    office.run("qdel", "--dialect", "nqs", id).refused(id, "-k")
    office.run("qdel", "-USR1", "--dialect", "nqs", id).ok()
    ended = office.ended(id)
    assert (ended["end_reason"], ended["exit_status"]) == ("exit", 4)


@pytest.mark.parametrize("dialect", [(), ("--dialect", "pbs"), ("--dialect", "nqs")])
def test_a_signal_is_sent_and_ends_nothing_by_itself(office, dialect):
    id = office.submit("trap 'echo told' USR1; trap 'exit 6' USR2; echo up; while :; do sleep 0.02; done")
    office.running(id)
    seq = id.partition(".")[0]
    until(lambda: office.run("qcat", id).out == "up\n", "its trap")
    office.run("qdel", *dialect, "-USR1", id).ok()
    until(lambda: office.run("qcat", id).out == "up\ntold\n", "the signal")
    assert office.job(id)["state"] == "running"
    office.run("qdel", *dialect, "-SIGUSR2", id).ok()
    ended = office.ended(id)
    assert (ended["end_reason"], ended["exit_status"]) == ("exit", 6)
    assert office.text(f"STDIN.o{seq}") == "up\ntold\n"


def test_a_request_may_be_stopped_and_let_go_on(office):
    id = office.submit("echo $$; while [ ! -e go ]; do sleep 0.02; done", workdir=office.work)
    office.running(id)
    pid = int(until(lambda: office.run("qcat", id).out.strip(), "its pid"))

    office.run("qdel", "-STOP", id).ok()
    until(lambda: stands_still(pid), "it stops")
    assert office.job(id)["state"] == "running"
    office.run("qdel", "-CONT", id).ok()
    until(lambda: not stands_still(pid), "it goes on")
    (office.work / "go").touch()
    assert office.ended(id)["exit_status"] == 0


def test_all_that_can_be_done_is_done_and_each_failure_has_its_line(office):
    first, second = (office.submit("true", held=True) for _ in range(2))
    done = office.run("qdel", first, "4711", "nonsense", second)
    assert done.status != 0
    assert [("4711" in line, "nonsense" in line) for line in done.err.splitlines()] == [
        (True, False), (False, True),
    ]  # fmt: skip
    assert office.ended(first)["end_reason"] == office.ended(second)["end_reason"] == "deleted"
    again = office.run("qdel", first)
    assert again.status != 0
    assert "finished" in again.err


def test_hold_and_release(office):
    office.set("stop queue batch")
    id = office.submit("true")
    office.run("qhold", id).ok()
    assert office.job(id)["held"] == ["u"]
    office.set("start queue batch")
    office.run("qhold", "-h", "o", id).ok()
    office.run("qrls", "-h", "u", id).ok()
    assert (office.job(id)["state"], office.job(id)["held"]) == ("held", ["o"])
    office.run("qrls", "-h", "o", id).ok()
    assert office.ended(id)["exit_status"] == 0
    office.run("qhold", id).refused("finished")


def test_moving_into_another_queue_keeps_to_its_limits(live):
    live.set("create batch_queue small", "set per_request cpu_limit=60 small", "stop queue batch")
    quick, long = live.submit("true", cpu=30), live.submit("true", cpu=90)
    done = live.run("qmove", "small", quick, long)
    assert (done.status != 0, "small" in done.err) == (True, True)
    live.set("enable queue small")
    done = live.run("qmove", "small", quick, long)
    assert done.status != 0
    assert [line for line in done.err.splitlines() if long in line or "60" in line]
    assert [live.job(id)["queue"] for id in (quick, long)] == ["small", "batch"]
    live.run("qmove", "nowhere", long).refused("nowhere")
    live.set("start queue small")
    assert live.ended(quick)["queue"] == "small"


def test_output_so_far_can_be_read_and_followed_to_the_end(office):
    gate = office.work / "gate"
    script = f"echo one; echo oops >&2; while [ ! -e {gate} ]; do sleep 0.02; done; echo two; printf three"
    id = office.submit(script)
    office.running(id)
    office.until(id, lambda job: office.run("qcat", id).out == "one\n", "have written")
    assert office.run("qcat", "-e", id).ok().out == "oops\n"
    follower = office.spawn("qcat", "-f", id)
    assert follower.stdout.readline() == "one\n"
    gate.touch()
    out, err = follower.communicate(timeout=120)
    assert (out, err, follower.returncode) == ("two\nthree", "", 0)
    assert office.run("qcat", id).ok().out == "one\ntwo\nthree", "what was delivered, once it has ended"
    assert office.run("qcat", "-e", id).ok().out == "oops\n"
    Path(office.ended(id)["output"]).unlink()
    office.run("qcat", id).refused("Job has finished", office.ended(id)["output"])


def test_output_of_what_has_not_started_or_is_unknown(office):
    id = office.submit("true", held=True)
    office.run("qcat", id).refused(id, "not started")
    office.run("qcat", "4711").refused("4711")
    office.run("qdel", id).ok()


@pytest.mark.parametrize("name", sorted(SUMMARIES))
def test_every_command_explains_itself(office, name):
    done = office.run(name, "--help", env={"COLUMNS": "100", "NO_COLOR": "1"}).ok()
    assert re.search(r"usage", done.out, re.IGNORECASE)
    assert "--home" in done.out


def _told(live, id):
    job = live.job(id)
    return datetime.fromisoformat(job["eligible"]) if job["eligible"] else None


@pytest.mark.parametrize(
    "date", ["23:59", "noon tomorrow", "friday 6pm", "03/14", "2037-03-02 21:00", "203703022100"]
)
def test_a_date_is_modified_in_every_form_of_qsub(office, date):
    id = office.submit("true", held=True)
    by_qsub = office.run("qsub", "-h", "-a", date, stdin="true\n").ok().lines[0]
    office.qmgr(f'modify request {id} eligible="{date}"').ok()
    assert _told(office, id) == _told(office, by_qsub)
    office.qmgr(f"modify request {id} eligible=none").ok()
    assert _told(office, id) is None
    office.client.call("modify", ids=[id], values={"eligible": date})
    assert _told(office, id) == _told(office, by_qsub)
    office.run("qdel", id, by_qsub).ok()


def test_a_date_that_is_none_names_its_place_and_changes_nothing(office):
    id = office.submit("true", held=True)
    done = office.qmgr(f"modify request {id} eligible=someday")
    assert done.status == 1
    assert "'someday' is no date" in done.err
    with pytest.raises(Exception, match="someday"):
        office.client.call("modify", ids=[id], values={"eligible": "someday"})
    assert _told(office, id) is None
    office.run("qdel", id).ok()


def test_a_request_is_modified_into_another_queue_whose_limits_hold(office):
    office.set(
        "create batch_queue short priority=1", "enable queue short", "set per_request cpu_limit=60 short"
    )
    id = office.submit("true", held=True)
    done = office.qmgr(f"modify request {id} cpu_limit=100 queue=short")
    assert "above the limit of 60 s" in done.err
    office.qmgr(f"modify request {id} cpu_limit=50 queue=short").ok()
    job = office.job(id)
    assert (job["queue"], job["requested"]["cpu_s"], job["state"]) == ("short", 50, "held")
    assert "Unknown queue nowhere" in office.qmgr(f"modify request {id} queue=nowhere").err
    office.qmgr(f"modify request {id} queue=batch").ok()
    assert office.job(id)["queue"] == "batch"
    office.run("qdel", id).ok()
    office.set("disable queue short", "delete queue short")


def test_p_orders_an_owners_requests_among_themselves(office):
    office.set("stop queue batch")
    first, second = office.qsub("true\n"), office.qsub("true\n", "-p", "5")
    assert [office.job(id)["position"] for id in (first, second)] == [2, 1]
    office.qmgr(f"modify request {first} priority=9").ok()
    assert [office.job(id)["position"] for id in (first, second)] == [1, 2]
    office.run("qdel", first, second).ok()
    office.set("start queue batch")


def test_priority_below_none_is_modified_as_it_is_asked_for(office):
    id = office.qsub("true\n", "-h", "-p", "-3")
    office.qmgr(f"modify request {id} priority=-1").ok()
    assert "    Priority = -1\n" in office.run("qstat", "-f", id).ok().out
    assert "from -1024 to 1023" in office.qmgr(f"modify request {id} priority=-1025").err
    office.run("qdel", id).ok()


def test_fewer_processes_than_a_shell_and_what_it_runs_are_no_limit(office):
    for few in ("0", "1"):
        office.run("qsub", "-s", "/bin/sh", "-l", f"nproc={few}", stdin="true\n").refused("at least 2")
    said = office.run("qsub", "-s", "/bin/sh", "-l", "nproc=unlimited", stdin="true\n")
    said.refused("number of processes unlimited is above the limit of 512")
    id = office.qsub("true\n", "-h", "-l", "nproc=2")
    assert "at least 2, not 0" in office.qmgr(f"modify request {id} process_limit=0").err
    said = office.qmgr(f"modify request {id} process_limit=unlimited")
    assert "number of processes unlimited is above the limit of 512" in said.err
    assert office.job(id)["requested"]["processes"] == 2
    office.run("qdel", id).ok()


GIVEN = ("-h", "-p", "7", "-r", "n", "-m", "ae", "-M", "anne,ben", "-l", "nice=5")


def test_the_full_form_shows_the_options_of_a_request_waiting_and_ended(office):
    id = office.qsub("true\n", "--dialect", "pbs", *GIVEN)
    wanted = [
        "Mail_Points = ae", "Mail_Users = anne,ben", "Output_Path", "Priority = 7", "qtime",
        "Rerunable = False", "Resource_List.ncpus = 1", "Resource_List.nice = 5",
        "Shell_Path_List = /bin/sh", "substate",
    ]  # fmt: skip
    plain = office.qsub("true\n", "-h")
    usual = office.run("qstat", "-f", plain).ok().out
    assert all(f"    {line}\n" in usual for line in ("Mail_Points = n", "Priority = 0", "Rerunable = True"))
    assert "Mail_Users" not in usual
    assert "Resource_List.nice" not in usual
    for moment in ("waiting", "ended"):
        lines = [line.strip() for line in office.run("qstat", "-x", "-f", id).ok().lines]
        found = [line for line in lines if line.startswith(tuple(wanted))]
        assert [line.partition(" ")[0] for line in found] == [each.partition(" ")[0] for each in wanted], (
            lines
        )
        if moment == "waiting":
            office.run("qrls", id).ok()
            office.ended(id)
    office.run("qdel", plain).ok()


def test_a_shell_is_modified_by_its_whole_path_only(office):
    id = office.qsub("true\n", "-h")
    for word in ("sh", "./sh"):
        assert (
            f"'{word}' is no shell; give its whole path"
            in office.qmgr(f"modify request {id} shell={word}").err
        )
    office.qmgr(f"modify request {id} shell=/bin/bash").ok()
    for shell in ("/no/such/shell", str(office.work), str(office.write("text", "no program"))):
        refused = office.qmgr("show shifts", f"MODify REQuest {id} shell='{shell}'")
        refused.refused("-c, line 2: ", shell, "give the whole path of a shell")
    assert "Shell_Path_List = /bin/bash" in office.run("qstat", "-f", id).ok().out
    office.run("qdel", id).ok()
