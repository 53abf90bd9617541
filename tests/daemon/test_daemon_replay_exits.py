"""User exits that were loaded, changed or removed in a recorded time: a replay asks each version from when it
was loaded on."""

import os
import sqlite3
from collections.abc import Callable

import pytest
from daemon.live import ONE_QUEUE, Live, until
from daemon.person import submit_as

from nqspy.model.events import Decided, LoadedExits
from nqspy.sim.replay.home_journal import HomeJournal
from nqspy.sim.replay.what_if import read_input, replayed

QUIET = """\
from nqspy.userexit import refuse, userexit

@userexit
def jobselect(request):
    return refuse("not now") if request.name == "{name}" else None
"""


def three(live: Live, waits: str) -> str:
    """Submit three requests, of which one waits for an exit; return that one, empty if none does."""
    ids = {name: live.submit("true", name=name) for name in "abc"}
    for name, id in ids.items():
        if name == waits:
            live.waits(id, "not now")
        else:
            live.ended(id)
    return ids.get(waits, "")


def a_day(live: Live) -> None:
    """Add an exit, change it and remove it."""
    live.site().start()
    three(live, "")
    for name in "ab":
        live.exit("quiet", QUIET.format(name=name))
        live.set("reload exits")
        last = three(live, name)
    (live.home / "exits" / "quiet.py").unlink()
    live.set("reload exits")
    live.ended(last)
    live.exit("quiet", QUIET.format(name="c"))  # saved and never loaded
    live.stop()


def test_each_version_is_asked_from_its_own_instant_on(make_live: Callable[..., Live]) -> None:
    live = make_live()
    a_day(live)
    data = live.run("nqspy", "replay", "--json").ok().data
    assert (data["differences"], data["exits"]) == (0, {"unknown_until": None, "missing": []})
    versions = read_input(HomeJournal(live.home)).versions
    assert [len(files or {}) for _, files in versions.loads] == [0, 0, 1, 1, 0]
    last = versions.loads[-2][0]
    found = replayed(read_input(HomeJournal(live.home), since=last))
    assert not found.was.differences
    # Without the copy of a version that version is not asked, and named.
    with sqlite3.connect(live.home / "nqs.db") as database:
        digest = dict(versions.loads[2][1] or {})["quiet"]
        assert database.execute("DELETE FROM blobs WHERE digest = ?", (digest,)).rowcount == 1
    database.close()
    done = live.run("nqspy", "replay")
    assert done.status == 1
    assert f"exit quiet ({digest}), loaded 20" in done.out
    assert "does not say which" not in done.out


ANNE = 1
"""A user that each Debian has."""
FAILING = """\
import os

from nqspy.userexit import userexit


@userexit
def jobselect(request):
    if request.name == "die":
        os._exit(3)
    if request.name == "fail":
        raise ValueError("no way")
"""


def fail_and_die(live: Live) -> None:
    """Have an exit fail on a request and end its process on another in the next pass."""
    live.accepts_trouble = True  # the exit's own tracebacks
    live.site(ONE_QUEUE, {"rule": FAILING}).start()
    live.set("stop queue batch")
    for name in ("fail", "die"):
        live.submit("true", name=name)
    live.set("start queue batch")
    until(lambda: any("ended the process" in each["text"] for each in live.events("alarm")), "the loss")
    live.ended(live.submit("true"))


def differences(live: Live, *words: str) -> int:
    return int(live.run("nqspy", "replay", "--json", *words).ok().data["differences"])


def test_a_failure_counts_on_after_the_next_request_ends_the_process(make_live: Callable[..., Live]) -> None:
    live = make_live()
    fail_and_die(live)
    live.stop()
    events = [each.event for each in HomeJournal(live.home).recording().events]
    assert sum(len(each.failures) for each in events if isinstance(each, Decided)) == 1
    assert differences(live) == 0


def test_failures_count_on_after_a_start_that_loads_another_exit(make_live: Callable[..., Live]) -> None:
    live = make_live()
    fail_and_die(live)
    live.stop()
    live.exit("other", QUIET.format(name="b"))
    live.start()
    live.ended(live.submit("true"))
    live.stop()
    past = HomeJournal(live.home)
    events = past.recording().events
    assert [len(each.event.files) for each in events if isinstance(each.event, LoadedExits)] == [1, 2]
    assert differences(live) == differences(live, "-c", "set sched_factor cpu 10") == 0
    failed = past.failures(events[-1].n, events[0].at)
    assert [each.seq for _, each in failed] == [1, 2]
    # A reload by a person forgets them.
    live.start()
    live.ended(live.submit("true"))  # a load before the first pass counts as the start's own
    live.set("reload exits")
    live.stop()
    past = HomeJournal(live.home)
    # A pass after it, which may come before the stop, asks the exit again, and that fails again.
    *_, reload = past.reader.kinds((LoadedExits.kind,), after=events[-1].n, upto=past.now_site.n)
    assert not past.failures(reload.n, events[0].at)


DEADLY = """\
import os

from nqspy.userexit import userexit


@userexit
def jobselect(request):
    if request.name == "NAME":
        os._exit(3)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may speak as other users")
@pytest.mark.privileged
def test_a_time_in_which_an_exit_ended_its_process_is_replayed(make_live: Callable[..., Live]) -> None:
    live = make_live().site(ONE_QUEUE, {"rule": DEADLY.replace("NAME", "die")}).start()
    for losses in (1, 2):
        submit_as(live, ANNE, "die")
        until(lambda n=losses: sum("ended the" in each["text"] for each in live.events("alarm")) == n, "loss")
    waiting = submit_as(live, ANNE, "plain")  # the exit is not asked about this owner for five minutes
    live.ended(live.submit("true", name="mine"))
    assert not live.events("starting", waiting)
    live.stop()
    data = live.run("nqspy", "replay", "--json").ok().data
    assert data["differences"] == 0
    data = live.run("nqspy", "replay", "-c", "set sched_factor cpu 10", "--json").ok().data
    assert (data["as_it_was"], data["starts"]["same"]) == (0, 1)
    other = str(live.write("other.py", DEADLY.replace("NAME", "nobody")))
    data = live.run("nqspy", "exits", "try", other, "--since", "1h", "--json").ok().data
    assert not data["changed"]
    other = str(live.write("other.py", DEADLY.replace("NAME", "mine")))
    live.run("nqspy", "exits", "try", other, "--since", "1h").refused("exit other: jobselect about request 4")
