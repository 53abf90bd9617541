"""How accurately quotas were kept, on journals whose numbers can be computed on paper."""

import re

import pytest
from engine.harness import PLAIN, Centre

from nqspy.model import events as ev
from nqspy.model.errors import BadValue
from nqspy.model.ids import Instant
from nqspy.model.people import Group
from nqspy.model.requests import Used
from nqspy.report.quotas import Period, period_of, quota_report, quota_text
from nqspy.report.time_text import zone_of

PARIS = zone_of("Europe/Paris")
HOUR = 3600.0
TWO = f"""{PLAIN}
set sched_factor share 20
set queue batch user_limit=1
create group d1 share=50 members=(anne)
create group d2 share=50 members=(ben)
"""


def report(book, begin, end, now=None, **more):
    now = book.at(end if now is None else now)
    period = Period(book.at(begin), book.at(end), None, False)
    return quota_report(book.events, book.site, period, now, **more)


def rows(data):
    return {row["name"]: row for row in data["groups"]}


# ---------------------------------------------------------------- a period
def two_departments(diary):
    """Return a diary: d1 has three quarters of two PEs, d2 one; both have work for two hours, and each holds
    one PE."""
    book = diary(pes=2, d1=3, d2=1, default=0)
    ones = [book.submit(0, "d1", wall=3_600_000) for _ in range(3)]
    twos = [book.submit(0, "d2", "ben", wall=3_600_000) for _ in range(3)]
    book.decide(0, ones[0], twos[0], short=True)
    for hour in (1, 2):
        at = hour * HOUR
        book.end(at, ones[hour - 1], cpu=HOUR)
        book.end(at, twos[hour - 1], cpu=HOUR)
        book.decide(at, ones[hour], twos[hour], short=hour == 1)
    return book


def test_got_is_compared_with_what_one_could_have_used(diary):
    data = report(two_departments(diary), 0, 2 * HOUR)
    d1, d2 = rows(data)["d1"], rows(data)["d2"]
    assert (d1["entitlement"], d1["got_s"], d1["got_part"]) == (0.75, 7200.0, 0.5)
    # 2 h x 2 PEs x 3/4 = 3 h; it held 2 h and still had one to run: the bound does not bite.
    assert (d1["could_s"], d1["could_part"]) == (10_800.0, 0.75)
    assert (d2["could_s"], d2["could_part"]) == (3600.0, 0.25)
    assert (d1["deviation"], d2["deviation"]) == pytest.approx((-25.0, 25.0))
    assert d1["hour"]["deviation"] == pytest.approx(-25.0)
    assert d1["hour"]["from"] == "2026-03-02T21:00:00.000+01:00"
    assert re.findall(r"[\d.]+", data["line"]) == ["25.0", "25.0"]


def test_one_without_work_leaves_its_part_to_the_others(diary):
    book = diary(pes=2, d1=3, d2=1, default=0)
    one, two = book.submit(0, "d1", pes=2), book.submit(0, "d2", pes=2)
    book.decide(0, one, short=True)
    book.end(HOUR, one, cpu=2 * HOUR)
    book.decide(HOUR, two)
    book.end(2 * HOUR, two, cpu=2 * HOUR)
    found = rows(report(book, 0, 2 * HOUR))
    # d1 had work for one hour: 1.5 PE h. d2 half a PE beside it, then both PEs: 2.5 h, of which it held 2.
    assert (found["d1"]["could_s"], found["d2"]["could_s"]) == (1.5 * HOUR, 2.0 * HOUR)
    assert (found["d1"]["work_part"], found["d2"]["work_part"]) == (0.5, 1.0)
    # Of the first of two hours d1 got all, entitled to three quarters; of the second d2 got all, alone.
    assert (found["d1"]["entitled"], found["d1"]["got"]) == (0.375, 0.5)
    assert found["d1"]["deviation"] == -found["d2"]["deviation"] == pytest.approx(12.5)
    assert found["d1"]["hour"]["deviation"] == pytest.approx(25.0)


def test_one_that_asks_for_little_could_have_used_no_more(diary):
    book = diary(pes=8, d1=1, d2=1, default=0)
    small, *large = book.submit(0, "d1"), *(book.submit(0, "d2") for _ in range(9))
    book.decide(0, small, *large[:7], short=True)
    book.end(HOUR, small, cpu=HOUR)
    for seq in large[:7]:
        book.end(HOUR, seq, cpu=HOUR)
    found = rows(report(book, 0, HOUR))
    assert (found["d1"]["could_s"], found["d2"]["could_s"]) == (HOUR, 7 * HOUR)
    assert found["d1"]["deviation"] == pytest.approx(0.0)


def test_a_burst_of_short_requests_is_bounded_by_what_they_came_to(diary):
    book = diary(pes=2, d1=1, d2=1, default=0)
    long, short = [book.submit(0, "d1") for _ in range(2)], [book.submit(0, "d2") for _ in range(2)]
    book.decide(0, *long, short=True)
    for seq in long:
        book.end(HOUR, seq, cpu=HOUR)
    book.decide(HOUR, *short)
    for seq in short:
        book.end(HOUR + 60, seq, cpu=60)
    found = rows(report(book, 0, HOUR + 60))
    assert found["d2"]["could_s"] == 120.0
    assert found["d2"]["hour"]["deviation"] == pytest.approx(-50.0), "it could have had one PE all the hour"


def test_held_requests_are_no_work(diary):
    book = diary(pes=1, d1=1, d2=1, default=0)
    one, two = book.submit(0, "d1"), book.submit(0, "d2")
    book.add(0, ev.Held((two,), "u", "ben"))
    book.decide(0, one)
    book.end(HOUR, one, cpu=HOUR)
    found = rows(report(book, 0, HOUR))
    assert (found["d2"]["work_part"], found["d2"]["could_s"], found["d2"]["hour"]) == (0.0, 0.0, None)
    assert found["d1"]["deviation"] == 0.0


def test_only_use_within_the_period_counts_and_samples_are_linear(diary):
    book = two_departments(diary)
    found = rows(report(book, 0.5 * HOUR, 1.5 * HOUR))
    assert (found["d1"]["got_s"], found["d2"]["got_s"]) == (HOUR, HOUR)
    running = max(book.site.started)
    samples = {running: Used(1_800_000, 1_800_000)}
    found = rows(report(book, 2 * HOUR, 2.5 * HOUR, samples=samples))
    assert (found["d1"]["got_s"], found["d2"]["got_s"]) == (0.0, 1800.0)


def test_pe_time_counts_where_it_is_charged(diary):
    book = diary(pes=4, d1=1, d2=1, default=0)
    book.site.settings.usage.charge = "pe_wall"
    one, two = book.submit(0, "d1", pes=3), book.submit(0, "d2", pes=1)
    book.decide(0, one, two)
    for seq in (one, two):
        attempt = book.site.requests[seq].attempts
        used = Used(60_000, round(HOUR * 1000))
        book.add(HOUR, ev.Ended(seq, attempt, "exit", 0, None, used))
    data = report(book, 0, HOUR)
    assert (rows(data)["d1"]["got_s"], rows(data)["d2"]["got_s"]) == (3 * HOUR, HOUR)
    assert "got: PE x wall time" in quota_text(data)


def test_a_group_with_requests_of_its_own_counts_all_below_it(diary):
    book = diary(pes=2, default=0)
    book.site.settings.groups |= {"ymp": Group("ymp", share=1), "d1": Group("d1", "ymp", share=1)}
    own, below = book.submit(0, "ymp"), book.submit(0, "d1")
    book.decide(0, own, below)
    book.end(HOUR, own, cpu=HOUR)
    book.end(HOUR, below, cpu=HOUR)
    data = report(book, 0, HOUR)
    assert [(n, r["got_s"], r["deviation"]) for n, r in rows(data).items() if n != "default"] == [
        ("d1", 3600.0, pytest.approx(0.0)),
        ("ymp", 7200.0, pytest.approx(0.0)),
    ]


def test_nothing_at_all_is_told_as_that(diary):
    data = report(diary(pes=2, d1=1), 0, 60)
    assert data["line"] == "quotas: nothing was used"
    assert rows(data)["d1"]["deviation"] is None
    assert "d1" in quota_text(data)


def test_the_text_is_a_table_with_the_hour(diary):
    lines = quota_text(report(two_departments(diary), 0, 2 * HOUR)).splitlines()
    assert lines[1] == "from 2026-03-02 21:00:00 to 2026-03-02 23:00:00 (2 PEs, got: CPU time)"
    [row] = [line.split() for line in lines if line.startswith("d1")]
    assert row == ["d1", "75.0", "7200", "50.0", "75.0", "50.0", "-25.0", "100", "-25.0", "03-02", "21:00"]


# ---------------------------------------------------------------- which period
def test_without_words_it_is_the_latest_night_up_to_now(diary):
    book = diary(pes=2, d1=1)
    book.night()
    found = period_of(book.events, PARIS, book.at(HOUR))
    assert found == Period(book.at(0), book.at(HOUR), "night", True)
    book.morning()
    found = period_of(book.events, PARIS, book.at(12 * HOUR))
    assert found == Period(book.at(0), book.at(9 * HOUR), "night", False)
    found = period_of(book.events, PARIS, book.at(12 * HOUR), shift="report")
    assert (found.begin, found.shift) == (book.at(9 * HOUR), "report")


def test_a_period_given_lies_within_what_the_journal_has(diary):
    book = diary(pes=2, d1=1)
    book.night()
    found = period_of(book.events, PARIS, book.at(HOUR), book.at(-99 * HOUR), book.at(99 * HOUR))
    assert found == Period(book.at(0), book.at(HOUR), None, True)
    with pytest.raises(BadValue, match="is empty"):
        period_of(book.events, PARIS, book.at(HOUR), book.at(60), book.at(30))
    with pytest.raises(BadValue, match="shift noon was never in force"):
        period_of(book.events, PARIS, book.at(HOUR), shift="noon")
    with pytest.raises(BadValue, match="give --shift or --from, not both"):
        period_of(book.events, PARIS, book.at(HOUR), book.at(0), shift="night")
    for begin, end in ((10**30, None), (book.at(60), -(10**30))):
        with pytest.raises(BadValue, match="is empty"):
            period_of(book.events, PARIS, book.at(HOUR), begin, end)


# ---------------------------------------------------------------- arrays
@pytest.mark.parametrize("until", [600, 900, 1800])
def test_an_array_could_use_what_its_indices_could(until):
    """As if each had been handed in for itself, up to any instant."""
    found = []
    for line in ("anne array=1-6", "anne"):
        centre = Centre(TWO, pes=8, length=600)
        centre.submit("ben array=1-20 cpu=10:00", *[f"{line} cpu=10:00"] * (1 if "array" in line else 6))
        begin, end = centre.sim.now, Instant(centre.sim.now + until * 1000)
        centre.later(hours=4)
        period = Period(begin, end, None, False)
        found.append(rows(quota_report(list(centre.journal.events()), centre.site, period, centre.sim.now)))
    array, single = found
    assert array["d1"]["could_s"] == pytest.approx(single["d1"]["could_s"])
    assert array["d1"]["could_s"] == pytest.approx(min(4.0 * until, 3600))
    assert array["d2"]["could_part"] == pytest.approx(single["d2"]["could_part"])
