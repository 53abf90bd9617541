"""Programs for applications and jobs by class: each writes down when it runs, so that afterwards nothing
needs to be believed that was only told.

A program's file ``ticks/TOKEN`` has a line for its begin, for each tenth of a second in which it (or a child)
ran, and for its end, with its request, attempt and the PEs it was given.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

from nqspy.model.domains import numbers

PROGRAM = """\
#!{python} -IS
import os, signal, sys, time
token, kind, most, status = os.path.basename(sys.argv[0]), sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
get = os.environ.get
me = "%s %s %s" % (get("QSUB_REQID"), get("NQSPY_ATTEMPT"), get("NQSPY_PES"))
out = os.open({work!r} + "/ticks/" + token, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def write(what):
    os.write(out, ("%s %d %s %d\\n" % (what, time.time() * 1000, me, os.getpid())).encode())


def run(seconds):
    done, last = 0.0, time.monotonic()
    while done < seconds:
        time.sleep(0.1)
        write("tick")
        at = time.monotonic()
        done, last = done + min(at - last, 0.3), at


def deaf():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


write("begin")
print(token, flush=True)
if kind == "deaf":
    deaf()
elif kind == "tree":
    for branch in range(2):
        if os.fork() == 0:
            os.setsid()
            if branch and os.fork() == 0:
                deaf()
            run(60)
            os._exit(0)
elif kind == "late":
    run(90)
run(most)
write("end")
if kind == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
os._exit(status)
"""

KINDS = ("plain",) * 7 + ("deaf", "deaf", "tree", "tree", "late", "killed")
CLASSES = ("interactive",) * 4 + ("production",) * 4 + ("standby",) * 2 + ("benchmark", "rush")
SIZES = (1,) * 6 + (2,) * 3 + (3, 4, 5, 8)
SIZES_OF = {"benchmark": (1, 1, 2, 3), "rush": (1, 2, 4)}
"""What the limits of these classes allow."""
LIMIT = 3
"""Time limit of one that is ``late``, s."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One application: what it is and does. ``status``: with which it leaves."""

    kind: str
    seconds: float
    status: int
    pes: int
    job_class: str

    @property
    def words(self) -> list[str]:
        return [self.kind, str(self.seconds), str(self.status)]

    @property
    def options(self) -> list[str]:
        limit = ["-t", str(LIMIT)] if self.kind == "late" else []
        return ["-n", str(self.pes), "-class", self.job_class, *limit]


def wish(chance: Random, longest: float) -> Wish:
    """One of any kind: many short ones, few that take ``longest`` seconds."""
    job_class = chance.choice(CLASSES)
    pes = chance.choice(SIZES_OF.get(job_class, SIZES))
    seconds = round(0.1 * (10 * longest) ** chance.random(), 2)
    return Wish(chance.choice(KINDS), seconds, chance.choice((0, 0, 0, 1, 7, 42)), pes, job_class)


def furnish(work: Path) -> None:
    for name in ("ticks", "bin"):
        (work / name).mkdir(parents=True, exist_ok=True)
    program = work / "program"
    program.write_text(PROGRAM.format(python=sys.executable, work=str(work)))
    program.chmod(0o755)


def program(work: Path, token: str) -> str:
    """The program under a name that tells it from all others."""
    path = work / "bin" / token
    os.symlink(work / "program", path)
    return str(path)


@dataclass(frozen=True, slots=True)
class Trace:
    """A line that a program wrote: ``what`` (begin, tick, end), when (ms), in which attempt of which request,
    and the PEs that it was told."""

    what: str
    at: int
    id: str
    attempt: int
    pes: tuple[int, ...]

    @property
    def seq(self) -> int:
        return int(self.id.partition(".")[0])


def traces(work: Path) -> dict[str, list[Trace]]:
    found = {}
    for path in (work / "ticks").iterdir():
        lines = [line.split() for line in path.read_text().splitlines()]
        found[path.name] = [
            Trace(what, int(at), id, int(attempt), numbers(tuple(pes.split(","))))
            for what, at, id, attempt, pes, _ in lines
        ]
    return found
