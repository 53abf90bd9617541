"""Quotas of nights whose jobs use little of their PEs, and of nights in which the clock was set."""

import pytest
from engine.harness import PLAIN, Centre
from msgspec.structs import replace

from nqspy.engine.virtual.attempts import Run
from nqspy.model.ids import HOUR, Instant
from nqspy.model.site import Site
from nqspy.model.site_copy import copy_site
from nqspy.report.counters import counters
from nqspy.report.night import Facts, night_bounds, night_report
from nqspy.report.night_pages import night_html
from nqspy.report.pages import night_text
from nqspy.report.quotas import Period, quota_report, quota_text
from nqspy.report.run_figures import figures
from nqspy.report.swf import SwfFrame, swf_log
from nqspy.report.time_text import zone_of

PARIS = zone_of("Europe/Paris")
SITE = f"""{PLAIN}
create group a share=70 members=(anne)
create group b share=30 members=(ben)
set sched_factor share 20 time 1
define shift night when=("0 21 * * *")
start queue batch
end
define shift report when=("0 6 * * *")
start queue batch
end
"""
SLEEP = 240_000


def night_of(anne, ben, pes=8):
    """Run a night: two users submit four arrays of ten each; a job of theirs computes that part of its
    time."""
    runs = {"anne": Run(SLEEP, round(SLEEP * anne)), "ben": Run(SLEEP, round(SLEEP * ben))}
    centre = Centre(SITE, pes=pes, lengths=lambda request: runs[request.owner])
    centre.until("2026-03-02T21:01:00+01:00")
    centre.submit(*["anne array=1-10", "ben array=1-10"] * 4)
    centre.until("2026-03-02T23:00:00+01:00")
    return list(centre.journal.events()), centre.site, centre.sim.now


def reports(events, site, now):
    bounds = night_bounds(events, PARIS, now)
    night = night_report(events, site, bounds, now)
    quota = quota_report(events, site, Period(bounds.start, now, "night", True), now)
    assert night_text(night)
    assert night_html(night)
    assert quota_text(quota)
    return night, quota


def are_figures(night, quota):
    """Assert that both reports have parts of one whole, and equal deviations within 100 points."""
    for data, due, got in ((night, "share", "part"), (quota, "entitled", "got")):
        rows = [row for row in data["groups"] if row["deviation"] is not None]
        for row in rows:
            assert 0 <= row[due] <= 1
            assert 0 <= row[got] <= 1
            assert abs(row["deviation"]) <= 100
        if rows:
            assert sum(row[due] for row in rows) == pytest.approx(1)
            assert sum(row[got] for row in rows) == pytest.approx(1)
    assert night["deviation"] == pytest.approx(quota["deviation"], abs=0.05)


def test_a_night_of_sleepers_is_too_little_use_to_tell():
    night, quota = reports(*night_of(0.001, 0.001))
    for data in (night, quota):
        assert data["deviation"] is None
        assert data["little_use"]
        assert all(row["deviation"] is None for row in data["groups"])
    assert night["groups"][0]["cpu_s"] > 0


@pytest.mark.parametrize(("anne", "ben"), [(0.02, 0.02), (0.1, 0.1), (0.5, 0.02), (0.0, 1.0), (1.0, 1.0)])
def test_a_deviation_is_measured_however_little_of_their_pes_jobs_use(anne, ben):
    night, quota = reports(*night_of(anne, ben))
    are_figures(night, quota)
    assert not night["little_use"]
    used = [40 * SLEEP * anne, 40 * SLEEP * ben]
    assert [row["part"] for row in night["groups"]] == pytest.approx([each / sum(used) for each in used])


def test_an_entitlement_goes_by_what_was_charged_while_others_had_work():
    """Equal jobs: a has 70 % of 8 PEs until it runs dry, b the rest, then b is alone."""
    night, _ = reports(*night_of(0.1, 0.1))
    first, second = night["groups"]
    assert first["share"] < 0.7 * 0.9
    assert abs(first["deviation"]) < 7
    assert first["deviation"] == pytest.approx(-second["deviation"])


# ---------------------------------------------------------------- the clock is set
def stepped(events, *steps):
    """Return the events with a clock that was set: from each event number on so much (ms) is added."""
    return [replace(each, at=Instant(each.at + sum(ms for n, ms in steps if each.n >= n))) for each in events]


STEPS = [
    [(40, -2 * HOUR)], [(40, -HOUR // 2), (90, HOUR // 2)], [(60, 2 * HOUR)],
    [(60, 2 * HOUR), (80, -3 * HOUR)], [(30, -60_000), (50, -600_000), (70, 5 * HOUR), (100, -5 * HOUR)],
]  # fmt: skip


@pytest.fixture(scope="module")
def night():
    return night_of(0.5, 0.25)


@pytest.mark.parametrize("steps", STEPS)
def test_reports_of_a_night_in_which_the_clock_was_set(night, steps):
    events, site, now = night
    whole = stepped(events, *steps)
    end = Instant(max(now + sum(ms for _, ms in steps), whole[-1].at))
    told = reports(whole, site, end)
    are_figures(*told)
    for row in told[0]["groups"]:
        assert row["wall_s"] == pytest.approx(40 * SLEEP / 1000, rel=0.01), "durations are real"
    for data in (told[0], counters(whole, site, end)):
        assert all(row.get("used_s", 0) >= 0 and row.get("cpu_s", 0) >= 0 for row in data["groups"])
    if told[0]["busy"] is not None:
        assert 0 <= told[0]["busy"] <= 1


@pytest.mark.parametrize("steps", STEPS)
def test_no_wait_is_negative_in_a_workload_log(night, steps):
    log = swf_log(stepped(night[0], *steps), SwfFrame("host", "nqspy", PARIS))
    lines = [line.split() for line in log.splitlines()]
    jobs = [line for line in lines if line and line[0] != ";"]
    assert len(jobs) == 80
    assert all(int(wait) >= 0 and int(run) == SLEEP // 1000 for _, _, wait, run, *_ in jobs)
    assert all(int(submit) >= 0 for _, submit, *_ in jobs)


# ---------------------------------------------------------------- replays
@pytest.mark.parametrize("charge", ["cpu", "pe_wall"])
@pytest.mark.parametrize("since", [None, "2026-03-02T21:20:00+01:00"])
def test_a_replay_measures_what_the_report_of_the_night_does(charge, since):
    """Also where its time begins in the middle, and where the measure was set after it began."""
    runs = {"anne": Run(SLEEP, SLEEP // 50), "ben": Run(3 * SLEEP, 2 * SLEEP)}
    centre = Centre(SITE, pes=8, lengths=lambda request: runs[request.owner])
    before, first = Site(), 0
    centre.until("2026-03-02T21:00:30+01:00")
    centre.submit("anne array=1-30", *["ben", "anne", "anne"] * 20)
    if since is not None:
        centre.until(since)
        before, first = copy_site(centre.site), centre.site.n
    centre.qmgr(f"set usage charge={charge}")
    centre.until("2026-03-03T06:10:00+01:00")
    events, site, now = list(centre.journal.events()), centre.site, centre.sim.now
    shown = [each for each in events if each.n > first]
    begin, end = shown[0].at, Instant(shown[-1].at + 1)
    found = figures(before, shown, begin, end, site.settings.usage.charge)
    quota = quota_report(events, site, Period(begin, end, None, True), now, before=Site())
    assert found.deviation == pytest.approx(quota["deviation"], abs=0.05)
    assert found.deviation > 0.1
    if since is None:
        night = night_report(events, site, night_bounds(events, PARIS, now), now, Facts(before=Site()))
        assert found.deviation == pytest.approx(night["deviation"], abs=0.05)
