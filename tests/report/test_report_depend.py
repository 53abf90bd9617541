"""Requests that wait for others, in the night's report."""

from nqspy.model import events as ev
from nqspy.model.requests import Dependency
from nqspy.report.night import night_bounds, night_report
from nqspy.report.time_text import zone_of

PARIS = zone_of("Europe/Paris")


def report(book, now):
    return night_report(
        book.events, book.site, night_bounds(book.events, PARIS, book.at(now), None), book.at(now)
    )


def test_what_waits_for_others_is_not_passed_over_and_is_told_with_its_reason(diary):
    book = diary(pes=1, d1=1)
    first = book.submit(-60, "d1")
    second = book.submit(-50, "d1", after=(Dependency(first),))
    third = book.submit(-40, "d1")
    fourth = book.submit(-30, "d1", after=(Dependency(second),))
    book.night()
    book.decide(0, first)
    book.end(100, first, cpu=100)
    book.add(100, ev.DependencyMet((second,), first, ("ok", "any", "start"), "it ended"))
    book.decide(100, second)
    book.end(200, second, cpu=100, status=1)
    book.add(200, ev.DependencyFailed((fourth,), second, ("ok",), "it failed"))
    book.decide(200, third)
    book.end(300, third, cpu=100)
    book.morning()
    data = report(book, 9 * 3600 + 60)
    assert "order kept" in data["line"]
    [waits] = data["waiting"]
    assert (waits["id"], waits["reason"]["code"]) == ("4.ymp", "DEPENDENCY")
