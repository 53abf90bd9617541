"""The machine in the command language: how its PEs lie, and which are offline."""

import pytest
from engine.harness import Centre, caller_of
from engine.test_engine_domains import TWO

from nqspy.core import domains
from nqspy.model.errors import NqspyError


@pytest.fixture
def centre():
    return Centre(TWO, pes=8)


def test_holders_of_a_domain_are_shown_with_their_base_and_where_it_lies(centre):
    (seq,) = centre.submit("anne queue=day pes=2")
    held = {"id": centre.id(seq), "pes": [4, 5], "base": 4}
    assert domains.rows(centre.site)[1]["holders"] == [held]
    assert f"  PEs 4-5 held by {centre.id(seq)}" in domains.text(centre.site).splitlines()
    centre.qmgr("set machine pes=8 shape=2x2x2 pes_per_node=2")
    assert domains.rows(centre.site)[1]["holders"] == [held | {"coordinate": [0, 0, 1]}]
    assert f"  PEs 4-5 held by {centre.id(seq)}, base 4 (0,0,1)" in domains.text(centre.site).splitlines()
    centre.is_sound()


def test_a_machine_with_a_shape_gets_other_pes_together_with_another_shape(centre):
    centre.qmgr("set machine pes=8 shape=2x2x2")
    with pytest.raises(NqspyError, match="shape=2x2x2 has 8 PEs, the machine 10; shape=5x2x1 would fit"):
        centre.qmgr("set machine pes=10")
    centre.qmgr("set machine pes=10 shape=none")
    assert centre.site.settings.machine.shape is None


def test_an_operator_sets_pes_offline_and_online_and_no_more_of_the_machine(centre):
    centre.qmgr("set managers = (olga:o)")
    centre.qmgr("set machine offline=(2, 5-6)", caller_of("olga"))
    assert [(row["name"], row["free"], row["offline"]) for row in domains.rows(centre.site)] == [
        ("application", 3, 1), ("wide", 2, 2),
    ]  # fmt: skip
    (seq,) = centre.submit("anne pes=3")
    assert centre.request(seq).pes == (0, 1, 3)
    assert centre.site.offline() == (2, 5, 6)
    centre.refused(centre.command("set machine pes=16"), caller_of("olga"))
    centre.qmgr("set machine offline=()", caller_of("olga"))
    assert centre.site.board("wide").free == 4
    centre.is_sound()
