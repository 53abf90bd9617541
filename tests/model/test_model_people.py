"""Share tree: idle groups leave their share to their siblings; and amounts of caps."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model.people import Group, capped_pes, capped_use, entitled_now, entitlements, lineage

TREE = {
    "ymp": Group("ymp", share=60), "t3d": Group("t3d", share=20), "admin": Group("admin", share=20),
    "d1": Group("d1", "ymp", share=3), "d2": Group("d2", "ymp", share=1), "d3": Group("d3", "t3d", share=1),
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "active", "entitled"),
    [
        ({}, {"d2", "d3", "admin"}, {"d2": 0.6, "d3": 0.2, "admin": 0.2}),  # to siblings first
        ({}, {"d3", "admin"}, {"d3": 0.5, "admin": 0.5}),  # of an idle subtree to its parent's siblings
        ({}, {"d3"}, {"d3": 1.0}),
        ({}, {"d2", "d3"}, {"d1": 0.75 * 3 / 4, "admin": 20 / 100}),  # an idle one: if it alone woke up
        ({"d3": Group("d3", "t3d", share=0)}, {"d3", "d1", "admin"}, {"d3": 0.0, "d1": 0.75, "admin": 0.25}),
        ({}, set(), {"d1": 1.0}),
    ],
)
def test_what_idle_groups_leave_goes_to_those_that_have_work(more, active, entitled):
    found = entitled_now(TREE | more, active)
    assert {name: found[name] for name in entitled} == pytest.approx(entitled)


@st.composite
def trees(draw):
    """Draw up to nine groups with shares, at the root or below an earlier one, and the leaves with work."""
    groups = {}
    for number in range(draw(st.integers(1, 9))):
        parent = draw(st.none() | st.sampled_from(sorted(groups))) if groups else None
        groups[f"g{number}"] = Group(f"g{number}", parent, draw(st.integers(1, 50)))
    parents = {group.parent for group in groups.values()}
    leaves = [name for name in groups if name not in parents]
    return groups, draw(st.sets(st.sampled_from(leaves), min_size=1))


@given(trees())
def test_those_that_have_work_share_the_whole_and_none_loses_by_it(world):
    groups, active = world
    found, nominal = entitled_now(groups, active), entitlements(groups)
    assert sum(found[name] for name in active) == pytest.approx(1.0)
    assert all(found[name] >= nominal[name] - 1e-12 for name in groups)
    siblings = [(a, b) for a in active for b in active if groups[a].parent == groups[b].parent]
    for one, other in siblings:
        assert found[one] * groups[other].share == pytest.approx(found[other] * groups[one].share)


def test_the_lineage_of_a_group_is_itself_and_all_above_it():
    tree = TREE | {"lab": Group("lab", "d1"), "lost": Group("lost", "nowhere")}
    assert lineage(tree, "lab") == ["lab", "d1", "ymp"]
    assert lineage(tree, "lost") == ["lost"]
    assert lineage(tree, "nobody") == ["nobody"]


@pytest.mark.parametrize(
    ("limit", "pes", "held"), [(20, 8, 2), (25, 8, 2), (7, 100, 7), (0, 8, 0), (100, 8, 8), (0.1, 8, 1)]
)
def test_a_cap_is_whole_pes_rounded_up(limit, pes, held):
    assert capped_pes(limit, pes) == held


def test_a_cap_on_use_is_what_that_part_of_the_machine_comes_to_for_ever():
    """The cap is the decayed sum of a PE that was always busy: 1 ms of use each ms."""
    half_life = 1_000
    added = sum(2 ** (-age / half_life) for age in range(40_000))
    assert capped_use(50, 4, half_life) == pytest.approx(2 * added, rel=1e-3)
    assert capped_use(100, 1, half_life) == half_life / log(2)
