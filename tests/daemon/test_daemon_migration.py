"""A home of b4ee003, of a night with incidents, in which the power failed while requests ran: the daemon as
it is goes on from there, and nothing is lost. Back-ups of before and of now are restored."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from daemon.live import Live, until
from store.former_home import FormerHome, unpack

NIGHT = "2026-03-02"
HOUR = 3600.0
HALF_LIFE = 24 * HOUR
ENDS = ("state", "pes", "used", "reason", "priority")
"""What is another in a request that ran."""
GOT = ("got_s", "got_part")


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FormerHome, Live]]:
    """The home, and the daemon that serves it now; the tests only look."""
    folder = tmp_path_factory.mktemp("former")
    found = unpack(folder)
    live = Live(found.home, folder / "work")
    live.accepts_trouble = True
    looked_at(live.start())
    yield found, live
    live.close()


def looked_at(live: Live) -> Live:
    """Waits until a pass has said of all that are queued why they wait."""
    until(lambda: all(each["reason"] for each in listed(live, "--state", "queued").values()), "a pass")
    return live


def listed(live: Live, *words: str) -> dict[int, dict[str, Any]]:
    """What ``qstat --json`` lists, by number."""
    return {each["seq"]: each for each in live.run("qstat", "--json", *words).ok().data}


def same(before: dict[str, Any], now: dict[str, Any], but: tuple[str, ...] = ()) -> None:
    """All that was said before is said now, but for these fields; fields that are new do not count."""
    for key in before.keys() - set(but):
        if isinstance(before[key], dict) and isinstance(now[key], dict):
            same(before[key], now[key])
        else:
            assert now[key] == before[key], (before.get("id"), key)


def test_requests_that_wait_are_there_as_they_were(former):
    found, live = former
    before, now = found.requests("waiting"), listed(live)
    waiting = {seq: each for seq, each in before.items() if each["attempt"] == 0}
    assert {each["state"] for each in waiting.values()} == {"queued", "waiting", "held"}
    for seq, each in waiting.items():
        same(each, now[seq], but=("position", "priority"))
        assert now[seq]["requested"]["processes"] is None
    places = [seq for seq in waiting if waiting[seq]["queue"] == "night" and waiting[seq]["position"]]
    order = sorted(places, key=lambda seq: waiting[seq]["position"])
    assert sorted(places, key=lambda seq: now[seq]["position"]) == order


def test_what_ran_is_run_again_where_it_may_be_and_else_is_lost(former):
    found, live = former
    before, now, ended = found.requests("waiting"), listed(live), listed(live, "--ended")
    started = {seq for seq, each in before.items() if each["pes"]}
    again = {found.made[name] for name in ("long", "runs", "stopped")}
    lost = {found.made[name] for name in ("once", "runs once", "broken")}
    assert started == again | lost
    assert sorted(now) == sorted(before.keys() - lost)
    for seq in again:
        assert (now[seq]["state"], now[seq]["attempt"], now[seq]["pes"]) == ("queued", 1, [])
        same(before[seq], now[seq], but=(*ENDS, "started", "position"))
    for seq in lost:
        assert (ended[seq]["state"], ended[seq]["end_reason"]) == ("ended", "lost")
        same(before[seq], ended[seq], but=(*ENDS, "ended", "end_reason", "output", "error"))


def test_what_was_said_before_is_said_now(former):
    """Of what has ended, of settings, exits and calendar, of a story, of kept output, in the journal."""
    found, live = former
    now, made = listed(live, "--ended"), found.made
    for seq, each in found.requests("ended").items():
        same(each, now[seq])
    for words, file in (
        ("snap", "snap.qmgr"),
        ("show calendar", "calendar.txt"),
        ("show exits", "exits.txt"),
    ):
        assert live.qmgr(words).ok().out == found.said[file]
    assert live.run("qcat", str(made["first"])).ok().out == "hello\n"
    story = live.run("nqspy", "story", str(made["long"]), "--json").ok().lines
    kinds = [json.loads(line)["kind"] for line in story]
    assert kinds == ["submitted", "starting", "started", "suspended", "requeued"]
    events = [json.loads(line) for line in live.run("nqspy", "events", "--json").ok().lines]
    before = [json.loads(line) for line in found.said["events.jsonl"].splitlines()]
    for old, new in zip(before, events, strict=False):
        same(old, new)
    [started] = [each for each in events[len(before) :] if each["kind"] == "daemon_started"]
    assert (started["clean"], started["last"]) == (False, before[-1]["at"])


def test_use_of_all_accounts_is_what_it_was_and_goes_on_fading(former):
    found, live = former
    before, now = found.data("usage"), live.run("nqspy", "report", "usage", "--json").ok().data
    passed = datetime.fromisoformat(now["at"]) - datetime.fromisoformat(before["at"])
    left = 2 ** (-passed.total_seconds() / HALF_LIFE)

    def faded(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: faded(each, key) for key, each in value.items() if key != "entitled_now"}
        if isinstance(value, list):
            return [faded(each) for each in value]
        return (
            pytest.approx(value * left if name == "use_s" else value) if isinstance(value, float) else value
        )

    for old, new in zip(faded(before["groups"]), now["groups"], strict=True):
        assert old == {key: value for key, value in new.items() if key != "entitled_now"}
    assert max(row["use_s"] for row in before["groups"]) > HOUR


def test_what_departments_used_is_counted_as_before(former):
    """Other figures of these two have become others by agreement (CHANGELOG: `default` counts with share 1, a
    group with groups below it has a row for requests of its own only; one definition of deviation)."""
    found, live = former
    counters = live.run("nqspy", "counters", "--json").ok().data
    before = {row["name"]: row for row in found.data("counters")["groups"]}
    for row in counters["groups"]:
        same(before[row["name"]], row, but=("share", "remain_s", "daily_running_s"))
    quota = live.run("nqspy", "report", "quota", "--shift", "night", "--json").ok().data
    before = {row["name"]: row for row in found.data("quota")["groups"]}
    for row in quota["groups"]:
        # Equal but for the order in which it is added up.
        assert [row[name] for name in GOT] == pytest.approx(
            [before[row["name"]][name] for name in GOT], rel=1e-12
        )


# ---------------------------------------------------------------- the night's report


def test_the_nights_report_has_the_same_requests_and_incidents(former):
    """Other figures have become others by agreement (CHANGELOG): what its owner deleted is no failure, what
    can never start counts apart, quotas are compared over the whole night."""
    found, live = former
    text = found.said["night.txt"]
    data = live.run("nqspy", "report", "night", "--date", NIGHT, "--json").ok().data
    failed = {each["id"]: each["end_reason"] for each in data["failed"]}
    assert failed == {"26.ymp": "exit", "27.ymp": "cpu_limit", "38.ymp": "lost"}
    waiting = {each["id"]: each["state"] for each in data["waiting"]}
    assert waiting == {"30.ymp": "held", "33.ymp": "held"} | {f"{n}.ymp": "queued" for n in range(41, 45)}
    assert {*failed, *waiting} <= set(re.findall(r"\d+\.ymp", text))
    counts = [data[name] for name in ("requests", "ended_ok")]
    assert counts == [44, 30], "one of them its owner withdrew"
    for each in data["groups"]:
        assert re.search(rf"^{each['name']} ", text, re.MULTILINE)
    kept = json.loads((found.home / "reports" / NIGHT / "night.json").read_text())
    assert kept["line"] in text
    assert len(live.events("reported")) == 1, "it is not made anew"


# ---------------------------------------------------------------- work goes on; back-ups


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Path], Live]]:
    """Makes who serves a home, to be ended afterwards."""
    made: list[Live] = []

    def of(home: Path) -> Live:
        made.append(Live(home, tmp_path / "work"))
        made[-1].accepts_trouble = True
        return made[-1]

    yield of
    for live in made:
        live.close()


def new_home(former: Path, name: str) -> Path:
    """A home that has what stands beside back-ups: files of the site, and the clock."""
    home = former.with_name(name)
    for part in ("exits", "queues.d"):
        shutil.copytree(former / part, home / part)
    shutil.copy(former / "clock.json", home)
    return home


def test_a_backup_of_the_home_as_it_is_now_makes_a_new_home_of_it(tmp_path, serve):
    found = unpack(tmp_path)
    live = looked_at(serve(found.home).start())
    copy, before = tmp_path / "now.db", (listed(live), listed(live, "--ended"), live.qmgr("snap").ok().out)
    live.run("nqspy", "backup", str(copy)).ok()
    live.stop()
    other = serve(new_home(found.home, "other"))
    other.run("nqspy", "restore", str(copy)).ok()
    looked_at(other.start())
    waiting, ended, snap = before
    for was, now in ((waiting, listed(other)), (ended, listed(other, "--ended"))):
        assert was.keys() == now.keys()
        for seq in was:
            same(was[seq], now[seq], but=("position", "priority"))
    assert other.qmgr("snap").ok().out == snap


def test_a_backup_that_b4ee003_made_makes_a_new_home_in_which_nothing_runs_twice(tmp_path, serve):
    found = unpack(tmp_path)
    live = serve(new_home(found.home, "other"))
    live.run("nqspy", "restore", str(found.backup)).ok()
    looked_at(live.start())
    now, before = listed(live), found.requests("waiting")
    ran = {seq for seq, each in before.items() if each["pes"]}
    for seq in before.keys() - ran:
        same(before[seq], now[seq], but=("position", "priority"))
    # Of what ran at the back-up no trace is left here: it may run still, and is not run again by itself.
    again = {found.made[name] for name in ("long", "runs", "stopped")}
    assert {now[seq]["state"] for seq in again} == {"held"}
    ended = listed(live, "--ended")
    assert {ended[seq]["end_reason"] for seq in ran - again} == {"lost"}


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: requests of that home are root's")
def test_what_ran_runs_again_and_what_waited_for_it_follows(tmp_path, serve):
    found = unpack(tmp_path)
    live, made = serve(found.home).start(), found.made
    live.set("start queue normal", "start queue express")
    for name in ("runs", "stopped", "after two", "queued", "after start", "last", "short"):
        ended = live.ended(f"{made[name]}.ymp")
        assert (ended["exit_status"], ended["end_reason"]) == (0, "exit"), ended
    again = live.job(f"{made['runs']}.ymp")
    assert again["attempt"] == 2
    assert live.job(f"{made['needs']}.ymp")["reason"]["code"] == "RESOURCE"
    new = live.submit("true", queue="express")
    assert new == f"{max(*found.requests('waiting'), *found.requests('ended')) + 1}.ymp"
