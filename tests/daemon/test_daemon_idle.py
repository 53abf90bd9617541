"""While nothing happens nothing is done: neither the daemon nor the starter wakes up."""

import threading
from pathlib import Path

import pytest


def switches(pid):
    """Voluntary context switches of all threads of a process, which number by thread."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                found[task.name] = int(line.split()[1])
    return found


@pytest.mark.slow
def test_an_idle_daemon_sleeps(live):
    live.ended(live.submit("true"))
    live.submit("true", held=True)
    live.hang_up()
    threading.Event().wait(1.0)  # what the last request left to do
    pids = live.leftovers()
    assert len(pids) == 2, "daemon and starter"
    before = {pid: switches(pid) for pid in pids}
    threading.Event().wait(5.0)
    for pid in pids:
        after = switches(pid)
        assert after.keys() == before[pid].keys()
        assert sum(after.values()) - sum(before[pid].values()) < 5


@pytest.mark.slow
def test_a_daemon_with_a_running_request_hardly_wakes(live):
    id = live.submit("sleep 100")
    live.running(id)
    live.hang_up()
    threading.Event().wait(1.0)
    before = switches(live.pid)
    threading.Event().wait(5.0)
    assert sum(switches(live.pid).values()) - sum(before.values()) < 25
    live.run("qdel", "-k", id).ok()
