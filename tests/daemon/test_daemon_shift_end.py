"""Night work that steps aside for the day, live: its processes are really stopped, and go on at night."""

import pytest
from daemon.live import ONE_QUEUE, until
from stillness import stands_still

SITE = (
    ONE_QUEUE.replace("pes=2", "pes=1")
    + """\
set timezone Europe/Paris
create batch_queue night priority=20 workdir=submit
enable queue night
define shift day when=("2 8 * * *") spill=suspend
  stop queue night
end
define shift night when=("3 8 * * *")
  start queue night
end
"""
)
SCRIPT = """\
echo $$ >pid
while [ ! -e go ]; do sleep 0.05; done
echo done >end
"""


@pytest.mark.slow
def test_a_request_of_the_night_is_stopped_for_the_day_and_ends_well_in_the_evening(make_live):
    live = make_live().site(SITE).start("--clock", "2026-03-03T08:00:00+01:00 x10")
    id = live.submit(SCRIPT, queue="night")
    live.running(id)
    pid = int(live.text("pid"))
    job = live.until(id, lambda job: job["state"] == "suspended", "be suspended by the day shift")
    until(lambda: stands_still(pid), "its processes are stopped")
    assert (job["reason"]["code"], job["reason"]["who"]) == ("SHIFT", "shift day")
    said = live.run("qstat", "--why", id).ok().out
    assert "shift day stopped queue night; it goes on when the queue is started again" in said
    other = live.submit("true")
    assert live.ended(other)["exit_status"] == 0, "the day's work has its PE"
    live.write("go", "")
    ended = live.ended(id)
    assert (ended["exit_status"], ended["attempt"]) == (0, 1)
    assert live.text("end") == "done\n"
    [suspended], [resumed] = live.events("suspended", id), live.events("resumed", id)
    assert (suspended["by"], suspended["at"][11:16]) == ("shift day", "08:02")
    assert (resumed["by"], resumed["at"][11:16]) == ("scheduler", "08:03")


def test_the_counter_tells_of_the_calendar_and_of_what_will_spill(make_live):
    live = make_live().site(SITE).start("--clock", "2026-12-24T12:00:00+01:00 x1")
    live.set(
        'set shift day spill=drain when=("30 18 * * mon-fri")', "set calendar holidays=FR extra=(2026-12-28)"
    )
    shown = live.run("qmgr", "-c", "show shifts --next 14d").ok().out
    assert 'day: "30 18 * * mon-fri", spill=drain' in shown
    assert "calendar: holidays FR; extra (2026-12-28)" in shown
    lines = shown.splitlines()
    at = lines.index(next(line for line in lines if "Christmas Day, counts as a Sunday" in line))
    assert lines[at].split()[0] == "2026-12-25"
    assert not [line for line in lines if "2026-12-25" in line and line.endswith("day") and "18:30" in line]
    assert [line for line in lines if line.startswith("  2026-12-29 18:30:00  day")]
    calendar = live.run("qmgr", "-c", "show calendar --next 30d").ok().out
    assert "holidays                      FR" in calendar
    assert "  2027-01-01  New Year's Day" in calendar
    assert "07-14" not in calendar
    data = live.run("qmgr", "--json", "-c", "show calendar").ok().data
    assert {"date": "2027-07-14", "name": "National Day"} in data["coming"]
    assert data["extra"] == ["2026-12-28"]
    dry = live.run("qsub", "--dry-run", "-q", "night", "-l", "walltime=10:00:00", stdin="true\n").ok().out
    assert "its wall limit of 10:00:00 goes beyond 18:30, when shift day stops queue night" in dry
    id = live.run("qsub", "-q", "night", "-l", "walltime=10:00:00", stdin="true\n").ok().lines[0]
    assert "says:     shift day (SHIFT)" in live.run("qstat", "--why", id).ok().out
    live.run("qmgr", "-c", "set calendar holidays=Franse").refused("no country", "FR")
    live.run("qmgr", "-c", "add calendar extra=(tomorrow)").refused("'tomorrow' is no date")
