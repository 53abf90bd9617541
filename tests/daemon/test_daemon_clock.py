"""The site's clock, live: shifts at their hour, run times by it, restarts."""

import os
from datetime import datetime, timedelta

import pytest
from daemon.live import ONE_QUEUE

from nqspy.daemon.clock import clock_of
from nqspy.model.errors import BadValue

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


def test_night_starts_at_nine_and_its_requests_with_it(make_live):
    live = make_live().site(SITE).start("--clock", "2026-03-02T20:30:00+01:00 x1")
    id = live.submit("true", queue="night")
    assert (live.client.call("status")["shift"], live.job(id)["state"]) == ("day", "queued")
    live.restart("--clock", "2026-03-02T20:59:30+01:00 x20")
    limited = live.submit("sleep 60", wall=40)
    ended = live.ended(id)
    [change] = [each for each in live.events("shift_changed") if each["shift"] == "night"]
    at = datetime.fromisoformat(change["at"])
    assert change["former"] == "day"
    assert at.isoformat()[:16] == "2026-03-02T21:00"
    assert at.utcoffset() == timedelta(hours=1)
    assert at <= datetime.fromisoformat(ended["started"]) < at + timedelta(minutes=20), "a minute of ours"
    assert live.shown("show queue")["batch"]["run_limit"] == 1
    assert "accelerated: 2026-03-02T20:59:30+01:00 x20" in live.run("nqsd", "status").ok().out
    assert live.ended(limited)["end_reason"] == "wall_limit", "of the clock's seconds"
    live.set("set calendar extra=(2026-03-05)")
    assert "2026-03-05" in live.qmgr("show shifts --next 7d").ok().out.partition("counts as a Sunday")[0]
    coming = live.shown("show shifts --next 24h")["coming"]
    assert [(each["shift"], each["at"][:16]) for each in coming] == [
        ("day", "2026-03-03T08:30"), ("night", "2026-03-03T21:00"),
    ]  # fmt: skip


def test_the_clock_goes_on_over_a_restart_and_a_kept_one_that_is_damaged_is_told(tmp_path):
    noon = "2026-03-02T12:00:00+01:00 x3600"
    first = clock_of(tmp_path, noon)
    assert clock_of(tmp_path, None) == clock_of(tmp_path, noon) == first, "it ran while the daemon was down"
    later = clock_of(tmp_path, "2026-03-05T12:00:00+01:00 x1")
    begun = datetime.fromisoformat("2026-03-05T12:00+01:00").timestamp() * 1000
    assert 0 <= later.now() - begun < 60_000
    assert clock_of(tmp_path, None) == later
    (tmp_path / "clock.json").write_text("{")
    with pytest.raises(BadValue, match=r"clock\.json is damaged"):
        clock_of(tmp_path, None)
    (tmp_path / "clock.json").unlink()
    os.mkfifo(tmp_path / "clock.json")
    with pytest.raises(BadValue):
        clock_of(tmp_path, None)
