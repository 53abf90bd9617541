"""Fair share: entitlement of groups, their use and expected use, and which group is furthest behind."""

from collections import Counter

import pytest
from core.harness import START
from core.story import Story

from nqspy.core.draft import Draft
from nqspy.core.order.shares import shrpris
from nqspy.core.views import view_of
from nqspy.model.events import Change
from nqspy.model.ids import HOUR
from nqspy.model.people import entitlements, with_default
from nqspy.model.requests import Used
from nqspy.model.site_checks import check_site
from nqspy.shares import ALL, FairShare, balance_of, correct_use, terms_of

DEPARTMENTS = {"d1": 29, "d2": 24, "d3": 16, "d4": 15, "d5": 16}


def departments(house):
    for name, share in DEPARTMENTS.items():
        house.group(name, share)
    house.group("default", 0)
    return house


def ledger(house, **samples):
    return FairShare(house.site, house.now, house.samples)


def used(house, group, cpu, owner="anne"):
    """Let a request of that group have run and used this much."""
    seq = house.machine(pes=1).run(f"{owner} group={group}")[0]
    house.end(seq, cpu=cpu)


LAB = {"other": None, "lab": None, "a": "lab", "b": "lab"}
"""The groups of the manual's example (page `shares`) and their parents."""


def example(house, *waiting):
    """Return a site with more requests than fit in each of these groups, half anne's and half ben's."""
    house.machine(pes=8).queue("night", share=20, time=1)
    for name, parent in LAB.items():
        house.group(name, 2 if name == "a" else 1, parent)
    for group in waiting:
        house.submit(*[f"{owner} group={group}" for owner in ("anne", "ben") * 8])
    return house


@pytest.mark.parametrize("rule", ["deficit", "decayed"])
@pytest.mark.parametrize(
    ("waiting", "held"),
    [
        ("other lab a b", {"other": 8 * 1 / 2, "a": 4 * 2 / 4, "b": 4 * 1 / 4, "lab": 4 * 1 / 4}),
        ("lab a b", {"a": 8 * 2 / 4, "b": 8 * 1 / 4, "lab": 8 * 1 / 4}),
        ("other lab", {"other": 8 * 1 / 2, "lab": 8 * 1 / 2}),
    ],
)
def test_requests_of_a_groups_own_weigh_1_beside_the_groups_below_it(house, rule, waiting, held):
    example(house, *waiting.split()).set("global/share_rule", rule).go()
    assert Counter(request.group for request in house.site.started.values()) == held


def test_the_users_of_a_group_with_groups_below_it_share_its_own_part(house):
    example(house, "lab", "a", "b").go()
    own = [request.owner for request in house.site.started.values() if request.group == "lab"]
    assert sorted(own) == ["anne", "ben"]


def test_exits_see_the_parts_of_groups_without_own_requests_of_the_group_above(house):
    example(house, *LAB)
    shares = {name: ledger(house).share(name) for name in LAB}
    assert shares == pytest.approx({"other": 1 / 2, "lab": 1 / 2, "a": 1 / 2 * 2 / 3, "b": 1 / 2 * 1 / 3})


def test_the_group_default_is_there_without_being_made(house):
    house.group("d1", 3)
    assert entitlements(with_default(house.site.settings.groups)) == {"d1": 0.75, "default": 0.25}
    assert entitlements(with_default({})) == {"default": 1.0}
    house.set("group/d1/share", 0).group("default", 0)
    assert set(entitlements(with_default(house.site.settings.groups)).values()) == {0.0}


STORIES = {
    "use decays by half in each half-life": """machine 1; queue night; run anne group=d1; end anne cpu=1:00:00
        later 1440; run anne group=d2; end anne2 cpu=30:00; usage d1=0.5 :anne=1 d1:ben=0""",
    "a parent's use is that of all below it": """machine 1; queue night; create group/ymp share=1
        create group/d1 share=1 parent=ymp; create group/d2 share=1 parent=ymp; create group/t3d share=1
        run anne group=d1; end anne cpu=10:00; run anne group=d2; end anne2 cpu=20:00
        run anne group=t3d; end anne3 cpu=10:00; run anne group=ymp; end anne4 cpu=10:00
        usage ymp=0.8 d1=0.2""",
}


@pytest.mark.parametrize("title", STORIES)
def test_shares(house, title):
    Story(house).play(STORIES[title])


def test_a_running_request_debits_what_it_used_and_what_it_is_expected_to_use(house):
    house.machine(pes=2).queue("night")
    for cpu in ("10:00", "20:00"):
        used(house, "d1", cpu)
    running = house.later(hours=24 * 1000).run("anne group=d1")[0]
    assert ledger(house).total == pytest.approx(15 * 60_000)
    house.uses(running, "5:00")
    assert ledger(house).total == pytest.approx(15 * 60_000)
    house.uses(running, "25:00")
    assert ledger(house).total == pytest.approx(25 * 60_000)
    house.go()
    assert ledger(house).total == pytest.approx(25 * 60_000)
    house.end(running, cpu="26:00")
    assert ledger(house).total == pytest.approx(26 * 60_000)


def test_expected_use_is_at_most_the_limit_and_else_that_of_all_groups(house):
    house.queue("limited", max_cpu="5:00").queue("night")
    seqs = house.submit("anne cpu=90", "ben queue=limited", "ben group=d2", "ben group=d2 cpu=unlimited")

    def expected():
        books = ledger(house)
        return [books.expected(house.request(seq)) for seq in seqs]

    assert expected() == [90_000, 300_000, 60_000, 60_000], "a minute where nothing is known"
    house.hold(*seqs)
    used(house, "d1", "10:00")
    assert expected() == [90_000, 300_000, 600_000, 600_000]


def test_pe_time_can_be_charged_instead_of_cpu_time(house):
    house.machine(pes=4).queue("mpp", max_wall="1:00:00").set("usage/charge", "pe_wall")
    seq = house.run("anne pes=4")[0]
    assert ledger(house).total == pytest.approx(4 * HOUR)
    house.samples[seq] = Used(cpu=5, wall=2 * HOUR)
    assert ledger(house).total == pytest.approx(8 * HOUR)
    house.end(seq, wall="3:00:00")
    assert ledger(house).total == pytest.approx(12 * HOUR)


def test_under_the_decayed_rule_a_value_is_the_groups_and_a_little_of_the_users_own(house):
    departments(house).queue("night").set("global/share_rule", "decayed")
    assert ledger(house).stock("anne", "d1") == 1, "nothing was used"
    used(house, "d1", "30:00", "anne")
    used(house, "d1", "10:00", "ben")
    used(house, "d2", "40:00", "cleo")
    house.submit("anne group=d1", "ben group=d1", "cleo group=d2", *[f"dora group=d{n}" for n in (3, 4, 5)])
    house.tell_startable()
    books = ledger(house)
    assert books.stock(None, "d1") == pytest.approx(0.29 / (0.29 + 0.5))
    assert books.stock("anne", "d1") == pytest.approx(0.9 * 0.29 / 0.79 + 0.1 * 0.5 / (0.5 + 0.75))
    assert books.stock("ben", "d1") == pytest.approx(0.9 * 0.29 / 0.79 + 0.1 * 0.5 / (0.5 + 0.25))
    assert books.stock(None, "d3") == 1
    assert books.share(group="d1") == pytest.approx(0.29)
    assert books.share(group="d1", owner="ben") == pytest.approx(0.145)
    assert books.share(owner="ben") == pytest.approx(0.145)
    assert books.share() == books.usage() == 1


def test_a_department_that_cannot_start_does_not_flatten_the_others(house):
    Story(house).play("""machine 3; queue night share=20 time=1 group_limit=1; worth d1=2 d2=0.5 d3=0.25
        run anne group=d1; submit anne group=d1, ben group=d2, cleo group=d3; shares anne2=1 ben=1 cleo=0.5
        picks ben cleo; end anne; shares anne2=1 ben=0.25 cleo=0.125
        set queue/night/group_limit 0; shares anne2=1 ben=0.25 cleo=0.125""")


def test_the_exit_is_asked_once_for_each_pair_and_round(house):
    house.machine(pes=2).queue("night", share=20, time=1).queue("other", share=1)
    exits = house.exits(shrpri=lambda owner, group, view: 1.0)
    house.submit("anne group=d1", "anne group=d2", "anne group=d1", "ben group=d1", queue="night")
    house.run_pass()
    first_round = exits.called("shrpri")[:3]
    assert sorted(first_round) == [("anne", "d1"), ("anne", "d2"), ("ben", "d1")]
    assert len(exits.called("shrpri")) == 6


def test_who_was_asked_about_in_a_round_is_not_asked_about_for_another_queue(house):
    house.machine(pes=2).queue("night", share=20, time=1)
    exits = house.exits(shrpri=lambda owner, group, view: float(len(owner)))
    anne, ben, cleo = (("anne", "d1"), ("ben", "d1"), ("cleo", "d2"))
    draft = Draft(house.site, house.now, exits, {})
    terms = [shrpris(draft, "application", pairs) for pairs in ([anne, ben], [ben, cleo], [cleo, anne])]
    assert terms == [[4, 3], [3, 4], [4, 4]]
    assert exits.called("shrpri") == [anne, ben, cleo]


def test_an_exit_that_has_no_opinion_or_answers_nonsense_leaves_it_to_the_stock_rule(house):
    house.machine(pes=1).queue("night", share=20, time=1)
    answers = {"anne": None, "ben": float("nan"), "cleo": -5.0, "dora": 1.0}
    house.exits(shrpri=lambda owner, group, view: answers[owner])
    seqs = house.submit("anne", "ben", "cleo", "dora")
    standing = house.standing()
    assert [standing.of(house.request(seq)).share for seq in seqs] == [0.5, 0.5, 0, 1]


def test_a_group_of_share_0_comes_after_everybody_with_a_share_however_long_it_waits(house):
    house.group("d1", 60).group("idle", 0).group("below", 5, "idle").group("default", 1)
    house.machine(pes=2).queue("night", share=20, time=1)
    free, below, nobody = house.submit("anne group=idle", "ben group=below", "ben group=ghost")
    others = house.later(hours=90).submit(*["dora group=d1"] * 20, "cleo group=default")
    assert house.standing().line() == [*others[:1], others[-1], *others[1:-1], free, below, nobody]
    started = house.go().starts
    assert not {free, below, nobody} & set(started)
    house.site.settings.exits.clear()
    house.exits(shrpri=lambda owner, group, view: view.stock_shrpri(None, group))
    assert house.standing().line()[-3:] == [free, below, nobody], "the site's exit answers the stock value"
    house.exits(shrpri=lambda owner, group, view: 1.0)
    assert house.standing().line()[0] == free, "a site may give it a share"


def test_a_group_nobody_defined_is_entitled_to_nothing(house):
    departments(house).queue("night")
    used(house, "ghost", "10:00")
    assert ledger(house).stock("anne", "ghost") == 0
    assert ledger(house).share(group="ghost") == 0


def test_the_view_tells_use_with_what_this_pass_committed(house):
    departments(house).machine(pes=4).queue("night")
    seq = house.submit("anne group=d1 cpu=600")[0]
    draft = Draft(house.site, house.now, house.door, {})
    assert view_of(draft).usage(group="d1") == 0
    draft.choose(house.request(seq))
    assert view_of(draft).usage(group="d1") == 1
    assert view_of(draft).now == START


def test_the_shares_of_a_long_line_stop_being_asked_for(house, monkeypatch):
    monkeypatch.setattr("nqspy.core.order.places.EXIT_CALLS", 10)
    house.queue("night", share=20, time=1)
    exits = house.exits(shrpri=lambda owner, group, view: len(owner))
    house.submit(*["anne", "benjamin"] * 20)
    assert len(house.standing().line()) == 40
    assert len(exits.called("shrpri")) <= 14


# ---------------------------------------------------------------- shares are kept per domain
@pytest.fixture
def two(house):
    """Return a site with two PEs each in application (queue night) and wide (queue day), shared 3 to 1 by d1
    and d2."""
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
    result = two.run_pass()
    assert [seq for seq in result.starts if seq in waiting] == waiting[1:], "wide has given d1 all for hours"
    assert [seq for seq in result.starts if seq in elsewhere] == elsewhere, "application owes nobody"
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
    """Half of the machine is the whole domain, so the cap reduces no entitlement there."""
    two.set("group/d1/limit", 50.0).run(*["anne group=d1"] * 2, *["ben group=d2"] * 2, queue="day")
    assert entitled(two, "wide") == {"d1": 0.75, "d2": 0.25}


def test_with_more_slots_than_pes_nobody_is_entitled_to_more_than_it_could_use(two):
    """In a domain of two PEs with two slots each, a group with work for two slots is entitled to half."""
    two.set("domain/wide/depth", 2).set("group/d1/share", 9)
    two.run(*["anne group=d1"] * 2, *["ben group=d2"] * 6, queue="day")
    assert entitled(two, "wide") == {"d1": 0.5, "d2": 0.5}
