"""Domains under a real daemon: jobs run on PEs of their queue's domain, before and after a kill."""

from daemon.live import Live, command

SITE = """\
set machine pes=4
create batch_queue batch workdir=submit
create domain odd pes=(1, 3) placement=most_packed features=(health, swap)
create batch_queue other workdir=submit domain=odd
enable queue batch
enable queue other
start queue batch
start queue other
set default queue = batch
"""


def shown(live: Live) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in live.shown("show domain")}


def test_jobs_run_on_pes_of_their_domain_also_after_a_kill_and_are_told_where_they_lie(make_live):
    live = make_live().site(SITE).start()
    assert shown(live)["odd"] == {
        "name": "odd", "kind": "application", "pes": [1, 3], "free": 2, "held": 0, "offline": 0, "depth": 1,
        "placement": "most_packed", "requests": None, "smallest": 1, "largest": None, "users": [],
        "groups": [], "accounts": [], "takes": "all", "features": ["health", "swap"], "holders": [],
        "heartbeat_s": None, "partial": False, "variation": 100, "balance_heartbeat_s": None,
        "balance_rest_s": 0, "slots": [], "foreign": [],
    }  # fmt: skip
    live.qmgr("set machine shape=2x2x1 pes_per_node=2").ok()
    assert "2x2x1, nodes 1x2x1 of 2 PEs" in live.qmgr("show machine").ok().out
    here = live.submit("while [ ! -e go ]; do sleep 0.05; done", pes=2)
    command = "echo $NQSPY_BASE $NQSPY_COORDINATE $NQSPY_SHAPE $NQSPY_PES_PER_NODE > told"
    there = live.submit(f"{command}; while [ ! -e go ]; do sleep 0.05; done", queue="other", pes=2)
    live.running(here)
    live.running(there)
    assert (live.job(here)["pes"], live.job(here)["domain"]) == ([0, 2], "application")
    job = live.job(there)
    assert (job["pes"], job["domain"], job["base"], job["coordinate"]) == ([1, 3], "odd", 1, [1, 0, 0])
    assert live.text("told") == "1 1,0,0 2x2x1 2\n"
    assert f"PEs 1, 3 held by {there}, base 1 (1,0,0)" in live.qmgr("show domain odd").ok().out
    assert "on PEs 1,3, base 1 (1,0,0)" in live.run("qstat", "--why", there).ok().out
    assert "base = 1 (1,0,0)" in live.run("qstat", "-f", there).ok().out
    live.kill()
    live.start()
    assert {name: (row["held"], row["free"], row["features"]) for name, row in shown(live).items()} == {
        "application": (2, 0, None), "odd": (2, 0, ["health", "swap"]),
    }  # fmt: skip
    waits = live.submit("true", queue="other", pes=2)
    live.until(waits, lambda job: job["reason"] is not None, "wait for a reason")
    assert live.job(waits)["reason"]["who"] == "domain odd"
    (live.work / "go").touch()
    assert [live.ended(each)["exit_status"] for each in (here, there, waits)] == [0, 0, 0]


WITHOUT_CLASSES = """\
set machine pes=2
create domain front kind=command requests=2
create batch_queue batch workdir=submit domain=front
enable queue batch
start queue batch
set default batch_request queue batch
create batch_queue apps workdir=submit
enable queue apps
start queue apps
set default mpprun queue apps
"""


def test_applications_need_no_classes_outside_and_inside_a_request(make_live):
    live = make_live().site(WITHOUT_CLASSES).start()
    call = f"{' '.join(command('mpprun'))} sh -c 'echo on $NQSPY_PES, within $QSUB_REQID'"
    outside = live.sh(call).ok()
    assert outside.out.startswith("on 0, within 1")
    around = live.submit(f"{call} > inside 2>&1")
    assert live.ended(around)["exit_status"] == 0
    assert live.text("inside").startswith("on 0, within 3.")
    assert live.run("mpprun", "-class", "interactive", "true").status == 1
