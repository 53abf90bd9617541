"""Suspended requests that gave their PEs away: how a stage suspends them, and how they come back."""

import pytest
from core.story import Story

from nqspy.core.draft import Draft
from nqspy.core.no_exits import NoExits
from nqspy.model import events as ev
from nqspy.model.actions import Requeue, Resume, Suspend
from nqspy.model.cause import cause_of


def park(house, *seqs, parked=True):
    """Suspends running requests as a stage of an earlier pass did."""
    for seq in seqs:
        house._event(ev.Suspended(seq, house.request(seq).attempts, "probe nfs", parked, "nfs is away"))


def draft_of(house) -> Draft:
    return Draft(house.site, house.now, NoExits(), {})


@pytest.fixture
def three(house):
    """Two PEs, and three requests of which two run."""
    house.machine(pes=2).queue("night").run("anne", "ben", "cleo")
    return house


# ---------------------------------------------------------------- what a draft does


def test_suspending_a_request_frees_its_pes_for_the_rest_of_the_pass(three):
    draft = draft_of(three)
    assert draft.board("night").free == 0
    draft.suspend(three.request(1), cause_of("shift day"), "the night is over", parked=True)
    assert (draft.board("night").free, draft.board("night").open().tolist()) == (1, [0])
    assert draft.before == [Suspend(1, 1, cause_of("shift day"), "the night is over", True, False)]
    assert [r.seq for r in draft.running()] == [2], "it gives way once"


def test_suspending_without_parking_and_requeueing_free_nothing_yet(three):
    draft = draft_of(three)
    draft.suspend(three.request(1), cause_of("swap"), "memory is short", parked=False, page_out=True)
    draft.requeue(three.request(2), cause_of("probe nfs"), "nfs is away")
    assert (draft.board("night").free, draft.board("night").open().tolist()) == (0, [])
    assert draft.before == [
        Suspend(1, 1, cause_of("swap"), "memory is short", False, True),
        Requeue(2, 1, cause_of("probe nfs"), "nfs is away"),
    ]
    assert draft.running() == []


def test_letting_go_on_takes_the_pes_it_had(three):
    park(three, 1)
    draft = draft_of(three)
    assert (draft.board("night").free, [r.seq for r in draft.parked()]) == (1, [1])
    draft.resume(three.request(1), cause_of("scheduler"))
    assert (draft.board("night").free, draft.board("night").open().tolist()) == (0, [])
    assert draft.before == [Resume(1, 1, cause_of("scheduler"))]
    assert [r.seq for r in draft.resumed] == [1]


def test_a_pe_that_the_machine_no_longer_has_is_neither_freed_nor_taken(three):
    three.machine(pes=1)
    draft = draft_of(three)
    assert draft.board("night").free == 0
    draft.suspend(three.request(2), cause_of("shift day"), "", parked=True)
    assert (draft.board("night").free, draft.board("night").open().tolist()) == (0, [])
    draft.rooms.take(three.request(1).queue, [1, 5])
    assert draft.board("night").free == 0


def test_what_is_to_end_gives_way_to_nobody_and_does_not_come_back(three):
    three._event(ev.Deleting(1, 1, "anne"))
    park(three, 2)
    three._event(ev.Deleting(2, 1, "ben"))
    draft = draft_of(three)
    assert draft.running() == []
    assert draft.parked() == []


# ---------------------------------------------------------------- coming back


THREE = "machine 2; queue night; run anne, ben, cleo"
PARKED = """run anne pes=2 wall=1:00:00{units}; later 10; suspend anne probe nfs
    submit ben pes=2 wall=20:00; begins ben 0-1"""
AWAY = f"machine 2; queue night reserve=1; {PARKED.format(units='')}"
STORIES = {
    "before all that waits": f"{THREE}; suspend anne probe nfs; go; returns anne; why cleo NO_PES",
    "on the PE that becomes free": f"""{THREE}; suspend anne probe nfs; begins cleo 0; go; returns -
        why anne pes_to_go_on 1 -; end ben; go; returns anne 1; pes anne 1; end cleo; submit dora
        starts dora; pes dora 0""",
    "on its own PEs if they are free": """machine 4; queue night; run anne, ben pes=2; suspend ben probe nfs
        end anne; go; returns ben; pes ben 1-2""",
    "it keeps of its PEs what is free": """machine 4; queue night; run anne pes=2; suspend anne probe nfs
        submit ben; begins ben 0; go; returns anne 1-2""",
    "too few free PEs are kept for it": """machine 4; queue night; run anne pes=3; suspend anne probe nfs
        submit ben, cleo, dora; begins ben 0; begins cleo 3; starts -; why anne pes_to_go_on 3 2
        end cleo; go; returns anne 1-3""",
    "two that had the same PE": """machine 1; queue night; run anne, ben; suspend anne probe nfs; later 5s
        begins ben 0; suspend ben probe nfs; go; returns anne; why ben NO_PES""",
    "a user limit counts it": """machine 3; queue night user_limit=1; run anne, anne, ben
        suspend anne probe nfs; go; returns anne; why anne2 limit_reached""",
    "while it is away only memory counts": """machine 3
        queue night user_limit=1 run_limit=1 memory_limit=10mw; run anne mem=6mw, anne mem=4mw, anne mem=1mw
        suspend anne probe nfs; delete anne; starts anne2; end anne2; submit ben mem=5mw; starts anne3""",
    "a start is reserved behind its return": f"""{AWAY}; run cleo pes=2 wall=5:00; reserved cleo 80; later 20
        end ben; go; returns anne; later 50; end anne; starts cleo""",
    "what it did not give back is its own until its end": f"""machine 2; queue night reserve=1
        create consumable/gpu units=(g0); {PARKED.format(units=" gpu=1")}; run cleo gpu=1 wall=5:00
        reserved cleo 80; units anne gpu=g0""",
    "nothing is kept for one of a stopped queue": f"""{AWAY}; set queue/night/started off
        queue day reserve=1; run cleo pes=2 wall=5:00; reserved cleo 30""",
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_coming_back(house, title):
    Story(house).play(STORIES[title])


def test_a_request_that_an_operator_suspended_keeps_its_pes_and_stays(three):
    park(three, 1, parked=False)
    assert three.run_pass().actions == ()
