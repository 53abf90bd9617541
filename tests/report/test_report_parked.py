"""Requests that gave their PEs back for a while: their time without PEs is nobody's busy time."""

import pytest

from nqspy.model import events as ev
from nqspy.model.requests import Used
from nqspy.report.night import night_bounds, night_report
from nqspy.report.quotas import Period, quota_report
from nqspy.report.time_text import zone_of


def report(diary, now):
    changes = [r for r in diary.events if isinstance(r.event, ev.ShiftChanged)]
    bounds = night_bounds(changes, zone_of("Europe/Paris"), diary.at(now))
    return night_report(diary.events, diary.site, bounds, diary.at(now))


def test_while_it_is_parked_a_request_holds_no_pe(diary):
    book = diary(pes=1, d1=1)
    long, other = book.submit(-60, "d1"), book.submit(-50, "d1")
    book.night()
    book.decide(0, long, short=True)
    book.add(100, ev.Suspended(long, 1, "probe nfs", True, "nfs is broken"))
    book.add(300, ev.Resumed(long, 1, "scheduler"))
    book.end(400, long, cpu=200)
    book.decide(400, other)
    book.end(500, other, cpu=100)
    book.morning()
    data = report(book, 10 * 3600)
    assert data["busy"] == pytest.approx(200 / 400), "from 21:00:00 to 21:06:40, when nobody waited any more"


def test_an_operators_suspension_keeps_the_pe(diary):
    book = diary(pes=1, d1=1)
    long, other = book.submit(-60, "d1"), book.submit(-50, "d1")
    book.night()
    book.decide(0, long, short=True)
    book.add(100, ev.Suspended(long, 1, "olga"))
    book.add(300, ev.Resumed(long, 1, "olga"))
    book.end(400, long, cpu=200)
    book.decide(400, other)
    book.morning()
    assert report(book, 10 * 3600)["busy"] == pytest.approx(1.0)


def test_a_parked_request_does_not_make_the_night_longer(diary):
    book = diary(pes=1, d1=1)
    long = book.submit(-60, "d1")
    book.night()
    book.decide(0, long, short=True)
    book.morning()
    book.add(9 * 3600 + 1, ev.Suspended(long, 1, "shift day", True))
    book.decide(10 * 3600, short=False)
    told = report(book, 11 * 3600)
    assert told["until"].startswith("2026-03-03T06:00")
    book.add(24 * 3600, ev.Resumed(long, 1, "scheduler"))
    book.end(25 * 3600, long, cpu=3600)
    later = report(book, 26 * 3600)
    same = ("until", "requests", "ended_ok", "busy", "running", "groups", "line")
    assert {key: later[key] for key in same} == {key: told[key] for key in same}, "that is the next night's"


def parked_for_a_while(diary):
    """One that held its PE for 200 s of the 400 s from its start to its end."""
    book = diary(pes=1, d1=1)
    long = book.submit(-60, "d1")
    book.night()
    book.decide(0, long)
    book.add(100, ev.Suspended(long, 1, "probe nfs", True, "nfs is broken"))
    book.add(300, ev.Resumed(long, 1, "scheduler"))
    book.end(400, long, cpu=200)
    return book


def test_wall_time_and_the_picture_leave_out_the_time_in_which_it_is_parked(diary):
    book = parked_for_a_while(diary)
    book.morning()
    data = report(book, 10 * 3600)
    assert data["groups"][0]["wall_s"] == 200
    assert data["quarters"][0]["allocated"] == pytest.approx(200 / 900, abs=1e-3)


def test_one_that_is_parked_still_holds_nothing_by_now(diary):
    book = diary(pes=1, d1=1)
    long = book.submit(-60, "d1")
    book.night()
    book.decide(0, long)
    book.add(100, ev.Suspended(long, 1, "shift day", True))
    data = report(book, 900)
    assert data["groups"][0]["wall_s"] == 100
    assert data["quarters"][0]["allocated"] == pytest.approx(100 / 900, abs=1e-3)


def test_a_quota_is_bounded_by_the_pe_time_that_was_held_not_by_the_time_parked(diary):
    book = parked_for_a_while(diary)
    data = quota_report(book.events, book.site, Period(book.at(0), book.at(900), None, False), book.at(900))
    assert data["groups"][0]["could_s"] == 200


def test_while_its_output_is_delivered_a_request_holds_no_pe(diary):
    book = diary(pes=1, d1=1)
    long, other = book.submit(-60, "d1"), book.submit(-50, "d1")
    book.night()
    book.decide(0, long, short=True)
    book.add(100, ev.Exiting(long, 1, Used(100_000, 100_000)))
    book.end(400, long, cpu=100)
    book.decide(400, other)
    book.end(500, other, cpu=100)
    book.morning()
    assert report(book, 10 * 3600)["busy"] == pytest.approx(100 / 400)
