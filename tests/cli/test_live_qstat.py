"""qstat against a real daemon: tables, objects, why a request waits, and in which place."""

from contextlib import suppress
from datetime import datetime, timedelta

import pytest
from daemon.live import of_a_file

from nqspy.model.errors import Refusal

SITE = """\
set machine pes=40
create batch_queue batch priority=10 workdir=submit
create batch_queue night priority=20 workdir=submit
create batch_queue wide priority=5
create pipe_queue route priority=5 destination=(batch, night)
enable queue batch, night, wide, route
start queue batch, wide, route
create complex both queues=(batch, night)
set complex run_limit=30 both
set default batch_request queue batch
set sched_factor share 3 cpu 6 memory 1 time 10
create group d1 share=70
create group d2 share=30
"""

NOSY = """\
from nqspy.userexit import refuse, userexit


@userexit
def jobselect(request):
    return refuse("not this one") if request.name == "picked" else None
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    yield from of_a_file(tmp_path_factory, SITE, {"nosy": NOSY})


@pytest.fixture
def desk(house):
    """Yield one site for all tests; each leaves it empty, and its queues as they were."""
    yield house
    ids = [request.id for request in house.client.requests()]
    if ids:
        with suppress(Refusal):  # some have ended meanwhile
            house.client.delete(*ids, kill=True)
    for id in ids:
        house.ended(id)


def queued(desk, count):
    """Submit requests to the stopped queue ``night``; return them."""
    return [desk.submit("true", queue="night", name=f"n{n}") for n in range(count)]


def test_what_is_asked_for_narrows_the_list(desk):
    night = queued(desk, 3)
    held = desk.submit("true", held=True)
    done = desk.submit("true")
    desk.ended(done)

    def ids(*words):
        return [each["id"] for each in desk.run("qstat", "--json", *words).ok().data]

    assert ids() == [*night, held]
    assert ids("--queue", "night") == ids("night") == night
    assert ids("--state", "held") == [held]
    assert ids("--ended") == ids("--state", "ended")
    assert ids("--ended")[0] == done
    assert ids("--user", "nobody-else") == []
    assert ids(done, night[1]) == [done, night[1]]
    unknown = desk.run("qstat", "--json", night[0], "4711")
    assert unknown.status != 0
    assert [each["id"] for each in unknown.data] == [night[0]]
    assert "4711" in unknown.err
    desk.run("qstat", "nowhere").refused("nowhere")
    desk.run("qstat", "--state", "tired").refused("tired", "queued")


def test_a_reason_says_who_what_and_when(desk):
    blocker = desk.submit("sleep 60", queue="wide", pes=38, wall=120, account="d1")
    desk.running(blocker)
    wide, picked = desk.submit("true", queue="wide", pes=4), desk.submit("true", name="picked")
    desk.waits(wide, "4 PEs")
    found = desk.why(wide)
    assert found["reason"]["code"] == "NO_PES"
    begun = datetime.fromisoformat(desk.job(blocker)["started"])
    latest, probably = (
        datetime.fromisoformat(found["estimate"][each]["start"]) for each in ("latest", "probably")
    )
    assert latest - begun == timedelta(seconds=120), "as long as its limit allows"
    assert begun < probably <= latest
    desk.waits(picked, "not this one")
    assert (desk.why(picked)["reason"]["code"], desk.why(picked)["reason"]["who"]) == ("EXIT", "nosy")
    sentence = desk.run("qstat", "--why", picked).ok().out
    assert "nosy" in sentence
    assert "not this one" in sentence


def test_eta_tells_two_starts_of_all_that_wait(desk):
    [first, second] = queued(desk, 2)
    rows = desk.run("qstat", "--eta", "--json").ok().data
    assert {first, second} <= {each["id"] for each in rows}
    for each in rows:
        assert all(each["estimate"][word]["basis"] for word in ("latest", "probably"))
    text = desk.run("qstat", "--eta", second).ok().out
    assert second in text
    assert first not in text
    assert "latest" in text


def test_the_tables_for_people(desk):
    [night] = queued(desk, 1)
    head, rule, row = desk.run("qstat").ok().lines
    assert head.split() == ["Job", "id", "Name", "User", "Time", "Use", "S", "Queue"]
    assert set(rule) == {"-", " "}
    assert row.split()[0] == night
    assert row.split()[-2:] == ["Q", "night"]
    assert night in desk.run("qstat", "-f", night).ok().out
    server = night.partition(".")[2][:10]
    for option, word in {"-b": "night", "-p": "route", "-c": "both", "-l": "night", "-B": server}.items():
        assert word in desk.run("qstat", option).ok().out
