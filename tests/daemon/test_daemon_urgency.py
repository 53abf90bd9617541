"""Who goes before whom for a CPU: the daemon and what starts jobs before the jobs, which all are alike."""

import os
from pathlib import Path

import pytest
from daemon.live import until

NICE = "nice | tr -d '\\n' > {}"
EXIT = """
import os
from nqspy.userexit import userexit

@userexit
def jobselect(request):
    return None

@userexit
def jobend(request):
    try:
        file = open("{}", "x")
    except OSError:
        return  # the first has told it; the last ends when nobody listens any more
    with file:
        file.write(str(os.getpriority(os.PRIO_PROCESS, 0)))
"""


def niceness(pid):
    return os.getpriority(os.PRIO_PROCESS, pid)


def kin(pid):
    """The daemon's own processes: decider and starter."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(each) for thread in threads for each in (thread / "children").read_text().split()]


def said(path):
    return int(until(lambda: path.exists() and path.read_text(), f"{path.name} is written"))


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may go before others")
def test_the_daemon_goes_before_jobs_and_jobs_before_nobody(make_live, open_folder):
    probe, notice, job, nicer = (open_folder / name for name in ("probe", "notice", "job", "nicer"))
    live = make_live().site(exits={"gate": EXIT.format(notice)}).start()
    live.set(f'create probe nfs command="{NICE.format(probe)}" every=1')
    live.running(live.qsub("sleep 60"))
    assert [niceness(pid) for pid in (live.pid, *kin(live.pid))] == [-10] * 3, "daemon, decider, starter"
    live.ended(live.qsub(NICE.format(job)))
    live.ended(live.qsub(NICE.format(nicer), "-ln", "7"))
    assert [said(path) for path in (job, nicer, probe, notice)] == [0, 7, 0, 0]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may go before others")
def test_a_nice_value_that_somebody_chose_stays(make_live, open_folder):
    live = make_live().site()
    os.setpriority(os.PRIO_PROCESS, 0, 3)
    try:
        live.start()
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    live.ended(live.qsub(NICE.format(open_folder / "job")))
    assert {niceness(live.pid), said(open_folder / "job")} == {3}
