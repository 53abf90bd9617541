"""An exit with all faults that an exit can have, chosen by the request's name; and clients that go on working
meanwhile."""

import time
from dataclasses import dataclass
from pathlib import Path

from daemon.live import ONE_QUEUE, Live, until

WILD = (Path(__file__).parents[1] / "data" / "wild.py").read_text()

SITE = (
    ONE_QUEUE.replace("pes=2", "pes=4")
    + """\
create batch_queue other priority=5 workdir=submit
enable queue other
start queue other
"""
)


@dataclass
class Seen:
    """Effect of a fault. ``delay``: seconds from submission to start of a request that came after it;
    ``acknowledged``: longest time (s) that a submission took meanwhile; ``killed``: True if the process was
    lost."""

    delay: float
    acknowledged: float
    killed: bool
    alarms: list[str]


class Wild(Live):
    """A home with that exit."""

    def begin(self) -> "Wild":
        self.accepts_trouble = True
        self.site(SITE, {"wild": WILD}).start()
        return self

    def losses(self) -> int:
        text = self.client.call("status")["decider"]
        return int(text.partition("lost ")[2].split()[0]) if "lost " in text else 0

    def child(self) -> int:
        """Return the pid of the worker, once there is one."""

        def look() -> int:
            text = self.client.call("status")["decider"]
            return int(text.partition("run in process ")[2].split()[0]) if "in process" in text else 0

        return until(look, "a child")

    def suffer(self, fault: str) -> Seen:
        """Submit a request that causes the fault, and work that goes on; return the effect."""
        lost, told = self.losses(), len(self.events("alarm"))
        gate = self.work / f"gate-{fault}"
        busy = self.submit(f"while [ ! -e {gate} ]; do sleep 0.05; done", queue="other", name="busy")
        self.running(busy)
        waiting = self.submit("true", name="gated")
        began = time.monotonic()
        poison = self.submit("true", name=fault)
        after, acknowledged = [], 0.0
        for _ in range(3):
            asked = time.monotonic()
            after.append(self.submit("true", name="plain"))
            acknowledged = max(acknowledged, time.monotonic() - asked)
        asked = time.monotonic()
        assert any(each.id == poison for each in self.client.requests()) or self.ended(poison)
        self.client.delete(waiting)
        gate.touch()
        assert self.ended(busy)["exit_status"] == 0
        acknowledged = max(acknowledged, time.monotonic() - asked - 0.5)
        ended = [self.ended(id) for id in after]
        assert [each["exit_status"] for each in ended] == [0, 0, 0]
        delay = time.monotonic() - began
        alarms = [each["text"] for each in self.events("alarm")][told:]
        return Seen(delay, acknowledged, self.losses() > lost, alarms)

    def calm(self) -> None:
        """Delete the remaining requests, and have the exit count as new."""
        for each in self.client.requests():
            self.client.delete(each.id)
        self.qmgr("reload exits").ok()
