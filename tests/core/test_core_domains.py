"""Domains in a pass: each queue's requests get PEs of its domain; limits span all of them."""

import pytest
from core.story import Story

from nqspy.model.events import Change, Suspended
from nqspy.model.site_checks import check_site


@pytest.fixture
def two(house):
    """Eight PEs, of which 5 to 7 are the domain ``wide``'s; queue night has application's, day has wide's."""
    house.machine(pes=8).change(Change("create", "domain/wide", {"pes": ("5-7",)}))
    house.queue("day", domain="wide", priority=2).queue("night", priority=1)
    return house


TWO = "machine 8; create domain/wide pes=(5-7); queue day domain=wide priority=2; queue night priority=1"
ROW = "set domain/application/placement contiguous"
STORIES = {
    "each queue has PEs of its own domain": f"""{TWO}
        run anne pes=2, ben pes=2, cleo queue=day, dora pes=2 queue=day
        pes anne 0-1; pes ben 2-3; pes cleo 5; pes dora 6-7""",
    "a full domain holds no request of another": f"""{TWO}
        submit anne pes=3 queue=day, ben queue=day, cleo pes=5, dora; starts anne cleo; short yes
        why ben no_pe_free 1 3 wide -; why dora no_pe_free 1 5 application -""",
    "more PEs than its domain has": f"""{TWO}; submit anne pes=4 queue=day; starts -
        why anne above_domain 4 3""",
    "limits span domains": f"""{TWO}; create complex/both queues=(day,night) user_limit=2; limit run_limit=3
        submit anne, anne, anne, anne queue=day, ben queue=day, cleo queue=day; picks anne4 ben cleo
        limit run_limit=6; picks anne4 ben cleo anne""",
    "without a second domain none is named": """machine 2; queue night; submit anne pes=2, ben; starts anne
        why ben no_pe_free 1 2 - - who=machine""",
    "a block without a gap": f"""machine 6; queue night; {ROW}; run anne pes=2, ben pes=2, cleo pes=2
        end anne cleo; submit dora pes=3, emma pes=2; starts emma; pes ben 2-3; pes emma 0-1
        why dora NO_PES""",
    "the block is named if the free PEs would suffice": f"""machine 5; queue night; {ROW}
        run anne pes=2, ben, cleo pes=2; end anne cleo; submit dora pes=3; starts -
        why dora few_pes_free 3 4 5 - 2 -""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_domains(house, title):
    Story(house).play(STORIES[title])


def test_what_is_parked_comes_back_in_its_own_domain(two):
    (seq,) = two.run("anne pes=2", queue="day")
    two._event(Suspended(seq, 1, "probe nfs", True, "nfs is away"))
    two.change(Change("set", "domain/wide/pes", ("4", "6-7")))
    check_site(two.site)
    two.run("ben pes=4", queue="night")
    check_site(two.site)
    assert two.request(seq).pes == (6, 4) or two.request(seq).pes == (4, 6)
