"""Shares are kept per domain: what a group got in one counts for nothing in another."""

import pytest

from nqspy.model.events import Change
from nqspy.model.ids import HOUR
from nqspy.model.site_checks import check_site
from nqspy.shares import ALL, FairShare, balance_of, correct_use, terms_of


@pytest.fixture
def two(house):
    """Two PEs each in application (queue night) and in wide (queue day), shared 3 to 1 by d1 and d2."""
    house.machine(pes=4).change(Change("create", "domain/wide", {"pes": ("2-3",)}))
    house.queue("day", domain="wide", share=1, time=0).queue("night", share=1, time=0)
    house.group("d1", 3).group("d2", 1).set("usage/charge", "pe_wall")
    return house


def entitled(house, domain):
    balance = balance_of(house.site, domain)
    return {name: round(part, 3) for name, part in balance.groups.parts().items()}


def test_who_has_no_work_in_a_domain_is_entitled_to_nothing_there(two):
    two.submit("anne group=d1", "anne group=d1", "ben group=d2", "ben group=d2", queue="night")
    two.run("ben group=d2", "ben group=d2", queue="day")
    assert entitled(two, "application") == {"d1": 0.75, "d2": 0.25}
    assert entitled(two, "wide") == {"d2": 1.0}
    assert set(two.site.accounts) >= {"g:d1", "g:d2", "wide/g:d2"}
    assert "wide/g:d1" not in two.site.accounts


def test_what_was_got_in_one_domain_is_owed_in_that_one_only(two):
    running = two.run("anne group=d1", "anne group=d1", queue="day")
    waiting = two.run("anne group=d1", "ben group=d2", "ben group=d2", queue="day")
    two.later(hours=3)
    for seq in running:
        two.end(seq, wall="3:00:00")
    elsewhere = two.submit("anne group=d1", "ben group=d2", queue="night")
    told = two.run_pass()
    assert [seq for seq in told.starts if seq in waiting] == waiting[1:], "wide has given d1 all for hours"
    assert [seq for seq in told.starts if seq in elsewhere] == elsewhere, "application owes nobody"
    present = {
        domain: balance_of(two.site, domain).groups.standing(terms_of(two.site, domain)).present
        for domain in ("application", "wide")
    }
    assert present["wide"]["d1"] < 0 < present["wide"]["d2"]


def test_reports_add_up_what_was_used_in_all_domains(two):
    day, night = *two.submit("anne group=d1", queue="day"), *two.submit("anne group=d1", queue="night")
    two.go()
    two.later(hours=1).end(day, wall="1:00:00").end(night, wall="1:00:00")
    use = {key: account.value for key, account in two.site.accounts.items() if "g:d1" in key}
    assert sorted(use) == ["g:d1", "wide/g:d1"]
    assert FairShare(two.site, two.now, {}).use("d1") == pytest.approx(sum(use.values()))
    assert FairShare(two.site, two.now, {}, domain="wide").use("d1") == pytest.approx(use["wide/g:d1"])
    assert two.site.use_of("d1", two.now) == pytest.approx(sum(use.values()))


def test_a_correction_by_hand_scales_all_domains(two):
    day, night = *two.submit("anne group=d1", queue="day"), *two.submit("anne group=d1", queue="night")
    two.go()
    two.later(hours=1).end(day, wall="1:00:00").end(night, wall="0:30:00")
    before = {key: account.value for key, account in two.site.accounts.items() if "g:d1" in key}
    two.site.touched.accounts.clear()
    correct_use(two.site, "d1", HOUR, two.now)
    after = {key: two.site.accounts[key].value for key in before}
    assert sum(after.values()) == pytest.approx(HOUR)
    assert after["g:d1"] / after["wide/g:d1"] == pytest.approx(before["g:d1"] / before["wide/g:d1"])
    assert {"g:d1", "wide/g:d1", "u:d1:anne", "wide/u:d1:anne"} <= two.site.touched.accounts


def test_an_exit_that_scales_the_stock_value_gets_that_of_the_queues_domain(two):
    asked = []

    def shrpri(owner, group, view):
        value = view.stock_shrpri(owner, group)
        asked.append((group, round(value, 3)))
        return value

    running = two.run("anne group=d1", "anne group=d1", queue="day")
    two.run("anne group=d1", "ben group=d2", queue="day")
    two.later(hours=3)
    for seq in running:
        two.end(seq, wall="3:00:00")
    two.submit("anne group=d1", "ben group=d2", queue="night")
    two.exits(shrpri=shrpri)
    two.run_pass()
    ledgers = {name: FairShare(two.site, two.now, {}, domain=name) for name in ("application", "wide")}
    assert {value for group, value in asked if group == "d2"} >= {
        round(ledger.stock("ben", "d2"), 3) for ledger in ledgers.values()
    }
    assert ledgers["wide"].stocks.rule(ALL).value("d2") > ledgers["application"].stocks.rule(ALL).value("d2")


def test_a_domain_that_goes_leaves_its_use_to_be_counted(two):
    (day,) = two.run("anne group=d1", queue="day")
    before = two.later(hours=1).end(day, wall="1:00:00").site.use_of("d1", two.now)
    two.set("queue/day/domain", "application").change(Change("delete", "domain/wide"))
    check_site(two.site)
    assert two.site.use_of("d1", two.now) == before
    assert two.site.shared() == ["application", "wide"]
    assert terms_of(two.site).pes == 4


def test_a_cap_is_a_part_of_the_machine_for_entitlements_too(two):
    """Half of the machine is all of the domain: it cuts nobody's entitlement there."""
    two.set("group/d1/limit", 50.0).run(*["anne group=d1"] * 2, *["ben group=d2"] * 2, queue="day")
    assert entitled(two, "wide") == {"d1": 0.75, "d2": 0.25}


def test_with_more_slots_than_pes_nobody_is_entitled_to_more_than_it_could_use(two):
    """A domain of two PEs with two slots each: one with work for two slots is entitled to half."""
    two.set("domain/wide/depth", 2).set("group/d1/share", 9)
    two.run(*["anne group=d1"] * 2, *["ben group=d2"] * 6, queue="day")
    assert entitled(two, "wide") == {"d1": 0.5, "d2": 0.5}
