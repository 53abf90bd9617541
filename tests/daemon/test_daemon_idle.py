"""While nothing happens nothing is done: neither the daemon nor the spawner nor the process of the exits
wakes up, and no pass is made."""

import threading
from pathlib import Path

import pytest
from daemon.live import until

GATE = """
from nqspy.userexit import refuse, userexit


@userexit
def jobselect(request, view):
    if view.now > 0 and request.name == "never":
        return refuse("not this one")
"""
"""Asked in each pass: what looks at `now` is never kept."""


def switches(pid):
    """Return the voluntary context switches of a process's threads, by thread."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                found[task.name] = int(line.split()[1])
    return found


def sleep_for(pids, seconds):
    """Return how often each of these processes wakes meanwhile; no thread may come or go."""
    before = {pid: switches(pid) for pid in pids}
    threading.Event().wait(seconds)
    after = {pid: switches(pid) for pid in pids}
    assert all(after[pid].keys() == before[pid].keys() for pid in pids)
    return {pid: sum(after[pid].values()) - sum(before[pid].values()) for pid in pids}


@pytest.mark.slow
def test_an_idle_daemon_sleeps_though_requests_wait_and_wakes_seldom_while_one_runs(make_live):
    live = make_live().site(exits={"gate": GATE}).start()
    live.set("set queue batch reserve=1")
    waiting = live.submit("true", name="never")
    live.waits(waiting, "not this one")
    live.submit("true", held=True)
    live.ended(live.submit("true"))
    passes = until(lambda: asked(live), "a pass")
    live.hang_up()
    threading.Event().wait(1.5)  # what the last request left to do
    pids = live.leftovers()
    assert len(pids) >= 3, "daemon, spawner, and who asks the exits"
    idle = asked(live)
    live.hang_up()
    assert idle >= passes
    assert all(woken < 8 for woken in sleep_for(pids, 2.5).values())
    assert asked(live) == idle, "no pass was made"
    runs = live.submit("sleep 100")
    live.running(runs)
    assert asked(live) > idle, "a pass, now that something has happened"
    live.hang_up()
    threading.Event().wait(1.0)
    assert sum(sleep_for([live.pid], 2.5).values()) < 15
    live.run("qdel", "-k", runs).ok()


def asked(live):
    """Return how often the gate was asked: once in each pass, about the one that it refuses."""
    return live.client.call("exits_list")["exits"][0]["calls"]
