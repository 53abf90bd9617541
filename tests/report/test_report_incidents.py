"""Incidents of a night, told with their beginnings and ends."""

from types import SimpleNamespace

import pytest
from report.conftest import NINE

from nqspy.model import events as ev
from nqspy.model.actions import ExitFailure
from nqspy.model.cause import Cause
from nqspy.model.requests import Used
from nqspy.report.departments import page_of
from nqspy.report.event_objects import event_object
from nqspy.report.incidents import IncidentLog, sentence
from nqspy.report.night_pages import night_html
from nqspy.report.pages import night_text
from nqspy.report.replay import HistoryReplay
from nqspy.report.time_text import zone_of

PARIS = zone_of("Europe/Paris")
HOUR = 3600.0


def times(entry):
    return entry["begin"][11:16], entry["end"] and entry["end"][11:16]


def at(second):
    return NINE + round(second * 1000)


def by_person(second, name):
    cause = Cause("operator", name)
    return [
        (second, ev.Suspended(1, 1, name, cause=cause)),
        (second + 5, ev.Resumed(1, 1, name, cause=cause)),
    ]


def not_started(*seqs):
    return [(100, event) for seq in seqs for event in (ev.Starting(seq, 1, (0,)), ev.Requeued(seq, 1, "no"))]


STORIES = {
    "a probe breaks and recovers once, another stays broken, one was well again before the night": (
        0,
        [(-7200, ev.ResourceChanged("old", "broken")), (-3600, ev.ResourceChanged("old", "ok")),
         (2 * HOUR, ev.ResourceChanged("nfs", "broken", "stale handle")),
         (2.5 * HOUR, ev.ResourceChanged("nfs", "broken", "still")),
         (4 * HOUR, ev.ResourceChanged("nfs", "ok")),
         (5 * HOUR, ev.ResourceChanged("disk", "broken"))],
        [("probe", "nfs", "23:00", "01:00", "resource nfs was broken: stale handle"),
         ("probe", "disk", "02:00", None, "resource disk was broken")],
    ),
    "a broken probe is told once, without its alarm, and its deletion ends the incident": (
        0,
        [(-60, ev.SettingsChanged((ev.Change("create", "probe/nfs", {"file": "/x"}),))),
         (HOUR, ev.ResourceChanged("nfs", "broken", "stale")),
         (HOUR, ev.Alarm("probe nfs", "resource nfs is broken: stale")),
         (2 * HOUR, ev.SettingsChanged((ev.Change("delete", "probe/nfs"),)))],
        [("probe", "nfs", "22:00", "23:00", "resource nfs was broken: stale")],
    ),
    "short memory lasts from high to calm": (
        0,
        [(60, ev.PressureChanged("high", text="PSI 40 %")), (660, ev.PressureChanged("calm"))],
        [("pressure", "memory", "21:01", "21:11", "memory was scarce: PSI 40 %")],
    ),
    "what swap control does to several requests is one incident": (
        2,
        [(60, ev.Suspended(1, 1, "swap")), (70, ev.Suspended(2, 1, "swap")), (300, ev.Resumed(1, 1, "swap")),
         (400, ev.Suspended(1, 1, "anne")), (600, ev.Resumed(2, 1, "swap"))],
        [("suspended", "swap", "21:01", "21:10", "2 requests were suspended by swap (1.ymp, 2.ymp)")],
    ),
    "what people do is no incident, whatever they are called": (
        1,
        [*by_person(60, "swap"), *by_person(70, "swapna"), *by_person(80, "hands"), *by_person(90, "probe"),
         (100, ev.Suspended(1, 1, "swapna"))],
        [],
    ),
    "one that ends while it is suspended ends the incident": (
        1,
        [(60, ev.Suspended(1, 1, "probe nfs")), (120, ev.Ended(1, 1, "exit", 0))],
        [("suspended", "probe nfs", "21:01", "21:02", "1 request was suspended by probe nfs (1.ymp)")],
    ),
    "requeued requests are told together, and those hours later apart": (
        3,
        [(60, ev.Requeued(1, 1, "rerun", Used())), (61, ev.Requeued(2, 1, "rerun", Used())),
         (4 * HOUR, ev.Requeued(3, 1, "rerun", Used()))],
        [("requeued", "", "21:01", "21:01", "2 requests were queued again: rerun (1.ymp, 2.ymp)"),
         ("requeued", "", "01:00", "01:00", "1 request was queued again: rerun (3.ymp)")],
    ),
    "the time in which nothing could be written is told as a span": (
        0,
        [(1200, ev.Alarm("store", "nothing was changed for 600 s: disk full", at(600)))],
        [("store", "store", "21:10", "21:20", "nothing was changed for 600 s: disk full")],
    ),
    "a restart is told with the last sign of life": (
        0,
        [(5 * HOUR, ev.DaemonStarted(at(5 * HOUR), True)),
         (6 * HOUR, ev.DaemonStarted(at(5.5 * HOUR), False))],
        [("daemon", "nqsd", "02:00", "02:00", "nqsd was stopped and was started again"),
         ("daemon", "nqsd", "02:30", "03:00", "nqsd ended unexpectedly and was started again")],
    ),
    "a shift that failed lasts until one is entered, and its alarm is told with it": (
        0,
        [(HOUR, ev.ShiftFailed("extra", "shift extra could not be entered: no such queue")),
         (HOUR, ev.Alarm("shift extra", "no such queue")),
         (2 * HOUR, ev.ShiftChanged("night", "night", None, True))],
        [("shift", "extra", "22:00", "23:00", "shift extra could not be entered: no such queue"),
         ("switched", "night", "23:00", "23:00", "shift night was put in force by hand")],
    ),
    "lost requests are told with the reason": (
        1,
        [(60, ev.Ended(1, 1, "lost", None, None, Used(), "its end was not seen")),
         (60, ev.Alarm("hands", "the end of request 1.ymp was lost; it is ended"))],
        [("lost", "", "21:01", "21:01", "1 request was lost: its end was not seen (1.ymp)")],
    ),
    "what is held because it could not start was not queued again": (
        -3,
        [*not_started(1), (100, ev.Held((1,), "u", "hands", "no")),
         *not_started(2), (100, ev.Held((2,), "u", "hands", "no")), *not_started(3)],
        [("held", "nqsd", "21:01", "21:01", "2 requests were held by nqsd: no (1.ymp, 2.ymp)"),
         ("requeued", "", "21:01", "21:01", "1 request was queued again: no (3.ymp)")],
    ),
}  # fmt: skip
"""How many requests run from the beginning on (less than 0: they wait), what happens, what is told."""


@pytest.mark.parametrize("name", STORIES)
def test_what_happened_is_told_as(diary, name):
    requests, events, told = STORIES[name]
    book = diary(pes=4, d1=1)
    seqs = [book.submit(-60, "d1") for _ in range(abs(requests))]
    early = [each for each in events if each[0] < 0]
    for each in sorted(early, key=lambda each: each[0]):
        book.add(*each)
    book.night()
    book.decide(0, *(seqs if requests > 0 else ()))
    for each in events[len(early) :]:
        book.add(*each)
    found = [(each["kind"], each["who"], *times(each), sentence(each)) for each in book.report()["story"]]
    assert sorted(found) == sorted(told)


def test_kinds_of_another_version_are_told_by_their_attributes():
    story = IncidentLog(HistoryReplay({}))
    story.add(ev.Recorded(9, 5, SimpleNamespace(kind="probe", name="nfs", state="broken", text="stale")))
    story.add(ev.Recorded(10, 6, ev.Requeued(7, 1, "lost")))
    probe, requeued = story.objects(0, "ymp", PARIS)
    assert (probe["who"], probe["text"]) == ("nfs", "stale")
    assert requeued["requests"] == {"": ["7.ymp"]}, "one that is not known has no group"


def test_one_held_at_its_submission_is_told_as_such(diary):
    book = diary(d1=1)
    book.submit(-60, "d1", state="held")
    book.night()
    [waiting] = book.report()["waiting"]
    assert waiting["reason"]["code"] == "HELD"


def test_exits_that_misbehaved_are_told_with_count_times_and_requests(diary):
    """Failures of passes and those that alarms carry count together, those of the evening not."""
    book = diary(pes=4, d1=1, d2=1)
    one, two = book.submit(-7200, "d1"), book.submit(-7200, "d2")
    book.add(-60, ev.Decided(1, (), (ExitFailure("loop", one, "yesterday"),)))
    book.night()
    failures = tuple(ExitFailure("loop", seq, f"ran beyond its budget on {seq}") for seq in (one, two))
    book.add(60, ev.Decided(1, (), failures))
    book.add(60, ev.Alarm("exit loop", "exit loop failed on 1.ymp: ran beyond its budget"))
    book.add(120, ev.Alarm("exit loop", "no door", failures=(ExitFailure("loop", None, "no door"),)))
    lost = ExitFailure("loop", two, "jobselect ended the process of the exits", off=True)
    book.add(7200, ev.Alarm("exit loop", "exit loop on 2.ymp: it ended", failures=(lost,)))
    book.add(7200, ev.ExitOff("loop", "it ended"))
    data = book.report()
    [exit] = data["exits"]
    assert (exit["exit"], exit["count"], exit["text"]) == ("loop", 4, lost.text)
    assert [each[11:16] for each in (exit["first"], exit["last"], exit["off"])] == ["21:01", "23:00", "23:00"]
    assert exit["requests"] == {"d1": ["1.ymp"], "d2": ["2.ymp"]}
    assert [each["kind"] for each in data["story"]] == ["exit_off"], "its alarms are told with it"
    assert "loop" in night_text(data)


def test_new_kinds_are_told_by_the_journal_too(diary):
    book = diary()
    book.add(0, ev.DaemonStarted(book.at(-60), False))
    own = ((1, "LIMIT", "q", "x"),)
    book.add(1, ev.Reported("2026-03-02", 1, book.at(0), ("night.json",), 2, ((1, Used(5)),), own))
    started, reported = (event_object(each, "ymp", PARIS) for each in book.events)
    assert (started["last"], started["clean"]) == ("2026-03-02T20:59:00.000+01:00", False)
    assert (reported["day"], reported["mails"], reported["taken"]) == (
        "2026-03-02", 2, "2026-03-02T21:00:00.000+01:00",
    )  # fmt: skip
    assert reported["own"] == [{"request": "1.ymp", "code": "LIMIT", "who": "q", "text": "x"}]
    assert reported["samples"][0]["used"]["cpu_s"] == 0.005
    assert book.site.reported == "2026-03-02"


# ---------------------------------------------------------------- a department's page
def a_mixed_night(diary):
    book = diary(pes=4, physics=1, chemistry=2)
    mine = [book.submit(-60, "physics", "anne", name=f"mine{n}") for n in range(4)]
    theirs = [book.submit(-60, "chemistry", "ben", name=f"theirs{n}") for n in range(4)]
    book.night()
    book.decide(0, mine[0], theirs[0], mine[1], theirs[1], short=True)
    book.add(30, ev.Requeued(theirs[1], 1, "rerun by ben", Used()))
    book.add(31, ev.Alarm("chemistry", "something about chemistry"))
    book.add(32, ev.Decided(1, (), (ExitFailure("loop", theirs[2], "chemistry again"),), True))
    book.add(33, ev.ShiftFailed("extra", "there is no group chemistry"))
    book.add(40, ev.DaemonStarted(book.at(35), True))
    book.end(100, mine[0], cpu=50, status=2)
    book.end(110, theirs[0], cpu=60, status=3)
    book.morning()
    return book.report(9 * HOUR + 1)


def test_a_departments_page_tells_of_no_other_department(diary):
    data = a_mixed_night(diary)
    page = page_of(data, "physics")
    for text in (night_html(page), night_text(page), repr(page)):
        for word in ("chemistry", "ben", "theirs", "5.ymp", "6.ymp", "7.ymp"):
            assert word not in text, word
        assert "anne" in text
    assert (page["requests"], page["ended_ok"]) == (4, 0)
    assert [each["why"] for each in page["failed"]] == ["it ended with status 2"]
    assert [each["kind"] for each in page["story"]] == ["shift", "daemon"]
    assert page["line"].startswith("night: 4 requests: 0 ended well, ")
    assert [each["name"] for each in page["outlook"]["departments"]] == ["physics"]


def test_the_departments_pages_together_tell_of_everything(diary):
    data = a_mixed_night(diary)
    pages = [page_of(data, each["name"]) for each in data["groups"]]
    for key in ("failed", "waiting", "running"):
        assert sum(len(page[key]) for page in pages) == len(data[key])
    with pytest.raises(KeyError):
        page_of(data, "nobody")


def test_the_machine_of_a_new_home_is_no_changed_one(diary):
    book = diary(d1=1)
    book.events.clear()
    found = ev.MachineFound((0, 1), 1 << 30, "ymp", "Europe/Paris")
    book.add(60, found)
    book.add(120, found)
    assert [event["n"] for event in book.report()["incidents"]] == [2]
    assert [times(each) for each in book.report()["story"]] == [("21:02", "21:02")]


def test_no_line_of_the_report_is_wider_than_a_terminal(diary):
    book = diary(d1=3, d2=1)
    book.night()
    for n in range(30):
        seq = book.submit(10 * n, "d1", name=f"a_rather_long_name_of_a_request_{n}")
        book.decide(10 * n, seq)
        book.add(10 * n + 5, ev.Requeued(seq, 1, "cannot change to the folder " + "and/so/on/ " * 12))
    text = night_text(book.report())
    assert not [line for line in text.splitlines() if len(line) > 80]
    assert "and/so/on/" in text
