"""Whom a pass offers to jobselect: nobody once nothing more can start, nobody again whose answer holds,
nobody whom another's answer reaches; and that the walk goes on whatever happens."""

import pytest
from core.harness import hold_line, refuse

from nqspy.ports import Answer
from nqspy.sim.workloads.nights import MW


def alike(*fields, text="not now"):
    return Answer("refuse", text, "exits/test", fields)


# ---------------------------------------------------------------- exits that do not force


def test_the_same_starts_whether_it_might_force_or_not(house):
    house.machine(pes=4).queue("night", user_limit=2)
    house.submit("anne", "anne pes=9", "ben pes=3", "anne", "cleo", "ben", "cleo pes=2", "dora")
    starts = []
    for may_force in (True, False):
        house.exits(may_force, jobselect=lambda r, v: refuse() if r.owner == "dora" else None)
        starts.append(house.run_pass().starts)
    assert starts[0] == starts[1]


# ---------------------------------------------------------------- how far an answer reaches


def test_three_thousand_of_one_name_behind_a_running_one_are_passed_over_as_one(house):
    house.machine(pes=9).queue("night").group("d1", 10).run("anne group=d1 name=x")
    same = house.submit(*["anne group=d1 name=x"] * 3000)
    others = house.submit("anne name=x", "ben group=d1 name=x", "anne group=d1 name=y")

    def jobselect(request, view):
        mine = {"owner": request.owner, "group": request.group, "name": request.name}
        return alike("owner", "group", "name", text="x runs") if view.running(**mine) else None

    exits = house.exits(may_force=False, jobselect=jobselect)
    told = house.run_pass()
    assert told.starts == others
    assert set(exits.called("jobselect")) == {same[0], *others}
    house.apply(told)
    reasons = told.plan.reasons
    assert len(reasons.own) <= 1
    assert {house.why(seq).text for seq in (same[1], same[-1])} == {"x runs"}


def test_a_reach_of_no_fields_is_the_whole_queue_and_no_other(house):
    first = house.machine(pes=9).queue("a", priority=9).queue("b").submit(*["anne"] * 5, queue="a")
    other = house.submit("ben", queue="b")
    exits = house.exits(may_force=False, jobselect=lambda r, v: alike() if r.queue == "a" else None)
    assert house.run_pass().starts == other
    assert set(exits.called("jobselect")) == {first[0], *other}


def test_a_name_that_was_not_given_is_not_alike(house):
    given, default = house.machine(pes=9).queue("night").submit("anne name=STDIN", "anne")
    house.exits(may_force=False, jobselect=lambda r, v: alike("name") if r.seq == given else None)
    assert house.run_pass().starts == [default]


@pytest.mark.parametrize("field", ["owner", "group", "cpu", "memory", "wall", "pes", "queue"])
def test_reach_compares_the_field_that_it_names(house, field):
    house.machine(pes=99).queue("night").group("d1", 1)
    words = {"owner": ("ben", ""), "group": ("anne", "group=d1"), "cpu": ("anne", "cpu=60"),
             "memory": ("anne", "mem=8mw"), "wall": ("anne", "wall=60"), "pes": ("anne", "pes=2"),
             "queue": ("anne", "")}  # fmt: skip
    same, other = "anne", " ".join(words[field])
    first, second, third = house.submit(same, same, other)
    house.exits(may_force=False, jobselect=lambda r, v: alike(field) if r.seq == first else None)
    starts = house.run_pass().starts
    assert second not in starts
    assert (third in starts) == (field != "queue")


SIZES = ("", "mem=8mw", "mem=4mw", "mem=16mw", "mem=32mw")


@pytest.mark.parametrize(
    ("words", "bounds", "started"),
    [
        ("mem=8mw", (8 * MW, None), ["", "mem=4mw"]),
        ("mem=8mw", (8 * MW, 16 * MW), ["", "mem=4mw", "mem=32mw"]),
        ("mem=8mw", (4 * MW, 8 * MW), ["", "mem=16mw", "mem=32mw"]),
        ("", (None, 16 * MW), ["mem=8mw", "mem=4mw", "mem=16mw", "mem=32mw"]),
    ],
)
def test_a_refusal_reaches_whose_number_lies_within_its_bounds(house, words, bounds, started):
    house.machine(pes=99).queue("night")
    first, *others = house.submit(*[f"anne {each}" for each in (words, *SIZES)])
    said = Answer("refuse", "too large", "exits/test", (), (("memory", *bounds),))
    exits = house.exits(may_force=False, jobselect=lambda r, v: said if r.seq == first else None)
    told = house.run_pass()
    assert [SIZES[others.index(seq)] for seq in told.starts] == started
    assert exits.called("jobselect") == [first, *told.starts, first], (
        "again after the starts, as it stands then"
    )
    house.apply(told)
    assert {house.why(seq).text for seq in others if seq not in told.starts} == {"too large"}


def test_bounds_narrow_what_is_alike(house):
    house.machine(pes=99).queue("night")
    first, _, less, other = house.submit("anne cpu=60", "anne cpu=90", "anne cpu=30", "ben cpu=90")
    said = Answer("refuse", "too long", "exits/test", ("owner",), (("cpu", 60_000, None),))
    house.exits(may_force=False, jobselect=lambda r, v: said if r.seq == first else None)
    assert house.run_pass().starts == [less, other]


def test_whom_a_later_answer_does_not_reach_were_passed_over_for_the_former_one(house):
    house.machine(pes=99).queue("night")
    first, reached, small = house.submit("anne cpu=60", "anne cpu=90", "anne cpu=30")
    before = Answer("refuse", "too long", "exits/test", (), (("cpu", 60_000, None),))
    after = Answer("refuse", "one is running", "exits/test", (), (("cpu", 30_000, 60_000),))
    house.exits(
        may_force=False, jobselect=lambda r, v: (after if v.running() else before) if r.seq == first else None
    )
    told = house.run_pass()
    assert told.starts == [small]
    house.apply(told)
    assert [house.why(seq).text for seq in (first, reached)] == ["one is running", "too long"]


# ---------------------------------------------------------------- reasons, as it stands after the pass


def test_a_wide_one_that_was_passed_over_is_told_what_is_free_after_the_pass(house):
    house.machine(pes=3).queue("night").run("zoe")
    wide, ben, cleo = house.submit("anne pes=3", "ben", "cleo")
    house.exits(may_force=False, jobselect=lambda request, view: None)
    assert house.go().starts == [ben, cleo]
    assert house.why(wide).matches(kind="no_pe_free", values=(3, 3, None, None))


def test_a_text_made_before_a_later_start_of_the_same_pass_is_made_again(house):
    house.machine(pes=3).queue("night", memory_limit="8mw")
    wide, small, ben, anne = house.submit("anne pes=3 mem=8mw", "zoe mem=1mw", "ben", "anne mem=2mw")
    house.exits(
        may_force=False,
        jobselect=lambda r, view: refuse(f"{len(view.running())} are running") if r.owner == "ben" else None,
    )
    house.site.requests[small].rank = 0
    assert house.go().starts == [wide]
    big = house.end(wide).submit("cleo pes=3")[0]
    house.schedule(big, "first")
    assert house.go().starts == [big]
    last = house.end(big).submit("dora pes=2")[0]
    house.schedule(last, "first")
    assert house.go().starts == [last, small]
    assert house.why(ben).text in ("2 are running", "it asks for 1 PE, none of 3 PEs is free")
    assert house.why(anne).matches(kind="no_pe_free", values=(1, 3, None, None))


def test_whom_a_refusal_after_the_last_start_reaches_is_not_asked_again(house):
    house.machine(pes=5).queue("night")
    ben, cleo, anne, dora = house.submit("ben", "cleo", "anne", "dora pes=2")

    def says(request, view):
        if view.running():
            return alike(text="enough is running") if request.pes == 1 else refuse("too wide")
        return None if request.seq == anne else refuse("not first")

    exits = house.exits(may_force=False, jobselect=says)
    told = house.run_pass()
    assert told.starts == [anne]
    assert exits.called("jobselect") == [ben, cleo, anne, dora, ben], "he speaks for cleo"
    assert [told.reason(seq).text for seq in (ben, cleo)] == ["enough is running"] * 2
    assert told.reason(dora).text == "too wide", "she was refused after the start: that holds"


def test_whom_the_bounds_of_such_a_refusal_reach_is_not_asked_again(house):
    house.machine(pes=5).queue("night")
    ben, cleo, anne, dora = house.submit("ben mem=2mw", "cleo mem=3mw", "anne mem=9mw", "dora mem=1mw")

    def says(request, view):
        if not view.running():
            return None if request.seq == anne else refuse("not first")
        return Answer("refuse", "too much", "exits/test", (), (("memory", request.memory, None),))

    exits = house.exits(may_force=False, jobselect=says)
    told = house.run_pass()
    assert told.starts == [anne]
    assert exits.called("jobselect") == [ben, cleo, anne, dora, ben], "he speaks for cleo, who asks for more"
    house.apply(told)
    assert {house.why(seq).text for seq in (ben, cleo, dora)} == {"too much"}


def test_a_refusal_that_later_starts_of_the_pass_make_void_is_looked_at_again_at_once(house):
    ben, anne = house.machine(pes=5).queue("night").submit("ben", "anne")
    house.exits(
        may_force=False,
        jobselect=lambda r, view: refuse("alone") if r.seq == ben and not view.running() else None,
    )
    told = house.run_pass()
    assert told.starts == [anne]
    assert told.reason(ben).matches(code="LATER")
    assert told.plan.wake_at == house.now + 1
    house.apply(told)
    assert house.go().starts == [ben]


@pytest.mark.parametrize("may_force", [False, True])
def test_no_request_has_the_limit_of_another_owner_as_its_reason(house, may_force):
    """Ben's wide request waits for PEs until a request of his starts from the other queue."""
    house.machine(pes=4).queue("day", priority=20).queue("night", priority=10)
    house.complex("both", "day", "night", user_limit=1).submit("anne queue=night")
    house.exits(may_force, jobselect=lambda request, view: None)
    house.go()
    wide, ben, anne, cleo = house.submit(
        "ben queue=day pes=4", "ben queue=night", "anne queue=night", "cleo queue=night pes=4"
    )
    assert house.go().starts == [ben]
    assert [house.why(seq).code.value for seq in (wide, anne, cleo)] == ["LIMIT", "LIMIT", "NO_PES"]


# ---------------------------------------------------------------- reservations


@pytest.fixture
def promised(house):
    """One PE, held for five minutes; then a request has it, by its reservation."""
    running = house.machine(pes=1).queue("night", order="sjf", reserve=1).run("anne wall=5:00")[0]
    house.first = house.run("ben wall=10:00")[0]
    house.shorter = house.run("cleo wall=6:00")[0]
    house.later(minutes=5).end(running)
    return house


def test_when_an_exit_refuses_the_request_whose_time_has_come_the_next_one_starts(promised):
    promised.exits(jobselect=lambda request, view: refuse() if request.seq == promised.first else None)
    told = promised.go()
    assert told.starts == [promised.shorter]
    assert told.plan.wake_at == promised.now + 1


def test_a_reservation_behind_a_line_that_an_exit_holds_is_late_by_the_exit(promised):
    promised.exits(jobselect=lambda request, view: hold_line() if request.seq == promised.shorter else None)
    assert promised.go().starts == []
    assert "exits/test" in promised.request(promised.first).reservation.late
