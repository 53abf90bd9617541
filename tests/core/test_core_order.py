"""Whose request is next: the formula, ties, ranks, queues; and what qstat says of it."""

import pytest
from core.harness import START, force, hold_line, refuse

from nqspy.model.requests import State


def test_with_time_alone_the_line_is_first_come_first_served(house):
    anne = house.machine(pes=1).queue("night").submit("anne")[0]
    ben, cleo = house.later(seconds=5).submit("ben", "cleo")
    house.later(seconds=5)
    assert house.standing().line() == [anne, ben, cleo]
    for first in (anne, ben, cleo):
        assert house.go().starts == [first]
        house.end(first)


def test_at_the_instant_of_submission_nobody_has_waited_and_the_lower_number_goes_first(house):
    house.machine(pes=3).queue("night", share=0, cpu=0, memory=0, time=0)
    assert house.go().starts == []
    seqs = house.submit("cleo", "anne", "ben")
    assert house.run_pass().starts == seqs


def test_the_factors_are_the_papers(house):
    anne = house.queue("normal", cpu=6, memory=1, time=10).submit("anne cpu=600 mem=32mw")[0]
    ben = house.later(seconds=60).submit("ben cpu=60 mem=8mw")[0]
    standing = house.later(seconds=40).standing()
    first, second = (standing.of(house.request(seq)) for seq in (anne, ben))
    assert (first.cpu, first.memory, first.time) == (0, 0, 1)
    assert second.cpu == pytest.approx(0.9, abs=1e-12)
    assert second.memory == pytest.approx(0.75, abs=1e-12)
    assert second.time == pytest.approx(0.4, abs=1e-12)
    assert second.total == pytest.approx(6 * 0.9 + 0.75 + 10 * 0.4, abs=1e-9)
    assert first.total == pytest.approx(10, abs=1e-9)
    assert (second.position, first.position) == (1, 2)


def test_a_request_without_a_limit_counts_as_its_queues_limit_else_as_the_largest_waiting(house):
    house.queue("limited", cpu=1, max_cpu="20:00")
    asked, omitted, unlimited = house.submit("anne cpu=10:00", "ben", "cleo cpu=unlimited")
    limited = house.standing()
    assert [limited.of(house.request(seq)).cpu for seq in (asked, omitted, unlimited)] == [0.5, 0, 0]
    house.queue("free", cpu=1)
    asked, small, omitted = house.submit("anne cpu=10:00", "ben cpu=2:30", "cleo")
    free = house.standing()
    assert [free.of(house.request(seq)).cpu for seq in (asked, small, omitted)] == [0, 0.75, 0]


def test_a_factor_whose_divisor_is_nothing_is_nothing_for_all(house):
    house.queue("night", share=0, cpu=3, memory=2, time=1).submit("anne", "ben mem=unlimited")
    assert house.standing().total.tolist() == [0, 0]


def test_a_date_in_the_future_counts_as_no_wait(house):
    anne = house.queue("night").later(hours=1).submit("anne")[0]
    house.at(0)
    assert house.standing().of(house.request(anne)).time == 0


def test_held_requests_count_for_nothing(house):
    large, small = house.queue("normal", cpu=1).submit("anne cpu=1:00:00", "ben cpu=10:00")
    house.hold(large)
    assert house.standing().of(house.request(small)).cpu == 0
    with pytest.raises(KeyError):
        house.standing().of(house.request(large))
    assert house.run_pass().starts == [small]


def test_ties_go_to_the_earlier_date_then_to_the_lower_number(house):
    anne, ben = house.machine(pes=4).queue("night", cpu=1).submit("anne cpu=60", "ben cpu=60")
    cleo, dora = house.later(seconds=1).submit("cleo cpu=60", "dora cpu=60")
    house.hold(anne).release(anne)
    assert house.run_pass().starts == [anne, ben, cleo, dora]


def test_queues_of_higher_priority_are_served_first_then_by_name(house):
    house.machine(pes=3).queue("low", priority=1).queue("b", priority=9).queue("a", priority=9)
    low, b, a = house.submit("anne queue=low", "anne queue=b", "anne queue=a")
    assert house.run_pass().starts == [a, b, low]


def test_schedule_request_next_is_ahead_in_its_queue_and_first_ahead_of_everything(house):
    house.machine(pes=5).queue("low", priority=1).queue("high", priority=9)
    low, lower, lowest = house.submit("anne", "ben", "cleo", queue="low")
    high, higher = house.later(seconds=1).submit("anne", "ben", queue="high")
    house.schedule(lowest, "next").schedule(lower, "first").schedule(higher, "first")
    assert house.run_pass().starts == [lowest, higher, high, lower, low]
    assert house.standing("low").line() == [lowest, lower, low]


def test_schedule_request_now_starts_in_spite_of_limits_but_not_without_pes(house):
    house.machine(pes=3).queue("night", run_limit=1, user_limit=1)
    anne, other, third = house.submit("anne", "anne", "anne pes=2")
    assert house.go().starts == [anne]
    told = house.schedule(other, "now").run_pass()
    assert told.starts == [other]
    assert told.actions[0].forced
    house.schedule(third, "now").machine(pes=2)
    assert third not in house.run_pass().starts


def test_a_stopped_queue_starts_nothing_and_still_has_a_line(house):
    anne, ben = house.machine(pes=4).queue("night", started=False).submit("anne", "ben")
    told = house.schedule(ben, "now").run_pass()
    assert told.starts == []
    assert told.reason(anne).matches(code="STOPPED", who="queue night")
    assert house.standing().line() == [ben, anne]


def test_positions_are_the_order_in_which_one_pass_then_starts_them(house):
    house.machine(pes=30).queue("night", share=20, cpu=3, memory=2, time=10, started=False, user_limit=3)
    house.group("d1", 29).group("d2", 24).group("d3", 16)
    for i in range(30):
        line = f"u{i % 7} group=d{i % 3 + 1} cpu={60 + 37 * i % 400} mem={1 + i * 13 % 9}mw"
        house.later(seconds=i % 4).submit(line)
    standing = house.later(minutes=1).standing()
    starts = house.set("queue/night/started", True).run_pass().starts
    assert len(starts) == 21
    assert standing.line()[:21] == starts


def test_positions_foresee_what_elected_exits_do(house):
    house.machine(pes=4).queue("normal", time=1)

    def behind(request, view):
        from nqspy.model.actions import Redate

        return [Redate(view.waiting(owner=request.owner).seqs(), view.now, request.seq, "exits/gun")]

    burst = house.submit("anne", "anne", "anne")
    ben = house.later(seconds=1).submit("ben")[0]
    house.later(seconds=1).exits(elected=behind)
    assert house.standing().line() == [burst[0], ben, *burst[1:]]
    assert house.run_pass().starts == [burst[0], ben, *burst[1:]]


def test_requests_an_exit_refused_keep_their_place_and_are_not_debited(house):
    house.machine(pes=8).queue("night", share=20, time=1).group("d1", 50).group("d2", 50)
    one, two = house.submit("anne group=d1 cpu=600", "anne group=d1 cpu=600")
    three = house.submit("ben group=d2 cpu=600")[0]
    assert house.standing().line() == [one, three, two]
    assert house.standing(refused=[one]).line() == [one, two, three]


def test_an_empty_queue_has_an_empty_line(house):
    house.queue("night")
    assert len(house.standing()) == 0
    with pytest.raises(KeyError):
        house.standing("nowhere")


def test_only_the_beginning_of_a_long_line_is_simulated(house):
    house.queue("night", share=20, time=1, user_limit=1).group("d1", 1)
    seqs = house.submit(*["anne group=d1"] * 3, "ben group=d1")
    assert sorted(house.standing(simulate=2).line()) == seqs
    assert house.standing(simulate=2).line()[:2] == [seqs[0], seqs[3]]


def test_the_house_knows_the_exits_words():
    assert [force().verdict, refuse().verdict, hold_line().verdict] == ["force", "refuse", "hold_line"]
    assert START > 0
    assert State.QUEUED == "queued"


def test_the_bound_holds_against_the_longest_waiter_and_between_no_others(house):
    """10 min, 5.2 min and 10 s of waiting: the last overtakes the second (ratio 31), never the first."""
    house.machine(pes=1).queue("normal", cpu=6, memory=1, time=10)
    longest = house.submit("anne cpu=600 mem=32mw")[0]
    second = house.at(288).submit("ben cpu=600 mem=32mw")[0]
    small = house.at(590).submit("cleo cpu=1 mem=1b")[0]
    assert house.at(600).standing("normal").line() == [longest, small, second]
    assert house.site.settings.weights("normal").tau_max() == pytest.approx(10 / 3)


def test_a_queue_that_is_scheduled_by_class_has_places_by_priority(house):
    first, second = house.machine(pes=1).queue("apps", order="class", time=1).submit("anne", "ben")
    assert house.standing("apps").line() == [first, second]
