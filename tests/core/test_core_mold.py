"""Moldable requests: the pass starts them on the size with the earliest expected end."""

import pytest
from core.harness import START, promised

from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import ReasonCode
from nqspy.ports import Answer

MINUTE = 60_000
SIZES = "sizes=2,4,8 walls=40:00,20:00,10:00"


@pytest.fixture
def night(house):
    """Eight PEs, first fit, nothing promised."""
    return house.machine(pes=8).queue("night", order="fcfs")


@pytest.fixture
def easy(house):
    """Eight PEs, the first that waits is promised a start."""
    return house.machine(pes=8).queue("night", order="fcfs", reserve=1)


def size(house, seq: Seq) -> tuple[int, int, int]:
    """PEs it holds, PEs and minutes it asks for."""
    request = house.request(seq)
    return len(request.pes), request.spec.ask.pes, request.spec.ask.wall // MINUTE


def test_on_an_empty_machine_it_takes_the_size_on_which_it_ends_soonest(night):
    (anne,) = night.run(f"anne {SIZES}")
    assert size(night, anne) == (8, 8, 10)
    assert night.request(anne).run.lacked == ()


def test_where_pes_are_taken_it_takes_what_fits_and_it_is_told_what_did_not(night):
    _, anne = night.run("ben pes=5 wall=30:00", f"anne {SIZES}")
    assert size(night, anne) == (2, 2, 40)
    assert night.request(anne).run.lacked == ((8, "NO_PES"), (4, "NO_PES"))


def test_more_pes_that_do_not_make_it_faster_are_left_to_others(night):
    anne, ben = night.submit("anne sizes=2,4,8 speedup=4:0 wall=40:00", "ben pes=4 wall=1:00")
    assert night.go().starts == [anne, ben]
    assert size(night, anne) == (4, 4, 10)


def test_without_times_its_work_is_taken_to_divide_evenly(night):
    (anne,) = night.run("anne sizes=2,4,8 wall=40:00")
    assert size(night, anne) == (8, 8, 40)


def test_with_no_time_at_all_it_takes_the_most_pes(night):
    _, anne = night.run("ben pes=3", "anne sizes=2,4,8")
    assert len(night.request(anne).pes) == 4


def test_where_not_even_its_least_size_is_free_it_waits_and_says_so(night):
    night.run("ben pes=7 wall=30:00")
    (anne,) = night.submit("anne sizes=2,3,4 wall=40:00")
    assert night.go().starts == []
    assert night.why(anne).matches(kind="few_pes_free", values=("2-4", 1, 8, None, None, None))


def test_limits_count_the_size_that_is_chosen(night):
    anne, ben = night.set("queue/night/pe_limit", 6).submit(f"anne {SIZES}", "ben pes=3 wall=1:00")
    assert night.go().starts == [anne]
    assert size(night, anne) == (4, 4, 20)
    assert night.request(anne).run.lacked == ((8, "NEVER"),)
    assert night.why(ben).code is ReasonCode.LIMIT


def test_a_queue_takes_only_the_sizes_and_times_that_its_limits_allow(night):
    night.set("queue/night/per_request/pe_limit", 4).set("queue/night/per_request/wall_limit", 30 * MINUTE)
    (anne,) = night.run(f"anne {SIZES}")
    assert size(night, anne) == (4, 4, 20)
    assert night.request(anne).run.lacked == ()  # 8 is no size of this queue


def test_where_a_start_is_promised_it_waits_for_a_size_that_ends_sooner_still(easy):
    easy.run("ben pes=6 wall=5:00")
    (anne,) = easy.submit(f"anne {SIZES}")
    assert easy.go().starts == []  # in 40 minutes on the 2 PEs that are free, in 15 on all 8
    assert (promised(easy, anne), easy.request(anne).reservation.pes) == (5, 8)
    assert easy.why(anne).text == (
        "it could start on 2 PEs and waits for 8, on which it ends sooner: there it takes 10:00 "
        "instead of 40:00"
    )


@pytest.mark.parametrize("asked", ["pes=2 wall=2:00", "sizes=2,4 walls=2:00,1:00"])
def test_whom_a_limit_of_his_own_keeps_back_lets_others_pass_on_whichever_sizes(easy, asked):
    easy.set("queue/night/backfill", "none").set("queue/night/reserve", None).set("queue/night/user_limit", 1)
    easy.run("ben pes=4 wall=1:00:00", "anne pes=3 wall=1:00:00")
    (second,) = easy.submit(f"anne {asked}")
    (cleo,) = easy.submit("cleo wall=1:00")
    assert easy.go().starts == [cleo]
    assert easy.why(second).matches(kind="limit_reached", values=("user", 1, "queue night", "anne"))


def test_it_lets_nobody_pass_where_a_limit_of_all_keeps_back_the_sizes_that_its_queue_takes(easy):
    easy.set("queue/night/backfill", "none").set("queue/night/reserve", 0)
    easy.set("queue/night/per_request/wall_limit", 12 * MINUTE).limit(pe_limit=5)
    easy.run("ben pes=2 wall=10:00")
    wide, narrow = easy.submit("anne sizes=2,4 walls=13:00,3:00", "cleo wall=1:00")
    assert easy.go().starts == []
    assert easy.why(wide).matches(kind="pes_short", values=("global PE", 5, None, 3, 4))
    assert easy.why(narrow).text.startswith(f"{easy.site.id_of(wide)} waits for room")


def test_what_it_is_told_holds_as_time_goes_by(easy):
    easy.set("queue/night/backfill", "none").run("ben pes=6 wall=5:00")
    (anne,) = easy.run(f"anne {SIZES}")
    told = easy.why(anne).text
    for _ in range(2):
        easy.later(minutes=1).submit("cleo pes=4 wall=1:00")
        assert easy.go().starts == []
    assert easy.why(anne).text == told


def test_it_waits_for_no_size_for_which_a_shift_would_have_stopped_its_queue_by_then(easy):
    easy.run("ben pes=6 wall=5:00")
    easy.site.closings["night"] = Instant(START + 5 * MINUTE)
    (anne,) = easy.submit(f"anne {SIZES}")
    assert easy.go().starts == [anne]
    assert size(easy, anne) == (2, 2, 40)


def test_it_starts_at_once_where_waiting_would_not_pay(easy):
    easy.run("ben pes=6 wall=35:00")
    (anne,) = easy.run(f"anne {SIZES}")
    assert size(easy, anne) == (2, 2, 40)


def test_who_passes_it_does_not_delay_the_size_it_was_promised(easy):
    easy.run("ben pes=6 wall=5:00")
    anne, _, dora = easy.submit(f"anne {SIZES}", "cleo pes=2 wall=6:00", "dora pes=2 wall=4:00")
    assert easy.go().starts == [dora]
    easy.later(minutes=4).end(dora).go()
    easy.later(minutes=1).end(1)
    assert anne in easy.go().starts
    assert size(easy, anne) == (8, 8, 10)
    assert easy.request(anne).started == START + 5 * MINUTE


def test_what_is_free_before_its_time_is_looked_at_anew(easy):
    easy.run("ben pes=4 wall=30:00", "cleo pes=4 wall=8:00")
    (anne,) = easy.run(f"anne {SIZES}")
    assert (promised(easy, anne), easy.request(anne).reservation.pes) == (8, 4)
    easy.later(minutes=1).end(1)
    easy.go()  # four are free: 4 now ends at minute 21, all 8 in minute 8 at minute 18
    assert (promised(easy, anne), easy.request(anne).reservation.pes) == (8, 8)
    easy.later(minutes=1).end(2).go()
    assert size(easy, anne) == (8, 8, 10)


def test_only_the_one_that_is_promised_a_start_waits_for_another_size(easy):
    easy.run("ben pes=6 wall=5:00")
    _, anne = easy.submit("cleo pes=8 wall=1:00", "anne sizes=1,2,8 walls=5:00,4:00,1:00")
    assert easy.go().starts == [anne]
    assert size(easy, anne) == (2, 2, 4)


def test_run_again_it_gets_another_size(night):
    (anne,) = night.run(f"anne {SIZES}")
    request = night.request(anne)
    night._event(ev.Requeued(anne, 1, "op"))
    assert (request.spec.ask.pes, request.spec.ask.wall) == (2, 10 * MINUTE)
    night.submit("ben pes=5 wall=1:00")
    night.schedule(2, "next").go()
    assert size(night, anne) == (2, 2, 40)


def test_one_that_must_start_now_takes_the_size_that_fits_in_spite_of_limits(night):
    (anne,) = night.set("queue/night/run_limit", 0).submit(f"anne {SIZES}")
    assert night.go().starts == []
    night.schedule(anne, "now").go()
    assert size(night, anne) == (8, 8, 10)


def test_each_index_of_an_array_gets_a_size_of_its_own(night):
    array = night.array("anne sizes=2,3,5 walls=5:00,3:00,1:00", 4)
    spec = night.request(array).spec
    night.go()
    sizes = [len(each.pes) for each in night.site.started.values()]
    assert sizes == [5, 3]
    assert night.request(array).spec == spec


def test_exits_are_asked_about_it_once_and_may_force_it(night):
    door = night.exits(
        jobselect=lambda request, view: Answer("force", "mine") if request.owner == "anne" else None
    )
    _, anne = night.set("queue/night/run_limit", 1).run("ben pes=3 wall=30:00", f"anne {SIZES}")
    assert size(night, anne) == (4, 4, 20)
    asked = [seq for hook, seq in door.calls if hook == "jobselect"]
    assert asked.count(anne) == 1


def test_one_that_waits_for_another_size_is_not_looked_at_again_and_again(easy):
    easy.exits(jobselect=lambda request, view: None)
    easy.run("ben pes=6 wall=5:00")
    easy.submit(f"anne {SIZES}")
    assert easy.go().starts == []
    assert easy.plan.wake_at == START + 5 * MINUTE


def test_where_all_starts_are_promised_each_takes_the_size_that_suits_what_is_left(night):
    night.set("queue/night/reserve", None).run("ben pes=6 wall=10:00")
    anne, cleo = night.submit("anne sizes=4,8 walls=8:00,4:00", "cleo sizes=2,4,8 walls=30:00,14:00,7:00")
    assert night.go().starts == []
    kept = [night.request(seq).reservation for seq in (anne, cleo)]
    # All 8 are anne's from minute 10 to 14, then cleo's to minute 21: on 2 now she would end at minute 30.
    assert [(each.pes, (each.at - START) // MINUTE) for each in kept] == [(8, 10), (8, 14)]
