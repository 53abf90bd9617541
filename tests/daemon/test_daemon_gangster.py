"""`nqspy gangster` and owners' hands on their jobs, under a real daemon with real applications."""

import contextlib
import re

import pytest
from daemon.everybody import NOBODY, open_way
from daemon.live import ROOT, until
from daemon.person import Person
from daemon.test_daemon_mpprun import WAITS, call, gone  # noqa: F401 - a fixture
from daemon.test_daemon_mpprun import go as let_go
from stillness import stands_still

SITE = """\
set machine pes=32 shape=4x2x4 pes_per_node=2
create class interactive priority=4 wait=0 do_not_disturb=0
create class production priority=2 wait=30:00 do_not_disturb=0
create class standby priority=1 do_not_disturb=0
create class royal priority=9 users=daemon
create batch_queue apps order=class
enable queue apps
start queue apps
set default mpprun queue apps
"""
PAGE = (ROOT / "nqspy" / "manual" / "gangster.md").read_text()


def program(live, name: str) -> str:
    return str(live.write(name, f"#!/bin/sh\n{WAITS.format(name)}\n"))


def begin(live, call, name: str, pes: int, kind: str = "production") -> str:  # noqa: F811
    """Call an application and return its identifier once it runs."""
    path = program(live, name)
    live.work.joinpath(name).chmod(0o755)
    called = call(live, "-n", str(pes), "-class", kind, path)
    live.text(f"{name}.pid")
    [job] = [each for each in live.client.requests(queue="apps") if each.data["name"] == name]
    live.running(job.id)
    called.id, called.number = job.id, int(live.text(f"{name}.pid"))
    return called


def screen(live) -> list[str]:
    return live.run("nqspy", "gangster", "--once").ok().lines


def state(live, id: str) -> str:
    [job] = [each for each in live.run("nqspy", "gangster", "--json").ok().data["jobs"] if each["id"] == id]
    return job["state"]


def example() -> list[str]:
    return re.search(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1].splitlines()


def plainly(line: str) -> str:
    """Return a line of the screen with one blank, without the process, the user and the host."""
    line = re.sub(r"- \w+ +\d+ ", "- USER PID ", line)
    return " ".join(re.sub(r"(\d+)\.\S+$", r"\1.HOST", line).split())


def test_the_manuals_example_happens_as_it_stands_there(call, make_live):  # noqa: F811
    live = make_live().site(SITE).start()
    one = begin(live, call, "model", 8)
    two = begin(live, call, "debug", 4, "interactive")
    lines = example()
    shown = [plainly(line) for line in lines if not line.startswith("$")]
    assert [plainly(line) for line in screen(live)] == shown
    seen = []
    for words in (line.split()[1:] for line in lines if re.match(r"\$ q", line)):
        live.run(words[0], *words[1:]).ok()
        seen.append(live.job(one.id)["class"])
        if words[0] == "qsuspend":
            until(lambda: state(live, one.id) == "S", "it has given up its PEs")
            assert stands_still(one.number)
            assert screen(live)[0].startswith("....  CLAS")
    assert seen == ["standby"] * 3
    live.running(one.id)
    until(lambda: not stands_still(one.number), "it goes on")
    for each in (one, two):
        let_go(live, "model" if each is one else "debug")
        assert each.ends() == 0
    gone(live)


def test_a_suspended_job_leaves_its_pes_to_others_and_stays_away_over_a_kill(call, make_live):  # noqa: F811
    live = make_live().site(SITE).start()
    one = begin(live, call, "first", 32)
    live.run("qsuspend", one.id).ok()
    two = begin(live, call, "second", 32)
    assert state(live, one.id) == "S"
    assert stands_still(one.number)
    live.kill()
    live.start()
    let_go(live, "second")
    assert two.ends() == 0
    until(lambda: [row.id for row in live.client.requests(queue="apps")] == [one.id], "the other has ended")
    live.run("qstat", "--why", one.id).ok()
    assert (state(live, one.id), stands_still(one.number)) == ("S", True)
    live.run("qresume", one.id).ok()
    live.running(one.id)
    let_go(live, "first")
    assert one.ends() == 0
    assert [each["request"] for each in live.events("pause_changed")] == [one.id]


@pytest.mark.privileged
def test_others_may_look_and_touch_nothing_and_classes_of_others_are_refused(call, make_live):  # noqa: F811
    live = make_live().site(SITE).start()
    one = begin(live, call, "mine", 4)
    open_way(live.home)
    with contextlib.closing(Person(live, NOBODY)) as person:
        [job] = person.ask("gangster")["result"]["jobs"]
        assert (job["id"], job["places"], job["state"]) == (one.id, ["0-3"], "R")
        for cmd, fields in (
            ("suspend", {"resume": False}),
            ("suspend", {"resume": True}),
            ("modify", {"values": {"job_class": "standby"}}),
        ):
            answer = person.ask(cmd, ids=[one.id], **fields)["result"]
            assert (answer["done"], answer["failed"][0]["code"]) == ([], "not_permitted")
        live.set("set privacy owner")
        hidden = person.ask("gangster")["result"]
        assert (hidden["jobs"], hidden["hidden"]) == ([], ["0-3"])
        [failed] = person.ask("suspend", ids=[one.id], resume=False)["result"]["failed"]
        assert failed["code"] == "unknown_request"
    assert live.job(one.id)["state"] == "running"
    live.run("qalter", "--class", "nothing", one.id).refused("nothing")
    let_go(live, "mine")
    assert one.ends() == 0


def test_without_a_terminal_the_screen_is_refused_in_one_line(live):
    assert live.run("nqspy", "gangster").status == 2
    live.run("nqspy", "gangster").refused("--once")
    assert live.run("nqspy", "gangster", "--once").ok().lines[0].split()[1:3] == ["CLAS", "JOB-USER"]
    live.stop()
    live.run("nqspy", "gangster", "--once").refused("nqsd")


def test_a_suspended_job_whose_caller_is_killed_ends_once_it_is_resumed_or_deleted(call, make_live):  # noqa: F811
    live = make_live().site(SITE).start()
    for name, command in (("resumed", "qresume"), ("deleted", "qdel")):
        one = begin(live, call, name, 4)
        live.run("qsuspend", one.id).ok()
        until(lambda one=one: state(live, one.id) == "S", "it has moved out")
        one.process.kill()
        live.run(command, one.id).ok()
        gone(live)
