"""Looks ahead while exits misbehave, and while their process does not answer: the daemon goes on."""

import contextlib
import os
import signal
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
from daemon.live import ONE_QUEUE
from daemon.person import Person

from nqspy.decider import messages
from nqspy.decider.client import DeciderClient
from nqspy.decider.process import FromWorker
from nqspy.decider.worker import LOOK_AHEAD, look_ahead_limit
from nqspy.engine.inputs import Between
from nqspy.engine.look_ahead import unknown
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request, State
from nqspy.model.site import Site
from nqspy.model.specs import Ask, Spec
from nqspy.userexit.loader import Source


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


@pytest.mark.parametrize(("indices", "longer"), [(99, 5), (100, 1)])
def test_a_look_ahead_where_few_requests_and_indices_wait_may_take_longer(indices, longer):
    columns = SimpleNamespace(count=np.array([1, indices]))
    assert look_ahead_limit(SimpleNamespace(waiting={"batch": columns})) == longer * LOOK_AHEAD


class Quiet:
    """A worker that answers nothing by itself."""

    def __init__(self):
        self.orders, self.answers = [], []

    def send(self, order):
        self.orders.append(order)

    def ask(self, order):
        self.send(order)
        self.answers.append(Future())
        return self.answers[-1]

    def kill(self, why):
        """Nothing answers the daemon's last question."""


def test_a_pass_waits_for_one_estimate_at_most(tmp_path):
    site, heard = Site(), []
    client = DeciderClient(site, tmp_path, heard.append, lambda: Instant(0), heard.append)
    client.sources, worker = (Source(tmp_path / "some.py", b""),), Quiet()
    client.worker = worker
    spec = Spec("a", 1, "plain", "batch", "", "", "/", ask=Ask())
    request = Request(Seq(1), spec, "batch", State.QUEUED, Instant(0), Instant(0))
    first, given_up, last, never = (
        client.forecasts(Instant(0), Between(), (Seq(1),), request) for _ in range(4)
    )
    assert worker.orders == [], "estimates are asked at the end of the turn"
    client.ask_estimate()
    client.ask_estimate()
    site.next_seq = Seq(7)  # others were submitted
    client.ask(site, Instant(0), {})
    assert [type(each) for each in worker.orders] == [messages.AskForecasts, messages.AskPass]
    given_up(0)
    worker.answers[0].set_result(messages.forecasts_made(1, {Seq(1): unknown("so")}))
    assert first(0)[1].latest.basis == "so"
    assert heard == [FromWorker(None, None)], "wakes the engine"
    client.ask_estimate()
    assert (len(worker.orders), worker.orders[2].seqs, worker.orders[2].request.seq) == (3, (7,), 7)
    worker.answers[1].set_result(messages.forecasts_made(2, {Seq(7): unknown("later")}))
    assert last(0)[1].latest.basis == "later"
    client.close()
    assert never(60)[1].start is None


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
