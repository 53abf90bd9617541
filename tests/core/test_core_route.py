"""Pipe queues: where a request goes, and why not."""

from core.harness import spec_of

from nqspy.core import route
from nqspy.core.features import verify
from nqspy.core.route import ask_submit, destination
from nqspy.ports import SubmitAnswer


def day(house):
    """The queues of the day: express, normal, night behind the pipe queue batch."""
    house.machine(pes=8)
    house.queue("express", max_cpu="30", max_memory="8mw").queue("normal", max_cpu="10:00", max_memory="32mw")
    house.queue("night")
    return house.queue("batch", kind="pipe", destinations=("express", "normal", "night"))


def goes_to(house, owner="anne", groups=(), **asked):
    pipe = house.site.settings.queues["batch"]
    found, objections = route.Routes(house.site).find(spec_of(owner, **asked), pipe, groups)
    return found, [each.text for each in objections]


def test_the_first_destination_whose_limits_allow_it(house):
    day(house)
    assert goes_to(house, cpu="20")[0] == "express"
    assert goes_to(house, cpu="20", mem="9mw")[0] == "normal"
    assert goes_to(house, cpu="10:00")[0] == "normal"
    assert goes_to(house, cpu="10:01")[0] == "night"
    assert goes_to(house, cpu="unlimited")[0] == "night"


def test_an_omitted_cpu_time_counts_as_the_default(house):
    day(house)
    found, objections = goes_to(house)
    assert found == "normal"
    assert objections == ["express: CPU time 600 s is above the limit of 30 s"]
    house.set("default/cpu_limit", 20_000)
    assert goes_to(house)[0] == "express"
    house.set("default/cpu_limit", None)
    assert goes_to(house)[0] == "night"


def test_disabled_and_restricted_destinations_are_passed_over(house):
    day(house).set("queue/express/enabled", False).set("queue/normal/users", ["ben"])
    found, objections = goes_to(house, cpu="20")
    assert found == "night"
    assert objections == ["express: the queue is disabled", "normal: anne has no access"]
    assert goes_to(house, "ben", cpu="20")[0] == "normal"
    house.set("queue/normal/groups", ["staff"])
    assert goes_to(house, groups=("staff",), cpu="20")[0] == "normal"
    house.set("queue/night/restricted", True)
    assert goes_to(house, cpu="20")[0] is None


def test_a_loadonly_queue_holds_no_more_than_its_run_limit(house):
    day(house).set("queue/express/loadonly", True).set("queue/express/run_limit", 2)
    seqs = house.set("queue/batch/started", False).submit(*["anne cpu=10"] * 4, queue="batch")
    assert house.run_pass().reason(seqs[0]).matches(code="STOPPED", who="queue batch")
    told = house.set("queue/batch/started", True).go()
    assert told.moves() == dict(zip(seqs, ["express", "express", "normal", "normal"], strict=True))
    assert told.starts == []
    assert house.go().starts == [*seqs[:2], *seqs[2:]]


def test_what_no_destination_takes_waits_and_says_why(house):
    day(house).set("queue/batch/destinations", ["express", "normal"])
    later, never = house.submit("anne cpu=20", "anne cpu=1:00:00", queue="batch")
    told = house.set("queue/express/enabled", False).set("queue/normal/enabled", False).run_pass()
    assert told.moves() == {}
    assert told.reason(later).matches(code="LATER", who="queue batch")
    assert told.reason(never).matches(code="NEVER", who="queue batch")
    assert "normal: CPU time 3600 s is above the limit of 600 s" in told.reason(never).text


def test_pipes_lead_through_pipes(house):
    day(house).queue("front", kind="pipe", destinations=("batch",))
    seq = house.submit("anne cpu=20", queue="front")[0]
    assert house.run_pass().moves() == {seq: "express"}
    house.set("queue/batch/started", False)
    assert house.run_pass().moves() == {seq: "batch"}


def test_a_route_exit_chooses_the_destinations(house):
    day(house)
    seq = house.submit("anne cpu=20", queue="batch")[0]
    house.exits(route=lambda request, destinations, view: ["nowhere", *reversed(destinations)])
    assert house.run_pass().moves() == {seq: "night"}
    pipe = house.site.settings.queues["batch"]
    found, objections = destination(house.site, spec_of("anne"), pipe, house.door, (), house.now)
    assert (found, [each.text for each in objections]) == ("night", ["nowhere: there is no such queue"])


def test_the_submit_exit_is_shown_the_request(house):
    day(house)
    assert ask_submit(house.site, spec_of("anne"), house.door, house.now) is None
    house.exits(submit=lambda request, view: SubmitAnswer(f"{request.owner} {request.cpu} {view.shift}"))
    answer = ask_submit(house.site, spec_of("anne", cpu="20"), house.door, house.now)
    assert answer is not None
    assert answer.refusal == "anne 20000 None"


def test_too_many_requests_in_a_pipe_take_turns(house):
    day(house).set("queue/batch/destinations", ["express"]).set("global/offers_per_pass", 2)
    stuck = house.submit(*["anne cpu=1:00:00"] * 3, queue="batch")
    good = house.submit("anne cpu=20", queue="batch")[0]
    moved = {}
    for _ in range(6):
        moved |= house.go().moves()
    assert moved == {good: "express"}
    assert all(house.request(seq).queue == "batch" for seq in stuck)


def test_a_pipe_queue_without_destinations_is_a_fault(house):
    day(house).queue("blind", kind="pipe")
    assert verify(house.site.settings, house.site) == [
        "pipe queue blind has no destination: set destination=(...) blind"
    ]
