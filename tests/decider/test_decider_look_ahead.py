"""Looks ahead while exits misbehave, and while their process does not answer: the daemon goes on."""

import contextlib
import os
import signal
from types import SimpleNamespace

import pytest
from daemon.live import ONE_QUEUE
from daemon.person import Person

from nqspy.decider.worker import LOOK_AHEAD, look_ahead_limit


def test_a_dry_run_keeps_nobody_waiting_while_the_process_stands_still(make_wild):
    wild = make_wild().begin()
    child = wild.child()
    with contextlib.closing(Person(wild, os.geteuid())) as person:
        os.kill(child, signal.SIGSTOP)
        try:
            asked = {"spec": SPEC, "script": "true\n"}
            person.tell("submit", items=[asked], dry_run=True)
            person.tell("status")
            assert "decider" in person.answer()["result"], "who came later is answered first"
        finally:
            os.kill(child, signal.SIGCONT)
        [row] = person.answer()["result"]["dry_run"]
    assert row["estimate"]["start"] is not None, row["estimate"]["basis"]


SPEC = {
    "owner": "", "uid": 0, "script": "", "environment": "", "name": "plain", "queue": "batch", "workdir": "/",
}  # fmt: skip


def test_a_look_ahead_where_few_wait_may_take_longer():
    few, many = (look_ahead_limit(SimpleNamespace(waiting={"batch": range(n)})) for n in (100, 101))
    assert (few, many) == (5 * LOOK_AHEAD, LOOK_AHEAD)


AHEAD = """
import os, time
from nqspy.userexit import userexit


@userexit
def jobselect(request, view):
    if view.now / 1000 > time.time() + 30:  # a look ahead
        if request.name == "hang":
            while True:
                pass
        if request.name == "leave":
            os._exit(3)
        if request.name == "raise":
            raise RuntimeError(request.name)
    return None
"""


@pytest.fixture
def ahead(make_live):
    """Yield a site with one PE, held for ten minutes at most, and an exit that fails only in looks ahead."""
    live = make_live().site(ONE_QUEUE, {"evil": AHEAD})
    live.accepts_trouble = True
    live.start()
    live.set("set machine pes=1")
    holder = live.qsub("sleep 600\n", "-l", "walltime=10:00")
    live.running(holder)
    return live, holder


@pytest.mark.parametrize(
    ("fault", "message"), [("raise", "exit evil"), ("hang", ""), ("leave", "no estimate")]
)
def test_an_exit_that_does_wrong_in_a_look_ahead_alone_holds_up_nobody(ahead, fault, message):
    live, holder = ahead
    waiting = live.qsub("exit 7\n", "-N", fault, "-l", "walltime=1:00")
    assert message in live.why(waiting)["estimate"]["latest"]["basis"]
    live.run("qsub", "--dry-run", "-N", "plain", "-l", "walltime=1:00", stdin="true\n").ok()
    other = live.qsub("exit 8\n", "-N", "plain", "-l", "walltime=1:00")
    live.run("qdel", "-k", holder).ok()
    if fault != "leave":  # of an owner whose requests end the process nothing gets past the exit
        assert live.ended(waiting)["exit_status"] == 7
        assert live.ended(other)["exit_status"] == 8
        assert live.events("alarm") == [], "nothing of it happened on the site"
    assert "exits run in" in live.client.call("status")["decider"]
