"""Properties of the bumper with any jobs and classes: which jobs it may suspend, and that every job ends."""

import numpy as np
from core.harness import House
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from nqspy.core import domains
from nqspy.core.fallback.clearing import Tenant, cheapest
from nqspy.model import actions as ac
from nqspy.model.board import Board
from nqspy.model.domains import Domain
from nqspy.model.events import Change
from nqspy.model.site_checks import check_site

CLASSES = {
    "high": {"priority": 4, "wait": 0, "do_not_disturb": 5_000},
    "fixed": {"priority": 3, "do_not_disturb": None, "pe_limit": 4, "preempted": False},
    "plain": {"priority": 2, "wait": 120_000, "do_not_disturb": 10_000},
    "low": {"priority": 1, "wait": 600_000, "do_not_disturb": 1_000},
}
PES = 8
SIZES = st.lists(st.integers(1, PES), min_size=1, max_size=3, unique=True)
ASKED = st.tuples(SIZES, st.sampled_from(("", "barrier=1"))).map(
    lambda both: f"sizes={','.join(map(str, both[0]))} {both[1]}"
)
JOB = st.tuples(st.sampled_from(sorted(CLASSES)), ASKED, st.integers(0, 600), st.integers(1, 900))


def a_house(placement: str, depth: int) -> House:
    house = House().machine(pes=PES)
    house.set("domain/application/placement", placement).set("domain/application/depth", depth)
    for name, values in CLASSES.items():
        house.job_class(name, **values)
    house.change(Change("create", "consumable/barrier", {"count": 2, "policy": "round_robin"}))
    return house.queue("apps", order="class")


class Story:
    """Submits jobs (class, words, seconds after the previous one, seconds to run); a bumped job moves out one
    pass later."""

    def __init__(self, house: House, jobs) -> None:
        self.house, self.jobs = house, list(jobs)
        self.kind, self.left, self.since = {}, {}, {}
        self.leaving = []

    def play(self) -> None:
        for kind, asked, after, runs in self.jobs:
            self.let_pass(after)
            seq = self.house.submit(f"anne class={kind} {asked}")[0]
            self.kind[seq], self.left[seq] = kind, runs
            self.one_pass()

    def let_pass(self, seconds: int) -> None:
        for _ in range(seconds // 10 + 1):
            self.house.later(seconds=10)
            for seq in [seq for seq, request in self.house.site.started.items() if request.pause is None]:
                self.left[seq] -= 10
                if self.left[seq] <= 0:
                    self.house.end(seq)
            for seq in self.leaving:
                if seq in self.house.site.paused:
                    self.house.moved_out(seq)
            self.leaving = []
            self.one_pass()

    def finish(self, work: int) -> None:
        """Let time pass until only requests are left that can never start, or all should have ended."""
        for _ in range(3 * work // 100 + 200):
            self.let_pass(90)
            if all(self.never(seq) for seq in self.house.site.requests):
                break
        self.let_pass(990)

    def never(self, seq: int) -> bool:
        """True if its class has fewer PEs than it asks for."""
        return self.kind[seq] == "fixed" and self.house.request(seq).spec.ask.pes > 4

    def one_pass(self) -> None:
        result = self.house.run_pass()
        for action in result.actions:
            if isinstance(action, ac.Suspend):
                self.check(action.seq)
                self.leaving.append(action.seq)
        self.house.apply(result)
        for action in result.actions:
            if isinstance(action, ac.Start | ac.Resume):
                assert not set(self.house.site.offline()) & set(self.house.request(action.seq).pes)
                self.since[action.seq] = self.house.now

    def check(self, seq: int) -> None:
        """Check that a bumped job had its undisturbed time, is not fixed, and is of no higher class than some
        bumper."""
        mine, request = CLASSES[self.kind[seq]], self.house.request(seq)
        assert mine.get("preempted", True)
        assert self.house.now - self.since[seq] >= mine["do_not_disturb"] * len(request.pes)
        waiting = [other for other in self.kind if other in self.house.site.requests and other != seq]
        bumpers = [CLASSES[self.kind[other]] for other in waiting if self.waits(other)]
        assert any(
            each["priority"] > mine["priority"] or (each["priority"] == mine["priority"] and each["wait"])
            for each in bumpers
        )

    def waits(self, seq: int) -> bool:
        """True if a job waits to be loaded."""
        return seq not in self.house.site.started or self.house.request(seq).pes_released


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(st.tuples(JOB, st.sets(st.integers(0, PES - 1), max_size=2)), min_size=1, max_size=7),
    st.sampled_from(("contiguous", "lowest")),
    st.integers(1, 2),
)
def test_nobody_is_bumped_or_given_an_offline_pe_wrongly_and_everybody_ends(jobs, placement, depth):
    story = Story(a_house(placement, depth), ())
    for job, offline in jobs:
        story.jobs = [job]
        story.play()
        story.house.set("machine/offline", [str(pe) for pe in sorted(offline)])
        story.let_pass(job[2] // 2)
        rows = domains.rows(story.house.site)[0]
        room = [pe for pe in range(PES) if len(story.house.site.holders.get(pe, ())) < depth]
        assert (rows["offline"], rows["free"]) == (len(offline), len(set(room) - offline))
        check_site(story.house.site)
    story.house.set("machine/offline", ())
    story.finish(sum(job[3] for job, _ in jobs))
    assert all(story.never(seq) for seq in story.house.site.requests)


@st.composite
def boards(draw):
    """Draw a board in a row with tenants, and the number of PEs that a bumper needs."""
    size, tenants, at = draw(st.integers(1, 24)), [], 0
    while at < size:
        pes = draw(st.integers(1, 6))
        pes = min(pes, size - at)
        if draw(st.booleans()):
            weight = draw(st.sampled_from((None, 0.5, 1.0, 1.0, 2.5)))
            tenants.append(Tenant(tuple(range(at, at + pes)), weight))
        at += pes
    return size, tenants, draw(st.integers(1, size))


@given(boards())
def test_the_cheapest_row_is_that_of_an_exhaustive_search(drawn):
    size, tenants, count = drawn
    holders = {pe: (n,) for n, each in enumerate(tenants) for pe in each.pes}
    own = np.ones(size, dtype=bool)
    board = Board(Domain("d", placement="contiguous"), own, holders)
    found = cheapest(board, tenants, count, True)
    prices = []
    for begin in range(size - count + 1):
        there = [each for each in tenants if set(each.pes) & set(range(begin, begin + count))]
        if all(each.weight is not None for each in there):
            cost = sum(each.weight * len(each.pes) for each in there)
            prices.append((round(cost, 6), len(there), begin))
    assert (None if not prices else tuple(range(min(prices)[2], min(prices)[2] + count))) == found
