"""Shepherds are killed, their records taken away under a real daemon: nothing runs twice, and it is told."""

import os
import shutil
import signal

from daemon.live import Live, alive, shared, until

from nqspy.executors import proc, records

live = shared
HIDE = """
(setsid env -i sh -c 'sh -c "echo \\$\\$ > $0; exec sleep 60" </dev/null >/dev/null 2>&1 & exit' \\
    "$PWD/hidden" &)
echo ran >> ran
exec sleep 60
"""


def shepherd(live: Live, id: str) -> int:
    folder = live.home / "spool" / f"{id.partition('.')[0]}.1"
    return proc.Identity.parse(records.holder(str(folder))).pid


def test_who_hides_has_ended_before_the_request_runs_again(live):
    id = live.submit(HIDE)
    hidden = int(live.text("hidden"))
    live.kill()
    (live.work / "hidden").unlink()
    os.kill(pid := shepherd(live, id), signal.SIGKILL)
    until(lambda: not alive(pid), "its end")
    live.start()
    live.until(id, lambda job: job["attempt"] == 2, "its second attempt")
    assert not alive(hidden)
    assert "it is queued again" in live.events("alarm")[-1]["text"]
    live.run("qdel", "-k", id).ok()
    live.ended(id)


def test_a_job_that_kills_its_own_shepherd_is_held_after_three_times_over_restarts_too(live):
    live.accepts_trouble = True
    third = "[ $NQSPY_ATTEMPT != 3 ] || while [ ! -e go ]; do sleep 0.02; done"
    id = live.submit(f"echo ran >> ran; {third}; kill -9 $PPID; exec sleep 60")
    until(lambda: live.text("ran").split() == ["ran"] * 3, "its third attempt")
    live.restart()
    live.write("go", "")
    live.until(id, lambda job: job["state"] == "held", "be held")
    message = "its shepherd was killed 3 times in a row"
    assert message in str(live.why(id))
    assert message in " ".join(live.run("qstat", "-f", id).ok().out.split())
    live.restart()
    assert live.job(id)["state"] == "held"
    assert message in " ".join(live.run("nqspy", "report", "night").ok().out.split())
    live.run("qrls", id).ok()
    live.until(id, lambda job: job["state"] == "held" and job["attempt"] == 6, "be held again")
    assert len(live.text("ran").split()) == 6


def test_an_attempt_that_ran_and_has_no_folder_any_more_is_lost_and_not_run_again(live):
    live.accepts_trouble = True
    ids = [live.submit("echo $$ >> pids; exec sleep 60", rerunnable=again) for again in (True, False)]
    for id in ids:
        live.running(id)
    until(lambda: len(live.text("pids").split()) == 2, "both run")
    live.kill()
    for id in ids:
        shutil.rmtree(live.home / "spool" / f"{id.partition('.')[0]}.1")
    live.start()
    ended = live.ended(ids[1])
    assert ended["end_reason"] == "lost"
    held = live.job(ids[0])
    assert (held["state"], held["attempt"]) == ("held", 1)
    assert "may still run" in str(live.why(ids[0]))
    pids = [int(word) for word in live.text("pids").split()]
    assert len(pids) == 2
    until(lambda: not any(alive(pid) for pid in pids), "their ends")
