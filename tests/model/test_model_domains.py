"""Domains: disjoint sets of PEs, of which application has what is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nqspy.model.board import pes_of
from nqspy.model.domains import APPLICATION, Domain, home_of, names, numbers
from nqspy.model.errors import BadValue


@pytest.mark.parametrize(
    ("ranges", "pes"),
    [
        (("16-18",), (16, 17, 18)),
        (("0-3", "8"), (0, 1, 2, 3, 8)),
        (("8", "0-1", "1"), (0, 1, 8)),
        ((), ()),
    ],
)
def test_ranges_name_pes(ranges, pes):
    assert numbers(ranges) == pes


@pytest.mark.parametrize(
    "text", ["", "a", "3-", "-3", "5-2", "1-2-3", "٣", "0x1", "1.5", "0-99999999", "9999999"]
)
def test_what_names_no_pes_is_refused(text):
    with pytest.raises(BadValue, match="names no PEs"):
        numbers((text,))


PARTS = st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=0, max_size=12)


@given(PARTS, st.integers(0, 12))
def test_every_pe_is_in_one_domain(parts, total):
    domains = {
        name: Domain(name, tuple(str(pe) for pe, part in enumerate(parts) if part == name)) for name in "abc"
    }
    masks = {name: pes_of(domains, name, total) for name in names(domains)}
    for pe in range(total):
        assert [name for name, mask in masks.items() if mask[pe]] == [home_of(domains, pe)]
    assert names(domains) == [APPLICATION, "a", "b", "c"]


def test_a_domain_that_is_none_has_no_pes():
    assert not pes_of({}, "nonsense", 4).any()
    assert pes_of({}, APPLICATION, 4).all()
