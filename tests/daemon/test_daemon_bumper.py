"""Jobs by class under a real daemon: processes give way and go on, before and after a kill."""

import json

from daemon.live import until
from daemon.test_daemon_mpprun import WAITS, go, pid
from stillness import stands_still

SITE = """\
set machine pes=2
create class interactive priority=4 wait=0 do_not_disturb=0
create class production priority=2 wait=30:00 do_not_disturb=0
create class benchmark priority=3 do_not_disturb=unlimited preempted=off users=nobody
create batch_queue apps order=class workdir=submit
enable queue apps
start queue apps
set default batch_request queue apps
"""


def test_a_production_job_gives_way_to_an_interactive_one_and_goes_on_over_a_kill(make_live):
    live = make_live().site(SITE).start()
    work = live.submit(WAITS.format("work"), pes=2, job_class="production")
    mine = pid(live, "work")
    quick = live.submit(WAITS.format("quick"), pes=1, job_class="interactive")
    live.running(quick)
    job = live.job(work)
    assert (job["state"], job["class"]) == ("suspended", "production")
    until(lambda: stands_still(mine), "it stands still")
    why = live.run("qstat", "--why", work).ok().out
    assert quick in why
    assert "interactive" in why
    live.kill()
    go(live, "quick")
    live.start()
    assert live.ended(quick)["exit_status"] == 0
    live.running(work)
    assert live.job(work)["moved"]["times"] == 1
    until(lambda: not stands_still(mine), "it goes on")
    go(live, "work")
    assert live.ended(work)["exit_status"] == 0
    [out] = live.events("moved_out")
    assert out["request"] == work
    assert out["paged"] >= 0
    assert [each["request"] for each in live.events("starting")] == [work, quick]
    live.run("gangparms", "production", "wait=10:00").ok()
    classes, gang = map(json.loads, live.run("gangparms", "--json").ok().lines)
    assert (classes["production"]["wait"], gang["moves"]["count"]) == (600_000, 1)
    live.run("gangparms", "gang", "job_limit=1").ok()
    live.run("gangparms", "production").refused("wait=10:00")
    live.run("gangparms", "fast", "wait=1").refused("fast")
