"""The busy share by quarter hour, as figures and as a picture; what is still to come."""

import re
from datetime import datetime
from xml.etree import ElementTree

import pytest

from nqspy.model import events as ev
from nqspy.model.requests import Used
from nqspy.report.night_pages import night_html
from nqspy.report.pages import night_text
from nqspy.report.time_text import zone_of
from nqspy.report.utilisation_svg import MOST_BARS, utilisation_svg

PARIS = zone_of("Europe/Paris")
HOUR = 3600.0
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def data(evening):
    """Return data: on two PEs one request runs for half an hour with half its time on the CPU; the night has
    two hours."""
    book, one = evening(1, pes=2)
    book.decide(450, one)
    book.end(450 + 1800, one, cpu=900)
    book.add(HOUR, ev.DaemonStarted(book.at(HOUR - 600), False))
    book.add(2 * HOUR, ev.ShiftChanged("report", "night", None))
    return book.report()


def test_each_quarter_hour_has_what_was_allocated_and_used(data):
    assert data["step_s"] == 900
    assert [each["at"][11:16] for each in data["quarters"]] == [
        "21:00", "21:15", "21:30", "21:45", "22:00", "22:15", "22:30", "22:45",
    ]  # fmt: skip
    assert [each["allocated"] for each in data["quarters"]] == [0.25, 0.5, 0.25, 0, 0, 0, 0, 0]
    assert [each["used"] for each in data["quarters"]] == [0.125, 0.25, 0.125, 0, 0, 0, 0, 0]
    assert [(each["at"][11:16], each["shift"]) for each in data["shifts"]] == [
        ("21:00", "night"),
        ("23:00", "report"),
    ]


def test_a_last_step_cut_short_is_measured_by_its_own_length(evening):
    book, one = evening(1)
    book.decide(0, one)
    data = book.report(1000, samples={one: Used(1_000_000)})
    assert [each["allocated"] for each in data["quarters"]] == [1.0, 1.0]
    assert [each["used"] for each in data["quarters"]] == [1.0, 1.0]


def test_a_long_time_is_drawn_by_the_hour(diary):
    book = diary(pes=1, d1=1)
    book.night()
    data = book.report(MOST_BARS * 900 + 10)
    assert data["step_s"] == 3600
    assert len(data["quarters"]) == MOST_BARS // 4 + 1


def drawn(data):
    return ElementTree.fromstring(utilisation_svg(data))


def boxes(root, kind):
    """Return the rectangles of a kind: x, y, width, height."""
    paths = "".join(each.get("d") for each in root.iter(f"{SVG}path") if each.get("class") == kind)
    return [tuple(map(float, box)) for box in re.findall(r"M(\S+) (\S+?)h(.+?)v(.+?)h-.+?z", paths)]


def test_the_picture_has_two_bars_a_step_and_says_in_words_what_it_shows(data):
    root = drawn(data)
    bars = {kind: boxes(root, kind) for kind in ("held", "used", "bad")}
    assert [len(bars[kind]) for kind in bars] == [8 + 1, 8 + 1, 1 + 1], "one each in the legend"
    heights = [height for *_, height in bars["held"][:8]]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert heights[3:] == [0] * 5
    assert root.get("role") == "img"
    ids = {each.get("id"): each.text for each in root if each.get("id")}
    assert root.get("aria-labelledby").split() == ["busy-title", "busy-desc"] == list(ids)
    assert "night of 2026-03-02" in ids["busy-title"]
    assert "8 quarter hours from 21:00 to 23:00" in ids["busy-desc"]
    words = [each.text for each in root.iter(f"{SVG}text")]
    assert {"night", "report", "21:00", "22:00", "0 %", "100 %"} <= set(words)
    assert "prefers-color-scheme:dark" in "".join(each.text for each in root.iter(f"{SVG}style"))


def test_incidents_are_marked_where_they_were(data):
    root = drawn(data)
    (x, *_), (middle, _, width, _) = boxes(root, "bad")[0], boxes(root, "held")[3]
    assert abs(x - middle) < width
    assert [mark[0].text for mark in root.iter(f"{SVG}path") if len(mark)] == ["21:50: daemon nqsd"]


def test_a_night_without_anything_is_a_picture_too(diary):
    book = diary(pes=1)
    book.night()
    data = book.report(0)
    assert drawn(data)[1].text == "Nothing was measured."
    assert "<svg" in night_html(data)


def test_names_in_the_picture_and_the_page_are_escaped(diary):
    book = diary(pes=1, d1=1)
    book.submit(-60, "d1", owner="<i>", name="<script>alert(1)</script>&")
    book.night()
    book.add(1, ev.Alarm("<b>", "</svg><b>"))
    book.add(2, ev.ShiftChanged("night", "night", None))
    page = night_html(book.report())
    for tag in ("<script", "<i>", "<b>", "src=", "href="):
        assert tag not in page
    assert page.count("</svg>") == 1
    assert "&lt;script&gt;" in page


# ---------------------------------------------------------------- outlook
def test_the_outlook_reckons_with_what_the_departments_used(diary):
    book = diary(pes=2, d1=1, d2=1)
    ones = [book.submit(-60, "d1", cpu=7_200_000) for _ in range(4)]
    twos = [book.submit(-60, "d2") for _ in range(3)]
    held = book.submit(-50, "d2")
    book.add(-40, ev.Held((held,), "o", "op"))
    book.night()
    book.decide(0, ones[0], twos[0], short=True)
    book.end(1000, ones[0], cpu=1000)
    book.end(1000, twos[0], cpu=1000)
    book.decide(1000, short=False)
    book.morning()
    coming = [{"at": "2026-03-03T08:30:00.000+01:00", "shift": "day"}]
    data = book.report(coming=coming, holidays=["x"])
    first, second = data["outlook"]["departments"]
    assert (first["name"], first["queued"], first["cpu_s"], first["expected_cpu_s"]) == ("d1", 3, 21600, 3000)
    assert (second["queued"], second["held"], second["without_cpu_limit"]) == (2, 1, 3)
    # Both processors were busy: d2's 2,000 s take half of them, 2,000 s; then d1 has 1,000 s left on both.
    assert drained(second) - now(data) == pytest.approx(2000, abs=1)
    assert drained(first) - now(data) == pytest.approx(2500, abs=1)
    text = night_text(data)
    assert "2026-03-03 08:30  shift day" in text
    assert "holidays" in text


def test_what_waits_in_a_stopped_queue_is_drained_not_before_a_shift_starts_it(diary):
    book = diary(pes=1, d1=1, d2=1, d3=1)
    done = book.submit(-60, "d1")
    book.night()
    book.decide(0, done)
    book.end(100, done, cpu=100)
    book.submit(200, "d1", queue="day"), book.submit(200, "d2"), book.submit(200, "d3", queue="dusk")
    book.morning()
    opening = book.at(12 * HOUR)
    data = book.report(9 * HOUR, opens={"day": opening, "dusk": None, "night": None})
    rows = {each["name"]: each for each in data["outlook"]["departments"]}
    assert (rows["d1"]["drained_at"], rows["d1"]["not_before"]) == (None, "2026-03-03T09:00:00.000+01:00")
    assert (rows["d3"]["drained_at"], rows["d3"]["not_before"]) == (None, None), "nobody knows when"
    assert "not before 2026-03-03 09:00" in night_text(data)
    open_all_night = book.report(9 * HOUR, opens={"day": opening})["outlook"]["departments"]
    assert open_all_night[1]["drained_at"].startswith("2026-03-03T06:0"), "nothing keeps back d2"


def drained(row):
    return datetime.fromisoformat(row["drained_at"]).timestamp()


def now(data):
    return datetime.fromisoformat(data["as_of"]).timestamp()


def test_without_anything_to_reckon_with_nothing_is_foretold(evening):
    book, _ = evening(1)
    [row] = book.report()["outlook"]["departments"]
    assert (row["queued"], row["expected_cpu_s"], row["drained_at"]) == (1, 0, None)


def test_long_tables_of_a_mail_are_cut_and_say_so(evening):
    book, *_ = evening(50)
    data = book.report(60)
    assert "and 10 more" in night_text(data, 40)
    assert "more" not in night_text(data)
