"""A request that forks without end meets its limit early, is ended with all that it has, and is told so."""

import os
import sys
from pathlib import Path

import pytest
from executors.conftest import kept

from nqspy.model.requests import Ask

BOMB = """
import os, signal, sys, time
{first}
for _ in range({rounds}):
    try:
        os.fork()
    except OSError:
        pass
time.sleep(20)
"""
"""Two to the power of its rounds, and no more: these tests must not harm the machine should they fail."""
PATIENT = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
leader = os.getppid()
open("ready", "w").close()
while os.getppid() == leader:
    time.sleep(0.01)
"""
"""Deaf to TERM, and waits until its leader has gone."""
MOST = 60
ASKED = Ask(others=(("per_request/process_limit", MOST),))


def bomb(bench, first: str = "", rounds: int = 8) -> str:
    """A script that doubles itself, its processes known by their name."""
    path = bench.work / f"bomb-{os.getpid()}.py"
    path.write_text(BOMB.format(first=first, rounds=rounds))
    return f"{sys.executable} -S {path}"


def left(bench) -> list[str]:
    """Processes of bombs that are still there."""
    name, found = f"bomb-{os.getpid()}.py".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if name in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("cage", ["cgroup2", "cgroup1", "none"])
def test_a_bomb_is_ended_as_what_it_is(make_bench, cage):
    bench = make_bench(cage=cage)
    request = bench.start(f"exec {bomb(bench)}\n", ask=ASKED)
    assert bench.run("exit 4\n").status == 4, "it harms no other"
    ending = bench.ending(request)
    assert ending.reason == "process_limit"
    assert ending.text == f"process limit of {MOST} exceeded (-l nproc=): threads count as well"
    assert bench.text("job.e1").endswith(f"was ended: {ending.text}\n")
    assert not left(bench)


def test_a_bomb_whose_leader_has_gone_is_no_good_end(bench):
    bench.site.settings.server.grace = 60_000
    script = f"{bomb(bench, PATIENT)} &\nwhile [ ! -e ready ]; do sleep 0.02; done\nexit 0\n"
    ending = bench.run(script, ask=ASKED, workdir=str(bench.work))
    assert (ending.reason, ending.status) == ("process_limit", 0)
    assert ending.used.wall < 15_000
    assert not left(bench)


def test_the_wall_limit_holds_for_what_a_leader_left_behind(bench):
    bench.site.settings.server.grace = 60_000
    script = "(trap '' TERM; touch ready; while :; do sleep 0.05; done) &\n"
    script += "while [ ! -e ready ]; do sleep 0.02; done\nexit 0\n"
    ending = bench.run(script, ask=Ask(wall=1500), workdir=str(bench.work))
    assert (ending.reason, ending.status) == ("wall_limit", 0)
    assert ending.text == "wall-clock limit of 1.5 s exceeded by what its leader left behind"


def test_the_kernel_lets_it_have_no_more(bench):
    if not kept("pids"):
        pytest.skip("needs a pids cgroup that may be written")
    (bench.work / "count.py").write_text(f"import os, time\nfor n in range({MOST + 20}):\n"
        "    try:\n        if os.fork() == 0:\n            time.sleep(20)\n            os._exit(0)\n"
        "    except OSError:\n        print(n)\n        break\n")  # fmt: skip
    bench.run(f"exec {sys.executable} -S count.py\n", ask=ASKED, workdir=str(bench.work))
    assert int(bench.text("job.o1")) == MOST - 1


def test_without_a_word_it_is_the_queues_limit_that_counts(bench):
    assert 200 <= bench.queue.per_request.process_limit < 1000, "some hundreds, unless it is set"
    bench.queue.per_request.process_limit = MOST
    assert bench.run(f"exec {bomb(bench)}\n").reason == "process_limit"
