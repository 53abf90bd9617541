"""An exit that does all that an exit can do wrong, by the name of the request it is asked about; and people
who go on working meanwhile."""

import time
from dataclasses import dataclass

from daemon.live import ONE_QUEUE, Live, until

WILD = r'''
"""Does what the name of the request says."""
import ctypes
import os
import re
import signal
import sys
import threading
import time

import numpy

from nqspy.userexit import refuse, userexit


def loop():
    while True:
        pass


def catastrophe():
    re.match("(a+)+$", "a" * 40 + "b")


def sorting():
    while True:
        numpy.sort(numpy.arange(1_000_000)[::-1])


def arrays():
    numpy.correlate(numpy.ones(800_000), numpy.ones(800_000), "full")


def total():
    sum(range(10**12))


def sleep():
    while True:
        try:
            time.sleep(3600)
        except BaseException:
            pass


def deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(3600)


def deep():
    return deep() + 1


def huge():
    return bytearray(10 << 30)


def hoard():
    kept = []
    while True:
        kept.append(bytearray(64 << 20))


def leave():
    os._exit(3)


def crash():
    ctypes.string_at(0)


def system_exit():
    sys.exit(5)


def stubborn():
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


def threads():
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()


def printing():
    sys.stdout.write("to stdout\n")
    sys.stderr.write("to stderr\n" * 1000)
    os.write(1, b"raw\n")


def signal_parent():
    os.kill(os.getppid(), 9)


def patch():
    from sys import modules

    passes = modules["nqspy.daemon.deciding.child"]
    passes.run_pass = lambda *_: 1 / 0
    modules["nqspy.model.requests"].Request.owner = "nobody"


def forge():
    from sys import modules

    actions = modules["nqspy.model.actions"]
    child, words = modules["nqspy.daemon.deciding.child"], modules["nqspy.daemon.deciding.words"]
    former = child.words.planned

    def planned(id, plan, listing):
        word = former(id, plan, listing)
        waiting = [seq for seq in range(1, 2000)]
        word.actions = [("start", {"seq": seq, "attempt": 1, "pes": [0], "forced": True}) for seq in waiting]
        word.actions += [("kill", {"seq": 1, "attempt": 1, "reason": "", "grace": 0})] * FORGED_KILLS
        return word

    FORGED_KILLS = 0
    child.words = type(words)("words")
    child.words.__dict__.update(words.__dict__)
    child.words.planned = planned


def nonsense():
    return 42


@userexit
def jobselect(request):
    fault = globals().get(request.name)
    if callable(fault) and request.name not in ("userexit", "jobselect", "refuse", "submit", "route"):
        return fault()
    return refuse("gate closed") if request.name == "gated" else None
'''

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
    """What a fault did. ``delay``: seconds from its submission to the start of a request that came after it,
    s; ``acknowledged``: longest time that a submission took meanwhile, s; ``killed``: whether the
    process was lost."""

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
        """Pid of the child, once there is one."""

        def look() -> int:
            text = self.client.call("status")["decider"]
            return int(text.partition("run in process ")[2].split()[0]) if "in process" in text else 0

        return until(look, "a child")

    def suffer(self, fault: str) -> Seen:
        """A request that brings the fault about, and work that goes on."""
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
        """What was left behind is deleted, and the exit counts as new."""
        for each in self.client.requests():
            self.client.delete(each.id)
        self.qmgr("reload exits").ok()
