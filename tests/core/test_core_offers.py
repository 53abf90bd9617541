"""Candidates that a pass offers to jobselect, how far an answer reaches, and the reasons after the offers."""

import pytest
from core.harness import refuse
from core.story import Story

from nqspy.core import alike as within
from nqspy.ports import Answer
from nqspy.sim.workloads.nights import MW

PROMISED = """machine 1; queue night order=sjf reserve=1; run anne wall=5:00; run ben wall=10:00
    run cleo wall=6:00; later 5; end anne"""
STORIES = {
    "a wide one that was passed over is told what is free after the pass": """machine 3; queue night; run zoe
        submit anne pes=3, ben, cleo; asks; starts ben cleo; why anne no_pe_free 3 3 - -""",
    "if an exit refuses the request whose time has come the next one starts": f"""{PROMISED}
        asks forcing ben=refuse; starts cleo; wake +1""",
    "a reservation behind a line that an exit holds is late": f"""{PROMISED}; asks forcing cleo=hold; starts -
        late ben""",
} | {
    # Ben's wide request waits for PEs until a request of his starts from the other queue.
    f"no request has the limit of another owner as its reason: {asks}": f"""machine 4; queue day priority=20
        queue night priority=10; create complex/both queues=(day,night) user_limit=1; {asks}; run anne
        submit ben pes=4 queue=day, ben, anne, cleo pes=4; starts ben2; why ben LIMIT; why anne2 LIMIT
        why cleo NO_PES"""
    for asks in ("asks", "asks forcing")
}  # fmt: skip


@pytest.mark.parametrize("title", STORIES)
def test_offers(house, title):
    Story(house).play(STORIES[title])


def alike(*fields, text="not now"):
    return Answer("refuse", text, "exits/test", fields)


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


SIZES = "anne, anne mem=8mw, anne mem=4mw, anne mem=16mw, anne mem=32mw"


@pytest.mark.parametrize(
    ("lines", "fields", "bounds", "started"),
    [
        ("anne queue=whole, ben queue=whole, ben", (), (), [3]),
        ("anne name=STDIN, anne", ("name",), (), [2]),  # a name that was not given is not alike
        ("anne, anne, ben", ("owner",), (), [3]),
        ("anne, anne, anne group=d1", ("group",), (), [3]),
        ("anne, anne, anne cpu=60", ("cpu",), (), [3]),
        ("anne, anne, anne mem=8mw", ("memory",), (), [3]),
        ("anne, anne, anne wall=60", ("wall",), (), [3]),
        ("anne, anne, anne pes=2", ("pes",), (), [3]),
        ("anne, anne, anne", ("queue",), (), []),
        (f"anne mem=8mw, {SIZES}", (), (("memory", 8 * MW, None),), [2, 4]),
        (f"anne mem=8mw, {SIZES}", (), (("memory", 8 * MW, 16 * MW),), [2, 4, 6]),
        (f"anne mem=8mw, {SIZES}", (), (("memory", 4 * MW, 8 * MW),), [2, 5, 6]),
        (f"anne, {SIZES}", (), (("memory", None, 16 * MW),), [3, 4, 5, 6]),
        ("anne cpu=60, anne cpu=90, anne cpu=30, ben cpu=90", ("owner",), (("cpu", 60_000, None),), [3, 4]),
    ],
)
def test_a_refusal_reaches_what_is_alike_and_within_its_bounds(house, lines, fields, bounds, started):
    house.machine(pes=99).queue("whole", priority=9).queue("night").group("d1", 1)
    first, *others = house.submit(*lines.split(", "))
    said = Answer("refuse", "too large", "exits/test", fields, bounds)
    exits = house.exits(may_force=False, jobselect=lambda r, v: said if r.seq == first else None)
    assert house.go().starts == started
    again = [first] if started else []  # as it stands after the starts
    assert exits.called("jobselect") == [first, *started, *again]
    assert {house.why(seq).text for seq in others if seq not in started} <= {"too large"}


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
    assert house.why(ben).text == "2 are running" or house.why(ben).kind == "no_pe_free"
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


@pytest.mark.parametrize(("least", "most"), [(2, 3), (0, None), (3, 3), (5, 9), (None, None)])
def test_bounds_hold_one_request_as_they_hold_a_column(house, least, most):
    house.machine(pes=9).queue("night")
    house.submit("anne pes=1", "ben pes=2", "cleo pes=3", "dora pes=4")
    bounds, columns = (("pes", least, most),), house.site.waiting["night"]
    inside = [within.lies_within(columns.request(row), bounds) for row in range(4)]
    assert inside == within.rows(house.site, columns, (), bounds).tolist()
    assert inside == [least is not None and least <= pes <= (most or pes) for pes in (1, 2, 3, 4)]
