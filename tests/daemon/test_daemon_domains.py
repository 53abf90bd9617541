"""Domains under a real daemon: jobs run on PEs of their queue's domain, before and after a kill."""

from daemon.live import Live

SITE = """\
set machine pes=4
create batch_queue batch workdir=submit
create domain odd pes=(1, 3) placement=most_packed
create batch_queue other workdir=submit domain=odd
enable queue batch
enable queue other
start queue batch
start queue other
set default queue = batch
"""


def shown(live: Live) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in live.run("qmgr", "--json", "-c", "show domain").ok().data}


def test_jobs_run_on_pes_of_their_domain_also_after_a_kill(make_live):
    live = make_live().site(SITE).start()
    assert shown(live)["odd"] == {
        "name": "odd", "kind": "application", "pes": [1, 3], "free": 2, "held": 0, "offline": 0, "depth": 1,
        "placement": "most_packed",
    }  # fmt: skip
    here = live.submit("while [ ! -e go ]; do sleep 0.05; done", pes=2)
    there = live.submit("while [ ! -e go ]; do sleep 0.05; done", queue="other")
    wide = live.run("qsub", "-q", "other", "-l", "pes=3", stdin="true\n")
    assert "3 PEs are more than the 2 of domain odd" in wide.err
    assert wide.status != 0
    live.running(here)
    live.running(there)
    assert (live.job(here)["pes"], live.job(here)["domain"]) == ([0, 2], "application")
    assert (live.job(there)["pes"], live.job(there)["domain"]) == ([1], "odd")
    refused = live.qmgr("set domain odd pes=3")
    assert f"PE 1 of domain odd is held by {there}; only idle PEs change their domain" in refused.err
    live.kill()
    live.start()
    assert {name: (row["held"], row["free"]) for name, row in shown(live).items()} == {
        "application": (2, 0), "odd": (1, 1),
    }  # fmt: skip
    waits = live.submit("true", queue="other", pes=2)
    live.until(waits, lambda job: job["reason"] is not None, "wait for a reason")
    assert live.job(waits)["reason"]["who"] == "domain odd"
    assert live.job(waits)["state"] == "queued"
    (live.work / "go").touch()
    assert [live.ended(each)["exit_status"] for each in (here, there, waits)] == [0, 0, 0]
    assert "PEs 1, 3: 2, 2 free, 0 held" in live.qmgr("show domain").ok().out


COMMAND = """\
set machine pes=2
create domain front kind=command requests=2
create batch_queue batch workdir=submit domain=front
enable queue batch
start queue batch
set default batch_request queue batch
"""


def test_requests_of_a_command_domain_hold_no_pes_also_after_a_kill(make_live):
    live = make_live().site(COMMAND).start()
    wide, more, waits = (live.submit("while [ ! -e go ]; do sleep 0.05; done", pes=2) for _ in range(3))
    for id in (wide, more):
        live.running(id)
        assert live.job(id)["pes"] == []
    live.qmgr("set domain front kind=application pes=1").refused("2 requests of queue batch", "domain front")
    live.kill()
    live.start()
    assert [live.job(id)["state"] for id in (wide, more, waits)] == ["running", "running", "queued"]
    (live.work / "go").touch()
    assert [live.ended(id)["exit_status"] for id in (wide, more, waits)] == [0, 0, 0]
