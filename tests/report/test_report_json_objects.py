"""The objects of ``qstat --json`` and ``nqspy events --json``: exact keys, times and units."""

import json
import re

import pytest
from msgspec import structs
from msgspec.structs import replace
from report.pbs_book import CONTEXT

from nqspy.core.order.places import Place
from nqspy.model import events as ev
from nqspy.model.actions import ExitFailure
from nqspy.model.errors import BadValue
from nqspy.model.reasons import ReasonCode, quoted
from nqspy.model.requests import Dependency, Output, Reservation, State, Used
from nqspy.report import json_objects
from nqspy.report.event_objects import event_line, event_object
from nqspy.report.pbs_attributes import Subject, attributes
from nqspy.report.time_text import parse_day, parse_since, zone_of

PARIS = zone_of("Europe/Paris")
KEYS = """
    id seq name owner group account project queue domain state attempt submitted date_in_queue eligible
    started ended requested used priority position pes units exit_status exit_signal end_reason ok reason
    depends_on held output error
""".split()  # noqa: SIM905
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d")


def place(book, second):
    return json_objects.AnswerContext("ymp", PARIS, book.at(second))


def test_a_queued_request_has_every_key_its_priority_and_its_reason(diary):
    book = diary(d1=1)
    seq = book.submit(0.25, "d1", cpu=600_000, memory=1 << 20, pes=2)
    standing = Place(3.5, 0.25, 0.5, 0.75, 1.0, 1)
    reason = quoted(ReasonCode.LIMIT, "queue night", "run limit 1 of queue night is reached", book.at(60))
    made = json_objects.request_object(book.site.requests[seq], place(book, 5), standing, reason)
    assert list(made) == KEYS
    assert json.loads(json_objects.encode(made)) == made | {"pes": []}
    assert (made["id"], made["submitted"]) == ("1.ymp", "2026-03-02T21:00:00.250+01:00")
    assert made["requested"] == {
        "cpu_s": 600.0, "wall_s": None, "memory_bytes": 1 << 20, "pes": 2, "needs": [], "consumables": {},
        "processes": None,
    }  # fmt: skip
    assert made["used"] == {"cpu_s": None, "wall_s": None, "memory_bytes": None}
    assert made["priority"] == {
        "total": 3.5, "share": 0.25, "cpu": 0.5, "memory": 0.75, "time": 1.0,
        "at": "2026-03-02T21:00:05.000+01:00",
    }  # fmt: skip
    assert (made["position"], made["reason"]["until"]) == (1, "2026-03-02T21:01:00.000+01:00")
    assert (made["depends_on"], made["held"]) == ([], [])
    assert (made["output"], made["error"]) == ("/home/anne/w/job.o1", "/home/anne/w/job.e1")


def test_a_request_that_waits_for_others_names_each_once_and_is_held_by_the_system(diary):
    book = diary(d1=1)
    request = book.site.requests[book.submit(0, "d1")]
    after = (Dependency(7), Dependency(7, "start"), Dependency(8, "any"))
    waiting = structs.replace(request, state=State.HELD, unmet=after)
    made = json_objects.request_object(waiting, place(book, 5))
    assert (made["depends_on"], made["held"]) == (["7.ymp", "8.ymp"], ["s"])
    assert attributes(Subject(waiting), CONTEXT)["substate"] == 22
    both = json_objects.request_object(structs.replace(waiting, holds="u"), place(book, 5))
    assert both["held"] == ["s", "u"]
    seq = book.submit(0, "d1")
    book.add(1, ev.Held((seq,), "o", "op", "wait for the tapes"))
    held = json_objects.request_object(book.site.requests[seq], place(book, 5))
    assert (held["held"], held["reason"]["code"]) == (["o"], "HELD")


def test_a_running_request_has_neither_priority_nor_reason(diary):
    book = diary(d1=1)
    seq = book.submit(0, "d1", pes=2)
    book.decide(10, seq)
    standing = Place(1, 1, 1, 1, 1, 1)
    made = json_objects.request_object(book.site.requests[seq], place(book, 20), standing)
    assert (made["priority"], made["position"], made["reason"]) == (None, None, None)
    assert (made["state"], made["attempt"], list(made["pes"])) == ("running", 1, [0, 1])
    assert (made["started"], made["used"]["cpu_s"]) == ("2026-03-02T21:00:10.000+01:00", 0.0)


def row(book, event, second):
    """Return an ended request's row as the store returns it."""
    request = book.site.requests[event.seq]
    book.add(second, event)
    return {
        "seq": request.seq, "spec": request.spec, "queue": request.queue, "submitted": request.submitted,
        "ended": event, "at": book.at(second), "request": request,
    }  # fmt: skip


def test_an_ended_request_has_the_same_keys_and_how_it_ended(diary):
    book = diary(d1=1)
    seq = book.submit(0, "d1")
    book.decide(10, seq)
    ended = ev.Ended(seq, 1, "cpu_limit", None, 24, Used(1500, 2000, 4096), "CPU limit 1 s", "/o", "/e")
    made = json_objects.ended_object(row(book, ended, 12), place(book, 20))
    assert list(made) == KEYS
    assert (made["state"], made["end_reason"], made["exit_status"], made["exit_signal"]) == (
        "ended", "cpu_limit", None, 24,
    )  # fmt: skip
    assert made["used"] == {"cpu_s": 1.5, "wall_s": 2.0, "memory_bytes": 4096}
    assert (made["started"], made["ended"]) == (PARIS.stamp(book.at(10)), PARIS.stamp(book.at(12)))
    assert (made["attempt"], list(made["pes"]), made["output"]) == (1, [0], "/o")


def test_a_request_deleted_before_it_ran_left_no_output(diary):
    book = diary(d1=1)
    made = json_objects.ended_object(row(book, ev.Deleted(book.submit(0, "d1"), "anne"), 3), place(book, 4))
    assert (made["end_reason"], made["started"], made["output"]) == ("deleted", None, None)
    assert made["reason"]["who"] == "anne"


def test_joined_errors_go_where_the_output_goes(diary):
    book = diary(d1=1)
    request = book.site.requests[book.submit(0, "d1")]
    request.spec = replace(request.spec, output=Output(stdout="/tmp/out", join=True))
    made = json_objects.request_object(request, place(book, 1))
    assert (made["output"], made["error"]) == ("/tmp/out", "/tmp/out")
    request.spec = replace(request.spec, output=Output(keep_stderr=True))
    assert json_objects.request_object(request, place(book, 1))["error"] == "~anne/job.e1"


# ---------------------------------------------------------------- events
def test_every_kind_of_event_is_one_flat_object(diary):
    book = diary(d1=1)
    seq = book.submit(0, "d1", cpu=1000)
    book.add(1, ev.Redated((seq,), book.at(1), seq, "machine_gun"))
    failure = ExitFailure("dependency", seq, "ZeroDivisionError", "traceback")
    book.add(2, ev.Decided(1, ((seq, Used(500)),), (failure,), True, ((seq, "EXIT", "dependency", "later"),)))
    book.add(2, ev.Starting(seq, 1, (0,)))
    book.add(3, ev.Started(seq, 1, (0,)))
    book.end(4, seq, cpu=1.5)
    book.night(5)
    book.add(6, ev.Alarm("exit dependency", "it failed"))
    made = [event_object(each, "ymp", PARIS) for each in book.events]
    assert [each["n"] for each in made] == list(range(1, 9))
    assert all(RFC3339.fullmatch(each["at"]) for each in made)
    assert [list(each)[:3] for each in made] == [["n", "at", "kind"]] * 8
    by_kind = {each["kind"]: each for each in made}
    assert (by_kind["submitted"]["request"], by_kind["submitted"]["requested"]["cpu_s"]) == ("1.ymp", 1.0)
    assert by_kind["redated"]["requests"] == ["1.ymp"]
    assert by_kind["decided"]["wait"] == [
        {"request": "1.ymp", "code": "EXIT", "who": "dependency", "text": "later"}
    ]
    assert (by_kind["decided"]["samples"][0]["used"]["cpu_s"], by_kind["started"]["pes"]) == (0.5, [0])
    ended = by_kind["ended"]
    assert (ended["exit_status"], ended["exit_signal"], ended["end_reason"]) == (0, None, "exit")
    assert ended["used"] == {"cpu_s": 1.5, "wall_s": 0.0, "memory_bytes": 4096}
    shift = by_kind["shift_changed"]
    assert (shift["shift"], shift["former"], shift["fired"]) == ("night", "evening", shift["at"])
    assert (by_kind["alarm"]["who"], by_kind["alarm"]["text"]) == ("exit dependency", "it failed")
    json.dumps(made)


def test_every_event_there_is_can_be_shown(diary):
    book = diary(d1=1)
    seq = book.submit(0, "d1")
    others = [
        ev.Eligible((seq,)), ev.Routed(seq, "day", "night"), ev.Released((seq,), "u", "anne"),
        ev.Moved((seq,), "day", "op"), ev.Modified(seq, book.site.requests[seq].spec, "anne"),
        ev.Ranked(seq, 2, "op"), ev.ShiftFailed("night", "no"), ev.FilesApplied((("a", "1"),)),
        ev.LoadedExits((("quiet", "1"),)),
        ev.SettingsChanged((ev.Change("set", "global/run_limit", 3),)), ev.ExitOff("x", "failed"),
        ev.MachineFound((0, 1), 1, "ymp"), ev.Requeued(seq, 1, "lost"), ev.Deleting(seq, 1, "anne"),
        ev.Suspended(seq, 1, "op"), ev.Resumed(seq, 1, "op"), ev.Deleted(seq, "anne"),
    ]  # fmt: skip
    for event in others:
        made = event_object(ev.Recorded(9, book.at(1), event), "ymp", PARIS)
        assert json.loads(json.dumps(made))["kind"] == event.kind
        assert event.kind in event_line(made)


def test_a_line_for_people_keeps_a_status_of_0_and_leaves_nothing_out_that_counts(diary):
    book = diary(d1=1)
    seq = book.submit(0, "d1")
    book.decide(1, seq)
    book.end(2, seq, cpu=1)
    line = event_line(event_object(book.events[-1], "ymp", PARIS))
    assert "1.ymp" in line
    assert "exit_status=0" in line
    assert "exit_signal" not in line


# ---------------------------------------------------------------- times
def test_offsets_follow_daylight_saving_to_the_minute():
    spring = 1_774_746_000_000  # 2026-03-29 01:00 UTC: 02:00 becomes 03:00 in Paris
    assert PARIS.text(spring - 1) == "2026-03-29T01:59:59.999+01:00"
    assert PARIS.text(spring) == "2026-03-29T03:00:00.000+02:00"
    assert PARIS.stamp(None) is None


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("2026-03-02T21:30", 1800), ("2026-03-02T20:30:00+00:00", 1800), ("2026-03-02", -21 * 3600),
        ("21:30", 1800), ("23:30", 9000 - 86400), ("30min", 1800),
    ],
)  # fmt: skip
def test_since_is_read_by_the_sites_clock(diary, text, second):
    book = diary()
    assert parse_since(text, PARIS, book.at(3600)) == book.at(second)


def test_moments_and_days_that_mean_nothing_are_refused(diary):
    for text in ("tomorrow", "25:00", "", "unlimited"):
        with pytest.raises(BadValue, match="is not a moment"):
            parse_since(text, PARIS, diary().at(0))
    with pytest.raises(BadValue, match="is not a date"):
        parse_day("2026-13-01")
    with pytest.raises(BadValue, match="not a time zone"):
        zone_of("Europe/Nowhere")


def test_promises_are_told_one_by_one_with_the_cause_where_one_is_taken_back(diary):
    book = diary(d1=1)
    seq = book.submit(0, "d1", cpu=1000)
    book.add(1, ev.Reserved({seq: Reservation(book.at(9), (7,))}, 1))
    book.add(2, ev.Reserved({seq: None}, 0, {seq: "exits/x: no licence"}))
    promised, taken = (event_object(each, "ymp", PARIS) for each in book.events[-2:])
    at = PARIS.stamp(book.at(9))
    assert promised["starts"] == [{"request": "1.ymp", "at": at, "by": ["7.ymp"], "late": None}]
    assert taken["starts"] == [{"request": "1.ymp", "at": None, "by": None, "late": None}]
    assert taken["causes"] == {"1.ymp": "exits/x: no licence"}
