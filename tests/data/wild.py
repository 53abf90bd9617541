"""Does what the name of the request says: all that an exit can do wrong."""

import ctypes
import mmap
import os
import re
import signal
import sys
import threading
import time

import numpy

from nqspy.userexit import refuse, userexit


def catastrophe():
    re.match("(a+)+$", "a" * 40 + "b")


def sorting():
    while True:
        numpy.sort(numpy.arange(1_000_000)[::-1])


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


def hoard():
    kept = []
    while True:
        kept.append(bytearray(64 << 20))


def large():
    mmap.mmap(-1, 200 << 20).close()


def leave():
    os._exit(3)


def crash():
    ctypes.string_at(0)


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
    os.write(1, b"raw\n")
    sys.stderr.write("to stderr\n" * 1000)


def signal_parent():
    os.kill(os.getppid(), 9)


def patch():
    from sys import modules

    worker = modules["nqspy.decider.worker"]
    worker.run_pass = lambda *_: 1 / 0
    modules["nqspy.model.requests"].Request.owner = "nobody"


def forge():
    from sys import modules

    worker, plans = modules["nqspy.decider.worker"], modules["nqspy.decider.plans"]
    former = worker.plans.plan_made

    def plan_made(*what):
        plan = former(*what)
        forged = {"attempt": 1, "pes": [0], "forced": True, "by": "select"}
        plan.actions = [("Start", {"seq": seq, **forged}) for seq in range(1, 2000)]
        return plan

    worker.plans = type(plans)("plans")
    worker.plans.__dict__.update(plans.__dict__)
    worker.plans.plan_made = plan_made


@userexit
def jobselect(request):
    fault = globals().get(request.name)
    if callable(fault) and request.name not in ("userexit", "jobselect", "refuse", "submit", "route"):
        return fault()
    return refuse("gate closed") if request.name == "gated" else None
