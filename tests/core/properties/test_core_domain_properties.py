"""A site whose domains share no limit decides as several separate sites: the same starts, PEs, deficits and
reasons."""

from core.harness import House
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nqspy.core.passes import explain
from nqspy.core.placement.placements import PLACEMENTS
from nqspy.model.events import Change
from nqspy.model.site_checks import check_site
from nqspy.shares import balance_of

WIDTHS = {"east": (2, 5), "west": (5, 9), "application": (0, 2)}
"""First PE of each domain, and the first PE after it."""
OWNERS = {"anne": "d1", "ben": "d2", "cleo": "d2", "dora": "d3"}


def house_of(pes: int, placements: dict[str, str]) -> House:
    house = House().machine(pes)
    house.set("usage/charge", "pe_wall")
    for name, share in (("d1", 5), ("d2", 3), ("d3", 1)):
        house.group(name, share)
    for name, placement in placements.items():
        if name != "application":
            first, last = WIDTHS[name]
            house.change(Change("create", f"domain/{name}", {"pes": (f"{first}-{last - 1}",)}))
        house.set(f"domain/{name}/placement", placement)
    return house


class Twins:
    """A site with several domains, and for each domain a site with only that domain."""

    def __init__(self, placements: dict[str, str]) -> None:
        self.whole = house_of(9, placements)
        self.single: dict[str, House] = {}
        self.of: dict[tuple[str, int], int] = {}
        for name, (first, last) in WIDTHS.items():
            self.whole.queue(name, domain=name, share=20, time=1)
            self.single[name] = house_of(last - first, {"application": placements[name]})
            self.single[name].queue(name, share=20, time=1)

    def submit(self, queue: str, owner: str, pes: int, minutes: int) -> None:
        line = f"{owner} group={OWNERS[owner]} pes={pes} wall={minutes}:00"
        [seq] = self.single[queue].submit(line, queue=queue)
        [other] = self.whole.submit(line, queue=queue)
        self.of[queue, seq] = other

    def go(self, minutes: int) -> None:
        for house in (self.whole, *self.single.values()):
            house.later(minutes=minutes)
        result = {name: house.go() for name, house in self.single.items()}
        self.whole.go()
        self.alike()
        for name, each in result.items():
            assert each.short_of_pes is (name in self.short()), name

    def short(self) -> set[str]:
        """Return the domains in which a request waits only for PEs, by the reasons."""
        reasons = explain(self.whole.site, list(self.whole.site.requests), self.whole.plan.reasons)
        return {
            self.whole.request(seq).queue for seq, reason in reasons.items() if reason.code.value == "NO_PES"
        }

    def end(self, place: int) -> None:
        running = sorted(self.whole.site.started)
        if running:
            seq = running[place % len(running)]
            [(queue, own)] = [key for key, other in self.of.items() if other == seq]
            for house, each in ((self.whole, seq), (self.single[queue], own)):
                ran = (house.now - house.request(each).started) // 1000
                house.end(each, wall=f"{ran // 3600}:{ran // 60 % 60:02d}:{ran % 60:02d}")

    def alike(self) -> None:
        check_site(self.whole.site)
        for (queue, seq), other in self.of.items():
            own, request = self.single[queue].site.requests.get(seq), self.whole.site.requests.get(other)
            assert (own is None) is (request is None)
            if own is not None and request is not None:
                assert own.state is request.state, (queue, seq)
                assert request.pes == tuple(pe + WIDTHS[queue][0] for pe in own.pes)
        for queue, house in self.single.items():
            mine, its = balance_of(self.whole.site, queue), balance_of(house.site)
            assert replace(mine.terms, machine=0) == replace(its.terms, machine=0)
            assert mine.groups.standing(mine.terms) == its.groups.standing(its.terms)
            assert mine.startable() == its.startable()


@settings(max_examples=examples(12))
@given(st.randoms(use_true_random=False), st.tuples(*[st.sampled_from(list(PLACEMENTS))] * 3))
def test_domains_are_sites_of_their_own(chance, placements):
    """Each domain has its own users, most of them of one department, so departments change unevenly."""
    twins = Twins(dict(zip(sorted(WIDTHS), placements, strict=True)))
    for _ in range(25):
        for queue in WIDTHS:
            crowd = chance.choice(sorted(OWNERS))
            for _ in range(chance.choice((0, 0, 1, 3, 6))):
                owner = crowd if chance.random() < 0.7 else chance.choice(sorted(OWNERS))
                twins.submit(queue, owner, chance.choice((1, 1, 1, 2, 3)), chance.randint(1, 90))
        twins.go(chance.randint(1, 60))
        for _ in range(chance.randint(0, 6)):
            twins.end(chance.randint(0, 20))
    twins.go(5)
