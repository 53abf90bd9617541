"""Who deletes a request of his own has no failure in the night report."""

from datetime import date

from engine.harness import ANNE, ROOT, Centre, moment

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.accounts import Account
from nqspy.model.requests import Used
from nqspy.report.night import Bounds, night_bounds, night_report
from nqspy.report.pages import night_text
from nqspy.report.quotas import Period, quota_report
from nqspy.report.time_text import zone_of


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
    bounds = night_bounds(book.events, zone_of("Europe/Paris"), book.at(300))
    data = night_report(book.events, book.site, bounds, book.at(300))
    assert [each["id"] for each in data["failed"]] == [f"{theirs}.ymp", f"{killed}.ymp"]
    assert (data["withdrawn"], data["groups"][0]["withdrawn"], data["groups"][0]["failed"]) == (2, 2, 2)
    assert "withdrawn: 2," in night_text(data)


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
    bounds = night_bounds(book.events, zone_of("Europe/Paris"), book.at(7300))
    data = night_report(book.events, book.site, bounds, book.at(7300))
    assert data["deviation"] < 0.1
    assert {row["name"]: round(row["deviation"]) for row in data["groups"]} == {"d1": 0, "d2": 0}
    quota = quota_report(
        book.events, book.site, Period(bounds.start, book.at(7300), None, True), book.at(7300)
    )
    assert quota["deviation"] < 0.1


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
