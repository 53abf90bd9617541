"""Who waits for an application that a start of the daemon finds lost is told at once."""

import os
import subprocess
from pathlib import Path

from daemon.inner import Inner

from nqspy.daemon import main
from nqspy.engine.handlers.requests import drop
from nqspy.model.people import Caller

SITE = """\
set machine pes=1
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
