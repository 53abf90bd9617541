"""A night at the computing centre: order, quotas and processors (seed 003; result to beat: 97 % busy)."""

import pytest
from scenarios.computing_centre import EVENING, Site, lists_for, measure, seconds_in_name, until_all_ended

from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.report.night import night_bounds, night_report
from nqspy.report.time_text import zone_of

FIVE = {"d1": 29, "d2": 24, "d3": 16, "d4": 15, "d5": 4}
EIGHT = FIVE | {"d6": 10, "d7": 1, "d8": 1}


def report_of(site: Site) -> dict:
    """The program's own report of the same night."""
    events = list(site.journal.events())
    changes = [r for r in events if isinstance(r.event, ev.ShiftChanged)]
    bounds = night_bounds(changes, zone_of("Europe/Paris"), site.sim.now)
    return night_report(events, site.site, bounds, site.sim.now)


@pytest.mark.parametrize(
    ("shares", "pes"), [(FIVE, 2), (FIVE, 4), (EIGHT, 2)], ids=["five", "five on four PEs", "eight"]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_night_keeps_order_and_quotas_and_the_processors_busy(shares, pes, seed):
    site = Site(seconds_in_name, pes=pes)
    lists = lists_for(site, shares, 123, seed)
    assert not site.starts(), "before 21:00 the lists wait"
    until_all_ended(site)
    night = measure(site, lists, pes)
    assert night.ended == sum(len(seqs) for seqs in lists.values())
    assert night.in_order(lists)
    assert night.busy >= 0.97
    if shares is FIVE:
        assert night.deviation(shares) <= 2.0
    site.is_sound()


def test_with_eight_departments_the_quotas_hold_as_long_as_all_have_work():
    """Lists of two requests for departments of 1 % are over at once: they are given enough here."""
    site = Site(seconds_in_name)
    lists = {}
    for name, share in EIGHT.items():
        lists[name] = site.list_of(name, *(f"name={name}-{n}-60 mem=4mw" for n in range(max(6, 6 * share))))
    until_all_ended(site)
    night = measure(site, lists, 2)
    assert night.in_order(lists)
    assert night.deviation(EIGHT) <= 2.0
    assert night.busy >= 0.97


def test_the_report_says_the_same_as_the_bare_events():
    site = Site(seconds_in_name)
    lists = lists_for(site, FIVE, 123, 3)
    until_all_ended(site)
    night, report = measure(site, lists, 2), report_of(site)
    assert report["requests"] == night.ended
    assert report["busy"] == pytest.approx(night.busy, abs=0.005)
    assert report["deviation"] == pytest.approx(night.deviation(FIVE), abs=0.25)
    assert report["order_kept"]
    assert report["line"].startswith(f"night: {night.ended} requests: {night.ended} ended well, 0 failed, ")


def test_steps_of_the_same_name_wait_for_each_other_and_others_fill_in():
    site = Site(lambda r: 600)
    chain = site.list_of("d1", "name=prepare mem=4mw", "name=prepare mem=4mw", "name=prepare mem=4mw")
    other = site.list_of("d2", "name=a mem=4mw", "name=b mem=4mw", "name=c mem=4mw")
    site.until("2026-03-02T21:00:00+01:00")
    assert site.starts() == [chain[0], other[0]]
    until_all_ended(site)
    happened = [(type(e), e.seq) for e in site.events(ev.Ended, ev.Starting) if e.seq in chain]
    assert happened == [(kind, seq) for seq in chain for kind in (ev.Starting, ev.Ended)]
    assert [seq for seq in site.starts() if seq in other] == other
    reasons = [w for e in site.events(ev.Decided) for w in e.wait]
    assert all(who == "dependency" for seq, code, who, text in reasons if seq == chain[1])


def test_users_of_the_day_wait_for_nobodys_list_and_lists_wait_for_the_night():
    site = Site(lambda r: 60, at="2026-03-02T10:00:00+01:00")
    listed = site.list_of("d1", "name=x mem=4mw")
    short, long = site.submit("anne cpu=10 mem=4mw", "ben cpu=300 mem=4mw")
    assert [site.request(seq).queue for seq in (short, long)] == ["express", "normal"]
    assert site.starts() == [short, long]
    site.until(EVENING)
    assert site.state(listed[0]) == "queued"


def test_a_morning_after_nothing_is_lost_when_the_daemon_is_killed_over_and_over():
    site = Site(seconds_in_name)
    lists = lists_for(site, FIVE, 60, 5)
    for _ in range(40):
        site.later(minutes=13)
        site.sim.restart()
    until_all_ended(site)
    night = measure(site, lists, 2)
    assert night.in_order(lists)
    assert night.ended == sum(len(seqs) for seqs in lists.values())
    assert all(e.end_reason == "exit" for e in site.events(ev.Ended))
    assert len(site.sim.executor.begun) == night.ended
    assert isinstance(site.ask(cm.AutomaticShift()), dict)
