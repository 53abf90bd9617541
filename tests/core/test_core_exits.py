"""User exits in a pass: the four answers of jobselect, the effects of elected, and what exits can see."""

import pytest
from core.harness import refuse
from core.story import Story

from nqspy.core import alike as within
from nqspy.model.actions import Hold, Notify, Redate, Start
from nqspy.ports import Answer
from nqspy.sim.workloads.nights import MW

STORIES = {
    "each candidate is offered, the best first": """machine 3; queue night cpu=1; asks forcing
        submit anne cpu=600, ben cpu=60, cleo cpu=300; starts ben cleo anne; asked ben cleo anne""",
    "a refusal holds one request": """machine 3; queue night; asks forcing anne=refuse; submit anne, ben
        starts ben; why anne EXIT who=exits/test; short no""",
    "the line of a queue is closed, and no other": """machine 9; queue night priority=5; queue day priority=1
        asks forcing ben=hold; submit anne queue=night, ben queue=night, cleo queue=night, dora
        starts anne dora; why ben EXIT; why cleo line_closed who=exits/test ahead=1""",
    "force passes no stopped queue, hold or PE limit, and makes no PEs": """machine 2
        queue stopped started=off; queue mpp pe_limit=1; queue night; submit anne queue=stopped, ben; hold ben
        submit cleo pes=2 queue=mpp, dora pes=3 queue=mpp, emil pes=2, fay; asks forcing all=force
        starts emil
        asked cleo emil fay; why cleo NEVER; why dora NEVER; why fay NO_PES""",
    "a reservation of another queue blocks a queue in order": """machine 4; queue fast priority=3 reserve=1
        queue slow backfill=none; asks forcing fay=refuse; run anne pes=2 queue=fast wall=10
        submit ben pes=4 queue=fast wall=10, cleo queue=slow wall=60, dora queue=slow wall=60; starts -
        why cleo RESERVED; why dora RESERVED""",
    "offers are bounded": """machine 9; queue night; set global/offers_per_pass 2
        submit anne, anne, anne, anne; asks forcing all=refuse; starts -; asked anne anne2
        why anne4 offers_bounded 2""",
    "every queue has its part of the offers": """machine 9; queue high priority=9; queue low
        set global/offers_per_pass 2; submit anne queue=high, anne queue=high, anne queue=high, ben
        asks forcing anne=refuse; starts ben""",
    "on a full machine offers go on until one waits only for a PE": """machine 1; queue night; run anne
        submit anne, anne, ben, cleo; asks forcing anne=refuse; starts -; asked anne2 anne3 ben; short yes
        why ben NO_PES; asks forcing all=refuse; starts -; short no""",
    "schedule now does not pass a refusal": """machine 2; queue night; submit anne; schedule anne now
        asks forcing all=refuse; starts -""",
    "without a free PE one offer suffices": """machine 1; queue night; run anne; submit ben, ben, ben, ben
        asks; starts -; asked ben; short yes; why ben NO_PES; why ben4 NO_PES""",
    "offers stop with the last that can start": """machine 3; queue night
        submit anne, ben, cleo pes=2, cleo pes=2, cleo pes=2; asks; starts anne ben; asked anne ben cleo
        why cleo few_pes_free 2 1 3 - - -; why cleo3 NO_PES""",
    "those that limits hold are not offered once no other can start": """machine 9; queue night user_limit=1
        submit anne, anne, anne, anne, ben; asks; starts anne ben; why anne2 LIMIT; asks; starts -; asked
        why anne2 LIMIT""",
    "force passes run, user, group and memory limits": """machine 9
        queue night run_limit=1 user_limit=1 group_limit=1 memory_limit=1mw
        submit anne mem=1mw, anne mem=1mw, anne mem=1mw; asks forcing anne3=force; starts anne anne3
        why anne2 LIMIT who=queue~night""",
    "an exit that may force is offered all": """machine 9; queue night user_limit=1; submit anne, anne, anne
        asks forcing; starts anne; asked anne anne2 anne3""",
}  # fmt: skip
PROMISED = """machine 1; queue night order=sjf reserve=1; run anne wall=5:00; run ben wall=10:00
    run cleo wall=6:00; later 5; end anne"""
STORIES |= {
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
def test_what_exits_are_asked_and_answer(house, title):
    Story(house).play(STORIES[title])


def test_without_a_jobselect_exit_requests_blocked_by_limits_are_not_examined(house):
    seqs = house.machine(pes=9).queue("night", user_limit=1).submit(*["anne"] * 50)
    result = house.run_pass()
    assert result.starts == seqs[:1]
    assert len(result.plan.reasons.own) == 1


def noted(house, look, answer=lambda request: None):
    """Record by request what a jobselect exit sees when it is asked about each candidate."""
    seen = {}

    def jobselect(request, view):
        seen[request.seq] = look(request, view)
        return answer(request)

    house.exits(jobselect=jobselect)
    house.run_pass()
    return seen


def test_an_exit_sees_what_was_offered_ahead_and_what_was_answered(house):
    a, b, c = house.machine(pes=9).queue("night").submit("anne", "ben", "cleo")
    seen = noted(
        house,
        lambda request, view: [(one.seq, answer and answer.verdict) for one, answer in view.ahead(request)],
        lambda request: refuse() if request.owner == "ben" else None,
    )
    assert seen == {a: [], b: [(a, None)], c: [(a, None), (b, "refuse")]}


def test_running_and_waiting_follow_the_pass(house):
    house.machine(pes=9).queue("night").queue("day").run("zoe", queue="day")
    house.submit("anne", "ben", "anne name=x", queue="night")

    def look(request, view):
        assert [r.owner for r in view.running(queue="day")] == ["zoe"]
        assert all(r.state == "running" for r in view.running())
        return len(view.running()), len(view.waiting(queue="night")), len(view.waiting(owner="anne"))

    assert [*noted(house, look).values()] == [(1, 3, 2), (2, 2, 1), (3, 1, 1)]


def test_a_selection_is_in_the_order_of_dates_whatever_the_rows(house):
    house.machine(pes=9).queue("night").queue("day")
    seqs = house.submit("anne", "anne", queue="night") + house.submit("anne", queue="day")
    early = house.at(-60).submit("anne name=x", queue="night")[0]
    house.submit("ben", queue="night")

    def look(request, view):
        mine = view.waiting(owner="anne")
        return mine.seqs(), [r.name for r in mine], len(mine), bool(view.waiting(owner="nobody"))

    first, *_ = noted(house.at(1), look, lambda request: refuse()).values()
    assert first == ((early, *seqs), ["x", "STDIN", "STDIN", "STDIN"], 4, False)


def test_requests_are_chosen_by_all_words_together(house):
    house.machine(pes=2).queue("night").queue("day")
    running = house.run("anne group=d2 name=x", queue="day")
    mine = house.submit("anne group=d1 name=x", "anne group=d1", queue="night")
    house.submit("ben group=d1 name=x", "anne group=d2 name=x", queue="night")
    house.submit("ben group=d2 name=x", queue="day")
    both = {"owner": "anne", "group": "d1"}

    def look(request, view):
        chosen = [view.waiting(**both), view.waiting(**both, name="x"), view.waiting(**both, queue="day")]
        chosen += [view.waiting(owner="zoe", group="d1"), view.running(owner="anne", group="d2", name="x")]
        chosen += [view.running(**both), view.running(owner="anne", group="d2", name="y")]
        return [[r.seq for r in some] for some in chosen]

    first, *_ = noted(house, look, lambda request: refuse()).values()
    assert first == [mine, mine[:1], [], [], running, [], []]


def test_what_exits_see_is_read_only(house):
    house.machine(pes=3, memory="128mw").queue("night", run_limit=2)
    house.submit("anne cpu=600 mem=unlimited")

    def look(request, view):
        assert view.settings.queues["night"].per_request.cpu_limit is None
        with pytest.raises(AttributeError):
            request.owner = "ben"
        with pytest.raises(AttributeError):
            view.queue("night").run_limit = 99
        with pytest.raises(AttributeError, match="ower"):
            request.ower  # noqa: B018
        with pytest.raises(KeyError):
            view.queue("nowhere")
        return request.cpu, request.memory, request.id, view.machine.pes, view.queue("night").run_limit

    assert [*noted(house, look).values()] == [(600_000, None, "1.ymp", 3, 2)]


def machine_gun(request, view):
    """Set the date of the owner's other waiting requests to now."""
    return [Redate(view.waiting(owner=request.owner).seqs(), view.now, 0, "exits/machine_gun")]


def test_a_burst_counts_as_submitted_one_after_another(house):
    burst = house.machine(pes=3).queue("normal", time=1).submit(*["anne"] * 4)
    ben = house.later(seconds=1).submit("ben")[0]
    cleo = house.later(seconds=1).submit("cleo")[0]
    house.later(seconds=1).exits(elected=machine_gun)
    result = house.run_pass()
    assert result.starts == [burst[0], ben, cleo]
    start, redate = result.actions[:2]
    assert isinstance(start, Start)
    assert redate == Redate(tuple(burst[1:]), house.now, burst[0], "exits/machine_gun")
    house.apply(result)
    assert {house.request(seq).date_in_queue for seq in burst[1:]} == {house.now}


def test_a_redating_is_seen_by_later_queues_and_exits(house):
    house.machine(pes=2).queue("a", priority=9, time=1).queue("b", time=1)
    first = house.submit("anne", queue="a")[0]
    mine = house.submit("anne", queue="b")[0]
    ben = house.later(seconds=1).submit("ben", queue="b")[0]
    dates = {}
    house.later(seconds=1).exits(
        elected=machine_gun,
        jobselect=lambda request, view: dates.update({request.seq: request.date_in_queue}),
    )
    assert house.run_pass().starts == [first, ben]
    assert dates[mine] == house.now


def test_other_actions_of_elected_follow_their_start(house):
    anne, ben, cleo = house.machine(pes=3).queue("night").submit("anne", "ben", "cleo")
    answers = {anne: [Hold(ben, "exits/test", "after anne"), Notify("anne", "it runs", "now", anne)]}
    house.exits(elected=lambda request, view: answers.get(request.seq, []))
    result = house.run_pass()
    assert result.starts == [anne, cleo]
    assert [type(action) for action in result.actions] == [Start, Hold, Notify, Start]
    assert result.reason(ben).matches(code="HELD", who="exits/test", text="after anne")


def test_the_plan_carries_what_it_saw(house):
    anne = house.machine(pes=2).queue("night").run("anne")[0]
    house.uses(anne, "3")
    plan = house.run_pass().plan
    assert plan.as_of == house.site.n
    assert dict(plan.samples)[anne].cpu == 3_000


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
    result = house.run_pass()
    assert result.starts == others
    assert set(exits.called("jobselect")) == {same[0], *others}
    house.apply(result)
    reasons = result.plan.reasons
    assert len(reasons.own) <= 1
    assert {house.why(seq).text for seq in (same[1], same[-1])} == {"x runs"}


SIZES = "anne, anne mem=8mw, anne mem=4mw, anne mem=16mw, anne mem=32mw"


@pytest.mark.parametrize(
    ("lines", "fields", "bounds", "started"),
    [
        ("anne queue=whole, ben queue=whole, ben", (), (), [3]),
        ("anne name=STDIN, anne", ("name",), (), [2]),  # a default name does not count as alike
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
    answer = Answer("refuse", "too large", "exits/test", fields, bounds)
    exits = house.exits(may_force=False, jobselect=lambda r, v: answer if r.seq == first else None)
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
    result = house.run_pass()
    assert result.starts == [small]
    house.apply(result)
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
    result = house.run_pass()
    assert result.starts == [anne]
    assert exits.called("jobselect") == [ben, cleo, anne, dora, ben], "he speaks for cleo"
    assert [result.reason(seq).text for seq in (ben, cleo)] == ["enough is running"] * 2
    assert result.reason(dora).text == "too wide", "she was refused after the start: that holds"


def test_whom_the_bounds_of_such_a_refusal_reach_is_not_asked_again(house):
    house.machine(pes=5).queue("night")
    ben, cleo, anne, dora = house.submit("ben mem=2mw", "cleo mem=3mw", "anne mem=9mw", "dora mem=1mw")

    def says(request, view):
        if not view.running():
            return None if request.seq == anne else refuse("not first")
        return Answer("refuse", "too much", "exits/test", (), (("memory", request.memory, None),))

    exits = house.exits(may_force=False, jobselect=says)
    result = house.run_pass()
    assert result.starts == [anne]
    assert exits.called("jobselect") == [ben, cleo, anne, dora, ben], "he speaks for cleo, who asks for more"
    house.apply(result)
    assert {house.why(seq).text for seq in (ben, cleo, dora)} == {"too much"}


def test_a_refusal_that_later_starts_make_void_is_examined_again_at_once(house):
    ben, anne = house.machine(pes=5).queue("night").submit("ben", "anne")
    house.exits(
        may_force=False,
        jobselect=lambda r, view: refuse("alone") if r.seq == ben and not view.running() else None,
    )
    result = house.run_pass()
    assert result.starts == [anne]
    assert result.reason(ben).matches(code="LATER")
    assert result.plan.wake_at == house.now + 1
    house.apply(result)
    assert house.go().starts == [ben]


@pytest.mark.parametrize(("least", "most"), [(2, 3), (0, None), (3, 3), (5, 9), (None, None)])
def test_bounds_hold_one_request_as_they_hold_a_column(house, least, most):
    house.machine(pes=9).queue("night")
    house.submit("anne pes=1", "ben pes=2", "cleo pes=3", "dora pes=4")
    bounds, columns = (("pes", least, most),), house.site.waiting["night"]
    inside = [within.lies_within(columns.request(row), bounds) for row in range(4)]
    assert inside == within.rows(house.site, columns, (), bounds).tolist()
    assert inside == [least is not None and least <= pes <= (most or pes) for pes in (1, 2, 3, 4)]
