"""Those who wait, and pages of events: cheap where nothing has happened, in slices where there is much."""

import pytest
from answers.test_answers_turns import put, told, turns, waiting
from daemon.inner import item

from nqspy.answers import waiting as room
from nqspy.store import reader


@pytest.fixture
def read(fresh, monkeypatch):
    """Return the list of queries of the answers' reader."""
    seen = []
    live = fresh.daemon.readers.live
    fetch = live._fetch
    monkeypatch.setattr(live, "_fetch", lambda query: (seen.append(query), fetch(query))[1])
    return seen


def test_whoever_waits_for_what_has_ended_has_it_read_once(fresh, read):
    [id] = fresh.submit("owner")
    fresh.result("owner", "delete", ids=[id])
    read.clear()
    [first] = fresh.result("other", "wait", ids=[id])
    assert (first["id"], len(read)) == (id, 1)
    assert [fresh.result("other", "wait", ids=[id]) for _ in range(5)] == [[first]] * 5
    assert len(read) == 1


def test_what_was_never_given_out_is_not_looked_for(fresh, read):
    assert fresh.refusal("other", "wait", ids=["99999"])[0] == "unknown_request"
    assert read == []


def test_a_reader_remembers_so_many_that_ended(fresh, read, monkeypatch):
    monkeypatch.setattr(reader, "KNOWN", 2)
    ids = fresh.submit("owner", count=3)
    fresh.result("owner", "delete", ids=ids)
    read.clear()
    for id in (*ids, *reversed(ids)):
        fresh.result("other", "wait", ids=[id])
    assert len(read) == 4, "the last two were known, and the first was not"
    assert len(fresh.daemon.readers.live._known) == 2


def test_who_waits_is_looked_at_when_something_was_committed(fresh):
    ids = fresh.submit("owner", count=3)
    [asked] = put(fresh, "other", {"cmd": "wait", "ids": ids})
    turns(fresh, 2)
    looks = []
    kept = fresh.daemon.dispatcher.waiting
    look = kept._check_ends
    kept._check_ends = lambda: (looks.append(1), look())
    turns(fresh, 5)
    assert looks == []
    fresh.result("owner", "delete", ids=ids[:2])
    assert looks
    assert len(kept._ends) == 1
    fresh.result("owner", "delete", ids=ids[2:])
    assert [row["id"] for row in told(asked)["result"]] == ids
    assert kept._ends == []


def test_who_has_hung_up_is_forgotten_though_nothing_happens(fresh):
    [id] = fresh.submit("owner")
    turns(fresh, 2)
    for _ in range(20):
        [asked] = put(fresh, "other", {"cmd": "wait", "ids": [id]})
        asked.closed = True
        turns(fresh, 2)
    assert len(fresh.daemon.dispatcher.waiting._ends) < 3


def test_a_page_of_events_is_read_in_slices_and_others_are_served_in_between(hasty, monkeypatch):
    monkeypatch.setattr(room, "SLICE", 10)
    for _ in range(5):
        hasty.submit("owner", count=20)
    hasty.daemon.part = lambda: lambda: True
    whole = hasty.result("root", "events", after=0, limit=1000)
    [page] = put(hasty, "other", {"cmd": "events", "after": 0})
    [ping] = put(hasty, "owner", {"cmd": "ping"})
    turns(hasty, 3)
    assert told(ping)["ok"]
    assert page.answers.empty()
    turns(hasty, len(whole["events"]))
    assert told(page)["result"] == whole
    assert [each["n"] for each in whole["events"]] == [*range(1, whole["last"] + 1)]
    some = hasty.result("root", "events", after=3, limit=25)
    assert [each["n"] for each in some["events"]] == [*range(4, 29)]


def test_followers_are_answered_from_each_user_in_turn(hasty):
    daemon = hasty.daemon
    daemon.pump(daemon.engine.flush(daemon.clock.now()))  # what the start had to tell waits for nobody
    last = hasty.result("root", "events", after=0, limit=1000)["last"]
    many = put(hasty, "owner", *[{"cmd": "events", "after": last, "wait": True}] * 20)
    [mine] = put(hasty, "other", {"cmd": "events", "after": last, "wait": True})
    turns(hasty, 25)
    assert waiting(hasty, "owner") == 0
    put(hasty, "root", {"cmd": "submit", "items": [item()]})
    turns(hasty, 3)
    assert told(mine)["result"]["events"]
    assert hasty.daemon.dispatcher.waiting._due.count == 18
    assert hasty.daemon.dispatcher.patience() == 0.0
    turns(hasty, 20)
    assert all(told(each)["result"]["events"] for each in many)


def test_why_of_many_requests_is_gathered_a_few_at_a_time(hasty):
    ids = hasty.submit("owner", count=40)
    [why] = put(hasty, "owner", {"cmd": "qstat", "text": "why", "operands": ids})
    [ping] = put(hasty, "other", {"cmd": "ping"})
    turns(hasty, 2)
    assert told(ping)["ok"]
    assert len(hasty.daemon.dispatcher.slow._answers) == 1
    turns(hasty, 40)
    out = told(why)["out"]
    assert [id for id in ids if id not in out] == []


def test_the_others_are_waited_for_where_an_identifier_names_none(fresh):
    [id] = fresh.submit("owner")
    names = ["99999", id, "no.id"]
    [handle] = put(fresh, "other", {"cmd": "wait", "text": "qwait", "ids": names})
    turns(fresh, 2)
    assert handle.answers.empty()
    fresh.result("owner", "delete", ids=[id])
    turns(fresh, 2)
    answer = told(handle)
    assert answer["exit"] == 153
    assert all(each in answer["err"] for each in names)
    assert len(answer["err"].splitlines()) == 3
    assert fresh.ask("other", "wait", text="qwait", ids=["99999", "no.id"])["exit"]
    assert fresh.refusal("other", "wait", ids=["99999", id])[0] == "unknown_request"
