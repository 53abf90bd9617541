"""No owner gets past an exit's refusal by making it fail again and again, nor switches it off alone."""

import time

import pytest

from nqspy.model.machine import ExitSettings
from nqspy.userexit.call_stats import RETRY, Mark, OwnerBackoff, Record
from nqspy.userexit.site_exits import SiteExits

GATE = """
@userexit
def jobselect(request):
    if request.name == "poison":
        1 / 0
    return refuse("the site's rule")
"""
LOOP = "@userexit\ndef jobselect():\n    while True: pass\n"
RESTING = "exit gate failed on five requests of anne in a row; it is called for anne again at 00:22"


@pytest.fixture
def fails(house, req, a_pass):
    """fails(exits, "anne", 1, 2): submit requests on which it fails, one pass each; return the failures."""

    def asked(exits, owner, *seqs):
        found = []
        for seq in seqs:
            a_pass(exits)
            assert exits.jobselect(req(seq, owner, "poison"), house).verdict == "refuse"
            found += exits.failures()
        return found

    return asked


@pytest.fixture
def gate(put, load):
    put("gate", GATE)
    return load()


def test_five_of_one_owner_do_not_switch_it_off_and_theirs_stay_refused(gate, house, req, a_pass, fails):
    failures = fails(gate, "anne", *range(1, 7))
    assert [failure.seq for failure in failures] == [1, 2, 3, 4, 5], "the sixth is not asked about"
    assert not any(failure.off for failure in failures)
    assert [bool(failure.rests) for failure in failures] == [False] * 4 + [True], "told once"
    a_pass(gate)
    for each in (req(7), req(8), req(1, name="poison")):
        refused = gate.jobselect(each, house)
        assert (refused.verdict, refused.who, refused.text) == ("refuse", "gate", RESTING)
    assert gate.asks_again() == house.now + RETRY
    assert gate.listing()[0]["calls"] == 5


def test_others_are_asked_about_as_ever_and_after_five_minutes_theirs_again(gate, house, req, a_pass, fails):
    fails(gate, "anne", *range(1, 6))
    a_pass(gate)
    assert gate.jobselect(req(10, "bob"), house).text == "the site's rule"
    assert gate.asks_again() is None
    for later, text in ((RETRY - 1, RESTING), (1, "the site's rule")):
        house.now += later
        a_pass(gate)
        assert gate.jobselect(req(11), house).text == text
    assert gate.asks_again() is None


def test_a_changed_setting_or_a_reload_ends_it(gate, house, req, a_pass, fails):
    fails(gate, "anne", *range(1, 6))
    a_pass(gate, gate=ExitSettings("gate", budget=40))
    assert gate.jobselect(req(10), house).text == "the site's rule"
    fails(gate, "anne", *range(1, 6))
    gate.reload()
    a_pass(gate)
    assert gate.jobselect(req(10), house).text == "the site's rule"


def test_the_failure_of_another_owner_right_after_them_switches_it_off(gate, fails):
    assert not any(failure.off for failure in fails(gate, "anne", *range(1, 7)))
    [last] = fails(gate, "bob", 10)
    assert last.off
    assert not last.rests


def test_an_answer_about_another_owner_in_between_begins_a_new_row(gate, house, req, a_pass, fails):
    fails(gate, "anne", *range(1, 6))
    a_pass(gate)
    gate.jobselect(req(10, "bob"), house)
    assert [failure.off for failure in fails(gate, "bob", 11, 12, 13, 14)] == [False] * 4


def test_a_looping_exit_costs_each_owner_five_budgets_in_five_minutes(put, load, house, req, a_pass):
    put("gate", LOOP)
    exits = load()
    used = time.thread_time()
    for n in range(20):
        house.now += 1000
        a_pass(exits, gate=ExitSettings("gate", budget=20))
        for seq in range(1, 30):
            assert exits.jobselect(req(seq), house).verdict == "refuse", n
        assert not any(failure.off for failure in exits.failures())
    assert exits.listing()[0]["calls"] == 5
    assert time.thread_time() - used < 1


@pytest.mark.parametrize("hook", ["submit", "route", "elected", "shrpri"])
def test_hooks_that_refuse_nothing_rest_too_and_leave_the_stock_rule(put, load, house, req, a_pass, hook):
    put("gate", f"@userexit\ndef {hook}(): 1 / 0\n")
    exits = load()
    ask = {
        "submit": lambda n, who: exits.submit(req(0, who), house),
        "route": lambda n, who: exits.route(req(0, who), ("night", "day"), house),
        "elected": lambda n, who: exits.elected(req(n, who), house),
        "shrpri": lambda n, who: exits.shrpri(who, f"d{n}", house),
    }[hook]
    stock = {"submit": None, "route": ("night", "day"), "elected": [], "shrpri": None}[hook]
    found = []
    for n in range(9):
        a_pass(exits)
        assert ask(n, "anne") == stock
        found += exits.failures()
    assert [(failure.off, bool(failure.rests)) for failure in found] == [(False, n == 4) for n in range(5)]
    a_pass(exits)
    assert ask(9, "bob") == stock
    assert [failure.off for failure in exits.failures()] == [True]


def test_it_outlives_the_process(gate, tmp_path, house, req, a_pass, fails):
    fails(gate, "anne", *range(1, 6))
    later = SiteExits(tmp_path / "exits")
    a_pass(later)
    later.recollect(gate.memory({"gate": "x"}), {"gate": "x"})
    a_pass(later)
    assert later.jobselect(req(10), house).text == RESTING
    assert [failure.off for failure in fails(later, "bob", 11)] == [True], "the row does too"


def test_a_changed_file_begins_anew(gate, house, req, a_pass, fails):
    fails(gate, "anne", *range(1, 6))
    remembered = gate.memory({"gate": "x"})
    gate.reload()
    a_pass(gate)
    gate.recollect(remembered, {"gate": "y"})
    assert gate.jobselect(req(10), house).text == "the site's rule"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_marks_may_come_in_any_order_of_time(order):
    marks = [(4, Mark(10_000, "died", lost=True)), (2, Mark(8_000, "an older failure"))]
    record = Record()
    for n in order:
        record.skip(*marks[n])
        record.skip(7, marks[n][1])
        record.back_off(("anne", "ben")[n], marks[n][1])
        record.back_off("cate", marks[n][1])
    assert [record.skipped(subject, 10_001) for subject in (4, 2, 7)] == ["died", "an older failure", "died"]
    assert [record.back_off_of(who, 10_001).at for who in ("anne", "ben", "cate")] == [10_000, 8_000, 10_000]
    assert record.skipped(2, 8_000 + RETRY) is None
    assert (record.skips(), record.backed_off()) == ([(2, 8_000, "an older failure")], [("ben", 8_000)])


def test_after_lost_processes_one_owners_are_not_asked_about(gate, house, req, a_pass):
    a_pass(gate)
    gate.lost([], [OwnerBackoff("gate", "anne", house.now), OwnerBackoff("unknown", "anne", house.now)])
    text = "exit gate failed on requests of anne that ended its process; it is called for anne again at 00:22"
    assert gate.jobselect(req(1), house).text == text
    assert gate.jobselect(req(2, "ben"), house).text == "the site's rule"
    assert gate.asks_again() == house.now + RETRY
    began, house.now = house.now, house.now + RETRY
    with gate.rehearsal(began):
        a_pass(gate)
        assert gate.jobselect(req(1), house).text == text, "a look ahead over its end does not ask either"
    assert gate.asks_again() is None
    a_pass(gate)
    assert gate.jobselect(req(1), house).text == "the site's rule"


def test_a_submission_that_failed_says_nothing_of_the_next_with_its_number(put, load, house, req, a_pass):
    put(
        "door",
        "@userexit\ndef submit(request):\n    if request.name == 'poison': 1 / 0\n    return refuse('no')\n",
    )
    exits = load()
    a_pass(exits)
    assert exits.submit(req(7, name="poison", state="arriving"), house) is None
    a_pass(exits)
    assert exits.submit(req(7, "ben", state="arriving"), house).refusal == "no"
