"""The night report on journals written by hand, whose numbers can be computed on paper."""

from datetime import date

import pytest

from nqspy.model import events as ev
from nqspy.model.configure import copy_of
from nqspy.model.machine import Found
from nqspy.model.reasons import ReasonCode, quoted
from nqspy.model.requests import Used
from nqspy.model.site import Site
from nqspy.report.night import night_bounds
from nqspy.report.pages import night_text
from nqspy.report.time_text import zone_of

PARIS = zone_of("Europe/Paris")
HOUR = 3600.0


def test_the_one_line_is_what_one_computes_by_hand(diary):
    """Two departments with equal shares on two PEs; the executor is 10 s late with the second request."""
    book = diary(pes=2, d1=1, d2=1)
    one, two, three = (book.submit(-1800, "d1", "anne") for _ in range(3))
    four, five = (book.submit(-1700, "d2", "ben") for _ in range(2))
    book.night()
    book.decide(0, one, four, short=True)
    book.end(100, one, cpu=90)
    book.decide(100, two, short=True, started=110)
    book.end(110, four, cpu=110)
    book.decide(110, five, short=True)
    book.end(210, two, cpu=95)
    book.decide(210, three, short=False)
    book.end(220, five, cpu=100)
    book.end(270, three, cpu=60)
    book.morning()
    data = book.report(9 * HOUR + 60)
    # PE time from 0 to 210 s: 100 + 110 + 100 (from 110 on) + 100 of 420.
    assert data["busy"] == pytest.approx(410 / 420)
    assert data["cpu_busy"] == pytest.approx((90 + 110 + 95 + 100 * 100 / 110) / 420)
    assert data["deviation"] == pytest.approx(100 * (252.5 - 245) / 455)
    assert data["line"] == (
        "night: 5 requests: 5 ended well, 0 failed, 0 waiting; busy 97.6 %, "
        "largest quota deviation 1.6 points, order kept"
    )
    assert (data["from"], data["until"]) == ("2026-03-02T21:00:00.000+01:00", "2026-03-03T06:00:00.000+01:00")
    assert not data["ongoing"]
    first, second = data["groups"]
    assert (first["name"], first["cpu_s"]) == ("d1", 245.0)
    assert first["part"] == pytest.approx(245 / 455), "of all that was charged"
    assert first["share"] == pytest.approx((405 / 2 + 50) / 455), "alone for the last 50 s"
    assert first["deviation"] == pytest.approx(100 * (first["part"] - first["share"]))
    assert (first["requests"], first["ended_ok"], first["failed"], first["waiting"]) == (3, 3, 0, 0)
    assert second["cpu_part"] == pytest.approx(210 / 455)


def test_use_between_two_samples_is_taken_as_linear(diary):
    book = diary(pes=2, d1=3, d2=1)
    long, *rest = (book.submit(-60, "d1") for _ in range(3))
    short, last = book.submit(-60, "d2"), book.submit(-60, "d2")
    book.night()
    book.decide(0, long, short, short=True)
    book.end(40, short, cpu=40)
    book.decide(40, last, short=True, samples=[(long, Used(30_000))])
    book.end(60, last, cpu=20)
    book.end(80, long, cpu=80)
    data = book.report(100)
    # d1 had work all the time and got 80 of 140 s; d2 had until 60 s, while 65 + 60 s were used.
    first, second = data["groups"]
    assert first["part"] == pytest.approx(80 / 140)
    assert second["part"] == pytest.approx(60 / 140)
    assert second["share"] == pytest.approx((30 + 40 + 25 + 20) / 4 / 140), "the other at 1.25"
    assert data["deviation"] == pytest.approx(max(abs(first["deviation"]), abs(second["deviation"])))
    assert len(rest) == len(data["waiting"]) == 2


def test_pes_count_as_allocated_and_cpus_as_busy(evening):
    book, *requests = evening(5, pes=4, cpus=2)
    book.decide(0, *requests[:4], short=True)
    for seq in requests[:3]:
        book.end(100, seq, cpu=50)
    book.end(150, requests[3], cpu=60)
    book.decide(150, requests[4], short=False)
    data = book.report(200)
    # Four PEs on two CPUs: 100 s with all of them held, then 50 s with one.
    assert data["busy"] == pytest.approx((4 * 100 + 50) / (4 * 150))
    assert data["cpu_busy"] == pytest.approx((3 * 50 + 60) / (2 * 150))
    quarter = data["quarters"][0]
    assert quarter["allocated"] == pytest.approx((4 * 100 + 50 + 50) / (4 * 200), abs=0.001)
    assert quarter["used"] == pytest.approx((3 * 50 + 60) / (2 * 200), abs=0.001)


def test_a_request_that_waits_for_something_else_does_not_count_as_short_of_pes(evening):
    book, one, two = evening(2, pes=2)
    book.decide(0, one, short=False)
    book.end(100, one, cpu=100)
    book.decide(100, two, short=False)
    book.end(200, two, cpu=100)
    data = book.report(300)
    assert data["busy"] is None


def test_a_short_moment_ends_when_the_last_waiting_request_is_deleted(evening):
    book, one, two = evening(2)
    book.decide(0, one, short=True)
    book.add(50, ev.Deleted(two, "olga"))
    book.end(100, one, cpu=100)
    data = book.report(300)
    assert (data["busy_until"], data["busy"]) == ("2026-03-02T21:00:50.000+01:00", 1.0)
    assert [(each["id"], each["end_reason"]) for each in data["failed"]] == [("2.ymp", "deleted")]


# ---------------------------------------------------------------- the requests
def test_failed_waiting_and_held_requests_are_named(diary):
    book = diary(pes=2, d1=1)
    bad, killed, held, late = (book.submit(-60, "d1", name=f"j{i}") for i in range(4))
    book.add(-30, ev.Held((held,), "o", "op", "wait for the tapes"))
    book.night()
    book.decide(0, bad, killed)
    book.end(10, bad, cpu=1, status=3)
    book.end(20, killed, cpu=1, status=None, reason="cpu_limit")
    why = {late: quoted(ReasonCode.LIMIT, "queue night", "run limit 2 reached")}
    data = book.report(30, why=lambda seq, queue: why.get(seq))
    assert data["ongoing"]
    assert [(e["id"], e["name"], e["end_reason"], e["exit_status"]) for e in data["failed"]] == [
        ("1.ymp", "j0", "exit", 3),
        ("2.ymp", "j1", "cpu_limit", None),
    ]
    assert [(e["id"], e["state"], e["reason"]["text"]) for e in data["waiting"]] == [
        ("3.ymp", "held", "wait for the tapes"),
        ("4.ymp", "queued", "run limit 2 reached"),
    ]
    assert (data["requests"], data["ended_ok"]) == (4, 0)
    assert data["groups"][0]["failed"] == 2
    text = night_text(data)
    assert all(words in text for words in ("1.ymp", "j0", "wait for the tapes", "run limit 2 reached"))


def test_only_the_nights_own_requests_are_counted(diary):
    book = diary(pes=2, d1=1)
    early = book.submit(-600, "d1")
    book.decide(-500, early)
    book.end(-400, early, cpu=90)
    over = book.submit(-300, "d1")
    book.decide(-100, over)
    book.night()
    book.end(100, over, cpu=200)
    book.morning()
    book.submit(9 * HOUR + 10, "d1")
    data = book.report(10 * HOUR)
    assert (data["requests"], data["ended_ok"], data["waiting"]) == (1, 1, [])
    # Half of what it used falls into the night: it ran from -100 to 100 s.
    assert data["groups"][0]["cpu_s"] == pytest.approx(100.0)


def test_the_night_lasts_until_its_last_running_request_has_ended(evening):
    book, one, two = evening(2)
    book.decide(0, one, short=True)
    book.morning()
    book.end(9 * HOUR + 600, one, cpu=100)
    book.decide(9 * HOUR + 600, two, short=False)
    going = book.report(9 * HOUR + 700)
    assert going["ongoing"]
    assert [each["id"] for each in going["running"]] == ["2.ymp"]
    book.end(9 * HOUR + 900, two, cpu=100)
    other = book.submit(11 * HOUR, "d1")
    book.decide(11 * HOUR, other)
    book.end(12 * HOUR, other, cpu=1)
    data = book.report(12 * HOUR)
    assert (data["requests"], data["ended_ok"]) == (2, 2)
    assert data["until"] == "2026-03-03T06:15:00.000+01:00"


def test_a_requeued_request_holds_its_pe_in_both_attempts(evening):
    book, one, two = evening(2)
    book.decide(0, one, short=True)
    book.add(40, ev.Requeued(one, 1, "lost with the machine", Used(30_000)))
    book.decide(50, one, short=True)
    book.end(100, one, cpu=50)
    book.decide(100, two, short=False)
    data = book.report(120)
    assert (data["busy"], data["groups"][0]["cpu_s"]) == (pytest.approx(0.9), pytest.approx(80.0))
    assert [each["kind"] for each in data["incidents"]] == ["requeued"]
    assert data["order_kept"]


def test_alarms_restarts_and_failed_shifts_are_incidents(diary):
    book = diary(pes=2, d1=1)
    book.add(-600, ev.MachineFound((0, 1), 0, "ymp", "Europe/Paris"))
    book.night()
    book.add(10, ev.Alarm("exit dependency", "it failed"))
    book.add(20, ev.MachineFound((0, 1), 0, "ymp", "Europe/Paris"))
    book.add(30, ev.ShiftFailed("report", "no such queue"))
    data = book.report(60, clock="x360 from 20:55")
    assert [each["kind"] for each in data["incidents"]] == ["alarm", "machine_found", "shift_failed"]
    text = night_text(data)
    assert "it failed" in text
    assert "has changed" in text
    assert "clock: x360 from 20:55" in text


def test_without_departments_there_is_no_quota_to_deviate_from(diary):
    book = diary(pes=1)
    one = book.submit(0, "default")
    book.night(10)
    book.decide(20, one)
    book.end(30, one, cpu=5)
    data = book.report(40)
    told = ("requests", "ended_ok", "failed", "waiting", "busy", "deviation", "order_kept")
    assert [data[name] for name in told] == [1, 1, [], [], None, None, True]
    assert data["groups"][0]["share"] is None


# ---------------------------------------------------------------- which night
def shifts(book, *pairs):
    former = None
    for second, name in pairs:
        book.add(second, ev.ShiftChanged(name, former, None))
        former = name


def test_the_latest_night_is_the_shifts_own_time(diary):
    book = diary()
    shifts(book, (-86400, "night"), (-15 * HOUR, "report"), (0, "night"), (9 * HOUR, "report"))
    latest = night_bounds(book.events, PARIS, book.at(12 * HOUR))
    assert (latest.day, latest.start, latest.end) == (date(2026, 3, 2), book.at(0), book.at(9 * HOUR))
    former = night_bounds(book.events, PARIS, book.at(12 * HOUR), date(2026, 3, 1))
    assert (former.start, former.end) == (book.at(-86400), book.at(-15 * HOUR))
    assert night_bounds(book.events[:3], PARIS, book.at(10)).end is None


@pytest.mark.parametrize(
    ("switches", "day", "end"),
    [
        ([(0, "night"), (HOUR, "day"), (2 * HOUR, "night"), (9 * HOUR, "report")], None, 9 * HOUR),
        ([(0, "night"), (57 * HOUR, "report")], date(2026, 3, 3), 57 * HOUR),
    ],
    ids=["interrupted by hand", "each day of a week-end"],
)
def test_a_night_is_the_shifts_whole_time(diary, switches, day, end):
    book = diary()
    shifts(book, *switches)
    bounds = night_bounds(book.events, PARIS, book.at(60 * HOUR), day)
    assert (bounds.start, bounds.end) == (book.at(0), book.at(end))


def test_a_night_that_lasts_is_not_the_night_of_a_day_to_come(diary):
    book = diary()
    shifts(book, (0, "night"))
    asked = night_bounds(book.events, PARIS, book.at(HOUR), date(2030, 1, 1))
    assert (asked.day, asked.shift) == (date(2030, 1, 1), None)
    assert asked.start > book.at(HOUR)
    assert night_bounds(book.events, PARIS, book.at(HOUR), date(2026, 3, 2)).shift == "night"
    assert night_bounds(book.events, PARIS, book.at(40 * HOUR), date(2026, 3, 3)).start == book.at(0)


def test_without_a_night_shift_it_goes_from_noon_to_noon(diary):
    book = diary()
    chosen = night_bounds((), PARIS, book.at(40 * HOUR), date(2026, 3, 2))
    assert (chosen.start, chosen.end, chosen.shift) == (book.at(-9 * HOUR), book.at(15 * HOUR), None)
    latest = night_bounds((), PARIS, book.at(18 * HOUR))
    assert (latest.start, latest.end) == (book.at(-9 * HOUR), None)


def test_what_there_was_is_what_there_was_at_each_moment(diary):
    """Two PEs for a hundred seconds, then four, of which two are held all the time."""
    book = diary(pes=2)
    book.site.found = Found((0, 1, 2, 3))
    before = Site(copy_of(book.site.settings), book.site.found, "ymp", "Europe/Paris")
    first = book.submit(-60, "d1", pes=2)
    book.night()
    book.decide(0, first, short=True)
    book.end(100, first, cpu=200)
    book.add(100, ev.SettingsChanged((ev.Change("set", "machine/pes", 4),)))
    second, third = (book.submit(100, "d1", pes=pes) for pes in (2, 4))
    book.decide(100, second, short=True)
    book.end(200, second, cpu=200)
    book.decide(200, third, short=False)
    data = book.report(200, before=before)
    assert data["busy"] == pytest.approx((200 + 200) / (200 + 400))
    assert book.report(200)["busy"] == pytest.approx(400 / 800), "of a journal whose beginning is not known"
