"""Coordinates of PEs on the machine's torus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model.errors import BadValue
from nqspy.model.machine import Machine, Torus, base_of, check_machine, read_shape, suggestion
from nqspy.model.settings import Settings


def test_the_seeds_machine_lies_as_its_display_has_it():
    t3d = read_shape("8x4x8", 2)
    assert t3d.nodes == (4, 4, 8), "four rows in each of four planes, eight columns: 128 nodes of two PEs"
    assert t3d.pes == 256
    assert t3d.at(0) == (0, 0, 0)
    assert t3d.at(4) == (4, 0, 0), "base 004 of the seed's job e, which begins in the third row of nodes"
    assert t3d.at(16) == (0, 2, 0), "base 020 of jobs h and i"
    assert t3d.at(128) == (0, 0, 4), "base 400 of job a, the right half of the machine"


sides = st.integers(1, 9)


@given(sides, sides, sides, st.integers(1, 4))
def test_each_pe_has_a_place_of_its_own_and_a_nodes_pes_are_neighbours(x, y, z, per_node):
    shape = Torus(x * per_node, y, z, per_node)
    places = [shape.at(pe) for pe in range(shape.pes)]
    assert len(set(places)) == shape.pes
    assert all(a < shape.x and b < y and c < z for a, b, c in places)
    nodes = [(a // per_node, b, c) for a, b, c in places]
    assert all(nodes[pe] == nodes[pe - pe % per_node] for pe in range(shape.pes))
    assert read_shape(str(shape), per_node) == shape


@pytest.mark.parametrize("text", ["8x8", "8x8x4x1", "0x8x4", "8*8*4", "ax1x1", "", "8x8x-4", "١x1x1"])
def test_what_is_no_shape_is_refused_with_one_that_is(text):
    with pytest.raises(BadValue, match="is not a shape; write PEs along x, y and z: 8x8x4"):
        read_shape(text)


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        ({"pes": 256, "shape": "8x8x4", "pes_per_node": 2}, []),
        ({"pes": 256}, []),
        ({"pes": 300, "shape": "8x8x4"},
         ["shape=8x8x4 has 256 PEs, the machine 300; shape=10x6x5 would fit"]),
        ({"pes": 8, "shape": "1x8x1", "pes_per_node": 2},
         ["1 PEs along x are not a multiple of pes_per_node=2; shape=2x2x2 would fit"]),
        ({"pes": 7, "shape": "8x1x1", "pes_per_node": 2},
         ["shape=8x1x1 has 8 PEs, the machine 7; 7 PEs are not a multiple of pes_per_node=2"]),
        ({"shape": "8x8x4"}, ["a shape needs the number of PEs too: set machine pes=256 shape=8x8x4"]),
        ({"pes": 4, "shape": "four"}, ["'four' is not a shape; write PEs along x, y and z: 8x8x4"]),
    ],
)  # fmt: skip
def test_a_shape_that_does_not_fit_is_answered_with_one_that_would(machine, text):
    settings = Settings(machine=Machine(**machine))
    assert list(check_machine(settings.machine)) == [f"machine: {each}" for each in text]


@given(st.integers(1, 2000), st.integers(1, 4))
def test_the_shape_that_is_suggested_fits(nodes, per_node):
    text = suggestion(nodes * per_node, per_node)
    found = read_shape(text.removeprefix("shape=").removesuffix(" would fit"), per_node)
    machine = Machine(pes=nodes * per_node, shape=str(found), pes_per_node=per_node)
    assert list(check_machine(machine)) == []


def test_base_is_the_lowest_pe_and_where_it_lies():
    shape = read_shape("4x2x2")
    assert base_of((6, 5, 9), shape) == "5 (1,1,0)"
    assert base_of((), shape) is None
    assert base_of((1,), None) is None
