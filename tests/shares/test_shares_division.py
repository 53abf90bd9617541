"""Division of the machine along the share tree among groups with work."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model.people import Group
from nqspy.shares.division import Division, fill


def tree(*rows):
    return {name: Group(name, parent, share=share) for name, parent, share in rows}


def test_what_one_cannot_use_goes_to_its_siblings_then_to_those_of_its_parent():
    groups = tree(
        ("ymp", None, 60), ("t3d", None, 40), ("d1", "ymp", 2), ("d2", "ymp", 1), ("default", None, 0)
    )  # fmt: skip
    divided = Division(groups, 10).of
    whole = {"ymp": 6, "d1": 4, "d2": 2, "t3d": 4, "": 10}
    assert divided({"d1": 9, "d2": 9, "t3d": 9}) == pytest.approx(whole)
    assert divided({"d1": 1, "d2": 9, "t3d": 9})["d2"] == pytest.approx(5)
    assert divided({"d1": 1, "d2": 1, "t3d": 99})["t3d"] == pytest.approx(8)
    assert divided({"t3d": 3, "default": 99}) == pytest.approx({"t3d": 3, "default": 7, "": 10})
    assert divided({"ghost": 2, "t3d": 3}) == pytest.approx({"t3d": 3, "ghost": 2, "": 5})
    assert divided({}) == {"": 0}


def test_a_group_without_a_share_gets_nothing_by_right_below_a_parent_with_one():
    groups = tree(
        ("d1", None, 60), ("d2", None, 30), ("y", None, 50), ("a", "y", 7), ("z", "y", 0), ("zz", "z", 3),
        ("default", None, 0),
    )  # fmt: skip
    division = Division(groups, 9)
    for idle in ("z", "zz", "default"):
        both = division.parts({"d1": 9, "d2": 9, idle: 9})
        assert both == pytest.approx({"d1": 2 / 3, "d2": 1 / 3, idle: 0})
        assert division.parts({"d1": 3, idle: 9}) == pytest.approx({"d1": 1 / 3, idle: 2 / 3})
    uneven = Division(groups | tree(("d3", None, 16), ("d4", None, 29)), 8)
    assert uneven.parts({"d1": 8, "d2": 8, "d3": 8, "d4": 8, "z": 8})["z"] == 0
    assert division.of({"d1": 9, "z": 9}) == pytest.approx({"d1": 9, "y": 0, "z": 0, "": 9})
    assert division.of({"d1": 9, "a": 1, "z": 9}) == pytest.approx({"d1": 8, "y": 1, "a": 1, "z": 0, "": 9})
    found = division.parts({"d1": 4, "a": 1, "z": 9, "default": 9})
    assert found == pytest.approx({"d1": 4 / 9, "a": 1 / 9, "z": 2 / 9, "default": 2 / 9})


def test_a_cap_bounds_what_a_group_could_have():
    groups = {"d1": Group("d1", share=1, limit=25), "d2": Group("d2", share=1)}
    assert Division(groups, 8).of({"d1": 9, "d2": 9}) == pytest.approx({"d1": 2, "d2": 6, "": 8})


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6), st.floats(0, 30))
def test_an_amount_is_divided_by_weight_and_nothing_is_left_while_somebody_needs_it(people, amount):
    weights = {str(n): weight for n, (weight, _) in enumerate(people)}
    needs = {str(n): need for n, (_, need) in enumerate(people)}
    found = fill(weights, needs, amount)
    assert sum(found.values()) == pytest.approx(min(amount, sum(needs.values())))
    level = max((found[name] / weights[name] for name in found), default=0)
    for name, part in found.items():
        assert part <= needs[name] + 1e-9
        if part < needs[name] - 1e-9:
            assert part / weights[name] == pytest.approx(level)
