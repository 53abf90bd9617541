"""qdel, qhold, qrls, qmove and qcat against a real daemon."""

import signal
from datetime import datetime
from pathlib import Path

import pytest
from daemon.live import until

from nqspy.errors import Refusal

LOOP = "trap 'echo caught; exit 3' TERM; echo up; while :; do sleep 0.02; done"


def test_a_waiting_request_is_deleted_and_a_running_one_ends_by_term(office):
    held, running = office.submit("true", held=True), office.submit(LOOP, name="looper")
    office.running(running)
    office.run("qdel", held, running).ok()
    assert (office.ended(held)["end_reason"], office.ended(held)["exit_status"]) == ("deleted", None)
    ended = office.ended(running)
    assert (ended["end_reason"], ended["exit_status"]) == ("deleted", 3)
    assert office.text(f"looper.o{ended['seq']}") == "up\ncaught\n", "what it wrote is delivered"


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


def test_a_signal_is_sent_and_ends_nothing_by_itself(office):
    id = office.submit("trap 'echo told' USR1; trap 'exit 6' USR2; echo up; while :; do sleep 0.02; done")
    office.running(id)
    seq = id.partition(".")[0]
    until(lambda: office.run("qcat", id).out == "up\n", "its trap")
    office.run("qdel", "-USR1", id).ok()
    until(lambda: office.run("qcat", id).out == "up\ntold\n", "the signal")
    assert office.job(id)["state"] == "running"
    office.run("qdel", "-SIGUSR2", id).ok()
    ended = office.ended(id)
    assert (ended["end_reason"], ended["exit_status"]) == ("exit", 6)
    assert office.text(f"STDIN.o{seq}") == "up\ntold\n"


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


def _told(live, id):
    job = live.job(id)
    return datetime.fromisoformat(job["eligible"]) if job["eligible"] else None


def test_a_date_is_modified_in_the_forms_of_qsub(office):
    date = "noon tomorrow"
    id = office.submit("true", held=True)
    by_qsub = office.run("qsub", "-h", "-a", date, stdin="true\n").ok().lines[0]
    office.qmgr(f'modify request {id} eligible="{date}"').ok()
    assert _told(office, id) == _told(office, by_qsub)
    office.qmgr(f"modify request {id} eligible=none").ok()
    assert _told(office, id) is None
    office.client.call("modify", ids=[id], values={"eligible": date})
    assert _told(office, id) == _told(office, by_qsub)
    with pytest.raises(Refusal, match="someday"):
        office.client.call("modify", ids=[id], values={"eligible": "someday"})
    office.run("qdel", id, by_qsub).ok()


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


def test_a_shell_is_modified_by_its_whole_path_only(office):
    id = office.qsub("true\n", "-h")
    for word in ("sh", "./sh"):
        assert f"'{word}' is no shell" in office.qmgr(f"modify request {id} shell={word}").err
    office.qmgr(f"modify request {id} shell=/bin/bash").ok()
    for shell in ("/no/such/shell", str(office.work), str(office.write("text", "no program"))):
        refused = office.qmgr("show shifts", f"MODify REQuest {id} shell='{shell}'")
        refused.refused("-c, line 2: ", shell, "give the whole path of a shell")
    assert "Shell_Path_List = /bin/bash" in office.run("qstat", "-f", id).ok().out
    office.run("qdel", id).ok()
