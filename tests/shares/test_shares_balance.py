"""What is owed: the two accounts of the deficit rule, who has work, and use that is charged evenly."""

from math import exp, log

import pytest

from nqspy.model.decay import remaining_of_even
from nqspy.model.ids import DAY, HOUR, MINUTE, Instant
from nqspy.model.people import Group
from nqspy.model.site import Site
from nqspy.shares.balance import Balance
from nqspy.shares.level import PE, Terms

T0 = Instant(1_000_000_000)


class Books:
    """A balance over entries of its own; ``d1`` has three times the share of ``d2``."""

    def __init__(self, **shares):
        self.site = Site(host="ymp")
        self.balance = Balance(self.site, "application")
        groups = {name: Group(name, share=share) for name, share in (shares or {"d1": 3, "d2": 1}).items()}
        groups["default"] = Group("default", share=0)
        self.balance.tune(Terms(8, DAY, 0.2, 10 * MINUTE), groups)
        self.now = T0
        self.balance.advance(T0)

    def run(self, group, pes):
        self.balance.change(group, "anne", pes * PE, pes)

    def ready(self, group, pes):
        self.balance.advance(self.now, (group,))
        self.balance.ready([(f"{group}:anne", pes)])

    def later(self, span):
        self.now = Instant(self.now + span)
        self.balance.advance(self.now, ["d1", "d2"])
        return self

    def __getitem__(self, group):
        return self.site.accounts[f"g:{group}"].entry


def test_what_one_gets_too_little_it_is_owed():
    books = Books()
    for group in ("d1", "d2"):
        books.ready(group, 8)
        books.run(group, 4)
    books.later(MINUTE)
    assert books["d1"].present == pytest.approx(2 * MINUTE)
    assert books["d2"].present == pytest.approx(-2 * MINUTE)
    assert books["d1"].past == pytest.approx(2 * MINUTE, rel=1e-3)
    assert (books["d1"].entitled, books["d1"].got, books["d1"].whole) == (6 * MINUTE, 4 * MINUTE, 8 * MINUTE)


def test_the_short_account_is_bounded_and_the_long_one_bends_the_target():
    books = Books()
    for group in ("d1", "d2"):
        books.ready(group, 8)
    books.run("d2", 8)
    books.later(6 * HOUR)
    assert books["d1"].present == 80 * MINUTE
    assert books["d2"].present == -80 * MINUTE
    targets = books.balance.groups.targets(books.balance.terms)
    assert targets["d1"] == pytest.approx(0.75 * 1.2 / (0.75 * 1.2 + 0.25 * 0.8))


def test_who_is_idle_keeps_what_it_is_owed_and_who_comes_has_the_mean_of_the_others():
    books = Books()
    books.ready("d1", 8)
    books.run("d2", 8)
    books.later(HOUR)
    past, present = books["d1"].past, books["d2"].present
    books.ready("d1", 0)
    books.later(DAY)
    assert books["d1"].past == past, "nothing accrues"
    assert books["d2"].present == pytest.approx(present), "alone it gets what it is entitled to"
    books.ready("d1", 8)
    assert books["d1"].present == books["d2"].present
    assert books["d1"].past == past, "and nothing is forgotten"


def test_an_absence_of_a_moment_is_none():
    books = Books()
    books.ready("d1", 8)
    books.run("d2", 8)
    books.later(10 * MINUTE)
    owed = books["d1"].present
    books.ready("d1", 0)
    books.later(50).ready("d1", 8)
    assert books["d1"].present == owed


def test_nobody_is_entitled_to_more_than_it_can_use():
    books = Books()
    books.ready("d2", 8)
    books.run("d1", 1)
    assert books.balance.groups.parts() == pytest.approx({"d1": 1 / 8, "d2": 7 / 8})


def test_what_turns_out_to_have_been_used_is_corrected_for_all():
    books = Books()
    for group in ("d1", "d2"):
        books.run(group, 4)
        books.ready(group, 8)
    books.now += MINUTE
    books.balance.charge(books.now, {"d2": {"anne": -4.0 * MINUTE}})
    assert (books["d1"].entitled, books["d1"].got, books["d1"].whole) == (3 * MINUTE, 4 * MINUTE, 4 * MINUTE)
    assert books["d2"].got == 0
    assert books["d1"].present == pytest.approx(-MINUTE, rel=0.01)


def test_many_steps_or_one_give_the_same_to_a_hundredth():
    one, many = Books(), Books()
    for books, steps in ((one, 1), (many, 97)):
        books.ready("d1", 8)
        books.ready("d2", 8)
        books.run("d1", 5)
        books.run("d2", 3)
        for _ in range(steps):
            books.later(97 * MINUTE // steps)
    assert one["d1"].past == pytest.approx(many["d1"].past, rel=0.01)
    assert one["d1"].present == pytest.approx(many["d1"].present, rel=0.01)


@pytest.mark.parametrize("span", [1, MINUTE, 9 * HOUR, 30 * DAY])
def test_what_was_used_evenly_counts_as_the_decayed_integral(span):
    steps = 10_000
    whole = sum(exp(-log(2) * (span * (n + 0.5) / steps) / DAY) for n in range(steps)) / steps
    assert remaining_of_even(span, DAY) == pytest.approx(whole, rel=1e-5)


def test_a_bound_that_shrinks_counts_at_once():
    """What goes beyond it is not set against what is earned from then on."""
    books = Books()
    for group in ("d1", "d2"):
        books.ready(group, 8)
    books.run("d2", 8)
    books.later(HOUR).balance.change("d2", "anne", -8 * PE, -8)
    books.balance.terms = Terms(8, DAY, 0.0, MINUTE)
    books.run("d1", 8)
    books.later(MINUTE)
    assert books["d2"].present == pytest.approx(-6 * MINUTE)
    assert books["d1"].present == pytest.approx(6 * MINUTE)


def test_a_wish_beyond_all_pes_counts_inside_a_group_that_still_runs_on_more():
    books = Books()
    books.balance.change("d1", "anne", 20 * PE, 20)
    books.balance.tune(Terms(4, DAY, 0.2, 10 * MINUTE), {"d1": Group("d1", share=1)})
    for startable in (40, 5):
        books.balance.advance(books.now, ("d1",))
        books.balance.ready([("d1:bob", startable)])
        books.later(10 * MINUTE)
    bob, anne = (books.site.accounts[f"u:d1:{name}"].entry for name in ("bob", "anne"))
    assert bob.entitled == pytest.approx((10 + 5) * 10 * MINUTE), "half of 20 PEs, then the 5 that he can use"
    assert anne.entitled == pytest.approx((10 + 15) * 10 * MINUTE)


def test_who_is_back_within_a_minute_lies_within_the_bound_that_holds_then():
    books = Books()
    books.ready("d1", 8)
    books.ready("d2", 8)
    books.run("d2", 8)
    books.later(HOUR).ready("d1", 0)
    shorter = Terms(8, DAY, 0.2, MINUTE)
    books.balance.tune(shorter, {"d1": Group("d1", share=3), "d2": Group("d2", share=1)})
    books.later(10_000).ready("d1", 8)
    assert books["d1"].present == shorter.bound
