"""Jobs that leave evidence: each writes down that it began, and that it ended, into one file that all share.

The file ``marks`` is the order of things without a clock: a line is appended whole, and the length of the
file at any moment is a time that clients can note.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

FILLING = 2_000_000
"""Bytes that a filler writes."""

_HEAD = """\
if [ -e {work}/pids/{token} ]; then
  read -r old < {work}/pids/{token}
  [ -n "$old" ] && [ -e /proc/$old/stat ] && read -r line < /proc/$old/stat && case "$line" in
    *") Z "*|*") X "*) ;;
    *) echo "{token} overlap $old" >> {work}/marks ;;
  esac
fi 2>/dev/null
echo $$ > {work}/pids/{token}
echo "{token} begin $$" >> {work}/marks
echo {token}
"""
_TAIL = """
echo "{token} end {status}" >> {work}/marks
exit {status}
"""

BODIES = {
    "plain": "",
    "burner": "i=0; while [ $i -lt 8000 ]; do i=$((i+1)); done",
    "sleeper": "sleep {seconds}",
    "deaf": "trap '' TERM HUP INT; n=0; while [ $n -lt 15 ]; do sleep 0.1; n=$((n+1)); done",
    "forker": "(setsid sh -c 'sleep 60' &)",
    "runaway": "(setsid sh -c 'trap \"\" TERM HUP; sleep 60' &)",
    "filler": f"head -c {FILLING} /dev/zero",
    "closer": "exec 0<&- 1>&- 2>&-; sleep 0.2",
    "grouper": "set -m; sleep 0.2 & wait",
    "suicide": "kill -9 $$",
    "overrunner": "sleep 60",
    "patricide": "[ -e {work}/once/{token} ] || {{ : > {work}/once/{token}; kill -9 $PPID; sleep 5; }}",
}
"""What jobs do between their two marks, by kind."""

_OFTEN = ["plain"] * 8 + ["burner"] * 3 + ["sleeper"] * 5


@dataclass(frozen=True, slots=True)
class Job:
    """What a request's script does, and how it must end if nobody and nothing ends it before."""

    token: str
    kind: str
    script: str
    status: int | None = None
    signal: int | None = None
    reason: str = "exit"
    output: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def make_job(token: str, work: Path, chance: Random, kind: str = "") -> Job:
    kind = kind or chance.choice([*_OFTEN, *BODIES])
    status = chance.choice((0, 0, 0, 0, 1, 7, 42, 127, 200, 255))
    words = {"token": token, "work": work, "status": status, "seconds": round(chance.uniform(0.1, 1.5), 2)}
    script = (_HEAD + BODIES[kind] + _TAIL).format(**words)
    output = token + "\n" + ("\0" * FILLING if kind == "filler" else "")
    options = {"rerunnable": False} if chance.random() < 0.15 and kind != "patricide" else {}
    if kind == "suicide":
        return Job(token, kind, script, None, 9, "signal", output, options)
    if kind == "overrunner":
        return Job(token, kind, script, None, None, "wall_limit", output, {**options, "wall": 1})
    return Job(token, kind, script, status, None, "exit", output, options)


def make_array(token: str, work: Path, chance: Random) -> list[Job]:
    """Return the jobs of an array's indices, from 1 upward. They have one script, which knows its index."""
    gap = "$PBS_ARRAY_INDEX"
    job, count = make_job(f"{token}i{gap}", work, chance), chance.randint(2, 6)
    texts = [(f"{token}i{index}", job.output.replace(gap, str(index))) for index in range(1, count + 1)]
    return [replace(job, token=own, output=output) for own, output in texts]


def furnish(work: Path) -> None:
    for name in ("pids", "once", "out"):
        (work / name).mkdir(parents=True, exist_ok=True)
    (work / "marks").touch()


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of the marks: at which length of the file, whose, ``begin``, ``end`` or ``overlap``."""

    at: int
    token: str
    what: str
    word: str


def read_marks(work: Path) -> list[Mark]:
    found, at = [], 0
    for line in (work / "marks").read_text().splitlines(keepends=True):
        token, what, word = line.split()
        found.append(Mark(at, token, what, word))
        at += len(line)
    return found
