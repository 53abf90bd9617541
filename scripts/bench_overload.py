"""The daemon with 100,000 queued, while 200 clients ask each second and 8 submit: beside the same without."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from bench_tools import MANY, Figure, Line, Site, figure, fill, item, site

POLLERS, SUBMITTERS = 200, 8

_LOAD = r"""
import json, select, socket, sys, time
home, count, what = sys.argv[1], int(sys.argv[2]), sys.argv[5]
seconds, every = float(sys.argv[3]), float(sys.argv[4])
message = json.load(sys.stdin)
ids = message.pop("choose", None)
poll, lines = select.poll(), {}
class Client:
    def __init__(self, n):
        self.n, self.sent, self.asked = n, 0, 0.0
        self.socket = socket.socket(socket.AF_UNIX); self.socket.connect(home + "/nqsd.sock")
        self.due, self.waits = begun + every * n / count, False
        lines[self.socket.fileno()] = self
        poll.register(self.socket, select.POLLIN)
    def ask(self, now):
        fields = dict(message, v=1, id=self.sent + 1)
        if what == "submit": fields["key"] = "%d-%d-%d" % (begun * 1000, self.n, self.sent)
        if ids: fields["operands"] = [ids[(self.n * 7919 + self.sent) % len(ids)]]
        self.socket.sendall(json.dumps(fields).encode() + b"\n")
        self.sent, self.asked, self.waits = self.sent + 1, now, True
        self.due = max(now, self.due + every) if every else now
begun = time.time(); zero = time.perf_counter() - begun
clock = lambda: time.perf_counter() - zero
clients = [Client(n) for n in range(count)]
times, late, refused, size = [], 0, 0, 0
end = clock() + seconds
while clock() < end:
    now = clock()
    for c in clients:
        if not c.waits and c.due <= now: c.ask(now)
        elif c.waits and every and now >= c.due: late += 1; c.due += every
    for fd, _ in poll.poll(1 if every else 100):
        c = lines[fd]
        data = c.socket.recv(1 << 20)
        if not data: sys.exit("hung up")
        size += len(data)
        if data.endswith(b"\n"):
            times.append(clock() - c.asked); c.waits = False
            refused += b'"ok":false' in data[:200]
            if not every: c.ask(clock())
times.sort()
at = lambda q: times[min(len(times) - 1, int(q * len(times)))] * 1000 if times else float("nan")
print(json.dumps(dict(rate=len(times) / seconds, p50=at(.5), p99=at(.99), worst=at(1), late=late,
                      refused=refused, size=size)))
"""


def _load(
    here: Site, count: int, seconds: float, every: float, message: dict[str, Any]
) -> "subprocess.Popen[str]":
    """One process that plays many clients, so that it is not what is measured; ``every`` 0: each asks again
    as soon as it has its answer."""
    words = [sys.executable, "-I", "-S", "-c", _LOAD, str(here.home), str(count), str(seconds), str(every)]
    started = subprocess.Popen(
        [*words, str(message["cmd"])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdin is not None
    started.stdin.write(json.dumps(message))
    started.stdin.close()
    started.stdin = None
    return started


def _memory(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1024**2


def _phase(here: Site, seconds: float, polls: dict[str, Any] | None) -> dict[str, Any]:
    """Eight submit as fast as they can while jobs run, and perhaps 200 ask each second."""
    before = here.status()
    submit = {"cmd": "submit", "text": "id", "items": [item("/bin/true\n", here.folder)]}
    submitting = _load(here, SUBMITTERS, seconds, 0.0, submit)
    asking = None if polls is None else _load(here, POLLERS, seconds, 1.0, polls)
    told: dict[str, Any] = {"submit": json.loads(submitting.communicate()[0])}
    if asking is not None:
        told["ask"] = json.loads(asking.communicate()[0])
    told["memory"] = _memory(here.pid())
    return told | _events(here, int(before["events"]), seconds)


def _events(here: Site, after: int, seconds: float) -> dict[str, float]:
    """Jobs ended in that time, and how long after an end the next decision was journaled."""
    line, ends, waits, since = Line(here.home), 0, [], None
    while True:
        result = line.call({"cmd": "events", "after": after, "limit": 5000})["result"]
        if not result["events"]:
            break
        after = result["last"]
        for each in result["events"]:
            at = datetime.fromisoformat(each["at"]).timestamp()
            if each["kind"] == "ended":
                ends, since = ends + 1, since or at
            elif each["kind"] == "decided" and since is not None:
                waits.append((at - since) * 1000)
                since = None
    waits.sort()
    worst = waits[int(0.99 * len(waits))] if waits else 0.0
    return {"jobs": ends / seconds, "pass": statistics.median(waits) if waits else 0.0, "pass99": worst}


def rows(many: int, seconds: float) -> list[Figure]:
    """All phases over one daemon."""
    with site() as here:
        here.run("qmgr", "-c", "stop queue batch")
        empty = _memory(here.pid())
        fill(here.home, here.folder, many)
        ids = [str(n) for n in range(max(1, many - 5000), many)]
        filled = _memory(here.pid())
        here.run("qmgr", "-c", "start queue batch")
        phases = {
            "quiet": _phase(here, seconds, None),
            "qstat ID": _phase(here, seconds, {"cmd": "qstat", "text": "table", "choose": ids}),
            "qstat -b": _phase(here, seconds, {"cmd": "qstat", "text": "queues", "operands": []}),
            "qstat": _phase(here, seconds, {"cmd": "qstat", "text": "table", "operands": []}),
        }
        until = time.monotonic() + 60
        while time.monotonic() < until and not _answers(here):
            pass
        left = _memory(here.pid())
    found = [figure(f"memory with {many} waiting", filled, "MB", empty, "the empty daemon", "shown", None)]
    for name, told in phases.items():
        found += _figures(name, told, phases["quiet"])
    return [*found, figure("memory afterwards", left, "MB", filled, "before the load", "bounded", None)]


def _answers(here: Site) -> bool:
    return bool(here.status())


def _figures(name: str, told: dict[str, Any], quiet: dict[str, Any]) -> list[Figure]:
    load = "no one asks" if name == "quiet" else f"200 x {name}"

    def row(what: str, value: float, unit: str, floor: float, note: str = "") -> Figure:
        return figure(
            f"{load}: {what}", value, unit, floor, "the same while no one asks", "shown", None, note
        )

    submit, before = told["submit"], quiet["submit"]
    note = f"{submit['refused']} refused" if submit["refused"] else ""
    found = [
        row("durable submits", submit["rate"], "/s", before["rate"], note),
        row("submit p50", submit["p50"], "ms", before["p50"]),
        row("submit p99", submit["p99"], "ms", before["p99"], f"worst {submit['worst']:.0f} ms"),
        row("jobs", told["jobs"], "/s", quiet["jobs"]),
        row("end to next decision", told["pass"], "ms", quiet["pass"], f"p99 {told['pass99']:.0f} ms"),
        row("memory", told["memory"], "MB", quiet["memory"]),
    ]
    if "ask" in told:
        ask = told["ask"]
        text = f"{ask['late']} late, {ask['refused']} refused, {ask['size'] / 1e6:.0f} MB in all"
        found.append(row("answers", ask["rate"], "/s", float(POLLERS), text))
        found.append(row("answer p50", ask["p50"], "ms", before["p50"]))
        found.append(row("answer p99", ask["p99"], "ms", before["p99"], f"worst {ask['worst']:.0f} ms"))
    return found


def main() -> int:
    """Prints the table, or JSON."""
    from dataclasses import asdict

    from bench import table

    parser = argparse.ArgumentParser(prog="scripts/bench overload", description=__doc__)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--quick", action="store_true", help="smaller numbers, for a look")
    options = parser.parse_args()
    found = rows(10_000 if options.quick else MANY, 4.0 if options.quick else 15.0)
    print(json.dumps([asdict(each) for each in found], indent=1) if options.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
