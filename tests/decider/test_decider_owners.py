"""Owners whose requests end the process of the exits: nobody alone has an exit left out, or gets past one."""

import json
import os
import pwd

import pytest
from daemon.live import ONE_QUEUE, until
from daemon.person import submit_as

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may speak as other users")
ANNE = 1
"""A user that each Debian has."""
ANNE_NAME = pwd.getpwuid(ANNE).pw_name

RULE = """\
import os

from nqspy.userexit import refuse, userexit


@userexit
def jobselect(request):
    if request.name == "raise":
        raise ValueError("no")
    if request.name == "die":
        os._exit(3)
    return refuse("the site's rule") if request.name == "bad" else None
"""
DOOR = """\
import os

from nqspy.userexit import refuse, userexit


@userexit
def submit(request):
    if request.name == "die":
        os._exit(3)
    return refuse("no bad names") if request.name == "bad" else None
"""
RESTS = f"on requests of {ANNE_NAME} that ended its process; it is called for {ANNE_NAME} again at"


@pytest.fixture
def make(make_wild):
    """Return a function that makes a daemon with exits: ``make({"rule": RULE})``."""
    return lambda exits: make_wild().site(ONE_QUEUE, exits).start()


def anne(live, name, dry_run=False):
    """Submit a request as anne; return its identifier."""
    return submit_as(live, ANNE, name, dry_run)


def reason(live, id):
    return str((live.job(id)["reason"] or {}).get("text", ""))


def goes_on(live, bad):
    """Assert that other requests are decided, and refused ones stay so."""
    assert live.ended(live.submit("true", name="plain"))["exit_status"] == 0
    assert reason(live, bad) == "the site's rule"
    assert not live.events("exit_off")


def deaths(live):
    return [each["text"] for each in live.events("alarm") if "ended the process" in each["text"]]


def test_after_another_failure_one_request_takes_one_process_only(make):
    live = make({"rule": RULE})
    bad, raising = live.submit("true", name="bad"), live.submit("true", name="raise")
    live.until(raising, lambda job: "ValueError" in str(job["reason"]), "be failed on")
    until(lambda: (live.home / "exits.memory").exists(), "the failure is remembered")
    dying = live.submit("true", name="die")
    until(lambda: live.losses() == 1, "the first loss")
    goes_on(live, bad)
    goes_on(live, bad)
    assert live.losses() == 1
    assert "ended the process" in reason(live, dying)
    assert "ValueError" in reason(live, raising)


@ROOT_ONLY
@pytest.mark.privileged
def test_one_owner_alone_has_no_exit_left_out_and_waits_instead(make):
    live = make({"rule": RULE})
    bad = live.submit("true", name="bad")
    first = anne(live, "die")
    until(lambda: live.losses() == 1, "the first loss")
    goes_on(live, bad)
    second = anne(live, "die")
    until(lambda: live.losses() == 2, "the second loss")
    later = [anne(live, name) for name in ("die", "plain")]
    for id in (first, second, *later):
        live.until(id, lambda job: RESTS in str(job["reason"]), "wait")
    assert RESTS in live.run("qstat", "--why", later[0]).ok().out, "nor in a look ahead"
    goes_on(live, bad)
    assert live.losses() == 2
    assert "for 5 minutes" in deaths(live)[1]
    live.kill()
    live.start()
    goes_on(live, bad)
    last = anne(live, "die")
    live.until(last, lambda job: RESTS in str(job["reason"]), "wait after a restart too")
    assert live.losses() == 0
    for id in (first, second, later[0], last):
        live.client.delete(id)
    live.qmgr("reload exits").ok()
    until(lambda: live.events("starting", later[1]), "it is asked about again")


@ROOT_ONLY
@pytest.mark.privileged
def test_who_ends_it_by_submitting_is_answered_by_the_stock_rule_and_others_by_the_exit(make):
    live = make({"door": DOOR})
    for lost in (1, 2):
        anne(live, "die")
        until(lambda lost=lost: live.losses() == lost, "a loss")
        live.run("qsub", "-N", "bad", stdin="true\n").refused("no bad names")
    for name in ("die", "bad"):
        anne(live, name)
    live.run("qsub", "-N", "bad", stdin="true\n").refused("no bad names")
    assert live.losses() == 2
    assert not live.events("exit_off")
    assert len(deaths(live)) == 2
    assert not any("in time" in each["text"] for each in live.events("alarm")), "it ended, it was not late"


@ROOT_ONLY
@pytest.mark.privileged
def test_what_was_never_submitted_keeps_nobodys_next_request_back(make):
    live = make({"rule": RULE})
    anne(live, "die", dry_run=True)
    until(lambda: live.losses() == 1, "the look ahead ends it")
    assert live.ended(live.submit("true", name="plain"))["exit_status"] == 0
    kept = json.loads((live.home / "exits.strikes").read_text())
    assert kept["spares"] == []
    assert [owner for _, owner in kept["died"]["rule"]] == [ANNE_NAME]
