"""Requests that gave their PEs back for a while, or that their owners withdrew, in the night's report."""

from datetime import date

import pytest
from engine.harness import ANNE, ROOT, Centre, moment

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.accounts import Account
from nqspy.model.requests import Used
from nqspy.report.night import Bounds, night_report
from nqspy.report.pages import night_text
from nqspy.report.quotas import Period, quota_report

HOUR = 3600


@pytest.mark.parametrize(
    ("stopped", "goes_on", "busy"),
    [
        (ev.Suspended(1, 1, "probe nfs", True, "nfs is broken"), ev.Resumed(1, 1, "scheduler"), 200 / 400),
        (ev.Suspended(1, 1, "olga"), ev.Resumed(1, 1, "olga"), 1.0),
        (ev.Exiting(1, 1, Used(100_000, 100_000)), None, 100 / 400),
    ],
    ids=["parked", "suspended by an operator, it keeps its PE", "its output is delivered"],
)
def test_a_pe_is_held_by_what_is_not_parked(evening, stopped, goes_on, busy):
    book, long, other = evening(2)
    book.decide(0, long, short=True)
    book.add(100, stopped)
    if goes_on is not None:
        book.add(300, goes_on)
    book.end(400, long, cpu=200)
    book.decide(400, other)
    book.end(500, other, cpu=100)
    book.morning()
    data = book.report(10 * HOUR)
    assert data["busy"] == pytest.approx(busy), "from 21:00:00 to 21:06:40, when nobody waited any more"


def test_a_parked_request_does_not_make_the_night_longer(evening):
    book, long = evening(1)
    book.decide(0, long, short=True)
    book.morning()
    book.add(9 * 3600 + 1, ev.Suspended(long, 1, "shift day", True))
    book.decide(10 * HOUR, short=False)
    told = book.report(11 * 3600)
    assert told["until"].startswith("2026-03-03T06:00")
    book.add(24 * 3600, ev.Resumed(long, 1, "scheduler"))
    book.end(25 * 3600, long, cpu=3600)
    later = book.report(26 * 3600)
    same = ("until", "requests", "ended_ok", "busy", "running", "groups", "line")
    assert {key: later[key] for key in same} == {key: told[key] for key in same}, "that is the next night's"


@pytest.fixture
def book(evening):
    """Return a diary with a request that held its PE for 200 s of the 400 s from its start to its end."""
    book, long = evening(1)
    book.decide(0, long)
    book.add(100, ev.Suspended(long, 1, "probe nfs", True, "nfs is broken"))
    book.add(300, ev.Resumed(long, 1, "scheduler"))
    book.end(400, long, cpu=200)
    return book


def test_wall_time_and_the_picture_leave_out_the_time_in_which_it_is_parked(book):
    book.morning()
    data = book.report(10 * HOUR)
    assert data["groups"][0]["wall_s"] == 200
    assert data["quarters"][0]["allocated"] == pytest.approx(200 / 900, abs=1e-3)


def test_one_that_is_parked_still_holds_nothing_by_now(evening):
    book, long = evening(1)
    book.decide(0, long)
    book.add(100, ev.Suspended(long, 1, "shift day", True))
    data = book.report(900)
    assert data["groups"][0]["wall_s"] == 100
    assert data["quarters"][0]["allocated"] == pytest.approx(100 / 900, abs=1e-3)


def test_a_quota_is_bounded_by_the_pe_time_that_was_held_not_by_the_time_parked(book):
    data = quota_report(book.events, book.site, Period(book.at(0), book.at(900), None, False), book.at(900))
    assert data["groups"][0]["could_s"] == 200


# ---------------------------------------------------------------- withdrawn
def test_what_its_owner_deleted_is_no_failure(diary):
    book = diary(pes=2, d1=1)
    mine, theirs, running, killed = (book.submit(-60, "d1") for _ in range(4))
    book.night()
    book.add(10, ev.Deleted(mine, "anne"))
    book.add(20, ev.Deleted(theirs, "olga"))
    for seq, who in ((running, "anne"), (killed, "olga")):
        book.decide(30, seq)
        book.add(40, ev.Deleting(seq, 1, who))
        book.add(50, ev.Ended(seq, 1, "deleted", None, 15))
    data = book.report(300)
    assert [each["id"] for each in data["failed"]] == [f"{theirs}.ymp", f"{killed}.ymp"]
    assert (data["withdrawn"], data["groups"][0]["withdrawn"], data["groups"][0]["failed"]) == (2, 2, 2)
    assert data["withdrawn"] == 2
    assert "withdrawn" in night_text(data)


def test_work_of_a_moment_that_was_held_and_deleted_makes_no_quota_deviation(diary):
    book = diary(pes=1, d1=60, d2=40)
    book.site.accounts["u:d2:anne"] = Account()  # she has had work in d2 that could start
    book.night()
    runs, waits = book.submit(1, "d1"), book.submit(2, "d1")
    book.decide(2, runs)
    brief = book.submit(3600, "d2")
    book.add(3605, ev.Held((brief,), "u", "anne"))
    book.add(3606, ev.Deleted(brief, "anne"))
    book.add(7200, ev.Ended(runs, 1, "exit", 0, used=Used(7_198_000, 7_198_000)))
    book.add(7201, ev.Deleted(waits, "anne"))
    data = book.report(7300)
    assert data["deviation"] < 0.1
    assert {row["name"]: round(row["deviation"]) for row in data["groups"]} == {"d1": 0, "d2": 0}
    period = Period(book.at(0), book.at(7300), None, True)
    assert quota_report(book.events, book.site, period, book.at(7300))["deviation"] < 0.1


def test_indices_that_are_deleted_before_they_began_count_one_by_one():
    centre = Centre(pes=2, length=60)
    centre.submit("anne array=1-6", "anne array=1-4")
    centre.ask(cm.Delete(("1[5-6]",)), ROOT)
    centre.ask(cm.Delete(("1[4]", "2[]")), ANNE)
    centre.later(hours=1)
    bounds = Bounds(date(2026, 3, 2), moment("2026-03-02T20:00:00+01:00"), None, None)
    data = night_report(centre.journal.events(), centre.site, bounds, centre.sim.now)
    (row,) = data["groups"]
    assert [row[name] for name in ("requests", "ended_ok", "failed", "withdrawn")] == [10, 3, 2, 5]
    assert row["ends"] == {"deleted": 7}
    assert [(each["id"], each["text"]) for each in data["failed"]] == [("1[].sim", "deleted by root")]
