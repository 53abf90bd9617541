"""Deficits: the two accounts of the deficit rule, which groups have work, and evenly charged use."""

from math import exp, log
from operator import attrgetter

import pytest

from nqspy.model.accounts import remaining_of_even
from nqspy.model.ids import DAY, HOUR, MINUTE, Instant
from nqspy.model.people import Group
from nqspy.model.site import Site
from nqspy.shares.balance import Balance
from nqspy.shares.level import PE, Terms

T0 = Instant(1_000_000_000)
GROUPS = {"d1": Group("d1", share=3), "d2": Group("d2", share=1)}


class Books:
    """A balance with its own entries; ``d1`` has three times the share of ``d2``."""

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

    def tuned(self, terms, groups=None):
        if groups is None:
            self.balance.terms = terms
        else:
            self.balance.tune(terms, groups)
        return self

    def later(self, span):
        self.now = Instant(self.now + span)
        self.balance.advance(self.now, ["d1", "d2"])
        return self

    def __getitem__(self, group):
        return self.site.accounts[f"g:{group}"].entry


BOTH = ("ready d1 8", "ready d2 8")
SHORTER = Terms(8, DAY, 0.2, MINUTE)
STORIES = {
    "what one gets too little it is owed": (
        *BOTH, "run d1 4", "run d2 4", MINUTE, {"d1.present": 2 * MINUTE, "d2.present": -2 * MINUTE},
        {"d1.entitled": 6 * MINUTE, "d1.got": 4 * MINUTE, "d1.whole": 8 * MINUTE},
        lambda books: books["d1"].past == pytest.approx(2 * MINUTE, rel=1e-3),
    ),
    "the short account is bounded and the long one bends the target": (
        *BOTH, "run d2 8", 6 * HOUR, {"d1.present": 80 * MINUTE, "d2.present": -80 * MINUTE},
        lambda books: books.balance.groups.targets(books.balance.terms)["d1"]
        == pytest.approx(0.75 * 1.2 / (0.75 * 1.2 + 0.25 * 0.8)),
    ),
    "an idle group keeps what it is owed, and one that comes has the mean of the others": (
        "ready d1 8", "run d2 8", HOUR, "keep", "ready d1 0", DAY, ["d1.past", "d2.present"], "ready d1 8",
        ["d1.past"], lambda books: books["d1"].present == books["d2"].present,
    ),
    "an absence of a moment is none": (
        "ready d1 8", "run d2 8", 10 * MINUTE, "keep", "ready d1 0", 50, "ready d1 8", ["d1.present"],
    ),
    "a group is entitled to no more than it can use": (
        "ready d2 8", "run d1 1",
        lambda books: books.balance.groups.parts() == pytest.approx({"d1": 1 / 8, "d2": 7 / 8}),
    ),
    "what turns out to have been used is corrected for all": (
        "run d1 4", "ready d1 8", "run d2 4", "ready d2 8",
        lambda books: books.balance.charge(Instant(T0 + MINUTE), {"d2": {"anne": -4.0 * MINUTE}}) or True,
        {"d1.entitled": 3 * MINUTE, "d1.got": 4 * MINUTE, "d1.whole": 4 * MINUTE, "d2.got": 0},
        lambda books: books["d1"].present == pytest.approx(-MINUTE, rel=0.01),
    ),
    "a bound that shrinks counts at once: what goes beyond is not set against what is earned from then on": (
        *BOTH, "run d2 8", HOUR, "run d2 -8", lambda books: books.tuned(Terms(8, DAY, 0.0, MINUTE)),
        "run d1 8", MINUTE, {"d1.present": 6 * MINUTE, "d2.present": -6 * MINUTE},
    ),
    "one that is back within a minute lies within the bound that holds then": (
        *BOTH, "run d2 8", HOUR, "ready d1 0", lambda books: books.tuned(SHORTER, GROUPS), 10_000,
        "ready d1 8", {"d1.present": SHORTER.bound},
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_what_is_owed(title):
    """Each step makes PEs run or become ready, lets time pass (ms), stores the accounts (``keep``), or checks
    them: against these values, or (a list) against the stored ones."""
    books, kept = Books(), {}
    for step in STORIES[title]:
        if step == "keep":
            kept = {group: books[group].copy() for group in GROUPS}
        elif isinstance(step, str):
            act, group, pes = step.split()
            getattr(books, act)(group, int(pes))
        elif isinstance(step, int):
            books.later(step)
        elif isinstance(step, dict):
            assert {
                name: attrgetter(name.partition(".")[2])(books[name[:2]]) for name in step
            } == pytest.approx(step)
        elif isinstance(step, list):
            for group, _, name in (each.partition(".") for each in step):
                assert getattr(books[group], name) == pytest.approx(getattr(kept[group], name))
        else:
            assert step(books)


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
