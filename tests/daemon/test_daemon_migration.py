"""A home of b4ee003, of a night with incidents, in which the power failed while requests ran: the daemon as
it is goes on from there, and nothing is lost."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from daemon.live import Live, until
from store.former_home import FormerHome, unpack

HOUR = 3600.0
HALF_LIFE = 24 * HOUR
ENDS = ("state", "pes", "used", "reason", "priority")
"""What is another in a request that ran."""


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
