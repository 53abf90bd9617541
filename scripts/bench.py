"""Measures nqspy; each figure is compared with a floor or a peer measured in the same run: ratios hold where
absolute times do not."""

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from bench_tools import (
    BARE,
    BIN,
    FLOOR,
    MANY,
    Figure,
    Line,
    Site,
    fdatasync_rate,
    figure,
    fill,
    item,
    memory_of,
    paired,
    site,
    spawn,
    wait_for,
)  # fmt: skip

from nqspy.executors import records

# ---------------------------------------------------------------- commands


def bench_commands(runs: int) -> Iterator[Figure]:
    """Yield the times of qsub and qstat as whole processes."""
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        qsub = [str(BIN / "qsub"), "-s", "/bin/sh", str(here.script)]
        ours, floor = paired(qsub, FLOOR, here.env, runs)
        name = "python3 -I -S -c 'import socket, json'"
        yield figure("one qsub of a script", ours, "ms", floor, name, "<= 1.0 x", ours <= floor)
        have = int(here.status()["requests"])
        fill(here.home, here.folder, 1000 - have)
        ours, floor = paired([str(BIN / "qstat")], FLOOR, here.env, runs)
        yield figure("one qstat, 1,000 requests", ours, "ms", floor, name, "<= 1.5 x", ours <= 1.5 * floor)


def bench_latency(runs: int) -> Iterator[Figure]:
    """Yield the time from qsub's end to the job's first instruction: the job writes into a pipe that this
    reads."""
    for what, profile in profiles():
        with site(profile) as here:
            fifo = here.folder / "fifo"
            os.mkfifo(fifo)
            (here.folder / "mark.sh").write_text(f"#!/bin/bash\n: > {fifo}\n")
            taken: dict[str, list[float]] = {"login": [], "free": []}
            for each in [*taken] * 2:
                here.set(f"set shell_strategy {each}")
                taken[each] += [_one_latency(here, fifo) for _ in range(runs // 2 + 2)][2:]
            floor = statistics.median(spawn(BARE, here.env) for _ in range(runs))
            ours, free = (statistics.median(each) for each in taken.values())
            note = "one that begins before qsub ends counts 0"
            yield figure(f"first instruction, {what}", ours, "ms", floor, "python3 -I -S -c pass",
                         "<= 10 ms or 1 x", ours <= max(10, floor), note)  # fmt: skip
            yield figure(f"the same with {what}", ours, "ms", free, "shell_strategy free",
                         "<= 1.1 x", ours <= 1.1 * free)  # fmt: skip


def profiles() -> list[tuple[str, str | None]]:
    """Return the profiles that jobs are measured with: the measuring user's own if that is not root."""
    if os.geteuid():
        return [("profile of one's own", None)]
    return [("empty profile", ""), ("profile of 100 ms", "sleep 0.1\n")]


def _one_latency(here: Site, fifo: Path) -> float:
    read = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(read, select.POLLIN | select.POLLHUP)
    words = ["-o", "/dev/null", "-e", "/dev/null", str(here.folder / "mark.sh")]
    spawn([str(BIN / "qsub"), *words], here.env)
    began = time.perf_counter()
    if not poll.poll(10_000):
        raise SystemExit("the job did not begin")
    took = (time.perf_counter() - began) * 1000
    os.close(read)
    wait_for(lambda: not here.status()["requests"])
    return took


# ---------------------------------------------------------------- throughput


def bench_submits(seconds: float) -> Iterator[Figure]:
    """Yield the rate of eight clients, one connection each, every submission durable when acknowledged."""
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        syncs = fdatasync_rate(here.folder)
        message = json.dumps(
            {"v": 1, "id": 1, "cmd": "submit", "text": "id", "items": [item("/bin/true\n", here.folder)]}
        )
        counts = [
            subprocess.Popen(_client(here, message, n, seconds), stdout=subprocess.PIPE, text=True)
            for n in range(8)
        ]
        total = sum(float(each.communicate()[0]) for each in counts)
        known = int(here.status()["requests"])
        note = f"{known} requests known afterwards"
        yield figure(
            "durable submits, 8 clients",
            total,
            "/s",
            syncs,
            "fdatasync of 4 kB",
            ">= 1500/s",
            total >= 1500,
            note,
        )


_CLIENT = """
import socket, sys, time
home, head, seconds, who = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
s = socket.socket(socket.AF_UNIX); s.connect(home + "/nqsd.sock")
head = head[:-1] + ',"key":"' + who + "-"
n, began = 0, time.perf_counter()
while time.perf_counter() - began < seconds:
    s.sendall((head + str(n) + '"}\\n').encode())
    answer = s.recv(65536)
    assert b'"ok":true' in answer, answer
    n += 1
print(n / (time.perf_counter() - began))
"""


def _client(here: Site, message: str, number: int, seconds: float) -> list[str]:
    return [
        sys.executable,
        "-I",
        "-S",
        "-c",
        _CLIENT,
        str(here.home),
        message,
        str(seconds),
        f"client{number}",
    ]


def bench_jobs(count: int) -> Iterator[Figure]:
    """Yield the rate of many short jobs, submitted beforehand, on 2 PEs."""
    for what, profile in profiles():
        with site(profile) as here:
            rates: dict[str, list[float]] = {"login": [], "free": []}
            for each in [*rates] * 2:
                here.set(f"set shell_strategy {each}")
                _rate(here, 4)  # the first login is done
                rates[each].append(_rate(here, count // 2))
            ours, free = (statistics.mean(each) for each in rates.values())
            yield figure(f"{count} jobs, {what}", ours, "/s", free, "shell_strategy free",
                         ">= 1/1.1", ours >= free / 1.1)  # fmt: skip
    with site(profiles()[0][1]) as here:
        _rate(here, 4)
        before = here.status()
        rate, floor = _rate(here, count), _bare_spawns(here, count)
        met = rate >= 250 and rate >= floor / 8
        peer = "posix_spawn + wait of the same, 2 at a time"
        yield figure(f"{count} x /bin/true, 2 PEs", rate, "/s", floor, peer,
                     ">= 250/s and 1/8", met)  # fmt: skip
        after = here.status()
        spent = (int(after["commits"]) - int(before["commits"])) / count
        yield figure(
            "commits a job costs (start to end)",
            spent,
            "",
            fdatasync_rate(here.folder),
            "fdatasync/s of the disk",
            "shown",
            None,
        )
        ours, floor = _claims(here.folder, min(count, 300))
        name = "an fsync of 4 kB"
        yield figure("a claim made durable before a job", ours, "ms", floor, name, "shown", None,
                     "file, folder and its name: once per start")  # fmt: skip


def _rate(here: Site, count: int) -> float:
    """Return the rate of ``count`` plain jobs: jobs a second, from the first start to the last end."""
    here.set("stop queue batch")
    line = Line(here.home)
    each = item(here.script.read_text(), here.folder, shell=None)
    line.call({"cmd": "submit", "items": [each] * count})
    before = here.status()
    here.set("start queue batch")
    wait_for(lambda: not line.call({"cmd": "status"})["result"]["requests"], pause=0.1)
    return count / _span(here, int(before["events"]))


def _claims(folder: Path, count: int) -> tuple[float, float]:
    """Return the median ms of the syncs that a shepherd makes for one claim, and of one fsync, measured in
    turn."""
    spool = folder / "claims"
    spool.mkdir()
    plain = os.open(folder / "plain", os.O_WRONLY | os.O_CREAT)
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(count):
        attempt = spool / f"{number}.1"
        attempt.mkdir()
        records.claim(str(attempt), "x" * 80, records.PROTOCOL)
        began = time.perf_counter()
        records.make_durable(str(attempt))
        taken[0].append(time.perf_counter() - began)
        os.pwrite(plain, b"x" * 4096, number % 200 * 4096)
        began = time.perf_counter()
        os.fsync(plain)
        taken[1].append(time.perf_counter() - began)
    os.close(plain)
    return statistics.median(taken[0]) * 1000, statistics.median(taken[1]) * 1000


def _span(here: Site, after: int) -> float:
    """Return the seconds from the first start to the last end, by the journal."""
    line, first, last = Line(here.home), None, None
    while True:
        result = line.call({"cmd": "events", "after": after, "limit": 5000})["result"]
        if not result["events"]:
            break
        after = result["last"]
        for each in result["events"]:
            if each["kind"] == "starting" and first is None:
                first = each["at"]
            elif each["kind"] == "ended":
                last = each["at"]
    from datetime import datetime

    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def _bare_spawns(here: Site, count: int) -> float:
    words = ["/bin/bash", str(here.script)]
    began, running = time.perf_counter(), 0
    for _ in range(count):
        if running == 2:
            os.wait()
            running -= 1
        os.posix_spawn(words[0], words, here.env)
        running += 1
    while running:
        os.wait()
        running -= 1
    return count / (time.perf_counter() - began)


# ---------------------------------------------------------------- the daemon with many


def bench_many(count: int) -> Iterator[Figure]:
    """Yield memory, idle CPU and start-up time with many waiting requests."""
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        empty = memory_of(here.pid())
        fill(here.home, here.folder, count)
        each = (memory_of(here.pid()) - empty) / count
        floor, name = empty / 1024**2, "MB of all processes when empty"
        yield figure(f"daemon's memory, {count} waiting", each / 1024, "KB a request", floor, name,
                     "<= 4 KB", each <= 4096)  # fmt: skip
        idle = _idle(here.pid(), 10.0)
        yield figure(
            "daemon's CPU while idle", idle * 100, "%", None, "", "<= 0.1 %", idle <= 0.001, "over 10 s"
        )
        here.run("nqsd", "stop")
        began = time.perf_counter()
        here.run("nqsd", "start")
        took = time.perf_counter() - began
        imports = statistics.median(
            spawn([sys.executable, "-c", "import nqspy.daemon.running"], here.env) for _ in range(3)
        )
        yield figure(
            f"start-up, {count} waiting",
            took,
            "s",
            imports / 1000,
            "importing the daemon",
            "<= 3 s",
            took <= 3,
        )


def _cpu(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _idle(pid: int, seconds: float) -> float:
    select.select([], [], [], 2)
    before = _cpu(pid)
    select.select([], [], [], seconds)
    return (_cpu(pid) - before) / seconds


# ---------------------------------------------------------------- scripts


def bench_script(count: int) -> Iterator[Figure]:
    """Yield the time of a qmgr script on a site with many queues, and the wait of another client
    meanwhile."""
    with site() as here:
        here.run("qmgr", str(_queues(here, 0, count - 500)))
        file, other, longest = _queues(here, count - 500, count), Line(here.home), 0.0
        began = time.perf_counter()
        with subprocess.Popen([str(BIN / "qmgr"), str(file)], env=here.env) as script:
            while script.poll() is None:
                asked = time.perf_counter()
                other.call({"cmd": "status"})
                longest = max(longest, time.perf_counter() - asked)
        each = (time.perf_counter() - began) / 1000
        name = f"a line of qmgr, {count} queues"
        yield figure(name, each * 1e3, "ms", None, "", "<= 3 ms", each <= 0.003, "1,000 lines")
        yield figure("longest answer meanwhile", longest, "s", None, "", "<= 0.2 s", longest <= 0.2)


def _queues(here: Site, first: int, last: int) -> Path:
    file = here.folder / f"{last}.qmgr"
    lines = (
        f"create batch_queue q{n} priority=5 run_limit=4\nenable queue q{n}\n" for n in range(first, last)
    )
    file.write_text("".join(lines))
    return file


# ---------------------------------------------------------------- all


def table(figures: list[Figure]) -> str:
    """Return the figures as text."""
    lines = [
        f"{'figure':<38} {'value':>12} {'':<12} {'floor':>10}  {'ratio':>6}  {'goal':<17} met  what floor"
    ]
    for f in figures:
        floor = f"{f.floor:10.2f}" if f.floor is not None else " " * 10
        ratio = f"{f.ratio:6.2f}" if f.ratio is not None else " " * 6
        met = {True: "yes", False: "NO", None: "-"}[f.met]
        note = f" ({f.note})" if f.note else ""
        lines.append(
            f"{f.name:<38} {f.value:12.2f} {f.unit:<12} {floor}  {ratio}  "
            f"{f.goal:<17} {met:<4} {f.floor_name}{note}"
        )
    return "\n".join(lines)


def groups(quick: bool) -> dict[str, Callable[[], Iterator[Figure]]]:
    """Return the groups of measurements by name."""
    from bench_decider import bench_decider
    from bench_exits_try import bench_exits_try
    from bench_list import bench_list
    from bench_memory import measure
    from bench_mpprun import bench_mpprun
    from bench_night import bench_night
    from bench_passes import bench_passes, bench_promises
    from bench_report import bench_report
    from bench_rotation import bench_rotation
    from bench_simulation import bench_simulation
    from bench_store import bench_store

    return {
        "commands": lambda: bench_commands(10 if quick else 40),
        "latency": lambda: bench_latency(10 if quick else 40),
        "mpprun": lambda: bench_mpprun(6 if quick else 25),
        "submits": lambda: bench_submits(2 if quick else 5),
        "list": lambda: bench_list(*((2_000, 2, 2.0) if quick else (10_000, 5, 5.0))),
        "jobs": lambda: bench_jobs(200 if quick else 1000),
        "night": lambda: bench_night((1_000,) if quick else (1_000, 10_000), 200 if quick else 1_000),
        "passes": lambda: [
            *bench_passes(figure, count := 10_000 if quick else MANY),
            *bench_promises(figure, count),
        ],
        "script": lambda: bench_script(1_000 if quick else 5_000),
        "many": lambda: bench_many(10_000 if quick else MANY),
        "memory": measure,
        "report": lambda: bench_report(1_000 if quick else 10_000),
        "simulation": lambda: bench_simulation(figure, 1 if quick else 5),
        "rotation": lambda: bench_rotation(10 if quick else 60),
        "store": lambda: bench_store(figure, 10_000 if quick else MANY),
        "faults": bench_decider,
        "try": lambda: bench_exits_try(1_000, 3 if quick else 10),
    }


ALONE = ("cost", "papers")
"""Groups with options of their own, each in its file ``bench_NAME``."""


def main() -> int:
    """Print the table, or JSON; return the exit status."""
    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    if asked in ALONE:
        found: int = import_module(f"bench_{asked}").main(sys.argv[2:])
        return found
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    words = f"{', '.join(groups(False))}; none: all. Or {', '.join(ALONE)} (own options)"
    parser.add_argument("names", nargs="*", help=words)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--quick", action="store_true", help="smaller numbers, for a look")
    parser.add_argument("--beside", type=Path, metavar="DIR", help="measure another checkout in turn; ratios")
    parser.add_argument("--turns", type=int, default=3, help="with --beside: so often each")
    options = parser.parse_args()
    known = groups(options.quick)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        there = ", ".join((*known, *ALONE))
        parser.error(f"there is no figure {unknown[0]}; there are {there}")
    if options.beside:
        from bench_beside import beside

        beside(options.beside.resolve(), options.names or list(known), options.turns, options.quick)
        return 0
    figures = [each for name in options.names or known for each in known[name]()]
    print(json.dumps([asdict(each) for each in figures], indent=1) if options.json else table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
