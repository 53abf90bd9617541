"""The core decides for the worlds of the corpus as it did when they were frozen."""

from pathlib import Path

import pytest
from corpus.decisions import decisions, digest

FROZEN = [line.split("\t") for line in (Path(__file__).parent / "worlds.tsv").read_text().splitlines()]
EACH = 40
"""One world of so many is played in every run, the others in the long one."""


@pytest.mark.parametrize(("seed", "frozen"), FROZEN[::EACH])
def test_a_world_is_decided_as_it_was(seed, frozen):
    assert digest(decisions(int(seed))) == frozen


@pytest.mark.long
def test_all_worlds_are_decided_as_they_were():
    different = [seed for seed, frozen in FROZEN if digest(decisions(int(seed))) != frozen]
    assert not different


def test_a_world_says_the_same_each_time():
    assert decisions(11) == decisions(11)
