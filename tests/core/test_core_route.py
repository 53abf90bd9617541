"""Pipe queues and domains: to which queue a request goes, and why not to others."""

import pytest
from core.harness import spec_of
from core.story import Story
from msgspec.structs import replace

from nqspy.core import asked as entry
from nqspy.core import route
from nqspy.core.features import verify
from nqspy.core.route import ask_submit, destination
from nqspy.model.domains import Domain
from nqspy.model.events import Change
from nqspy.ports import SubmitAnswer

SESSION = {"attributes": ("interactive:true",)}
CALLED = {"caller": (4711, 1)}
BEYOND = ("attributes", "caller", "within", "group", "account")


DAY = """machine 8; queue express max_memory=8mw; set queue/express/per_request/cpu_limit 30000
    queue normal max_cpu=10:00 max_memory=32mw; queue night
    queue batch kind=pipe destinations=(express,normal,night)"""
STORIES = {
    "a loadonly queue holds no more than its run limit": """set queue/express/loadonly on
        set queue/express/run_limit 2; set queue/batch/started off
        submit anne cpu=10, anne cpu=10, anne cpu=10, anne cpu=10; starts -; why anne STOPPED who=queue~batch
        set queue/batch/started on; routes anne:express anne2:express anne3:normal anne4:normal
        starts anne anne2 anne3 anne4""",
    "what no destination takes waits and says why": """set queue/batch/destinations (express,normal)
        submit anne cpu=20, ben cpu=1:00:00; set queue/express/enabled off; set queue/normal/enabled off
        routes; why anne no_destination_now who=queue~batch; why ben no_destination who=queue~batch""",
    "pipes lead through pipes": """queue front kind=pipe destinations=(batch); submit anne cpu=20
        routes anne:express; set queue/batch/started off; submit ben cpu=20; routes ben:batch""",
    "too many requests in a pipe take turns": """set queue/batch/destinations (express)
        set global/offers_per_pass 2; submit anne cpu=1:00:00, anne cpu=1:00:00, anne cpu=1:00:00, ben cpu=20
        routes; routes ben:express; routes; routes""",
}


@pytest.mark.parametrize("title", STORIES)
def test_moves(day, title):
    Story(day).play(STORIES[title])


@pytest.fixture
def day(house):
    """Return a site with the queues of the day, express, normal and night, behind the pipe queue batch."""
    Story(house).play(DAY)
    return house


@pytest.fixture
def three(house):
    """Return a site with 16 PEs and a pipe queue before one queue in each of the domains small, staff,
    application."""
    house.machine(pes=16).change(Change("create", "domain/small", {"pes": ("0-3",), "largest": 2}))
    staff = {"pes": ("4-7",), "groups": ("staff",), "takes": "batch"}
    house.change(Change("create", "domain/staff", staff))
    house.queue("s", domain="small").queue("t", domain="staff").queue("rest")
    return house.queue("batch", kind="pipe", destinations=("s", "t", "rest"))


def spec(owner="anne", **asked):
    more = {name: asked.pop(name) for name in BEYOND if name in asked}
    return replace(spec_of(owner, **asked), **more)


def goes_to(house, owner="anne", groups=(), **asked):
    """Return the destination of a request, and the objections of the other queues."""
    pipe = house.site.settings.queues["batch"]
    found, objections = route.Routes(house.site).find(spec(owner, **asked), pipe, groups)
    return found, [each.text for each in objections]


@pytest.mark.parametrize(
    ("settings", "asked", "queue"),
    [
        ({}, {"cpu": "20"}, "express"),
        ({}, {"cpu": "20", "mem": "9mw"}, "normal"),
        ({}, {"cpu": "10:00"}, "normal"),
        ({}, {"cpu": "10:01"}, "night"),
        ({}, {"cpu": "unlimited"}, "night"),
        ({}, {}, "normal"),  # the default CPU time is ten minutes
        ({"default/cpu_limit": 20_000}, {}, "express"),
        ({"default/cpu_limit": None}, {}, "night"),
        ({"queue/express/enabled": False, "queue/normal/users": ["ben"]}, {"cpu": "20"}, "night"),
        ({"queue/express/users": ["ben"]}, {"cpu": "20", "owner": "ben"}, "express"),
        ({"queue/express/groups": ["staff"]}, {"cpu": "20", "groups": ("staff",)}, "express"),
        ({"queue/express/groups": ["staff"]}, {"cpu": "20"}, "normal"),
        ({"queue/night/restricted": True}, {"cpu": "10:01"}, None),
    ],
)
def test_the_first_destination_whose_limits_and_access_allow_it(day, settings, asked, queue):
    for path, value in settings.items():
        day.set(path, value)
    assert goes_to(day, **asked)[0] == queue


def test_what_destinations_object(day):
    assert [each.partition(":")[0] for each in goes_to(day)[1]] == ["express"]
    day.set("queue/express/enabled", False).set("queue/normal/users", ["ben"])
    assert [each.partition(":")[0] for each in goes_to(day, cpu="20")[1]] == ["express", "normal"]


def test_a_route_exit_chooses_the_destinations(day):
    seq = day.submit("anne cpu=20", queue="batch")[0]
    day.exits(route=lambda request, destinations, view: ["nowhere", *reversed(destinations)])
    assert day.run_pass().moves() == {seq: "night"}
    pipe = day.site.settings.queues["batch"]
    found, objections = destination(day.site, spec_of("anne"), pipe, day.door, (), day.now)
    assert (found, [each.text[:8] for each in objections]) == ("night", ["nowhere:"])


def test_the_submit_exit_is_shown_the_request(day):
    assert ask_submit(day.site, spec_of("anne"), day.door, day.now) is None
    day.exits(submit=lambda request, view: SubmitAnswer(f"{request.owner} {request.cpu} {view.shift}"))
    answer = ask_submit(day.site, spec_of("anne", cpu="20"), day.door, day.now)
    assert answer is not None
    assert answer.refusal == "anne 20000 None"


def test_a_pipe_queue_without_destinations_is_a_fault(day):
    day.queue("blind", kind="pipe")
    (line,) = verify(day.site.settings, day.site)
    assert line.startswith("pipe queue blind ")


# ---------------------------------------------------------------- what domains take
@pytest.mark.parametrize(
    ("settings", "asked", "text"),
    [
        ({}, {"pes": 300}, None),
        ({"smallest": 16}, {"pes": 16}, None),
        ({"smallest": 16}, {"pes": 15}, "domain d takes requests of 16 PEs and more, not of 15"),
        ({"largest": 8}, {"pes": 9}, "domain d takes requests of 1 to 8 PEs, not of 9"),
        ({"smallest": 8, "largest": 8}, {"pes": 9}, "domain d takes requests of 8 PEs, not of 9"),
        ({"accounts": ("cfd", "p17")}, {"group": "cfd", "account": "cfd"}, None),
        ({"accounts": ("cfd", "p17")}, {"group": "other", "account": "p17"}, None),
        (
            {"accounts": ("cfd", "p17")},
            {"group": "other"},
            "domain d takes requests of accounts cfd, p17, not of other",
        ),
        ({"takes": "interactive"}, SESSION, None),
        ({"takes": "interactive"}, CALLED, None),
        ({"takes": "batch"}, CALLED | {"within": "12.here"}, None),
        ({"takes": "batch"}, SESSION, "domain d takes batch requests, this is an interactive one"),
        ({"takes": "interactive"}, {}, "domain d takes interactive requests, this is a batch one"),
    ],
)
def test_a_domain_takes_what_its_settings_say_and_tells_others_what_it_takes(settings, asked, text):
    assert entry.misfit(Domain("d", **settings), spec(**asked)) == text


def test_users_and_unix_groups_let_in_and_nobody_named_lets_in_all():
    domain = Domain("d", users=("anne",), groups=("staff",))
    assert entry.turned_away(Domain("d"), "ben", ()) is None
    assert entry.turned_away(domain, "anne", ()) is None
    assert entry.turned_away(domain, "ben", ("staff", "x")) is None
    text = "domain d takes no requests of ben: users anne; Unix groups staff"
    assert entry.turned_away(domain, "ben", ("x",)) == text


def test_a_pipe_queue_passes_on_to_the_first_whose_domain_takes_it(three):
    assert goes_to(three, pes=2)[0] == "s"
    assert goes_to(three, pes=3, groups=("staff",))[0] == "t"
    found, objections = goes_to(three, pes=3)
    assert (found, [each[:17] for each in objections]) == ("rest", ["s: domain small t", "t: domain staff t"])
    assert goes_to(three, pes=3, groups=("staff",), **SESSION)[0] == "rest"


def test_one_of_several_sizes_gets_only_those_that_its_domain_takes(house):
    house.machine(pes=8).change(Change("create", "domain/wide", {"pes": ("2-7",), "smallest": 4}))
    (first,) = house.queue("q", domain="wide").submit("ben pes=4", queue="q")
    (seq,) = house.run("anne sizes=2,4,6 walls=50:00,40:00,30:00", queue="q")
    assert house.request(first).pes == (2, 3, 4, 5)
    assert not house.request(seq).pes, "two PEs are free, and fewer than four are never asked for"
    house.end(first).go()
    assert len(house.request(seq).pes) == 6
