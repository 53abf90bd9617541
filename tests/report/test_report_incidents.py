"""Incidents of a night, told with their beginnings and ends; those of probes and swap control too."""

from types import SimpleNamespace

import pytest

from nqspy.model import events as ev
from nqspy.model.actions import ExitFailure
from nqspy.model.cause import Cause
from nqspy.model.requests import Used
from nqspy.report.departments import page_of
from nqspy.report.event_objects import event_object
from nqspy.report.incidents import IncidentLog, sentence
from nqspy.report.night import Night, night_bounds
from nqspy.report.night_pages import night_html
from nqspy.report.pages import night_text
from nqspy.report.replay import HistoryReplay
from nqspy.report.time_text import zone_of

PARIS = zone_of("Europe/Paris")
HOUR = 3600.0


def times(entry):
    return entry["begin"][11:16], entry["end"] and entry["end"][11:16]


class Foreign:
    """Events of kinds that another version of the program writes: they have a kind and attributes."""

    def __init__(self, book):
        self.book = book
        self.night = Night(book.site, night_bounds(book.events, PARIS, book.at(9 * HOUR)))
        self.night.take_all(book.events)

    def add(self, second, kind, **fields):
        self.night.log.take(ev.Recorded(99, self.book.at(second), SimpleNamespace(kind=kind, **fields)))

    def story(self):
        return self.night.log.objects(self.night.bounds.start, "ymp", PARIS)


def test_a_probe_that_breaks_and_recovers_is_one_incident(diary):
    book = diary(d1=1)
    book.night()
    site = Foreign(book)
    site.add(-7200, "probe", name="old", state="broken", text="")
    site.add(-3600, "probe", name="old", state="ok", text="")
    site.add(2 * HOUR, "probe", name="nfs", state="broken", text="stale handle")
    site.add(2.5 * HOUR, "probe", name="nfs", state="broken", text="still")
    site.add(4 * HOUR, "probe", name="nfs", state="ok", text="")
    site.add(5 * HOUR, "probe", name="licence", state="broken", text="no answer")
    nfs, licence = site.story()
    assert (nfs["who"], times(nfs), nfs["text"]) == ("nfs", ("23:00", "01:00"), "stale handle")
    assert (licence["who"], times(licence)) == ("licence", ("02:00", None))
    assert sentence(nfs) == "probe nfs said that it is broken: stale handle"


def test_a_broken_probe_is_told_once_and_its_deletion_ends_the_incident(diary):
    book = diary(d1=1)
    made = (ev.Change("create", f"probe/{name}", {"file": "/x"}) for name in ("nfs", "disk"))
    book.add(-60, ev.SettingsChanged(tuple(made)))
    book.night()
    book.add(HOUR, ev.ResourceChanged("nfs", "broken", "stale handle"))
    book.add(HOUR, ev.Alarm("probe nfs", "resource nfs is broken: stale handle"))
    book.add(HOUR, ev.ResourceChanged("disk", "broken", "full"))
    book.add(2 * HOUR, ev.SettingsChanged((ev.Change("delete", "probe/nfs"),)))
    nfs, disk = book.report()["story"]
    assert (nfs["kind"], nfs["who"], times(nfs)) == ("probe", "nfs", ("22:00", "23:00"))
    assert (disk["who"], times(disk)) == ("disk", ("22:00", None))


def test_one_held_at_its_submission_is_told_as_such(diary):
    book = diary(d1=1)
    book.submit(-60, "d1", state="held")
    book.night()
    [waiting] = book.report()["waiting"]
    assert waiting["reason"]["text"] == "held by its owner at submission"


def test_short_memory_lasts_from_high_to_calm(diary):
    book = diary(d1=1)
    book.night()
    site = Foreign(book)
    site.add(60, "pressure", level="high", text="PSI 40 %")
    site.add(660, "pressure", level="calm", text="")
    [entry] = site.story()
    assert (entry["kind"], times(entry)) == ("pressure", ("21:01", "21:11"))


def test_what_swap_control_does_to_several_requests_is_one_incident(diary):
    book = diary(pes=4, d1=1, d2=1)
    one, two = book.submit(-60, "d1"), book.submit(-60, "d2")
    book.night()
    book.decide(0, one, two)
    book.add(60, ev.Suspended(one, 1, "swap"))
    book.add(70, ev.Suspended(two, 1, "swap"))
    book.add(300, ev.Resumed(one, 1, "swap"))
    book.add(400, ev.Suspended(one, 1, "anne"))
    book.add(600, ev.Resumed(two, 1, "swap"))
    [entry] = book.report()["story"]
    assert times(entry) == ("21:01", "21:10")
    assert entry["requests"] == {"d1": ["1.ymp"], "d2": ["2.ymp"]}
    assert sentence(entry) == "2 requests were suspended by swap (1.ymp, 2.ymp)"


def test_what_people_do_is_no_incident_whatever_they_are_called(diary):
    book = diary(pes=4, d1=1)
    one = book.submit(-60, "d1")
    book.night()
    book.decide(0, one)
    for n, name in enumerate(("swap", "swapna", "hands", "probe")):
        person = Cause("operator", name)
        book.add(60 + n, ev.Suspended(one, 1, name, cause=person))
        book.add(70 + n, ev.Resumed(one, 1, name, cause=person))
    book.add(80, ev.Suspended(one, 1, "swapna"))
    assert book.report()["story"] == []


def test_one_that_ends_while_it_is_suspended_ends_the_incident(diary):
    book = diary(pes=4, d1=1)
    one = book.submit(-60, "d1")
    book.night()
    book.decide(0, one)
    book.add(60, ev.Suspended(one, 1, "probe nfs"))
    book.end(120, one, cpu=1)
    [entry] = book.report()["story"]
    assert times(entry) == ("21:01", "21:02")


def test_requeued_requests_are_told_together_and_those_hours_later_apart(diary):
    book = diary(pes=4, d1=1)
    seqs = [book.submit(-60, "d1") for _ in range(3)]
    book.night()
    book.decide(0, *seqs)
    for seq in seqs[:2]:
        book.add(60 + seq, ev.Requeued(seq, 1, "rerun by probe nfs", Used()))
    book.add(4 * HOUR, ev.Requeued(seqs[2], 1, "rerun by probe nfs", Used()))
    first, second = book.report()["story"]
    assert first["requests"] == {"d1": ["1.ymp", "2.ymp"]}
    assert sentence(second) == "1 request was queued again: rerun by probe nfs (3.ymp)"


def test_the_time_in_which_nothing_could_be_written_is_told_as_a_span(diary):
    book = diary(d1=1)
    book.night()
    book.add(1200, ev.Alarm("store", "nothing was changed for 600 s: disk full", book.at(600)))
    [entry] = book.report()["story"]
    assert (entry["kind"], times(entry)) == ("store", ("21:10", "21:20"))
    assert sentence(entry) == "nothing was changed for 600 s: disk full"


@pytest.mark.parametrize(("clean", "words"), [(True, "was stopped"), (False, "ended without being stopped")])
def test_a_restart_is_told_with_the_last_sign_of_life(diary, clean, words):
    book = diary(d1=1)
    book.night()
    book.add(6 * HOUR, ev.DaemonStarted(book.at(5.5 * HOUR), clean))
    [entry] = book.report()["story"]
    assert times(entry) == ("02:30", "03:00")
    assert words in entry["text"]


def test_a_shift_that_failed_lasts_until_one_is_entered(diary):
    book = diary(d1=1)
    book.night()
    book.add(HOUR, ev.ShiftFailed("extra", "no such queue"))
    book.add(HOUR, ev.Alarm("shift extra", "shift extra could not be entered: no such queue"))
    book.add(2 * HOUR, ev.ShiftChanged("night", "night", None, True))
    failed, switched = book.report()["story"]
    assert (failed["who"], times(failed)) == ("extra", ("22:00", "23:00"))
    assert sentence(switched) == "shift night was put in force by hand"


def test_exits_that_misbehaved_are_told_with_count_times_and_requests(diary):
    book = diary(pes=4, d1=1, d2=1)
    one, two = book.submit(-60, "d1"), book.submit(-60, "d2")
    book.night()
    failures = tuple(ExitFailure("loop", seq, f"ran beyond its budget on {seq}") for seq in (one, two))
    book.add(60, ev.Decided(1, (), failures))
    book.add(60, ev.Alarm("exit loop", "exit loop failed on 1.ymp: ran beyond its budget"))
    book.add(7200, ev.Decided(1, (), (ExitFailure("loop", two, "again", "", True),)))
    book.add(7200, ev.ExitOff("loop", "again"))
    data = book.report()
    [exit] = data["exits"]
    assert (exit["exit"], exit["count"], exit["text"]) == ("loop", 3, "again")
    assert [each[11:16] for each in (exit["first"], exit["last"], exit["off"])] == ["21:01", "23:00", "23:00"]
    assert exit["requests"] == {"d1": ["1.ymp"], "d2": ["2.ymp"]}
    assert [each["kind"] for each in data["story"]] == ["exit_off"], "its alarm is told with it"
    assert "loop" in night_text(data)


def test_failures_that_alarms_carry_are_counted_with_those_of_passes_since_the_evening(diary):
    book = diary(pes=4, d1=1)
    one = book.submit(-7200, "d1")
    book.add(-60, ev.Decided(1, (), (ExitFailure("mine", one, "yesterday"),)))
    book.night()
    lost = ExitFailure("mine", one, "jobselect ended the process of the exits", off=True)
    book.add(60, ev.Decided(1, (), (ExitFailure("mine", one, "no way"),)))
    book.add(60, ev.Alarm("exit mine", "exit mine failed on 1.ymp: no way"))
    book.add(120, ev.Alarm("exit mine", "no door", failures=(ExitFailure("mine", None, "no door"),)))
    book.add(180, ev.Alarm("exit mine", "exit mine on 1.ymp: it ended", failures=(lost,)))
    book.add(180, ev.ExitOff("mine", "it ended"))
    data = book.report()
    [exit] = data["exits"]
    assert (exit["count"], exit["requests"], exit["text"]) == (3, {"d1": ["1.ymp"]}, lost.text)
    assert [each[11:16] for each in (exit["first"], exit["last"], exit["off"])] == ["21:01", "21:03", "21:03"]
    assert [each["kind"] for each in data["story"]] == ["exit_off"]


def test_lost_requests_are_told_with_the_reason(diary):
    book = diary(pes=4, d1=1)
    one = book.submit(-60, "d1")
    book.night()
    book.decide(0, one)
    book.add(60, ev.Ended(one, 1, "lost", None, None, Used(), "its end was not seen"))
    book.add(60, ev.Alarm("hands", "the end of request 1.ymp was lost; it is ended"))
    data = book.report()
    assert [sentence(each) for each in data["story"]] == [
        "the end of 1 request was lost: its end was not seen (1.ymp)"
    ]
    assert data["failed"][0]["why"] == "its end was not seen"


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


def test_a_follower_that_knows_nothing_names_no_group(diary):
    story = IncidentLog(HistoryReplay({}))
    story.take(ev.Recorded(1, 5, ev.Requeued(7, 1, "lost")))
    [entry] = story.objects(0, "ymp", PARIS)
    assert entry["requests"] == {"": ["7.ymp"]}


def test_the_machine_of_a_new_home_is_no_changed_one(diary):
    book = diary(d1=1)
    book.events.clear()
    found = ev.MachineFound((0, 1), 1 << 30, "ymp", "Europe/Paris")
    book.add(60, found)
    book.add(120, found)
    assert [event["n"] for event in book.report()["incidents"]] == [2]
    assert [times(each) for each in book.report()["story"]] == [("21:02", "21:02")]


def test_what_is_held_because_it_could_not_start_was_not_queued_again(diary):
    book = diary(d1=1)
    book.night()
    seqs = [book.submit(10 * n, "d1") for n in range(3)]
    for seq in seqs:
        book.add(100, ev.Starting(seq, 1, (0,)))
        book.add(101, ev.Requeued(seq, 1, "cannot run /nope"))
        if seq != seqs[-1]:
            book.add(101, ev.Held((seq,), "u", "hands", "cannot run /nope"))
    held, again = sorted(book.report()["story"], key=lambda each: each["kind"])
    assert sentence(held) == "2 requests were held by nqsd: cannot run /nope (1.ymp, 2.ymp)"
    assert sentence(again) == "1 request was queued again: cannot run /nope (3.ymp)"


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
