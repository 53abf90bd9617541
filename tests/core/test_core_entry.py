"""Whom a domain takes, and what it says to others."""

import pytest
from core.harness import spec_of
from msgspec.structs import replace

from nqspy.core import asked as entry
from nqspy.core import route
from nqspy.model.domains import Domain
from nqspy.model.events import Change

SESSION = {"attributes": ("interactive:true",)}
CALLED = {"caller": (4711, 1)}


BEYOND = ("attributes", "caller", "within", "group", "account")


def spec(owner="anne", **asked):
    more = {name: asked.pop(name) for name in BEYOND if name in asked}
    return replace(spec_of(owner, **asked), **more)


@pytest.mark.parametrize(
    ("settings", "asked", "said"),
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
def test_a_domain_takes_what_its_settings_say_and_tells_others_what_it_takes(settings, asked, said):
    assert entry.misfit(Domain("d", **settings), spec(**asked)) == said


def test_users_and_unix_groups_let_in_and_nobody_named_lets_in_all():
    domain = Domain("d", users=("anne",), groups=("staff",))
    assert entry.turned_away(Domain("d"), "ben", ()) is None
    assert entry.turned_away(domain, "anne", ()) is None
    assert entry.turned_away(domain, "ben", ("staff", "x")) is None
    told = "domain d takes no requests of ben: users anne; Unix groups staff"
    assert entry.turned_away(domain, "ben", ("x",)) == told


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "all requests"),
        ({"smallest": 16, "largest": 256}, "requests of 16 to 256 PEs"),
        ({"takes": "batch", "users": ("anne", "ben")}, "batch requests; users anne, ben"),
        ({"groups": ("staff",), "accounts": ("cfd",)}, "requests; Unix groups staff; accounts cfd"),
    ],
)
def test_whom_it_takes_in_words(settings, said):
    assert entry.rules(Domain("d", **settings)) == said


def goes_to(house, owner="anne", groups=(), **asked):
    pipe = house.site.settings.queues["batch"]
    found, objections = route.Routes(house.site).find(spec(owner, **asked), pipe, groups)
    return found, [each.text for each in objections]


@pytest.fixture
def three(house):
    """16 PEs: a pipe queue before a queue for each of the domains small, staff and application."""
    house.machine(pes=16).change(Change("create", "domain/small", {"pes": ("0-3",), "largest": 2}))
    staff = {"pes": ("4-7",), "groups": ("staff",), "takes": "batch"}
    house.change(Change("create", "domain/staff", staff))
    house.queue("s", domain="small").queue("t", domain="staff").queue("rest")
    return house.queue("batch", kind="pipe", destinations=("s", "t", "rest"))


def test_a_pipe_queue_passes_on_to_the_first_whose_domain_takes_it(three):
    assert goes_to(three, pes=2)[0] == "s"
    assert goes_to(three, pes=3, groups=("staff",))[0] == "t"
    found, objections = goes_to(three, pes=3)
    assert found == "rest"
    assert objections == [
        "s: domain small takes requests of 1 to 2 PEs, not of 3",
        "t: domain staff takes no requests of anne: Unix groups staff",
    ]
    assert goes_to(three, pes=3, groups=("staff",), **SESSION)[0] == "rest"


def test_one_of_several_sizes_gets_only_those_that_its_domain_takes(house):
    house.machine(pes=8).change(Change("create", "domain/wide", {"pes": ("2-7",), "smallest": 4}))
    (first,) = house.queue("q", domain="wide").submit("ben pes=4", queue="q")
    (seq,) = house.run("anne sizes=2,4,6 walls=50:00,40:00,30:00", queue="q")
    assert house.request(first).pes == (2, 3, 4, 5)
    assert not house.request(seq).pes, "two PEs are free, and fewer than four are never asked for"
    house.end(first).go()
    assert len(house.request(seq).pes) == 6
