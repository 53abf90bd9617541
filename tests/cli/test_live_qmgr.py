"""qmgr against a real daemon: commands from everywhere, all or none, plans, snapshots, mistakes."""

import json
import subprocess

import pytest
from daemon.live import command, of_a_file, until

SITE = """\
# the machine
set machine pes=2
create batch_queue batch priority=10 workdir=submit
create batch_queue night priority=20 run_limit=3
create pipe_queue route priority=5 destination=(batch, night)
enable queue batch, night, route
start queue batch, route
set per_request cpu_limit=600 batch
set per_request memory_limit=32mw batch
create complex both queues=(batch, night)
set complex user_limit=2 both
set global run_limit=6
set sched_factor share 20 cpu 1
set queue night sched_factor time 3
create group ymp share=80
create group d1 parent=ymp share=29
create group d2 parent=ymp share=24
add members=(anne, bob) d1
set managers = (anne:m, bob:o)
set default batch_request queue batch
set timezone Europe/Paris
set exit gate limit=7
define shift day when=("30 8 * * mon-fri")
  start queue batch
end
define shift night when=("0 21 * * mon-fri", "0 12 * * sat")
  stop queue batch
  set priority=40 night
  enable exit gate
end
"""
GATE = '''\
"""Gate: nobody passes."""
from nqspy.userexit import refuse, setting, userexit

limit = setting("limit", "count", "3", "how many may pass")


@userexit
def jobselect(request):
    return None
'''


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    yield from of_a_file(tmp_path_factory, SITE, {"gate": GATE})


SHOWS = [
    "all", "queue", "queue night", "long queue", "complex", "parameters", "managers", "limits_supported",
    "sched_factor", "shares", "groups", "shifts", "shifts --next 14d", "exits", "counters", "machine",
]  # fmt: skip


def test_everything_can_be_shown_as_text_and_as_data(rich):
    shows = [f"show {what}" for what in SHOWS]
    assert all(rich.client.qmgr(show).strip() for show in shows)
    words = [word for show in shows for word in ("-c", show)]
    data = [json.loads(line) for line in rich.run("qmgr", "--json", *words).ok().lines]
    assert [what for what, each in zip(SHOWS, data, strict=True) if not each] in ([], ["counters"])


def test_what_is_shown_names_what_was_set(rich):
    reports = ("nqspy report night", "nqspy report quota", "nqspy report usage", "nqspy counters")
    for words in (["qmgr", "-c", "show all"], *(each.split() for each in reports)):
        assert not [line for line in rich.run(*words).ok().lines if len(line) > 80], words
    shares = {row["group"]: row for row in json.loads(rich.run("qmgr", "--json", "-c", "show shares").out)}
    assert shares["d1"]["share"] == 29
    coming = rich.run("qmgr", "--json", "-c", "show shifts --next 8d").ok().data["coming"]
    assert {each["shift"] for each in coming} == {"day", "night"}
    assert all(each["at"].endswith(("+01:00", "+02:00")) for each in coming)
    [exit] = rich.run("qmgr", "--json", "-c", "show exits").ok().data
    assert exit["name"] == "gate"
    rich.qmgr("show queue nowhere").refused("nowhere")


def test_commands_come_as_options_from_a_file_and_from_standard_input(office):
    office.qmgr("create batch_queue one", "SET QUEUE one RUN 4").ok()
    office.write("two.qmgr", "create batch two priority=3 # two\nset queue two \\\n  run_limit=5\n")
    office.run("qmgr", "two.qmgr").ok()
    office.run("qmgr", stdin="create batch three\n").ok()
    queues = office.run("qmgr", "--json", "-c", "show queue").ok().data
    assert {"one", "two", "three"} <= set(queues)
    assert (queues["one"]["run_limit"], queues["two"]["run_limit"]) == (4, 5)
    office.qmgr("delete queue one", "delete queue two", "delete queue three").ok()


def test_a_file_goes_on_after_an_error_unless_it_is_atomic(office):
    office.write("some.qmgr", "create batch kept\nset queue nowhere run_limit=1\nset run_limit=2 kept\n")
    before = office.qmgr("show all").out
    for word in ("--atomic", "apply", "-n"):
        office.run("qmgr", word, "some.qmgr").refused("some.qmgr, line 2", "nowhere")
        assert office.qmgr("show all").out == before
    office.run("qmgr", "some.qmgr").refused("line 2", "nowhere")
    assert "kept" in office.qmgr("show queue kept").ok().out
    office.qmgr("delete queue kept").ok()


def test_a_file_is_read_whole_before_anything_of_it_is_done(office):
    office.write("broken.qmgr", "create batch early\nset quueue early run_limit=2\n")
    before = office.qmgr("show all").out
    done = office.run("qmgr", "broken.qmgr")
    assert (done.status, "broken.qmgr, line 2, column 5" in done.err) == (1, True)
    assert done.lines == []
    assert done.err.splitlines()[1].index("quueue") == done.err.splitlines()[2].index("^")
    assert office.qmgr("show all").out == before


def test_a_plan_says_what_would_change_and_changes_nothing(shared):
    shared.set("stop queue batch")
    waiting = shared.submit("true")
    shared.write("open.qmgr", "set queue batch run_limit=1\nstart queue batch\n")
    message = shared.run("qmgr", "plan", "open.qmgr").ok().out
    assert "run_limit" in message
    assert waiting in message
    assert shared.job(waiting)["state"] == "queued"
    assert shared.run("qmgr", "--json", "-c", "show queue").ok().data["batch"].get("run_limit") is None
    shared.run("qmgr", "apply", "open.qmgr").ok()
    assert shared.ended(waiting)["exit_status"] == 0


def test_a_shift_of_a_file_is_in_force_at_once_and_one_that_is_typed_is_not(shared):
    def current():
        return [each["shift"] for each in shared.events("shift_changed")]

    text = 'define shift {} when=("0 0 {} 1 *"){}\nset run_limit=7 batch\nend\n'
    assert "shift one begins at " in shared.qmgr(text.format("one", 1, "")).ok().out
    piped = shared.run("qmgr", stdin=text.format("two", 2, "")).ok().out
    assert "shift two begins at " in piped
    assert shared.run("qmgr", str(shared.write("three.qmgr", text.format("three", 3, "")))).ok().out == ""
    until(lambda: current() == ["three"], "the shift of the file should be in force, and no other")
    file = shared.write("four.qmgr", text.format("four", 4, ""))
    with file.open() as source:
        run = subprocess.run(
            [*command("qmgr")], stdin=source, env=shared.environment, check=True, capture_output=True
        )
    assert run.stdout == b""
    until(lambda: current() == ["three", "four"], "the shift of standard input's file")
    assert shared.qmgr(text.format("five", 5, " now")).ok().out == ""
    until(lambda: current() == ["three", "four", "five"], "the shift that is typed with now")


def test_nobody_makes_the_daemon_count_switches_for_minutes(live):
    live.qmgr('define shift day when=("* * * * *")\nend').ok()
    assert "at most 366d" in live.qmgr("show shifts --next 2000000000d").err
    live.qmgr("show shifts --next 366d").refused("there are more than 10,000 switches until then")
    assert live.qmgr("show shifts --next 6d").ok().out.count("  day\n") == 6 * 1440
    live.qmgr("show calendar --next 366d").ok()


def test_shutdown_ends_the_daemon(shared):
    pid = shared.pid
    shared.qmgr("shutdown").ok()
    until(lambda: pid not in shared.leftovers(), "the daemon should stop")
    shared.run("nqsd", "status").refused("no nqsd")
