"""Looks ahead while exits misbehave, and while their process does not answer: the daemon goes on."""

import contextlib
import os
import signal

import pytest
from daemon.person import Person
from decider.wild import Wild


@pytest.fixture
def wild(tmp_path):
    home = Wild(tmp_path / "home", tmp_path / "work").begin()
    yield home
    home.close()


def test_a_dry_run_keeps_nobody_waiting_while_the_process_stands_still(wild):
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
