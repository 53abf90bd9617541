"""The site's clock, live: shifts at their hour, over restarts, by hand; CPU time in clock seconds."""

from datetime import datetime, timedelta

import pytest
from daemon.live import ONE_QUEUE, until

SITE = (
    ONE_QUEUE
    + """\
set timezone Europe/Paris
create batch_queue night priority=5
enable queue night
define shift day when=("30 8 * * *")
  stop queue night
  set queue batch run_limit=3
end
define shift night when=("0 21 * * *")
  start queue night
  set queue batch run_limit=1
end
"""
)
MINUTE_A_SECOND = "x60"


def clock(live):
    return datetime.fromisoformat(live.client.call("status")["clock"])


def shift(live):
    return live.client.call("status")["shift"]


def test_night_starts_at_nine_and_its_requests_with_it(make_live):
    live = make_live().site(SITE).start("--clock", "2026-03-02T20:30:00+01:00 x1")
    id = live.submit("true", queue="night")
    assert (shift(live), live.job(id)["state"]) == ("day", "queued")
    live.restart("--clock", "2026-03-02T20:59:30+01:00 x20")
    ended = live.ended(id)
    [change] = [each for each in live.events("shift_changed") if each["shift"] == "night"]
    at = datetime.fromisoformat(change["at"])
    assert change["former"] == "day"
    assert at.isoformat()[:16] == "2026-03-02T21:00"
    assert at.utcoffset() == timedelta(hours=1)
    assert at <= datetime.fromisoformat(ended["started"]) < at + timedelta(minutes=20), "a minute of ours"
    assert live.run("qmgr", "--json", "-c", "show queue").ok().data["batch"]["run_limit"] == 1
    assert "accelerated: 2026-03-02T20:59:30+01:00 x20" in live.run("nqsd", "status").ok().out
    coming = live.run("qmgr", "--json", "-c", "show shifts --next 24h").ok().data["coming"]
    assert [(each["shift"], each["at"][:16]) for each in coming] == [
        ("day", "2026-03-03T08:30"), ("night", "2026-03-03T21:00"),
    ]  # fmt: skip


@pytest.mark.slow
def test_the_clock_goes_on_over_a_restart(make_live):
    live = make_live().site(SITE).start("--clock", "2026-03-02T12:00:00+01:00 x3600")
    first = clock(live)
    live.restart()
    second = clock(live)
    assert timedelta(minutes=5) < second - first < timedelta(days=2), "it ran while the daemon was down"
    live.restart("--clock", "2026-03-02T12:00:00+01:00 x3600")
    assert clock(live) > second
    live.restart("--clock", "2026-03-05T12:00:00+01:00 x1")
    assert clock(live).isoformat()[:15] == "2026-03-05T12:0"


@pytest.mark.slow
def test_a_restart_in_the_same_shift_keeps_what_operators_changed(make_live):
    live = make_live().site(SITE).start("--clock", "2026-03-02T22:00:00+01:00 x1")
    assert shift(live) == "night"
    live.set("set queue batch run_limit=7", "stop queue night")
    live.restart()

    def batch():
        return live.run("qmgr", "--json", "-c", "show queue").ok().data

    assert shift(live) == "night"
    assert (batch()["batch"]["run_limit"], batch()["night"].get("started")) == (7, None)
    live.restart("--clock", "2026-03-03T08:29:00+01:00 x1")
    assert (shift(live), batch()["batch"]["run_limit"]) == ("night", 7)
    live.restart("--clock", "2026-03-04T03:00:00+01:00 x1")
    assert (shift(live), batch()["batch"]["run_limit"]) == ("night", 1), "a new night began meanwhile"
    path = live.home / "queues.d" / "10-site.qmgr"
    path.write_text(path.read_text() + "set queue batch run_limit=5\n")
    live.restart()
    assert batch()["batch"]["run_limit"] == 1, "after changed files the shift in force is run again"


@pytest.mark.slow
def test_a_shift_switched_to_by_hand_lasts_until_its_time(make_live):
    live = make_live().site(SITE).start("--clock", "2026-03-02T10:40+01:00 x60")
    live.qmgr("switch shift night until=11:00").ok()  # within 20 s, however busy the machine is
    until(lambda: shift(live) == "day", "the calendar's shift again")

    def changes():
        return [(each["shift"], each["manual"]) for each in live.events("shift_changed")]

    until(lambda: changes()[-2:] == [("night", True), ("day", False)], "both changes in the journal")
    assert clock(live).isoformat()[:16] >= "2026-03-02T11:00"
    live.qmgr("switch shift night").ok()
    live.restart()
    assert shift(live) == "night", "it is kept over a restart"
    live.qmgr("set shift automatic").ok()
    assert shift(live) == "day"
    live.qmgr("switch shift dusk").refused("dusk", "night")


def test_what_is_used_counts_in_clock_seconds(make_live):
    live = make_live().site().start("--clock", f"2026-03-02T12:00:00+01:00 {MINUTE_A_SECOND}")
    busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    used = live.ended(live.submit(busy))["used"]
    assert used["cpu_s"] >= 60 * 0.05
    assert used["wall_s"] >= used["cpu_s"] * 0.9
    ended = live.ended(live.submit("while :; do :; done", cpu=30))
    assert (ended["end_reason"], ended["exit_status"]) in (("cpu_limit", None), ("cpu_limit", 143))
    assert 30 <= ended["used"]["cpu_s"] < 200
    wall = live.ended(live.submit("sleep 60", wall=40))
    assert wall["end_reason"] == "wall_limit"
    assert wall["used"]["wall_s"] >= 38, "as its shepherd measured it"
    began, ended_at = (datetime.fromisoformat(wall[key]) for key in ("started", "ended"))
    # That it runs is noticed some ms late, a second or more of this clock; on a busy machine far more.
    assert timedelta(seconds=20) <= ended_at - began < timedelta(seconds=1800)


@pytest.mark.slow
def test_a_clock_that_nobody_can_read_again_is_said(make_live):
    live = make_live().site().start("--clock", "2026-03-02T12:00:00+01:00 x60")
    live.stop()
    (live.home / "clock.json").write_text("{")
    live.run("nqsd", "start").refused("clock.json")
