"""Suspended requests that gave their PEs away: how a stage suspends them, and how they come back."""

import pytest
from core.harness import promised

from nqspy.core.draft import Draft
from nqspy.core.no_exits import NoExits
from nqspy.model import events as ev
from nqspy.model.actions import Requeue, Resume, Suspend
from nqspy.model.cause import cause_of
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import State
from nqspy.model.site_checks import check_site


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


def test_a_parked_request_comes_before_all_that_waits(three):
    park(three, 1)
    told = three.go()
    assert told.actions == (Resume(1, 1, cause_of("scheduler")),)
    assert three.request(1).state.value == "running"
    assert three.request(1).run.resumed == three.now
    assert not three.request(1).pes_released
    assert told.reason(3).code is ReasonCode.NO_PES


def test_one_whose_pe_others_have_goes_on_on_the_one_that_comes_free(three):
    park(three, 1)
    three._event(ev.Starting(3, 1, (0,)))
    told = three.run_pass()
    assert told.actions == ()
    assert told.plan.reasons.own[1].matches(
        code=ReasonCode.NO_PES, who="machine", text="it goes on when a PE is free", until=None
    )
    three._event(ev.Ended(2, 1, "exit", 0))
    assert three.go().actions == (Resume(1, 1, cause_of("scheduler"), (1,)),)
    assert three.request(1).pes == (1,)
    three._event(ev.Ended(3, 1, "exit", 0))
    three.submit("dora")
    assert three.go().pes(4) == (0,), "the PE it had is anybody's"
    check_site(three.site)


def test_one_that_finds_its_own_pes_free_goes_on_on_those(house):
    house.machine(pes=4).queue("night").run("anne", "ben pes=2")
    park(house, 2)
    house._event(ev.Ended(1, 1, "exit", 0))
    assert house.go().actions == (Resume(2, 1, cause_of("scheduler")),)
    assert house.request(2).pes == (1, 2)


def test_one_that_comes_back_keeps_of_its_pes_what_is_free(house):
    house.machine(pes=4).queue("night").run("anne pes=2")
    park(house, 1)
    house.submit("ben")
    house._event(ev.Starting(2, 1, (0,)))
    assert house.go().actions == (Resume(1, 1, cause_of("scheduler"), (1, 2)),)


def test_while_too_few_are_free_they_are_kept_for_it_so_that_it_cannot_starve(house):
    house.machine(pes=4).queue("night").run("anne pes=3")
    park(house, 1)
    house.submit("ben", "cleo", "dora")
    house._event(ev.Starting(2, 1, (0,)))
    house._event(ev.Starting(3, 1, (3,)))
    told = house.go()
    assert told.starts == []
    text = "it goes on when 3 PEs are free; 2 of them are kept for it"
    assert told.plan.reasons.own[1].text == text
    house._event(ev.Ended(3, 1, "exit", 0))
    assert house.go().actions == (Resume(1, 1, cause_of("scheduler"), (1, 2, 3)),)


def test_two_that_had_the_same_pe_come_back_in_the_order_of_their_starts(house):
    house.machine(pes=1).queue("night").run("anne", "ben")
    park(house, 1)
    house.later(seconds=5)._event(ev.Starting(2, 1, (0,)))
    park(house, 2)
    told = house.go()
    assert told.actions == (Resume(1, 1, cause_of("scheduler")),)
    assert told.plan.reasons.own[2].code is ReasonCode.NO_PES


def test_a_user_limit_counts_a_request_that_comes_back(house):
    house.machine(pes=3).queue("night", user_limit=1).run("anne", "anne", "ben")
    park(house, 1)
    told = house.run_pass()
    assert told.actions == (Resume(1, 1, cause_of("scheduler")),)
    assert told.reason(2).matches(kind="limit_reached", values=("user", 1, "queue night", "anne"))


def test_while_it_is_parked_it_counts_against_no_limit_but_memory(house):
    house.machine(pes=3).queue("night", user_limit=1, run_limit=1, memory_limit="10mw")
    house.run("anne mem=6mw", "anne mem=4mw", "anne mem=1mw")
    park(house, 1)
    house._event(ev.Deleting(1, 1, "anne"))  # it stays, and does not come back
    assert house.go().starts == [2]
    house._event(ev.Ended(2, 1, "exit", 0))
    house.submit("ben mem=5mw")
    assert house.run_pass().starts == [3]


def test_a_request_that_an_operator_suspended_keeps_its_pes_and_stays(three):
    park(three, 1, parked=False)
    assert three.run_pass().actions == ()


# ---------------------------------------------------------------- what others are promised meanwhile


def parked_for_a_short_one(house, more=""):
    """Two PEs: anne's hour gave way after ten minutes, to ben's twenty minutes."""
    anne = house.machine(pes=2).queue("night", reserve=1).run(f"anne pes=2 wall=1:00:00 {more}")[0]
    house.later(minutes=10)
    park(house, anne)
    ben = house.submit("ben pes=2 wall=20:00")[0]
    house._event(ev.Starting(ben, 1, (0, 1)))
    return anne, ben


def test_a_start_is_promised_behind_the_return_of_one_that_stands_still(house):
    anne, ben = parked_for_a_short_one(house)
    cleo = house.run("cleo pes=2 wall=5:00")[0]
    assert promised(house, cleo) == 10 + 20 + 50
    house.later(minutes=20).end(ben)
    assert house.go().actions == (Resume(anne, 1, cause_of("scheduler")),)
    house.later(minutes=50).end(anne)
    assert house.go().starts == [cleo], "to the minute"
    assert house.request(cleo).state is State.RUNNING


def test_what_it_did_not_give_back_is_its_own_until_it_has_come_back_and_ended(house):
    house.change(ev.Change("create", "consumable/gpu", {"units": ("g0",)}))
    anne, _ = parked_for_a_short_one(house, "gpu=1")
    cleo = house.run("cleo pes=1 gpu=1 wall=5:00")[0]
    assert promised(house, cleo) == 10 + 20 + 50
    assert house.request(anne).units == (("gpu", ("g0",)),)


def test_nothing_is_kept_for_one_of_a_stopped_queue(house):
    parked_for_a_short_one(house)
    house.set("queue/night/started", False).queue("day", reserve=1)
    cleo = house.run("cleo pes=2 wall=5:00")[0]
    assert promised(house, cleo) == 10 + 20
