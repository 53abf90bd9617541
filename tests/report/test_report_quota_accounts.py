"""How quotas were kept, from the journal: the same as the scheduler's own accounts, and drawn."""

import pytest
from engine.harness import PLAIN, Centre

from nqspy.engine.virtual.attempts import Run
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.report.departments import page_of
from nqspy.report.night import Facts, night_bounds, night_report
from nqspy.report.night_pages import night_html
from nqspy.report.past_site import PastSite
from nqspy.report.quota_accounts import QuotaAccounts
from nqspy.report.quotas import Period, quota_report
from nqspy.report.replay import HistoryReplay
from nqspy.report.time_text import zone_of
from nqspy.shares import balance_of

SHARES = """
create group d1 share=3 members=(anne, eva)
create group d2 share=1 members=(ben)
set sched_factor share 20 time 1
"""
GROUPS = f"""{SHARES}
define shift report when=("0 6 * * *")
start queue batch
end
define shift night when=("0 21 * * *")
start queue batch
end
"""


@pytest.fixture(scope="module")
def centre():
    """Return a site after a night of uneven requests, some of which compute half of their time; it is
    03:00."""
    runs = {"anne": Run(420_000), "eva": Run(900_000, 450_000), "ben": Run(600_000)}
    centre = Centre(PLAIN + GROUPS, pes=4, lengths=lambda request: runs[request.owner])
    centre.submit(*["anne", "ben", "eva"] * 10)
    centre.until("2026-03-02T22:30:00+01:00")
    centre.submit(*["ben"] * 12, *["anne"] * 25)
    centre.until("2026-03-03T00:10:00+01:00")
    return centre


def bounds(centre):
    return night_bounds(centre.journal.events(), zone_of("Europe/Paris"), centre.sim.now)


def both_reports(centre):
    """Return the reports of the night and of quotas up to now, and the rows of the latter by department."""
    site, now, events = centre.site, centre.sim.now, [*centre.journal.events()]
    night = night_report(events, site, bounds(centre), now)
    quota = quota_report(events, site, Period(bounds(centre).start, now, "night", True), now)
    return night, quota, {row["name"]: row for row in quota["groups"]}


def test_a_department_without_a_share_that_had_work_is_among_those_of_both_reports():
    shares = GROUPS + "create group d0 share=0 members=(dora)\ncreate group d9 share=0 members=(zoe)\n"
    centre = Centre(PLAIN + shares, pes=2, length=600)
    centre.until("2026-03-02T21:30:00+01:00")
    centre.submit("dora", "dora")  # they hold both PEs when the others come
    centre.later(minutes=1)
    centre.submit(*["anne", "ben"] * 3, "dora")
    centre.until("2026-03-02T22:10:00+01:00")
    night, quota, told = both_reports(centre)
    rows = {row["name"]: row for row in night["groups"]}
    assert set(rows) == set(night["parts"]["groups"]) == {"d0", "d1", "d2"}
    assert rows["d0"]["deviation"] > 0
    for name, row in rows.items():
        assert row["deviation"] == pytest.approx(told[name]["deviation"], abs=0.01)
    assert night["deviation"] == pytest.approx(quota["deviation"], abs=0.01)
    assert night["deviation"] == pytest.approx(max(abs(row["deviation"]) for row in rows.values()))


def test_the_reports_say_what_the_scheduler_kept(centre):
    night, _, told = both_reports(centre)
    entries = {row["name"]: centre.site.accounts[f"g:{row['name']}"].entry for row in night["groups"]}
    whole = sum(entry.got for entry in entries.values())
    for row in night["groups"]:
        assert row["part"] == pytest.approx(entries[row["name"]].got / whole, abs=0.02)
        assert row["share"] == pytest.approx(entries[row["name"]].entitled / whole, abs=0.02)
        assert told[row["name"]]["deviation"] == pytest.approx(row["deviation"], abs=0.01)
        assert told[row["name"]]["got"] == pytest.approx(row["part"])


def test_every_mark_has_its_sums(centre):
    charge, begin = centre.site.settings.usage.charge, bounds(centre).start
    accounts = QuotaAccounts(PastSite(centre.site), charge, begin, centre.sim.now, 900_000)
    replay = HistoryReplay({}, watchers=(accounts,))
    for recorded in centre.journal.events():
        replay.add(recorded)
    accounts.advance(Instant(centre.sim.now))
    assert len(accounts.sums) == len(accounts.marks)
    assert sum(accounts.sums[-1].got.values()) > 0


def test_the_page_draws_parts_against_targets_over_the_night(centre):
    data = night_report(centre.journal.events(), centre.site, bounds(centre), centre.sim.now)
    assert data["parts"]["groups"] == ["d1", "d2"]
    first = data["parts"]["rows"][0]["groups"]
    assert all(0 <= each[key] <= 1 for each in first.values() for key in ("part", "target"))
    page = night_html(data)
    assert page.count("<svg") == 2
    own = night_html(page_of(data, "d1"))
    assert 'id="parts-desc"' in own
    assert "d2" not in own.partition('id="parts-desc"')[2].partition("</svg>")[0]


def told(centre, begin):
    """Return the results of a report on the same events, which follows the settings with them."""
    charge = centre.site.settings.usage.charge
    accounts = QuotaAccounts(PastSite(centre.site, Site()), charge, begin, centre.sim.now, 3_600_000)
    replay = HistoryReplay({}, watchers=(accounts,))
    for recorded in centre.journal.events():
        replay.add(recorded)
    accounts.sample(
        {seq: use for seq, (_, use) in centre.sim.executor.use(centre.sim.now).items()}, centre.sim.now
    )
    sums = accounts.total()
    return {name: (sums.entitled[name], sums.got[name]) for name in sums.got}


def agree(centre, begin):
    """Return the departments whose accounts by the scheduler equal the report."""
    level = balance_of(centre.site).groups.copy()
    level.advance(centre.sim.now, balance_of(centre.site).terms)
    now = {name: pytest.approx((e.entitled, e.got), abs=2_000) for name, e in level.members().items()}
    report = told(centre, begin)
    assert {name: report[name] for name in now} == now
    return set(now)


def test_work_that_can_never_start_is_nobodys():
    capped = "create group d3 share=4 members=(tom)\nstop queue batch\n"
    centre = Centre(PLAIN + SHARES + capped, pes=4, lengths=lambda request: Run(600_000))
    begin = centre.sim.now
    centre.submit(*["tom pes=2"] * 5)
    centre.qmgr("set group d3 limit=25%\nstart queue batch")
    centre.submit(*["anne", "ben"] * 60)
    centre.later(hours=3)
    assert agree(centre, begin) == {"d1", "d2"}


def test_a_suspended_request_is_no_work():
    centre = Centre(PLAIN + SHARES, pes=4, lengths=lambda request: Run(3_600_000))
    begin = centre.sim.now
    first, *_ = centre.submit("anne", *["ben"] * 12)
    centre.later(minutes=12)
    centre.qmgr(f"suspend request {first}")
    centre.later(hours=1)
    assert agree(centre, begin) == {"d2"}
    centre.qmgr(f"resume request {first}")
    centre.later(minutes=30)
    assert agree(centre, begin) == {"d1", "d2"}


def test_no_part_is_negative_where_a_request_used_less_than_it_counted_as(diary):
    book = diary(pes=2, d1=1, d2=1)
    first, second = book.submit(-7300, "d1"), book.submit(-7300, "d2", "ben")
    book.decide(-7200, first, second)
    book.night()
    book.end(60, first, 73)
    book.end(3600, second, 10_800)
    book.morning()
    data = book.report(40_000)
    parts = {row["name"]: row["part"] for row in data["groups"]}
    # d1 worked for a minute, at a hundredth of a PE, while d2 used one, and for an hour.
    assert parts == pytest.approx({"d1": 0.6 / 3600.6, "d2": 3600 / 3600.6}, abs=1e-5)
    every = [each["part"] for row in data["parts"]["rows"] for each in row["groups"].values()]
    assert min(every) >= 0
    assert max(every) <= 1


def test_a_correction_belongs_to_all_the_time_that_it_corrects(diary):
    book = diary(pes=2, d1=1, d2=1)
    book.night()
    first, second = book.submit(0, "d1"), book.submit(0, "d2", "ben")
    book.decide(0, first, second)
    book.end(7200, first, 72)
    book.end(7200, second, 7200)
    book.morning()
    data = book.report(40_000)
    rows = [row["groups"] for row in data["parts"]["rows"] if row["groups"]]
    assert len(rows) == 8
    assert [row["d1"]["part"] for row in rows] == pytest.approx([0.01 / 1.01] * 8, abs=0.001)


MOVES = """
create domain big pes=4-7
create batch_queue wide domain=big
enable queue wide
start queue wide
"""
DAY = """
define shift day when=("0 7 * * *")
set domain big pes=6-7
set group d1 share=1
end
"""


def test_a_night_is_told_by_the_settings_that_held_then():
    """The day's shift takes PEs and shares away: what the night's report says of the night stays."""
    centre = Centre(PLAIN + GROUPS + MOVES, pes=8, lengths=lambda request: Run(600_000))
    centre.submit(*["anne", "ben"] * 60)
    centre.submit(*["ben", "anne", "anne"] * 30, queue="wide")
    centre.until("2026-03-03T05:50:00+01:00")
    centre.submit("anne pes=4")
    centre.until("2026-03-03T06:30:00+01:00")
    events = centre.journal.events()
    past = night_bounds(events, zone_of("Europe/Paris"), centre.sim.now)
    period = Period(past.start, past.end, "night", False)

    def reports():
        found = [*centre.journal.events()]
        night = night_report(found, centre.site, past, centre.sim.now, Facts(before=Site()))
        quota = quota_report(found, centre.site, period, centre.sim.now, before=Site())
        keys = ("got", "entitled", "deviation", "could_s", "could_part", "work_part")
        rows = {row["name"]: [row[key] for key in keys] for row in quota["groups"]}
        return rows, {row["name"]: (row["part"], row["deviation"]) for row in night["groups"]}

    before = reports()
    assert before[0]["d1"][3] > 0
    centre.qmgr(f"{DAY}set queue wide domain=application\nset group d1 share=9\n")
    centre.later(hours=1)
    assert reports() == before
    centre.qmgr("set shift day spill=leave\ndelete shift day\ndelete domain big\nset machine pes=3")
    assert reports() == before
    still = quota_report(centre.journal.events(), centre.site, period, centre.sim.now)
    deviations = {name: row[2] for name, row in before[0].items()}
    assert {row["name"]: row["deviation"] for row in still["groups"]} != deviations


def test_one_that_can_start_nothing_is_no_work_for_a_report_that_has_but_the_journal():
    centre = Centre(PLAIN + SHARES + "stop queue batch\n", pes=4)
    begin = centre.sim.now
    centre.submit(*["ben mem=200mb"] * 5)
    centre.qmgr("set queue batch memory_limit=100mb\nstart queue batch")
    centre.submit(*["anne"] * 60)
    centre.later(hours=2)
    assert agree(centre, begin) == {"d1"}
