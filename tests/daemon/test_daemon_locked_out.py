"""Nobody is locked out: by another program's lock on the database, by idle connections, by those who wait."""

import resource
import subprocess
import sys
import time

import pytest
from daemon.live import shared, until

live = shared
HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
held.execute("ROLLBACK")
"""


@pytest.mark.slow
def test_a_database_that_is_locked_lets_qsub_repeat_and_qstat_answer(live):
    """In WAL mode an exclusive lock is the same. Longer than a commit waits for it (5 s)."""
    live.accepts_trouble = True
    live.ended(live.submit("true"))
    live.set("stop queue batch")
    waiting = live.submit("true")
    words = [sys.executable, "-c", HOLD, str(live.home / "nqs.db"), "BEGIN IMMEDIATE"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        began, longest = time.monotonic(), 0.0
        late = live.spawn("qsub", "-s", "/bin/sh", str(live.write("late.sh", "true\n")))
        while time.monotonic() - began < 7:
            asked = time.monotonic()
            assert [each["id"] for each in live.client.call("list_requests")] == [waiting]
            longest = max(longest, time.monotonic() - asked)
            with pytest.raises(subprocess.TimeoutExpired):  # it has not worked, nor failed
                late.wait(0.1)
        assert waiting in live.run("qstat").ok().out
        holder.stdin.close()
    out, err = late.communicate(timeout=60)
    assert (late.returncode, err) == (0, "")
    assert live.job(out.strip())["state"] == "queued"
    assert longest < 6, "a commit waits for a lock once; then questions come first"


def test_300_idle_connections_at_64_descriptors_lock_nobody_out(make_live):
    live = make_live().site()
    live.run("nqsd", "start", before=["/bin/sh", "-c", 'ulimit -n 64 && exec "$@"', "sh"]).ok()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 1024), hard), hard))
    idle = [live.connect() for _ in range(300)]
    try:
        for _ in range(3):
            assert live.run("qstat").ok()
            live.ended(live.qsub("true\n"))
    finally:
        for sock in idle:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: live.run("nqsd", "status").status == 0, "it serves on")
