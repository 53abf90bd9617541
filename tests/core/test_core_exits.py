"""User exits in a pass: jobselect's four answers, what elected brings about, what exits can see."""

import pytest
from core.harness import refuse
from core.story import Story

from nqspy.model.actions import Hold, Notify, Redate, Start

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


@pytest.mark.parametrize("title", STORIES)
def test_what_exits_are_asked_and_answer(house, title):
    Story(house).play(STORIES[title])


def test_without_a_jobselect_exit_nobody_that_limits_keep_back_is_looked_at(house):
    seqs = house.machine(pes=9).queue("night", user_limit=1).submit(*["anne"] * 50)
    told = house.run_pass()
    assert told.starts == seqs[:1]
    assert len(told.plan.reasons.own) == 1


def noted(house, look, answer=lambda request: None):
    """What a jobselect exit sees when it is asked about each candidate, by request."""
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
        lambda request, view: [(one.seq, said and said.verdict) for one, said in view.ahead(request)],
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
    """Re-dates the owner's other waiting requests to now."""
    return [Redate(view.waiting(owner=request.owner).seqs(), view.now, 0, "exits/machine_gun")]


def test_a_burst_counts_as_submitted_one_after_another(house):
    burst = house.machine(pes=3).queue("normal", time=1).submit(*["anne"] * 4)
    ben = house.later(seconds=1).submit("ben")[0]
    cleo = house.later(seconds=1).submit("cleo")[0]
    house.later(seconds=1).exits(elected=machine_gun)
    told = house.run_pass()
    assert told.starts == [burst[0], ben, cleo]
    start, redate = told.actions[:2]
    assert isinstance(start, Start)
    assert redate == Redate(tuple(burst[1:]), house.now, burst[0], "exits/machine_gun")
    house.apply(told)
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

    def elected(request, view):
        if request.seq != anne:
            return []
        return [Hold(ben, "exits/test", "after anne"), Notify("anne", "it runs", "now", anne)]

    house.exits(elected=elected)
    told = house.run_pass()
    assert told.starts == [anne, cleo]
    assert [type(action) for action in told.actions] == [Start, Hold, Notify, Start]
    assert told.reason(ben).matches(code="HELD", who="exits/test", text="after anne")


def test_the_plan_carries_what_it_saw(house):
    anne = house.machine(pes=2).queue("night").run("anne")[0]
    house.uses(anne, "3")
    plan = house.run_pass().plan
    assert plan.as_of == house.site.n
    assert dict(plan.samples)[anne].cpu == 3_000
