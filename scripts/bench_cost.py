"""Where the CPU time of one request goes, from its submission to its record: ``scripts/bench cost``.

    scripts/bench cost [COUNT]         1,000 requests of /bin/true, one submission each, on 2 PEs

The daemon, its spawner and its shepherds run with clocks in them (`cost_probe`), which cost something
themselves: the parts tell where the time goes, rates are those of ``scripts/bench jobs``.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from bench_tools import Line, Site, item, wait_for

PROBE = Path(__file__).with_name("cost_probe.py")
Parts = list[tuple[str, str, float]]


class Measured(Site):
    """A site whose daemon has clocks in it; ``out``: file of their results."""

    def start(self) -> None:
        """Start the daemon with clocks, in place of ``nqsd start``."""
        self.out = self.folder / "clocks"
        words = [sys.executable, str(PROBE), "daemon", str(self.out), "run"]
        self.log = open(self.folder / "log", "w")  # noqa: SIM115 - until the site is closed
        self.process = subprocess.Popen(words, env=self.env, stdout=self.log, stderr=self.log)
        wait_for((self.home / "nqsd.sock").exists)

    def tell(self) -> list[dict[str, object]]:
        """Stop the daemon; return the results of each process."""
        self.run("nqsd", "stop")
        self.process.wait(60)
        self.log.close()
        return [json.loads(line) for line in self.out.read_text().splitlines()]


def measure(count: int) -> Parts:
    """Return CPU ms for one request by process and part."""
    here = Measured()
    try:
        line, message = Line(here.home), item("/bin/true\n", here.folder)
        before = _cpu(here.process.pid)
        for number in range(count):
            line.call({"cmd": "submit", "key": f"cost{number}", "items": [message]})
        wait_for(lambda: not line.call({"cmd": "status"})["result"]["requests"], pause=0.1)
        whole = _cpu(here.process.pid) - before
        decider = sum(_cpu(pid) for pid in _children(here.process.pid) if b"spawner" not in _command(pid))
        told = here.tell()
    finally:
        here.close()
    return _parts(told, whole, decider, count)


def _parts(told: list[dict[str, object]], whole: float, decider: float, count: int) -> Parts:
    each = {kind: [one for one in told if one["kind"] == kind] for kind in ("daemon", "spawner", "shepherd")}
    found: Parts = []
    spent = _sum(each["daemon"])
    found += [("daemon", part, ns / 1e6 / count) for part, ns in spent.most_common()]
    found.append(("daemon", "threads, interpreter", whole * 1e3 / count - sum(row[2] for row in found)))
    found.append(("decider", "passes in their own process (its start too)", decider * 1e3 / count))
    spent, all_spawner = _sum(each["spawner"]), sum(float(str(one["whole"])) for one in each["spawner"])
    found += [("spawner", part, ns / 1e6 / count) for part, ns in spent.most_common()]
    found.append(("spawner", "the rest (its start too)", (all_spawner - sum(spent.values())) / 1e6 / count))
    spent = _sum(each["shepherd"])
    inner = sum(float(str(one["whole"])) for one in each["shepherd"])
    jobs = sum(float(str(one["children"])) for one in each["shepherd"])
    outer = sum(float(str(one["children"])) for one in each["spawner"])
    found += [("shepherd", part, ns / 1e6 / count) for part, ns in spent.most_common()]
    found.append(("shepherd", "watching, interpreter, pages", (inner - sum(spent.values())) / 1e6 / count))
    found.append(("shepherd", "its end", max(0.0, outer - inner - jobs) / 1e6 / count))
    found.append(("job", "sh and /bin/true", jobs / 1e6 / count))
    return found


def _sum(told: list[dict[str, object]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in told:
        parts = one["parts"]
        assert isinstance(parts, dict)
        total.update(parts)
    return total


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process, all its threads."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
    return total / 1e9


def _children(pid: int) -> list[int]:
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        found += Path(f"/proc/{pid}/task/{task}/children").read_text().split()
    return [int(each) for each in found]


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def table(parts: Parts) -> str:
    """Return the table as the manual shows it."""
    whole = sum(ms for _, _, ms in parts)
    lines = ["| process | part | ms a request | of all |", "| --- | --- | --- | --- |"]
    for process in dict.fromkeys(row[0] for row in parts):
        mine = [row for row in parts if row[0] == process]
        total = sum(ms for _, _, ms in mine)
        lines.append(f"| **{process}** | | **{total:.2f}** | **{total / whole:.0%}** |")
        lines += [f"| | {part} | {ms:.2f} | {ms / whole:.0%} |" for _, part, ms in mine if len(mine) > 1]
    return "\n".join([*lines, f"| **all** | | **{whole:.2f}** | |"])


def main(words: list[str]) -> int:
    """Print the table; return the exit status."""
    print(table(measure(int(words[0]) if words else 1000)))
    return 0
