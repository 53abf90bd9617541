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


def nice_in(path):
    return int(until(lambda: path.exists() and path.read_text(), f"{path.name} is written"))


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may go before others")
@pytest.mark.parametrize("chosen", [0, 3])
def test_the_daemon_goes_before_jobs_and_jobs_before_nobody_unless_somebody_chose(
    make_live, open_folder, chosen
):
    probe, notice, job, nicer = (open_folder / name for name in ("probe", "notice", "job", "nicer"))
    live = make_live().site(exits={"gate": EXIT.format(notice)})
    os.setpriority(os.PRIO_PROCESS, 0, chosen)
    try:
        live.run("nqsd", "start").ok()
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    live.set(f'create probe nfs command="{NICE.format(probe)}" every=1')
    live.running(live.qsub("sleep 60"))
    threads = Path(f"/proc/{live.pid}/task").iterdir()
    kin = [int(each) for thread in threads for each in (thread / "children").read_text().split()]
    assert [niceness(pid) for pid in (live.pid, *kin)] == [chosen or -10] * 3, "daemon, decider, spawner"
    live.ended(live.qsub(NICE.format(job)))
    live.ended(live.qsub(NICE.format(nicer), "-ln", "7"))
    assert [nice_in(path) for path in (job, nicer, probe, notice)] == [chosen, 7, chosen, chosen]
