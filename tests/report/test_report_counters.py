"""The departments' counters after figure 1 of seed 003, and the table of shares and use."""

import re

import pytest

from nqspy.model import events as ev
from nqspy.model.ids import HOUR
from nqspy.model.people import Group
from nqspy.model.requests import Used
from nqspy.report.counters import counters, counters_text, since
from nqspy.report.shares import departments
from nqspy.report.usage import usage, usage_text


@pytest.fixture
def book(diary):
    """Return a diary. 2026-03-02 is a Monday. d1 finished 2 h in the afternoon, runs since 21:00; d2 finished
    1 h."""
    book = diary(pes=2, d1=3, d2=1)
    one, two, three = book.submit(-7 * 3600, "d1"), book.submit(-7 * 3600, "d2"), book.submit(-7 * 3600, "d1")
    book.decide(-6 * 3600, one, two)
    book.end(-4 * 3600, one, cpu=7200)
    book.end(-3 * 3600, two, cpu=3600)
    book.night()
    book.decide(0, three)
    book.decide(1800, samples=[(three, Used(1_500_000))])
    return book


def test_the_period_counts_from_the_shifts_entering(book):
    assert since(book.site, book.at(3600), book.at(0)).period == book.at(0)
    assert since(book.site, book.at(13 * 3600), book.at(0)).period == book.at(12 * 3600)
    assert since(book.site, book.at(0)).period == book.at(-9 * 3600)
    begun = since(book.site, book.at(0))
    assert begun.day == begun.week == book.at(-21 * 3600)


def test_newer_samples_count_and_what_was_used_before_the_period_does_not(book):
    data = counters(book.events, book.site, book.at(3600), book.at(0), {3: Used(3_000_000)})
    assert (data["groups"][0]["used_s"], data["groups"][0]["daily_running_s"]) == (3000.0, 3000.0)
    for events in (book.events, ()):
        assert counters(events, book.site, book.at(1800), book.at(900))["groups"][0]["used_s"] == 750.0
    book.site.settings.usage.period = HOUR // 10
    data = counters(book.events, book.site, book.at(1800), book.at(1800 - 3600))
    assert data["groups"][0]["remain_s"] >= 0.0


def test_the_display_is_figure_1s(book):
    """The shares are d1 3/5 and d2 1/5 (`default` counts with 1) of 2 PEs x 12 h: what remains of d1's 14:24
    is 25 min less, which the running request has used."""
    text = counters_text(counters(book.events, book.site, book.at(1800), book.at(0)))
    assert text == (
        "date      : 02/03/26 21:30:00\n"
        "planning  : 02/03/26 21:00:00 (12h period)\n"
        "\n"
        "dep. %    cpu/period       daily           weekly\n"
        "          used   remain   finis.  run.    finished\n"
        "d1 (60)   00:25  13:59    02:00   00:25   002:00 (67)\n"
        "d2 (20)   00:00  04:48    01:00   00:00   001:00 (33)\n"
    )


def test_pe_time_is_counted_and_said_where_it_is_charged(diary):
    book = diary(pes=4, d1=3, d2=1)
    book.site.settings.usage.charge = "pe_wall"
    one, two = book.submit(-7200, "d1", pes=3), book.submit(-7200, "d2")
    book.decide(-3600, one, two)
    book.add(-1800, ev.Ended(one, 1, "exit", 0, None, Used(60_000, 1_800_000)))
    book.night()
    data = counters(book.events, book.site, book.at(600), book.at(0), {two: Used(5_000, 4_200_000)})
    d1, d2 = data["groups"]
    assert data["charge"] == "pe_wall"
    assert (d1["daily_finished_s"], d1["used_s"], d1["remain_s"]) == (5400, 0, pytest.approx(103_680.0))
    assert (d2["daily_running_s"], d2["used_s"]) == (4200.0, 600.0)
    text = counters_text(data)
    assert "charged   : PEs x wall time\n" in text
    assert "PE/period" in text
    assert data["groups"][0]["weekly_part"] == 1.0


def test_the_group_default_counts_with_share_1_where_it_is_not_set_up(diary):
    """Its row and everybody's share are the same as in a home that has the group, and as `report usage`'s."""
    seen = []
    for more in ({}, {"default": 1}):
        book = diary(pes=2, d1=98, d2=1, **more)
        one = book.submit(-7200, "default")
        book.decide(-3600, one)
        book.end(-1800, one, cpu=60)
        seen.append(counters(book.events, book.site, book.at(60), book.at(0)))
        shown = usage(book.site, book.at(60))["groups"]
        assert [row["share"] for row in seen[-1]["groups"]] == [row["entitlement"] for row in shown]
    bare, full = seen
    assert bare["groups"] == full["groups"]
    assert [row["share"] for row in bare["groups"]] == pytest.approx([0.98, 0.01, 0.01])
    assert "default (01)   00:00  00:14    00:01   00:00   000:01 (100)" in counters_text(bare)


# ---------------------------------------------------------------- shares
TREE = {
    "ymp": Group("ymp", share=80),
    "admin": Group("admin", share=20),
    "d1": Group("d1", "ymp", share=3),
    "d2": Group("d2", "ymp", share=1),
}


def test_use_is_decayed_and_compared_with_the_entitlement(diary):
    book = diary(pes=2)
    book.site.settings.groups.update(TREE)
    book.site.settings.usage.half_life = HOUR
    one, two = book.submit(0, "d1", owner="anne"), book.submit(0, "d2", owner="ben")
    book.decide(0, one, two)
    book.end(0, one, cpu=100)
    book.end(0, two, cpu=300)
    data = usage(book.site, book.at(3600))
    by_name = {each["name"]: each for each in data["groups"]}
    assert [each["name"] for each in data["groups"]] == ["ymp", "d1", "d2", "admin"]
    assert departments(TREE) == ["admin", "d1", "d2"]
    assert (by_name["d1"]["use_s"], by_name["ymp"]["use_s"]) == (pytest.approx(50.0), pytest.approx(200.0))
    # The group `default` is always there, with share 1 unless it is set up: 100 becomes 101.
    assert by_name["d1"]["entitlement"] == pytest.approx(0.6 * 100 / 101)
    assert by_name["d1"]["ratio"] == pytest.approx(0.6 * 100 / 101 / 0.25)
    assert by_name["admin"]["ratio"] is None
    assert by_name["d2"]["users"] == [{"name": "ben", "use_s": pytest.approx(150.0), "fraction": 0.75}]
    text = usage_text(data)
    assert "  - ben" in text
    assert "2.38" in text


def test_use_tells_what_each_is_entitled_to_now_and_how_far_it_is_capped(diary):
    book = diary(pes=2, d1=3, d2=1, default=0)
    book.site.settings.groups["d1"].limit = 20.0
    book.submit(0, "d2")
    data = usage(book.site, book.at(1))
    found = {row["name"]: (row["entitlement"], row["entitled_now"], row["limit"]) for row in data["groups"]}
    assert (found["d1"], found["d2"]) == ((0.75, 0.75, 20.0), (0.25, 1.0, None))
    text = usage_text(data)
    head = text.splitlines()[0]
    assert (re.findall(r"\d\d:\d\d:\d\d", head), "CPU time" in head) == (["21:00:01", "24:00:00"], True)
    [row] = [line.split() for line in text.splitlines() if line.startswith("d1")]
    assert row == ["d1", "3", "20%", "75.0", "75.0", "0.0", "0.0", "-"]
    book.site.settings.usage.charge = "pe_wall"
    assert "PE x wall time" in usage_text(usage(book.site, book.at(1)))
