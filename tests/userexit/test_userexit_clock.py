"""Rules by the clock: ``refuse(until=)``, local time, the next time of day, the end of a shift."""

from datetime import datetime, timedelta
from importlib.resources import files

import pytest
from engine.harness import PLAIN, Centre, cm, item, seq_of
from msgspec.structs import replace

from nqspy.engine.explain import reason_of
from nqspy.model.ids import Instant
from nqspy.report.time_text import zone_of
from nqspy.userexit.clock import next_at
from nqspy.userexit.site_exits import SiteExits
from nqspy.userexit.testing import ExitFailed, Site

HEAD = "from nqspy.userexit import hold_line, refuse, setting, userexit\n"
REFUSES = HEAD + '@userexit\ndef jobselect(request, view): return refuse("no", until={})\n'
PARIS = "Europe/Paris"


def rule_of_the_manual() -> str:
    """Return the example of the page `exits` as it is printed."""
    page = (files("nqspy") / "manual" / "exits.md").read_text()
    [found] = [each for each in page.split("```python\n")[1:] if each.startswith('"""Late:')]
    return found.split("```")[0]


def moment(text: str) -> Instant:
    return zone_of(PARIS).instant(datetime.fromisoformat(text))


def site_of(rule: str, at: str = "2026-03-02 21:00", **more) -> Site:  # type: ignore[no-untyped-def]
    return Site(exits={"rule": rule}, at=at, zone=PARIS, **more)


def test_the_rule_of_the_manual_holds_on_an_idle_site() -> None:
    site = site_of(rule_of_the_manual(), pes=8, runs="5min")
    site.submit("early", project="P", wall="2h")
    site.must_run("early")
    site.at("22:30")
    site.submit("long", project="P", wall="1h")
    site.submit("endless", project="P")
    site.submit("short", project="P", wall="59min")
    site.submit("other", project="Q", wall="2h")
    site.submit("none", account="P", wall="2h")
    assert site.running == ["short", "other", "none"]
    site.must_wait("long", because="from 06:00 to 22:00")
    site.to_the_end()
    assert [site.job(name).started for name in ("long", "endless")] == ["2026-03-03 06:00:00"] * 2


def test_why_and_eta_show_the_instant(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "late.py").write_text(rule_of_the_manual())
    centre = Centre(PLAIN, at="2026-03-02T23:00:00+01:00", exits=SiteExits(tmp_path))

    given = item("anne wall=2:00:00", centre.sim.now)
    given = replace(given, spec=replace(given.spec, attributes=("project:P",)))
    seq = seq_of(centre.ask(cm.Submit((given,)))["ids"][0])
    reason = reason_of(centre.engine, centre.request(seq))
    six = moment("2026-03-03 06:00")
    assert reason is not None
    assert (reason.code, reason.until) == ("EXIT", six)
    assert centre.engine.plan.wake_at == six
    assert centre.forecasts(seq)[seq].latest.start == six
    assert centre.estimate(seq)[0] == six


@pytest.mark.parametrize(
    ("until", "started"),
    [
        ('view.at("22:30")', "22:30:00"),
        ("view.local.replace(hour=23, minute=15)", "23:15:00"),
        ("view.now + 90_000", "21:01:30"),
        ("request.submitted + 3_600_000", "22:00:00"),
        ("view.now + 1", "21:00:01"),  # at least one second later, so that passes do not spin
    ],
)
@pytest.mark.parametrize("answer", ["refuse", "hold_line"])
def test_it_starts_at_the_instant_that_was_named(until: str, started: str, answer: str) -> None:
    rule = f"""{HEAD}
@userexit
def jobselect(request, view):
    until = {until}
    if view.now == request.submitted:
        return {answer}("not yet", until=until)
"""
    site = site_of(rule)
    site.submit("a")
    site.must_wait("a", because="not yet")
    site.to_the_end()
    assert site.job("a").started == f"2026-03-02 {started}"


@pytest.mark.parametrize("until", ["view.now", "view.now - 5", "0", "view.local"])
def test_an_instant_that_is_past_counts_as_none(until: str) -> None:
    site = site_of(REFUSES.format(until))
    site.submit("a")
    assert site._driver.engine.plan.wake_at is None
    site.to_the_end()
    assert site.waiting == ["a"]


@pytest.mark.parametrize(
    "until", ['"06:00"', "1.5", "True", "-1", "10**30", "view.local.replace(tzinfo=None)", 'view.at("25:00")',
              "view.at(6)"],
)  # fmt: skip
def test_what_is_no_instant_is_a_failure_that_says_so(until: str) -> None:
    site = site_of(REFUSES.format(until))
    with pytest.raises(ExitFailed, match="not"):
        site.submit("a")


def test_a_refusal_that_reaches_others_reaches_them_until_then() -> None:
    rule = f"""{HEAD}
@userexit
def jobselect(request, view):
    if view.local.hour < 22:
        return refuse("from 22:00", alike=(), until=view.at("22:00"))
"""
    site = site_of(rule, pes=2)
    with site.at_once():
        for name in "abc":
            site.submit(name)
    assert site.running == []
    site.at("22:00:00")
    assert site.running == ["a", "b"]


def test_a_view_knows_the_shift_and_its_end() -> None:
    rule = f"""{HEAD}
@userexit
def jobselect(request, view):
    if view.shift == "day":
        return refuse("at night", until=view.shift_ends)
"""
    shifts = "".join(
        f'define shift {name} when="0 {hour} * * *"\nset default priority=30\nend\n'
        for name, hour in (("day", 8), ("night", 23))
    )
    queue = "create batch_queue batch\nenable queue batch\nstart queue batch\n"
    site = Site(queue + shifts, exits={"rule": rule}, at="2026-03-02 21:00", zone=PARIS)
    site.submit("a")
    assert site._driver.engine.plan.wake_at == moment("2026-03-02 23:00")
    site.at("23:00:00")
    site.must_run("a")


@pytest.mark.parametrize(
    ("now", "text", "found"),
    [
        ("2026-03-02 21:00", "06:00", "2026-03-03 06:00"),
        ("2026-03-02 05:59", "06:00", "2026-03-02 06:00"),
        ("2026-03-02 06:00", "6:00", "2026-03-03 06:00"),
        ("2026-03-02 21:00", "21:00:30", "2026-03-02 21:00:30"),
        ("2026-03-29 00:00", "02:30", "2026-03-29 03:00"),  # skipped: at the change
        ("2026-10-25 00:00", "02:30", "2026-10-25 02:30"),
    ],
)
def test_the_next_time_of_day(now: str, text: str, found: str) -> None:
    assert next_at(text, PARIS, moment(now)) == moment(found)


def test_a_time_that_comes_twice_comes_once() -> None:
    first = moment("2026-10-25 02:30")
    assert next_at("02:30", PARIS, first) == first + timedelta(hours=25).total_seconds() * 1000
