"""Who waits for an application that a start of the daemon finds lost is told at once; who could not be told
by a daemon that died learns it from the next one."""

import os
import signal
import subprocess
from pathlib import Path

from daemon.inner import Inner
from daemon.live import until

from nqspy.daemon import main
from nqspy.engine.handlers.requests import drop
from nqspy.model.people import Caller

SITE = """\
set machine pes=1
create class interactive priority=1
create class production priority=2
create batch_queue apps priority=10
enable queue apps
set default mpprun queue apps
"""


def test_an_application_that_ends_while_the_daemon_starts_is_told_to_its_caller(tmp_path, monkeypatch):
    me = Caller("me", os.geteuid(), os.getegid(), (), True)
    trap = "trap 'exit 7' URG; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(["/bin/sh", "-c", trap], stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == b"ready\n"
        began = int(Path(f"/proc/{waiting.pid}/stat").read_text().rpartition(")")[2].split()[19])
        inner = Inner(tmp_path / "home", SITE)
        inner.submit(me, caller=[waiting.pid, began])
        inner.close()
        assert waiting.poll() is None
        begin = main.restart.begin

        def lost(engine, *rest):
            tx = engine.transaction(rest[3])
            [request] = engine.site.requests.values()
            drop(tx, request, "nqsd", "it was lost")
            begin(engine, *rest)
            return engine.flush(rest[3])

        monkeypatch.setattr(main.restart, "begin", lost)
        inner = Inner(tmp_path / "home", SITE)
        try:
            assert waiting.wait(timeout=20) == 7
            assert inner.daemon.engine.site.requests == {}
        finally:
            inner.close()
            waiting.kill()


def test_who_was_not_told_by_a_daemon_that_died_asks_the_next_one(make_live):
    live = make_live().site(SITE).start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGURG})  # what tells it never comes
    try:
        waiting = live.spawn("mpprun", "true")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with waiting:
        try:
            [job] = until(lambda: live.client.requests(queue="apps"), "it waits", 20)
            live.run("qdel", job.id).ok()
            live.kill()
            live.start()
            _, message = waiting.communicate(timeout=20)
            assert (waiting.returncode, len(message.splitlines())) == (1, 1)
        finally:
            waiting.kill()
