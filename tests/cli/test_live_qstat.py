"""qstat against a real daemon: tables, objects, why a request waits, and in which place."""

from contextlib import suppress
from datetime import datetime, timedelta

import pytest
from daemon.live import Live

from nqspy.model.errors import Refusal

KEYS = {
    "id", "seq", "name", "owner", "group", "account", "queue", "domain", "state", "attempt", "submitted",
    "date_in_queue", "eligible", "started", "ended", "requested", "used", "priority", "position", "pes",
    "units", "exit_status", "exit_signal", "end_reason", "ok", "project", "reason", "depends_on", "held",
    "output", "error",
}  # fmt: skip
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
    folder = tmp_path_factory.mktemp("house")
    live = Live(folder / "home", folder / "work").site(SITE, {"nosy": NOSY}).start()
    yield live
    live.close()


@pytest.fixture
def desk(house):
    """One site for all; each test leaves it empty, and with its queues as they were."""
    yield house
    ids = [request.id for request in house.client.requests()]
    if ids:
        with suppress(Refusal):  # some have ended meanwhile
            house.client.delete(*ids, kill=True)
    for id in ids:
        house.ended(id)
    house.set("set queue batch run_limit=unlimited", "set per_request cpu_limit=unlimited batch")


def queued(desk, count):
    """Requests of many kinds in the stopped queue ``night``."""
    asked = [
        {"cpu": 100 * (n % 7) + 10, "memory": f"{n % 5 + 1}mb", "account": ("d1", "d2")[n % 2]}
        for n in range(count)
    ]
    return [
        desk.submit("true", queue="night", name=f"n{n}", **(each if n % 4 else {"account": "d2"}))
        for n, each in enumerate(asked)
    ]


def test_the_keys_of_an_object_are_exactly_those_of_the_book(desk):
    held = desk.submit("true", held=True)
    ended = desk.submit("exit 3")
    desk.ended(ended)
    [waiting] = desk.run("qstat", "--json").ok().data
    gone = desk.run("qstat", "--json", "--ended").ok().data[0]
    assert set(waiting) == set(gone) == KEYS
    assert waiting["id"] == held
    assert gone["id"] == ended
    asked = {"cpu_s", "wall_s", "memory_bytes", "pes", "needs", "consumables", "processes"}
    assert set(waiting["requested"]) == asked
    assert set(waiting["used"]) == {"cpu_s", "wall_s", "memory_bytes"}
    assert set(waiting["reason"]) == {"code", "who", "text", "until"}
    assert waiting["priority"] is waiting["position"] is waiting["started"] is waiting["exit_status"] is None
    assert waiting["reason"]["code"] == "HELD"
    assert gone["reason"] is None
    for text in (waiting["submitted"], gone["started"], gone["ended"]):
        moment = datetime.fromisoformat(text)
        assert moment.tzinfo is not None
        assert text[19] == "."
        assert len(text.partition(".")[2].partition("+")[0].rstrip("Z").partition("-")[0]) == 3


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


FAST, STILL = "2026-03-02T12:00:00+00:00 x2000", "2026-03-02T18:00:00+00:00 x0.01"
"""A clock on which submissions lie seconds apart, and one that hardly moves between a look and a pass."""


def test_the_priority_is_the_formula_and_positions_are_the_order_of_the_next_pass(make_live):
    desk = make_live().site(SITE, {"quota": QUOTA}).start("--clock", FAST)
    ids = queued(desk, 36)
    desk.stop()
    desk.start("--clock", STILL)
    rows = desk.run("qstat", "--json", "--queue", "night").ok().data
    [at] = {row["priority"]["at"] for row in rows}
    for row, factors in zip(rows, formula(rows, datetime.fromisoformat(at)), strict=True):
        for name, value in factors.items():
            assert row["priority"][name] == pytest.approx(value, abs=1e-9), (row, name)
        seen = row["priority"]
        total = 3 * seen["share"] + 6 * seen["cpu"] + 1 * seen["memory"] + 10 * seen["time"]
        assert seen["total"] == pytest.approx(total, abs=1e-9)
    line = sorted(rows, key=lambda row: row["position"])
    assert [row["position"] for row in line] == list(range(1, 37))
    totals = [row["priority"]["total"] for row in line]
    assert totals[0] == max(totals)
    desk.set("set complex run_limit=unlimited both", "start queue night")
    for id in ids:
        desk.ended(id)
    started = [each["request"] for each in desk.events("starting")]
    assert started == [row["id"] for row in line]


QUOTA = """\
from nqspy.userexit import userexit


@userexit
def shrpri(group):
    return {"d1": 3.0, "d2": 1.2}[group]
"""


def formula(rows, at):
    """The four factors as the manual defines them, from the objects alone."""

    def ask(row, name, missing):
        value = row["requested"][name]
        return missing if value is None else value

    def most(name):
        return max(row["requested"][name] for row in rows if row["requested"][name] is not None)

    cpu, memory = most("cpu_s"), most("memory_bytes")
    waited = [(at - datetime.fromisoformat(row["date_in_queue"])).total_seconds() for row in rows]
    for row, time in zip(rows, waited, strict=True):
        yield {
            "share": {"d1": 3.0, "d2": 1.2}[row["group"]] / 3.0,
            "cpu": 1 - ask(row, "cpu_s", cpu) / cpu,
            "memory": 1 - ask(row, "memory_bytes", memory) / memory,
            "time": time / max(waited),
        }


def test_each_kind_of_reason_says_who_what_and_when(desk):
    blocker = desk.submit("sleep 60", queue="wide", pes=38, wall=120, account="d1")
    desk.running(blocker)
    desk.set("set queue batch run_limit=0")
    tomorrow = datetime.now().astimezone() + timedelta(days=1)
    wide = desk.submit("true", queue="wide", pes=4)
    limited, picked = desk.submit("true"), desk.submit("true", name="picked")
    stopped = desk.submit("true", queue="night")
    held = desk.submit("true", held=True)
    dated = desk.submit("true", eligible=tomorrow)

    def reason(id):
        found = desk.why(id)
        return found["reason"]["code"], found["reason"]["who"], found["reason"]["text"], found["estimate"]

    code, _, text, estimate = reason(wide)
    assert (code, estimate["start"] is not None) == ("NO_PES", True)
    assert "4 PEs" in text
    begun = datetime.fromisoformat(desk.job(blocker)["started"])
    latest, probably = (datetime.fromisoformat(estimate[each]["start"]) for each in ("latest", "probably"))
    assert latest - begun == timedelta(seconds=120), "as long as its limit allows"
    assert begun < probably <= latest
    code, who, text, _ = reason(limited)
    assert code == "LIMIT"
    assert "batch" in who + text
    assert "0" in text
    code, who, text, _ = reason(picked)
    assert (code, who) in (("EXIT", "nosy"), ("LIMIT", "queue batch"))
    code, who, text, estimate = reason(stopped)
    assert code == "STOPPED"
    assert "night" in text
    assert estimate["start"] is None
    assert reason(held)[0] == "HELD"
    code, _, _, _ = reason(dated)
    assert code == "DATE"
    until = datetime.fromisoformat(desk.why(dated)["reason"]["until"])
    assert abs(until - tomorrow) < timedelta(seconds=1)
    desk.set("set queue batch run_limit=unlimited")
    desk.waits(picked, "not this one")
    code, who, text, _ = reason(picked)
    assert (code, who) == ("EXIT", "nosy")
    assert "not this one" in text
    sentence = desk.run("qstat", "--why", picked).ok().out
    assert "nosy" in sentence
    assert "not this one" in sentence
    desk.run("qdel", "-k", blocker).ok()


def test_why_of_one_that_ended_says_what_ended_it(desk):
    id = desk.submit("kill -TERM $$")
    desk.ended(id)
    out = desk.run("qstat", "--why", id).ok().out
    assert id in out
    assert "signal" in out.lower()
    assert desk.why(id)["estimate"] is None


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


def test_eta_of_an_unknown_one_does_not_say_that_nothing_waits(desk):
    asked = desk.run("qstat", "--eta", "99999")
    assert (asked.status, asked.out) == (153, "")


def test_the_tables_for_people(desk):
    [night] = queued(desk, 1)
    head, rule, row = desk.run("qstat").ok().lines
    assert head.split() == ["Job", "id", "Name", "User", "Time", "Use", "S", "Queue"]
    assert set(rule) == {"-", " "}
    assert row.split()[0] == night
    assert row.split()[-2:] == ["Q", "night"]
    assert night in desk.run("qstat", "-f", night).ok().out
    assert "night" in desk.run("qstat", "-b").ok().out
    assert "route" in desk.run("qstat", "-p").ok().out
    assert "both" in desk.run("qstat", "-c").ok().out
    assert "30" in desk.run("qstat", "-c").ok().out
    assert "night" in desk.run("qstat", "-l").ok().out
    assert "night" in desk.run("qstat", "-Q").ok().out
    assert night.partition(".")[2][:10] in desk.run("qstat", "-B").ok().out
