"""Whose requests a user sees: `set privacy owner|group|all`. What is hidden is answered for as if there were
none."""

import json

import pytest
from daemon.inner import PEOPLE, item

from nqspy.answers.visibility import Visibility, _narrowed, promise_for
from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.model.lifetimes import Lived
from nqspy.model.people import Caller
from nqspy.model.requests import Reservation

UNKNOWN = "unknown_request"
GROUPS = ("create group d1 members=(anne, eva)", "create group d2 members=(ben)")
EVA = Caller("eva", 1010, 100, ("users",))


@pytest.fixture
def site(fresh):
    fresh.qmgr(*GROUPS)
    fresh.annes = fresh.submit("owner", name="annes")[0]
    fresh.bens = fresh.submit("other", name="bens")[0]
    ended = fresh.submit("owner", name="gone")[0]
    fresh.result("owner", "delete", ids=[ended])
    fresh.gone = ended
    fresh.never = f"999.{ended.partition('.')[2]}"
    return fresh


def seen(site, by, **fields):
    return {each["name"] for each in site.result(by, "list_requests", **fields)}


def test_lists_show_the_own_requests_those_of_the_group_or_all(site):
    both = {"annes", "bens"}
    for privacy, by_owner, by_fellow, by_other in (
        ("all", both, both, both),
        ("group", {"annes"}, {"annes"}, {"bens"}),
        ("owner", {"annes"}, set(), {"bens"}),
    ):
        site.qmgr(f"set privacy {privacy}")
        assert seen(site, "owner") == by_owner
        assert seen(site, EVA) == by_fellow
        assert seen(site, "other") == by_other
        assert seen(site, "unknown uid") == (both if privacy == "all" else set())
        for role in ("root", "home's owner", "manager", "operator"):
            assert seen(site, role) == both
        table = site.ask("other", "qstat", text="table")["out"]
        assert ("annes" in table) == ("annes" in by_other)
        rows = json.loads(site.ask("other", "qstat", text="json")["out"])
        assert {row["name"] for row in rows} == by_other
        gone = {each["name"] for each in site.result("other", "list_requests", ended=True)}
        assert gone == ({"gone"} if privacy == "all" else set())


QUESTIONS = [
    ("list_requests", lambda id: {"ids": [id]}),
    ("wait", lambda id: {"ids": [id]}),
    ("cat", lambda id: {"request": id}),
    ("exits_trace", lambda id: {"request": id}),
    ("events", lambda id: {"request": id}),
    ("qstat", lambda id: {"text": "table", "operands": [id]}),
    ("qstat", lambda id: {"text": "full", "operands": [id]}),
    ("qstat", lambda id: {"text": "json", "operands": [id]}),
    ("qstat", lambda id: {"text": "why", "operands": [id]}),
    ("delete", lambda id: {"ids": [id]}),
    ("hold", lambda id: {"ids": [id]}),
    ("release", lambda id: {"ids": [id]}),
    ("move", lambda id: {"ids": [id], "queue": "spare"}),
    ("modify", lambda id: {"ids": [id], "values": {"priority": 1}}),
    ("rerun", lambda id: {"ids": [id]}),
    ("submit", lambda id: {"items": [item(attributes=[f"after:{id}:ok"])]}),
]


def test_a_hidden_request_answers_exactly_as_one_that_never_was(site):
    site.qmgr("set privacy owner")
    for cmd, fields in QUESTIONS:
        told = site.refusal("other", cmd, **fields(site.never))
        for hidden in (site.annes, site.gone):
            code, text = site.refusal("other", cmd, **fields(hidden))
            assert (code, text.replace(hidden, site.never)) == told, cmd
    assert site.result("root", "list_requests", ids=[site.annes])[0]["state"] == "queued"


def test_a_hidden_array_says_neither_that_it_is_one_nor_which_indices_it_has(site):
    array = site.submit("owner", array={"indices": [[1, 5, 1]]}, held=True)[0]
    number = array.partition("[")[0]
    site.result("owner", "modify", ids=[f"{number}[2]"], values={"priority": 1})  # of its own from now on
    site.qmgr("set privacy owner")
    for cmd, fields in QUESTIONS:
        for part in ("", "[]", "[2]", "[3]", "[9]"):
            told = site.refusal("other", cmd, **fields(f"999{part}"))
            code, text = site.refusal("other", cmd, **fields(number + part))
            assert (code, text.replace(number, "999")) == told, (cmd, part)


def test_events_are_those_of_what_one_sees(site):
    site.qmgr("set privacy owner")
    own = site.result("other", "events", after=0)
    named = {each["request"] for each in own["events"] if "request" in each}
    assert named == {site.bens}
    assert not [each for each in own["events"] if each["kind"] == "alarm"]
    every = site.result("operator", "events", after=0)
    assert {site.annes, site.bens, site.gone} <= {e.get("request") for e in every["events"]}
    assert own["last"] == every["last"], "who asks on goes on behind what is hidden"


def test_counts_of_queues_stay_as_they_are(site):
    before = site.ask("other", "qstat", text="queues")["out"]
    site.qmgr("set privacy owner")
    assert site.ask("other", "qstat", text="queues")["out"] == before
    assert site.ask("other", "qstat", text="server")["out"] == site.ask("root", "qstat", text="server")["out"]


def test_reports_are_for_operators_and_members_get_their_departments_page(site):
    site.qmgr("set privacy group")
    assert site.refusal("unknown uid", "report_night")[0] == "not_permitted"
    assert "night:" in site.result("operator", "report_night")["text"]
    data = site.result("other", "report_night")
    assert {each["name"] for each in data["groups"]} <= {"d2"}
    assert {each["owner"] for part in ("failed", "waiting") for each in data[part]} <= {"ben"}
    users = {user["name"] for row in site.result("other", "report_usage")["groups"] for user in row["users"]}
    assert set(users) <= {"ben"}


def test_how_well_others_know_their_run_times_is_told_as_far_as_their_requests_are(site):
    for n, owner in enumerate(("anne", "ben", "cleo")):
        list(site.daemon.engine.site.lifetimes.add((owner, "job", 1), Lived(1_000, 100), n))

    def told(who):
        return [each["user"] for each in site.result(who, "report_estimates")["users"]]

    assert told("other") == ["anne", "ben", "cleo"]
    site.qmgr("set privacy group")
    assert told("other") == ["ben"]
    site.qmgr("set privacy owner")
    assert told("other") == ["ben"]
    assert told("operator") == ["anne", "ben", "cleo"]


def test_reasons_name_no_hidden_request_and_no_hidden_array(site):
    spec = {"array": {"indices": [[1, 3, 1]], "limit": None}}
    annes, bens = site.submit("owner", **spec)[0], site.submit("other", **spec)[0]
    text = "held by {0}, {1} and {2}".format
    message = text(annes, annes.replace("[]", "[2]"), annes.replace("[]", "[1-2]"))
    own = text(bens, bens.replace("[]", "[2]"), bens.replace("[]", "[1-2]"))
    assert Visibility(site.daemon, PEOPLE["other"]).masked(message) == message
    site.qmgr("set privacy owner")
    visibility = Visibility(site.daemon, PEOPLE["other"])
    assert visibility.masked(f"{site.annes} and {site.bens}") == f"another request and {site.bens}"
    huge = f"it waits for {'9' * 6_000}.{site.daemon.engine.site.name}"
    assert visibility.masked(huge) == huge
    assert visibility.masked(message) == text(*["another request"] * 3)
    assert visibility.masked(own) == own
    site.result("other", "delete", ids=[bens])
    assert visibility.masked(own) == own


def test_alarms_name_no_hidden_request(site):
    site.qmgr("set privacy owner")
    shift = site.daemon.engine.site.shift
    shift.failed, shift.failed_text = "night", f"it could not be entered: PE 1 is held by {site.bens}"
    for by, name in (("other", site.bens), ("operator", site.bens), ("owner", "another request")):
        [message] = site.result(by, "status")["alarms"]
        assert message == f"it could not be entered: PE 1 is held by {name}"


def test_privacy_is_shown_and_written_by_snap(site):
    site.qmgr("set privacy group")
    assert "privacy=group" in site.qmgr("snap")
    assert "group" in next(line for line in site.qmgr("show parameters").splitlines() if "Users see" in line)
    assert "expected owner, group, all" in site.refusal("root", "qmgr", script="set privacy nobody")[1]


KEPT = Reservation(Instant(5), (1, 2), "what it needs is held by 2.ymp")


def test_a_reserved_start_names_no_hidden_request():
    told = promise_for(KEPT, {1, 3})
    assert (told.at, told.by, "2.ymp" in told.late) == (5, (1,), False)
    assert promise_for(KEPT, {1, 2}) is KEPT


def test_an_event_tells_of_the_reservations_of_known_requests_alone():
    event = ev.Reserved({3: KEPT, 4: KEPT, 5: None}, 17, {5: "exits/x: no"})
    assert _narrowed(event, {1, 2, 3}) == ev.Reserved({3: KEPT}, 17)
    assert _narrowed(event, {1, 2, 5}) == ev.Reserved({5: None}, 17, {5: "exits/x: no"})
    assert _narrowed(event, {1, 2}) is None
