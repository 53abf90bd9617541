"""qdel, qhold, qrls, qmove and qcat against a real daemon."""

from datetime import datetime
from pathlib import Path

import pytest

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


def test_in_the_nqs_dialect_a_running_one_needs_k_or_a_signal(office):
    id = office.submit("trap 'exit 4' USR1; while :; do sleep 0.02; done")
    office.running(id)
    office.run("qdel", "--dialect", "nqs", id).refused(id, "-k")
    office.run("qdel", "-USR1", "--dialect", "nqs", id).ok()
    ended = office.ended(id)
    assert (ended["end_reason"], ended["exit_status"]) == ("exit", 4)


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


def test_a_shell_is_modified_by_its_whole_path_only(office):
    id = office.qsub("true\n", "-h")
    for word in ("sh", "./sh"):
        assert f"'{word}' is not a shell" in office.qmgr(f"modify request {id} shell={word}").err
    office.qmgr(f"modify request {id} shell=/bin/bash").ok()
    for shell in ("/no/such/shell", str(office.work), str(office.write("text", "no program"))):
        refused = office.qmgr("show shifts", f"MODify REQuest {id} shell='{shell}'")
        refused.refused("-c, line 2: ", shell, "give the whole path of a shell")
    assert "Shell_Path_List = /bin/bash" in office.run("qstat", "-f", id).ok().out
    office.run("qdel", id).ok()
