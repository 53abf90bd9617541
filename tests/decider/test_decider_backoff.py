"""Who is left out, and who waits, after children were lost."""

import json

import pytest

from nqspy.decider import backoff
from nqspy.decider.backoff import Backoff, named
from nqspy.decider.heartbeat import Call
from nqspy.model.site import Site
from nqspy.userexit.call_stats import RETRY

NOW = 1_000_000
KNOWN = ["gun", "other", "third"]


def call(exit, owner="anne", seq=5):
    return Call(exit, "jobselect", seq, 1, owner)


def die(strike, *calls, now=NOW, well=True):
    """Lose a worker at each of these calls; return the exits left out at the last."""
    for each in calls:
        loss = strike.lost(each, "it crashed", KNOWN, now)
        if well:
            strike.well()
    return loss.off


def backoffs(strike):
    return [(each.exit, each.owner) for each in strike.backoffs]


@pytest.fixture
def clock(monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr(backoff.time, "monotonic", lambda: clock[0])
    return clock


def test_children_lost_on_requests_of_two_owners_within_an_hour_leave_an_exit_out(clock):
    strike = Backoff()
    first = strike.lost(call("gun"), "it crashed", KNOWN, NOW)
    assert (first.exit, first.seq, first.off) == ("gun", 5, ())
    assert [(each.exit, each.subject) for each in strike.skips] == [("gun", 5)]
    strike.well()
    clock[0] += 3601
    assert die(strike, call("gun", "ben")) == ()
    clock[0] += 3000
    assert die(strike, call("gun", "anne")) == ("gun",)
    assert strike.out.keys() == {"gun"}
    strike.forgive("gun")
    assert not strike.out
    assert not strike.skips


@pytest.mark.parametrize(("owners", "off"), [(["", ""], ("gun",)), (["", "anne"], ()), (["anne"] * 2, ())])
def test_so_do_two_on_nobodys_and_no_others(owners, off):
    assert die(Backoff(), *(call("gun", owner, None) for owner in owners)) == off


def test_from_the_second_within_an_hour_on_one_owner_waits_and_the_exit_stays(clock):
    strike = Backoff()
    die(strike, call("gun"), call("other"))
    assert not strike.backoffs
    for n in range(2, 9):
        assert die(strike, call("gun", seq=n), now=NOW + n * RETRY) == ()
        assert backoffs(strike) == [("gun", "anne")]
        assert strike.backoffs[0].at == NOW + n * RETRY
    assert die(strike, call("gun", "ben"), now=NOW + 9 * RETRY) == ("gun",)
    strike.forgive("gun")
    assert not strike.backoffs


def test_children_lost_in_a_row_come_again_slower_and_at_last_not_at_all():
    strike = Backoff()
    pauses = []
    for _ in range(backoff.GIVE_UP - 1):
        assert strike.lost(None, "SIGKILL", ["a", "b"], NOW).off == ()
        pauses.append(strike.pause())
    assert pauses[0] == pauses[1] == 0
    assert 0 < pauses[2] < pauses[3]
    assert strike.lost(call("nobody's"), "SIGKILL", ["a", "b"], NOW).off == ("a", "b")
    assert strike.pause() == 0, "without exits nothing needs to wait"


def test_one_owner_alone_has_nobody_give_up_whatever_exits_die_on_theirs():
    strike = Backoff()
    assert die(strike, *map(call, ("gun", "other", "third", "gun")), well=False) == ()
    assert backoffs(strike) == [("gun", "anne")]
    assert die(strike, call("other"), well=False) == ()
    assert backoffs(strike) == [(name, "anne") for name in KNOWN], "no exit is asked about theirs"
    assert die(strike, None, None, well=False) == ()
    assert die(strike, None, well=False) == tuple(KNOWN), "with three that are nobody's it is"


def test_it_is_remembered_as_it_was():
    strike = Backoff()
    die(
        strike,
        call("gun"),
        call("gun", seq=6),
        call("other", "ben"),
        Call("other", "shrpri", ("ben", "d"), 1),
    )
    strike.files = {"gun": "a", "other": "b"}
    later = Backoff()
    later.load(json.loads(json.dumps(strike.dump())))
    assert (later.skips, later.backoffs, later.files) == (strike.skips, strike.backoffs, strike.files)
    assert die(later, call("gun", "ben")) == ("gun",)


def test_a_file_that_is_another_one_begins_anew_unless_it_is_left_out():
    strike = Backoff()
    die(strike, call("gun"), call("gun"), call("other"), call("other"), call("third"), call("third", "ben"))
    strike.files = {"gun": "a", "other": "b", "third": "c"}
    strike.meet({"gun": "a", "other": "x", "third": "x", "new": "d"})
    assert backoffs(strike) == [("gun", "anne")]
    assert strike.out.keys() == {"third"}


def test_a_number_that_is_no_request_or_anothers_is_no_subject():
    site = Site()
    assert named(None, site) is None
    assert named(call("gun"), site).subject is None
    shares = Call("gun", "shrpri", ("anne", "d1"), 1, "anne")
    assert named(shares, site) == shares
