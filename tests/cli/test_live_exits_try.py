"""``nqspy exits try FILE``: the effect of a file of exits on waiting requests, found on a copy beside the
daemon. Most tests call the function behind the command: a command loads all of nqspy each time."""

import json
import os
import pwd

import pytest
from daemon.live import ONE_QUEUE, of_a_file

from nqspy.model.errors import NqspyError
from nqspy.sim.trying.command import text as text_of
from nqspy.sim.trying.compare import tried_now
from nqspy.sim.trying.since import tried_since
from nqspy.userexit.loader import read_file

SITE = f"{ONE_QUEUE}set default wall_limit=1:00:00\nset sched_factor share 100 time 1\n"
QUIET = '''\
"""Tests of one owner run one after the other."""
from nqspy.userexit import refuse, setting, userexit

most = setting("most", "count", "1", "tests of one owner at a time")

@userexit
def jobselect(request, view):
    if request.name == "test" and len(view.running(owner=request.owner, name="test")) >= most.value:
        return refuse("your tests are running")
'''
HEAD = "from nqspy.userexit import *\nfrom nqspy.userexit import userexit\n"
SLEEP = "sleep 600"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Yield one daemon for all tests of the file that ask about waiting requests."""
    yield from of_a_file(tmp_path_factory, SITE)


@pytest.fixture
def site(shared):
    """Return a function: ``make(pes=2, exits={...})`` returns the shared site, emptied."""

    def make(pes=1, **exits):
        for name, code in exits.items():
            shared.exit(name, code)
        shared.set(f"set machine pes={pes}", *(["reload exits"] if exits else []))
        return shared

    yield make
    names = [path.unlink() or path.stem for path in (shared.home / "exits").glob("*.py")]
    if ids := [each.id for each in shared.client.requests()]:
        shared.client.delete(*ids, kill=True)
    for each in ids:
        shared.ended(each)
    if names:
        shared.set("reload exits")


@pytest.fixture
def fresh(make_live):
    """Return a function: ``make(pes=2, exits={...})`` makes a new site, whose journal is this test's own."""
    return lambda pes=1, **exits: make_live().site(f"{SITE}set machine pes={pes}\n", exits).start()


def tried_file(live, path, since=None):
    """Return the data of a trial of a file."""
    home, candidate = str(live.home), read_file(path)
    data = tried_now(home, candidate) if since is None else tried_since(home, candidate, since)
    return json.loads(json.dumps(data))


def tried(live, name, code, since=None):
    """Return the data of a trial of a file with that name."""
    return tried_file(live, live.write(f"{name}.py", code), since)


def rows(data, *keys):
    """Return these values of the rows of changed requests."""
    return [tuple(row[key] for key in keys) for row in data["changed"]]


def test_who_would_wait_is_told_and_the_daemon_goes_on_undisturbed(site):
    live = site(pes=2)
    first = live.submit(SLEEP, name="test", wall="10:00")
    live.running(first)
    second = live.submit(SLEEP, name="model", wall="10:00")
    live.running(second)
    third = live.submit(SLEEP, name="test", wall="10:00")
    fourth = live.submit(SLEEP, name="test", wall="10:00")
    live.waits(fourth, "PE")
    before = [each["n"] for each in live.events() if each["kind"] != "decided"]
    path = live.write("quiet.py", QUIET)
    data = live.run("nqspy", "exits", "try", str(path), "--json").ok().data
    assert (data["exit"], data["replaces"], data["waiting"], data["until"]) == ("quiet", False, 2, None)
    assert rows(data, "id", "kind", "reason") == [
        (fourth, "later", "your tests are running (quiet)"),
        (third, "answer", "your tests are running (quiet)"),
    ]  # fmt: skip
    later = data["changed"][0]
    assert (later["was_place"], later["would_place"]) == (2, 2)
    assert later["was"].startswith("waits, place 2, starts 20")
    assert later["was_start"] < later["would_start"]
    assert rows(data, "was", "would")[1] == ("standard rules", "refuse")
    assert data["calls"] == data["hooks"]["jobselect"]["calls"] > 2
    assert data["failures"] == []
    assert [each["n"] for each in live.events() if each["kind"] != "decided"] == before
    assert live.run("nqspy", "exits", "list").ok().out == "no user exits are loaded\n"


def test_a_file_takes_the_place_of_the_loaded_one_of_its_name(site):
    live = site(pes=4, quiet=QUIET)
    first = live.submit(SLEEP, name="test")
    live.running(first)
    second, third = (live.submit(SLEEP, name="test") for _ in range(2))
    live.waits(third, "your tests are running")
    live.exit("quiet", QUIET.replace('"1"', '"3"'))  # saved and not loaded yet
    path = live.home / "exits" / "quiet.py"
    data = tried_file(live, path)
    assert data["replaces"]
    first_row = rows(data, "id", "would", "kind", "reason")[0]
    assert first_row == (second, "starts", "starts", "without the exit: your tests are running (quiet)")
    assert data["counts"]["starts"] == 2
    live.set("set exit quiet most=2")
    told = tried(live, "quiet", QUIET)
    assert not any(told["counts"].values()), "by the settings in force"
    live.set("disable exit quiet")
    live.running(third)
    told = tried(live, "quiet", QUIET)
    assert told["off"], "it is tried as if it were on"
    other = tried(live, "other", QUIET)
    assert (other["replaces"], other["off"]) == (False, False)


def test_places_and_starts_change_with_the_share_term(fresh):
    live = fresh()
    me = pwd.getpwuid(os.getuid()).pw_name
    live.set(*(f"create group {name} share=10 members=({me})" for name in ("d1", "d2", "d3")))
    live.running(live.submit(SLEEP, account="d3", wall="10:00"))
    a, b, c = (live.submit(SLEEP, account=name, wall="10:00") for name in ("d1", "d1", "d2"))
    live.waits(c, "PE")
    live.set("set group d1 share=90")
    code = HEAD + "@userexit\ndef shrpri(group):\n    return 1.0 if group == 'd2' else 0.1\n"
    data = tried(live, "turned", code)
    found = {row["id"]: row for row in data["changed"]}
    assert [found[each]["kind"] for each in (a, b, c)] == ["later", "later", "earlier"]
    assert [found[each]["was_place"] for each in (a, b, c)] == [1, 2, 3]
    assert [found[each]["would_place"] for each in (a, b, c)] == [2, 3, 1]


def test_submissions_are_asked_about_as_if_they_came_now(site):
    live = site()
    live.running(live.submit(SLEEP, name="long"))
    odd = live.submit(f"#pragma odd\n{SLEEP}", name="odd")
    even = live.submit(SLEEP, name="even")
    code = HEAD + (
        "@userexit\ndef submit(request):\n"
        "    return refuse('odd') if '#pragma odd' in request.script else changes(name='x')\n"
    )
    data = tried(live, "gate", code)
    assert rows(data, "id", "kind", "was", "would", "reason") == [
        (odd, "submission", "accepted", "refused", "odd (gate)"),
        (even, "submission", "accepted", "accepted with name=x", "(gate)"),
    ]


def test_calls_that_fail_or_take_long_are_named(site):
    live = site()
    live.running(live.submit(SLEEP, name="long"))
    a, b = (live.submit(SLEEP, name=name) for name in ("a", "b"))
    code = HEAD + (
        "@userexit\ndef jobselect(request):\n"
        "    if request.name == 'a':\n        return refuse(request.nmae)\n"
        "    while request.name == 'b': pass\n"
        "@userexit\ndef jobend(request):\n    raise RuntimeError('it was given')\n"
    )
    data = tried(live, "bad", code)
    failed = {(each["hook"], each["id"]): each["text"] for each in data["failures"]}
    assert failed["jobselect", a].startswith("AttributeError: a request has no nmae")
    assert failed["jobselect", b].startswith("ran longer than its budget of 50 ms")
    assert [(each["hook"], each["id"], each["budget_ms"]) for each in data["long"]] == [("jobselect", b, 50)]
    assert data["hooks"]["jobend"]["calls"] == 0
    text = text_of(data, False)
    assert f"FAILED exit bad: jobselect on {a}: AttributeError" in text
    assert f"LONG exit bad: jobselect on {b}: " in text
    assert "jobend: not tried" in text


def test_people_get_a_page_and_its_first_twenty(site):
    live = site()
    live.running(live.submit(SLEEP, name="test", wall="10:00"))
    ids = [live.submit(SLEEP, name="test", wall="10:00") for _ in range(25)]
    shut = HEAD + "@userexit\ndef jobselect():\n    return refuse('closed', alike=())\n"
    text = live.run("nqspy", "exits", "try", str(live.write("shut.py", shut))).ok().out
    assert text.startswith("exit shut (new): tried on 25 waiting requests at 20")
    assert "25 would start later\n" in text
    assert f"{ids[0]}  test  " in text
    assert "  why:   closed (shut)\n" in text
    assert "never starts" in text
    assert "and 5 more (--all)\n" in text
    assert "more (--all)" not in text_of(tried(live, "shut", shut), True)
    nothing = tried(live, "nothing", HEAD + "@userexit\ndef jobselect(): pass\n")
    assert "\nnothing would change\n" in text_of(nothing, False)


def test_what_is_wrong_is_one_line(site, make_live):
    live = site()
    live.submit(SLEEP, name="long")
    id = live.submit(SLEEP, name="a")

    def refused(at, path, *words):
        with pytest.raises(NqspyError) as error:
            tried_file(at, path)
        told = str(error.value)
        assert len(told.splitlines()) == 1
        assert all(word in told for word in words), told

    refused(live, live.write("bad.py", HEAD + "@userexit\ndef jobselct(): pass\n"), "did you mean jobselect?")
    deadly = "import os\n" + HEAD + "@userexit\ndef jobselect(): os._exit(3)\n"
    refused(live, live.write("bad.py", deadly), f"exit bad: jobselect about {id}", "it ended with status 3")
    refused(live, live.work / "nowhere.py", "nowhere.py: it cannot be read")
    refused(make_live("other"), live.write("quiet.py", QUIET), "no nqsd answers")
    path = str(live.write("bad.py", "x ="))
    live.run("nqspy", "exits", "try", path, "--since", "soon").refused("'soon' is not a moment")
    refused(live, live.work / "bad.py", "bad.py, line 1: syntax error")


# ---------------------------------------------------------------- on what came lately
def test_what_came_lately_goes_through_it_again(fresh):
    live = fresh(pes=4)
    # Longer than the second by which a start must differ to count.
    tests = [live.submit("sleep 1.5", name="test") for _ in range(3)]
    model = live.submit("sleep 1.5", name="model")
    for each in (*tests, model):
        live.ended(each)
    before = [each["n"] for each in live.events()]
    path = str(live.write("quiet.py", QUIET))
    data = live.run("nqspy", "exits", "try", path, "--json", "--since", "7d").ok().data
    assert (data["exit"], data["replaces"], data["requests"], data["as_it_was"]) == ("quiet", False, 4, 0)
    assert {row["id"] for row in data["changed"]} == set(tests[1:]), "the first and the model run as they did"
    for row in data["changed"]:
        assert (row["kind"], row["reason"]) == ("later", "your tests are running (quiet)")
        assert row["was_start"] < row["would_start"]
    assert data["counts"] == {"submission": 0, "earlier": 0, "later": 2, "new": 0, "never": 0}
    assert data["calls"] >= 4
    assert [each["n"] for each in live.events()] == before
    text = text_of(data, False)
    assert text.startswith("exit quiet (new): tried on 4 started requests from 20")
    assert "2 would have started later\n" in text


def test_of_the_past_too_refusals_failures_and_loaded_exits_are_told(fresh):
    live = fresh(pes=4, quiet=QUIET)
    ids = [live.submit("true", name=name) for name in ("odd", "even")]
    for each in ids:
        live.ended(each)
    gate = HEAD + "@userexit\ndef submit(request):\n    if request.name == 'odd': return refuse('odd')\n"
    assert rows(tried(live, "gate", gate, "1d"), "id", "kind", "would", "reason") == [
        (ids[0], "submission", "refused", "odd (exit gate)"),
        (ids[0], "never", "waits", ""),
    ]  # fmt: skip
    bad = HEAD + "@userexit\ndef jobselect(request):\n    return refuse(request.nmae)\n"
    data = tried(live, "bad", bad, "1d")
    assert {(each["hook"], each["id"]) for each in data["failures"]} == {("jobselect", each) for each in ids}
    live.exit("quiet", QUIET.replace('"1"', '"9"'))  # saved and not loaded yet
    data = tried_file(live, live.home / "exits" / "quiet.py", "1d")
    assert (data["replaces"], data["as_it_was"], data["changed"]) == (True, 0, [])
    live.stop()
    assert tried(live, "gate", gate, "1d")["counts"]["submission"] == 1, "without a daemon too"
