"""A night with everything in it, by a real daemon under an accelerated clock: lists and arrays, dependencies,
shifts that drain and suspend, promised starts, exits that fail, a probe that breaks, operators at work,
kills -9. What it leaves is a journal."""

import getpass
import random
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from daemon.live import Live, until

from nqspy.errors import Refusal

EVENING = datetime.fromisoformat("2026-03-02T20:40:00+01:00")
LATE = datetime.fromisoformat("2026-03-03T02:10:00+01:00")
SPEED = 1800
SITE = """\
set machine pes=3
set timezone Europe/Paris
create batch_queue night priority=10 workdir=submit order=fcfs reserve=1
create batch_queue express priority=20 workdir=submit run_limit=1
create batch_queue spare priority=5 workdir=submit
create batch_queue odd priority=6 workdir=submit
create batch_queue desk priority=40 workdir=submit
create pipe_queue batch priority=30 destination=(express, spare)
set per_request wall_limit=4:00:00 night
set per_request wall_limit=2:00:00 express
set per_request cpu_limit=600 express
set per_request wall_limit=2:00:00 desk
enable queue all
start queue express, spare, batch, desk, odd
create group d1 share=60
create group d2 share=40
create consumable key units=(a, b)
create probe disk file={folder}/disk running=suspend every=1 timeout=5 fails=1 recovers=1
set queue express needs=(disk)
define shift evening when=("0 17 * * *")
  stop queue night
end
define shift night when=("0 21 * * *")
  start queue night
  set sched_factor share 20 time 1
end
define shift supper when=("0 23 * * *") spill=drain
  stop queue express
end
define shift pause when=("0 1 * * *") spill=suspend
  stop queue spare
end
define shift late when=("0 2 * * *")
  start queue spare, express
  set sched_factor share 0 time 10
end
"""
MOODY = '''\
"""Moody: it raises on what is called poison, loops on what is called endless, and refuses late ones early."""

from nqspy.userexit import refuse, userexit


@userexit
def jobselect(request, view, now):
    if request.name == "poison":
        raise RuntimeError("it tastes of almonds")
    while request.name == "endless":
        pass
    if request.name.startswith("late") and len(view.running()) > 1:
        return refuse("late ones run beside one other at most")
    return None


@userexit
def submit(request):
    if request.name == "unwanted":
        raise ValueError("unwanted")
    return None
'''
TABLE = '''\
"""Table: who is listed may come, by a file that is missing for a while; when one of a pair has come, the
other counts as submitted only now."""

from pathlib import Path

from nqspy.userexit import redate, refuse, userexit


@userexit
def jobselect(request):
    if request.name != "listed" or request.owner in Path("{folder}/table").read_text():
        return None
    return refuse("not in the table")


@userexit
def elected(request, view, now):
    return [redate(view.waiting(owner=request.owner, name="pair"), now)] if request.name == "pair" else []
'''


class EventfulNight:
    """The live site, and what is done to it during its night; ``folder``: all users may read it; ``seed``: of
    who submits what."""

    def __init__(self, live: Live, folder: Path, seed: int = 1) -> None:
        self.live, self.folder, self.chance = live, folder, random.Random(seed)
        self.ids: list[str] = []
        live.accepts_trouble = True  # the moody exit's tracebacks

    def now(self) -> datetime:
        return datetime.fromisoformat(self.live.client.call("status")["clock"])

    def wait(self, **more: float) -> None:
        """Let so much time pass, by the daemon's clock."""
        then = self.now() + timedelta(**more)
        until(lambda: self.now() >= then, f"the clock reaches {then}")

    def submit(self, seconds: float, name: str, queue: str = "night", **more: object) -> str:
        """Submit a request that takes so many real seconds; return its identifier."""
        group = self.chance.choice(("d1", "d2"))
        options = {"name": name, "queue": queue, "account": group, **more}
        self.ids.append(self.live.submit(f"sleep {seconds}", **options))
        return self.ids[-1]

    def live_through(self, kills: int = 2) -> "EventfulNight":
        """Run from the evening to the early morning; the daemon is killed so many times."""
        live = self.live
        table = TABLE.replace("{folder}", str(self.folder))
        live.site(SITE.replace("{folder}", str(self.folder)), {"moody": MOODY, "table": table})
        self._file("disk").touch()
        live.start("--clock", f"{EVENING.isoformat()} x{SPEED}")
        self._hand_in()
        for n in range(kills):
            self.wait(minutes=30)
            self._operate(n)
            live.kill()
            live.start()
            self._hand_in_more(n)
        until(lambda: self.now() > LATE and not self._under_way(), "all has ended that can", patience=180)
        return self

    def _file(self, name: str) -> Path:
        return self.folder / name

    def _under_way(self) -> list[str]:
        states = ("queued", "running", "suspended", "exiting")
        stuck = ("poison", "endless")
        return [
            each.id for each in self.live.client.requests()
            if each.data["state"] in states and each.data["name"] not in stuck
        ]  # fmt: skip

    # ------------------------------------------------------------ people
    def _hand_in(self) -> None:
        for n in range(8):
            self.submit(self.chance.uniform(0.2, 1.2), f"list-{n}", pes=self.chance.choice((1, 1, 1, 3)))
        array = self.live.qsub("sleep 0.4\n", "-q", "night", "-N", "array", "-J", "1-6%2", "-A", "d1")
        self.live.qsub("exit 3\n", "-q", "spare", "-N", "fails", "-l", "walltime=1:00:00")
        first = self.submit(1.0, "first", "spare")
        self.live.qsub("true\n", "-q", "night", "-W", f"depend=afterok:{first}", "-N", "after")
        self.live.qsub("true\n", "-q", "spare", "-W", f"depend=afternotok:{first}", "-N", "never")
        self.live.qsub("true\n", "-q", "night", "-W", f"depend=afterany:{array}", "-N", "last")
        for name in ("poison", "endless"):
            self.submit(0.3, name, "odd")  # nothing but the moody exit keeps these back
        for name in ("late-1", "late-2", *["pair"] * 6):
            self.submit(0.3, name, "spare")
        self.submit(0.3, "listed", "desk")
        for n in range(3):
            self.submit(2.0, f"long-{n}", "spare", pes=1)
        self.live.qsub("true\n", "-q", "batch", "-N", "routed", "-l", "cput=5:00")
        self.live.qsub("sleep 0.5\n", "-q", "spare", "-N", "keys", "-J", "1-3", "-l", "key=1")
        self.submit(5.0, "quick", "express")

    def _operate(self, n: int) -> None:
        """Act as an operator: on some that wait, and on one that runs."""
        live, ids = self.live, [self.submit(0.2, f"late-in-{n}-{k}", pes=3) for k in range(5)]
        runs = self.live.submit(f"[ -e ran{n} ] || {{ >ran{n}; sleep 60; }}", name="again", queue="desk")
        for words in (("qhold", ids[0]), ("qmove", "spare", ids[1]), ("qdel", ids[2]), ("qrls", ids[0])):
            live.run(*words).ok()
        live.run("qalter", "-l", "walltime=2:00:00", ids[3]).ok()
        live.qmgr(f"schedule request {ids[4]} {('first', 'next')[n]}").ok()
        live.running(runs)
        live.qmgr(f"suspend request {runs}").ok()
        for there in (False, True):
            self._probe(there)
        corrected = f"set usage of group d1 {1000 + n}"
        live.qmgr("set queue spare run_limit=2", f"set usage half_life={6 + n}h", corrected).ok()
        live.qmgr(f"resume request {runs}").ok()
        live.run("qrerun", runs).ok()

    def _probe(self, there: bool) -> None:
        """Let the disk appear or disappear, and have it noticed."""
        known = len(self.live.events("probe"))
        if there:
            self._file("disk").touch()
        else:
            self._file("disk").unlink()
        until(lambda: len(self.live.events("probe")) > known, "the probe tells")

    def _hand_in_more(self, n: int) -> None:
        self._file("table").write_text(getpass.getuser())
        for k in range(3):
            self.submit(self.chance.uniform(0.1, 0.8), f"more-{n}-{k}", pes=self.chance.choice((1, 2)))
        self.submit(0.2, "late-again", "spare")
        dated = (self.now() + timedelta(minutes=30)).strftime("%Y%m%d%H%M.%S")
        self.live.run("qsub", "-q", "night", "-a", dated, "-N", "dated", stdin="true\n")
        with suppress(Refusal):  # it may be refused, or not
            self.live.submit("true", name="unwanted", queue="spare")
        self.live.run("qdel", self.live.qsub("true\n", "-h", "-q", "night"))
