"""Backfilling: who waits in front is promised a start, others pass it as far as they do not delay that."""

import pytest
from core.harness import START, promised, refuse
from msgspec.structs import replace

from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq, member
from nqspy.model.reasons import ReasonCode
from nqspy.model.shifts import UpcomingStop
from nqspy.model.site_checks import check_site

MINUTE = 60_000


@pytest.fixture
def easy(house):
    """Eight PEs, six of which are held for ten minutes; queue night promises a start to one."""
    house.machine(pes=8).queue("night", order="fcfs", reserve=1).run("anne pes=6 wall=10:00")
    return house


def test_who_ends_before_the_promised_start_passes_and_who_would_delay_it_waits(easy):
    wide, long, short = easy.submit("ben pes=4 wall=5:00", "cleo pes=2 wall=11:00", "dora pes=2 wall=9:00")
    told = easy.go()
    # 8 PEs at minute 10, of which ben has 4: cleo's 2 delay nobody.
    assert told.starts == [long]
    assert promised(easy, wide) == 10
    assert easy.request(wide).reservation.by == (1,)
    assert told.reason(short).matches(kind="no_pe_free", values=(2, 8, None, None))


def test_the_reason_names_the_promise_that_would_be_broken(easy):
    wide, long, endless = easy.submit("ben pes=8 wall=5:00", "cleo pes=2 wall=11:00", "dora")
    told = easy.go()
    assert told.starts == []
    assert told.reason(wide).code is ReasonCode.NO_PES
    reason = easy.why(long)
    assert reason.matches(kind="would_delay", values=(660000, "2.ymp"))
    assert (reason.code, reason.until) == (ReasonCode.RESERVED, START + 10 * MINUTE)
    assert easy.why(endless).matches(kind="would_delay_for_ever", values=("2.ymp",))


def test_those_behind_it_are_not_told_its_wall_time(easy):
    easy.run("ben pes=8 wall=5:00")
    _, wide = easy.submit("cleo pes=2 wall=11:00", "dora pes=4 wall=1:00")
    assert easy.go().starts == []
    assert easy.why(wide).matches(kind="few_pes_free", values=(4, 2, 8, None, None, None), ahead=2)


def test_who_fits_behind_one_that_would_delay_is_told_of_those_ahead(easy):
    easy.run("ben pes=8 wall=5:00")
    easy.queue("front", order="fcfs", backfill="none")
    easy.submit("cleo pes=2 wall=11:00", queue="front")
    (short,) = easy.submit("dora wall=1:00", queue="front")
    assert easy.go().starts == []
    said = "those ahead of it would hold what is kept for 2.ymp; 1 ahead of it"
    assert easy.why(short).text == said


def test_nobody_is_ahead_of_who_was_promised_a_start_first(easy):
    wide, _ = easy.run("ben pes=8 wall=5:00", "cleo pes=2 wall=1:00")
    easy.run("dora wall=1:00", "dora wall=1:00")
    assert easy.why(wide).matches(kind="no_pe_free", values=(8, 8, None, None))


def test_without_a_promise_whoever_fits_starts(easy):
    easy.set("queue/night/reserve", 0)
    wide, long = easy.submit("ben pes=8 wall=5:00", "cleo pes=2 wall=11:00")
    assert easy.go().starts == [long]
    assert easy.request(wide).reservation is None


def test_the_promise_stays_until_the_start_and_moves_to_an_earlier_one(easy):
    wide, *_ = easy.run("ben pes=8 wall=5:00")
    first = easy.later(minutes=4).submit("cleo pes=8 wall=7:00")[0]
    easy.schedule(first, "next").go()
    assert (promised(easy, wide), easy.request(first).reservation) == (10, None)
    easy.end(1)
    assert easy.go().starts == [wide]
    assert easy.request(wide).reservation is None
    easy.go()
    assert promised(easy, first) == 9


def test_an_early_end_brings_the_promise_forward(easy):
    (narrow,) = easy.run("ben pes=2 wall=20:00")
    (wide,) = easy.run("cleo pes=8 wall=5:00")
    assert promised(easy, wide) == 20
    easy.later(minutes=3).end(narrow).go()
    assert promised(easy, wide) == 10


@pytest.mark.parametrize("act", ["hold", "move", "delete", "modify"])
def test_the_promise_is_over_when_it_waits_no_more_as_it_did(easy, act):
    easy.queue("other", reserve=0)
    wide, long = easy.submit("ben pes=8 wall=5:00", "cleo pes=2 wall=11:00", queue="night")
    assert easy.go().starts == []
    request = easy.request(wide)
    if act == "hold":
        easy.hold(wide)
    elif act == "move":
        easy._event(ev.Moved((wide,), "other", "op"))
    elif act == "delete":
        easy._event(ev.Deleted(wide, "ben"))
    else:
        spec = replace(request.spec, ask=replace(request.spec.ask, pes=2, wall=12 * MINUTE))
        easy._event(ev.Modified(wide, spec, "ben"))
    assert not easy.site.reserved
    check_site(easy.site)
    assert easy.go().starts in ([long], [wide])


def test_a_promise_binds_all_queues_of_its_domain_and_no_other(easy):
    easy.change(ev.Change("create", "domain/fast", {"pes": ("7",)}))
    easy.queue("front", priority=9).queue("apart", priority=9, domain="fast")
    (wide,) = easy.run("ben pes=7 wall=5:00", queue="night")
    assert promised(easy, wide) == 10
    (long,) = easy.submit("cleo wall=11:00", queue="front")
    (apart,) = easy.submit("dora wall=11:00", queue="apart")
    assert easy.go().starts == [apart]
    assert easy.why(long).code is ReasonCode.RESERVED


def test_nobody_passes_where_backfill_is_none(house):
    house.machine(pes=8).queue("night", order="fcfs", backfill="none", user_limit=2)
    house.run("anne pes=3", "anne pes=3")
    mine, wide, narrow = house.submit("anne pes=1", "ben pes=3", "cleo pes=1")
    told = house.go()
    # a limit of its own people lets others pass; a want of PEs does not
    assert told.starts == []
    assert house.why(mine).code is ReasonCode.LIMIT
    assert told.reason(wide).code is ReasonCode.NO_PES
    assert house.why(narrow).kind == "in_line"
    assert house.why(narrow).values == ("4.ymp", "night")
    assert house.why(narrow).needed == "the request that waits for room must start"
    house.end(1)
    assert set(house.go().starts) == {mine, wide, narrow}


def test_the_shortest_comes_first_by_sjf_and_blocks_the_others(house):
    house.machine(pes=4).queue("night", order="sjf", backfill="none", max_wall="8:00:00")
    house.run("anne pes=2 wall=1:00")
    house.submit("ben pes=1", "ben pes=1 wall=2:00:00", "cleo pes=4 wall=10:00")
    assert house.go().starts == []
    house.end(1)
    assert house.go().starts == [4]


def test_the_shortest_may_be_the_first_to_pass(easy):
    easy.set("queue/night/backfill_order", "shortest")
    _, _, short = easy.submit("ben pes=8 wall=5:00", "cleo pes=2 wall=9:00", "dora pes=2 wall=1:00")
    assert easy.go().starts == [short]


@pytest.mark.parametrize("asked", [False, True])
def test_without_a_promise_the_shortest_pass_the_first_that_does_not_fit(house, asked):
    house.machine(pes=8).queue("night", order="fcfs", reserve=0, backfill_order="shortest")
    if asked:
        house.exits(jobselect=lambda request, view: None, may_force=False)
    house.run("anne pes=4 wall=10:00")
    first, _, long, short = house.submit(
        "ben pes=2 wall=50:00", "cleo pes=8 wall=9:00", "dora pes=2 wall=5:00", "eva pes=1 wall=1:00"
    )
    assert house.go().starts == [first, short]
    assert house.why(long).code is ReasonCode.NO_PES


def test_whom_an_operator_or_its_owner_puts_first_passes_first(house):
    house.machine(pes=8).queue("night", order="fcfs", reserve=0, backfill_order="shortest")
    house.run("anne pes=6 wall=10:00", "ben pes=8 wall=5:00")
    _, second = house.submit("cleo wall=1:00", "cleo wall=9:00 p=1")
    (third,) = house.submit("dora wall=20:00")
    house.schedule(third, "first")
    assert house.go().starts == [third, second]


def test_all_are_promised_a_start_where_all_may_be(easy):
    easy.set("queue/night/reserve", None)
    first, second, third = easy.run("ben pes=8 wall=5:00", "cleo pes=8 wall=5:00", "dora pes=1 wall=20:00")
    assert [promised(easy, seq) for seq in (first, second, third)] == [10, 15, 20]


def test_who_waits_for_what_has_no_wall_limit_is_promised_no_time_and_kept_room_all_the_same(house):
    house.machine(pes=9).queue("night", order="fcfs", reserve=1)
    house.run("anne pes=4", "anne pes=2 wall=1:00")
    wide, long, _, narrow = house.submit(
        "ben pes=8 wall=5:00", "cleo pes=2 wall=1:00", "dora pes=2 wall=1:00", "eva pes=1"
    )
    told = house.go()
    kept = house.request(wide).reservation
    assert (kept.at, kept.by) == (None, (1,))
    # of 9 PEs ben needs 8: one is left, however long it is held
    assert told.starts == [narrow]
    assert house.why(long).matches(kind="would_delay", values=(60000, "3.ymp"))


def test_a_site_may_say_how_long_one_without_limit_is_reckoned(house):
    house.machine(pes=8).queue("night", order="fcfs", reserve=1).set("default/wall_limit", 10 * MINUTE)
    house.run("anne pes=6")
    wide, short, unknown = house.submit("ben pes=8", "cleo pes=1 wall=9:00", "dora pes=1")
    assert house.go().starts == [short, unknown]
    assert promised(house, wide) == 10


def test_units_are_kept_for_who_waits_for_them(house):
    house.machine(pes=8).queue("night", order="fcfs", reserve=1)
    house.change(ev.Change("create", "consumable/gpu", {"units": ("0", "1", "2", "3")}))
    house.run("anne gpu=2 wall=10:00")
    waits, long, short, none = house.submit(
        "ben gpu=4 wall=5:00", "cleo gpu=1 wall=11:00", "dora gpu=1 wall=9:00", "eva wall=30:00"
    )
    assert house.go().starts == [short, none]
    assert promised(house, waits) == 10
    assert house.why(long).code is ReasonCode.RESERVED


def test_memory_is_kept_for_who_waits_for_it(house):
    house.machine(pes=8).queue("night", order="fcfs", reserve=1, memory_limit="100mb")
    house.run("anne mem=60mb wall=10:00")
    waits, long, short = house.submit(
        "ben mem=90mb wall=5:00", "cleo mem=30mb wall=11:00", "dora mem=30mb wall=9:00"
    )
    assert house.go().starts == [short]
    assert promised(house, waits) == 10
    assert house.why(long).code is ReasonCode.LIMIT, "dora has what was left"


def test_a_limit_of_its_own_people_takes_no_promise_from_others(house):
    house.machine(pes=4).queue("night", order="fcfs", reserve=1, user_limit=1)
    house.run("anne pes=2 wall=10:00")
    mine, wide, _ = house.submit("anne wall=1:00", "ben pes=4 wall=1:00", "cleo pes=1 wall=11:00")
    assert house.go().starts == []
    assert house.request(mine).reservation is None
    assert promised(house, wide) == 10


def test_where_all_have_a_promise_it_counts_the_limits_of_their_own_people(house):
    house.machine(pes=4).queue("night", order="fcfs", reserve=None, user_limit=1)
    house.run("anne pes=2 wall=10:00")
    one, other = house.run("anne wall=1:00", "anne wall=1:00")
    assert [promised(house, seq) for seq in (one, other)] == [10, 11]


def test_one_that_an_exit_refuses_when_its_time_has_come_keeps_no_room(easy):
    (wide,) = easy.run("ben pes=8 wall=5:00")
    easy.exits(jobselect=lambda request, view: refuse("no licence") if request.owner == "ben" else None)
    (long,) = easy.submit("cleo pes=8 wall=20:00")
    told = easy.later(minutes=10).end(1).go()
    assert told.starts == [long]
    assert easy.request(wide).reservation is None
    (event,) = [each for each in told.actions if each.kind == "reserve"]
    assert event.causes == {wide: "exits/test: no licence"}


def test_where_an_exit_is_asked_promises_are_made_and_kept_as_well(easy):
    asked = easy.exits(jobselect=lambda request, view: None, may_force=False)
    wide, long, short = easy.submit("ben pes=8 wall=5:00", "cleo pes=2 wall=11:00", "dora pes=2 wall=9:00")
    assert easy.go().starts == [short]
    assert promised(easy, wide) == 10
    assert easy.why(long).code in (ReasonCode.RESERVED, ReasonCode.NO_PES)
    easy.later(minutes=9).end(short)
    assert easy.go().starts == []
    easy.later(minutes=1).end(1)
    assert easy.go().starts == [wide]
    assert asked.called("jobselect")


def test_a_forced_start_breaks_a_promise_and_that_is_told_with_its_cause(easy):
    (wide,) = easy.run("ben pes=8 wall=5:00")
    (forced,) = easy.submit("cleo pes=2 wall=30:00")
    easy.schedule(forced, "now")
    assert easy.go().starts == [forced]
    easy.later(minutes=10).end(1).go()
    kept = easy.request(wide).reservation
    assert (kept.at, kept.late) == (START + 10 * MINUTE, "what it needs is held by 3.ymp")


def test_the_moment_that_starting_takes_is_called_no_delay(easy):
    (wide,) = easy.run("ben pes=8 wall=5:00")
    (forced,) = easy.later(ms=50).submit("cleo pes=2 wall=10:00")
    easy.schedule(forced, "now")
    assert easy.go().starts == [forced]
    easy.later(minutes=1).end(1).go()
    kept = easy.request(wide).reservation
    assert (kept.at, kept.late) == (START + 10 * MINUTE, "")


def test_one_that_runs_beyond_its_limit_is_named_as_the_cause(easy):
    (wide,) = easy.run("ben pes=8 wall=5:00")
    easy.later(minutes=12).go()
    assert easy.request(wide).reservation.late == "1.ymp still running beyond what was planned"


def test_no_start_is_promised_for_a_time_at_which_a_shift_has_stopped_the_queue(easy):
    wide, long = easy.submit("ben pes=8 wall=5:00", "cleo pes=2 wall=11:00")
    easy.site.closings["night"] = Instant(START + 10 * MINUTE)
    assert easy.go().starts == [long]
    assert easy.request(wide).reservation is None


def test_a_shift_that_drains_wants_the_promised_run_to_end_in_time(easy):
    stop = Instant(START + 14 * MINUTE)
    easy.site.closings["night"] = stop
    easy.site.upcoming_stops["night"] = UpcomingStop(stop, "day", "drain", "06:00")
    wide, less = easy.run("ben pes=8 wall=5:00", "cleo pes=8 wall=4:00")
    assert easy.request(wide).reservation is None
    assert promised(easy, less) == 10


def test_what_a_shift_will_suspend_gives_its_pes_back_then(easy):
    easy.queue("day")
    stop = Instant(START + 4 * MINUTE)
    easy.site.upcoming_stops["night"] = UpcomingStop(stop, "day", "suspend", "06:00")
    (wide,) = easy.set("queue/day/reserve", 1).run("ben pes=8 wall=5:00", queue="day")
    assert promised(easy, wide) == 4


def test_what_goes_on_again_in_this_pass_has_its_pes_until_its_end(house):
    house.machine(pes=4).queue("night", order="fcfs", reserve=1).queue("other")
    house.run("anne pes=2 wall=10:00", queue="other")
    house.later(minutes=4)._event(ev.Suspended(1, 1, "shift day", True, "the night is over"))
    (wide,) = house.later(minutes=30).submit("ben pes=4 wall=5:00", queue="night")
    told = house.go()
    assert [type(action).__name__ for action in told.actions] == ["Resume", "Reserving"]
    assert promised(house, wide) == 40, "six of her ten minutes are left"
    house.later(minutes=6).end(1)
    assert house.go().starts == [wide]


def test_of_an_array_the_next_index_is_promised_a_start(easy):
    array = easy.array("ben pes=8 wall=5:00", 3, "night")
    easy.go()
    assert promised(easy, array) == 10
    easy.later(minutes=10).end(1)
    assert easy.go().starts == [member(array, 1)]
    assert promised(easy, array) == 15


def test_a_promise_goes_when_a_limit_makes_it_impossible(easy):
    (wide,) = easy.run("ben pes=8 wall=5:00")
    assert promised(easy, wide) == 10
    (narrow,) = easy.set("queue/night/pe_limit", 7).submit("cleo pes=1 wall=30:00")
    easy.end(Seq(1))
    assert easy.go().starts == [narrow]
    assert easy.request(wide).reservation is None


def test_who_waits_for_one_who_was_told_no_time_has_his_turn_in_the_pass_that_starts_that_one(house):
    (endless,) = house.machine(pes=4).queue("night", order="sjf", reserve=None).run("cleo pes=4")
    waiting = []
    for line in ("anne pes=1 wall=15:00", "anne pes=3 wall=10:00", "ben pes=1 wall=5:00"):
        waiting += house.later(minutes=1).submit(line)
        house.go()
    long, wide, short = waiting
    assert [promised(house, each) for each in waiting] == [None, None, None]
    house.later(minutes=1).end(endless)
    assert house.go().starts == [long, wide], "in the order in which they were told; no PE is left to nobody"
    assert promised(house, short) == 14, "when the wide one has ended"


@pytest.mark.parametrize("reserve", [1, None])
def test_a_reservation_is_given_up_when_its_resource_breaks_and_others_run(house, reserve):
    house.machine(pes=8).queue("night", order="fcfs", reserve=reserve).probe("licence", "ok")
    (running,) = house.run("anne pes=6 wall=8:00")
    (head,) = house.run("ben pes=8 wall=60:00 needs=licence")
    assert promised(house, head) == 8
    house.probe("licence", "broken")
    other, wide = house.submit("cleo pes=4 wall=60:00", "dora pes=8 wall=5:00")
    house.at(8 * 60).end(running)
    assert house.go().starts == [other]
    assert house.request(head).reservation is None
    assert promised(house, wide) == 68, "the next one has a start reserved"
    house.probe("licence", "ok").go()
    assert (promised(house, head) is not None) == (reserve is None)


def test_a_reservation_of_a_queue_whose_resource_breaks_holds_nothing_in_other_queues(house):
    house.machine(pes=8).queue("night", order="fcfs", reserve=1, priority=20).queue("day", reserve=1)
    house.probe("licence", "ok").set("queue/night/needs", ("licence",))
    (running,) = house.run("anne pes=6 wall=8:00", queue="day")
    (head,) = house.run("ben pes=8 wall=60:00", queue="night")
    assert promised(house, head) == 8
    (other,) = house.probe("licence", "broken").submit("cleo pes=4 wall=60:00", queue="day")
    house.at(8 * 60).end(running)
    assert house.go().starts == [other]
    assert house.request(head).reservation is None


def test_what_was_kept_for_a_reservation_that_is_given_up_is_used_by_the_next_pass(house):
    """The sweep has examined the requests in front of it already, and no event wakes a pass for them."""
    for name, units in (("gpu", ("0",)), ("matlab", ("0",))):
        house.change(ev.Change("create", f"consumable/{name}", {"units": units}))
    house.machine(pes=6).queue("night", order="fcfs", reserve=None)
    ending = house.run("anne pes=4 wall=10:00", "anne gpu=1 wall=30:00")
    long, never = house.run("ben pes=5 gpu=1 wall=60:00", "cleo pes=4 matlab=1 wall=20:00")
    assert (promised(house, long), promised(house, never)) == (30, 10)
    house.change(ev.Change("set", "consumable/matlab/units", ())).later(minutes=1)
    for seq in ending:
        house.end(seq)
    assert house.go().starts == []
    assert house.request(never).reservation is None
    assert house.plan.wake_at == house.now + 1
    assert house.later(ms=1).go().starts == [long]
    assert house.plan.wake_at is None


def test_a_reserved_start_names_a_request_of_the_same_pass_that_it_waits_for(house):
    house.machine(pes=6).queue("night", order="fcfs", reserve=1)
    first = house.run("anne pes=5 wall=1:00")[0]
    second, third = house.submit("ben pes=4 wall=10:00", "cleo pes=4 wall=1:00")
    house.later(minutes=1).end(first)
    assert house.go().starts == [second]
    assert house.request(third).reservation.by == (second,)
