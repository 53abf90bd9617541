"""Who deletes a request of his own has no failure in the night report."""

from nqspy.model import events as ev
from nqspy.report.moments import zone_of
from nqspy.report.night import night_bounds, night_report
from nqspy.report.pages import night_text


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
    assert "deleted by their owners: 2 requests" in night_text(data)
