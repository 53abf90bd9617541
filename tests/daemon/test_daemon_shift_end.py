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
    live = make_live().site(SITE).start("--clock", "2026-03-03T08:01:00+01:00 x10")
    id = live.submit(SCRIPT, queue="night")
    live.running(id)
    pid = int(live.text("pid"))
    job = live.until(id, lambda job: job["state"] == "suspended", "be suspended by the day shift")
    until(lambda: stands_still(pid), "its processes are stopped")
    assert (job["reason"]["code"], job["reason"]["who"]) == ("SHIFT", "shift day")
    assert job["reason"]["text"] in " ".join(live.run("qstat", "--why", id).ok().out.split())
    other = live.submit("true")
    assert live.ended(other)["exit_status"] == 0, "the day's work has its PE"
    live.write("go", "")
    ended = live.ended(id)
    assert (ended["exit_status"], ended["attempt"]) == (0, 1)
    assert live.text("end") == "done\n"
    [suspended], [resumed] = live.events("suspended", id), live.events("resumed", id)
    assert (suspended["by"], suspended["at"][11:16]) == ("shift day", "08:02")
    assert (resumed["by"], resumed["at"][11:16]) == ("scheduler", "08:03")
