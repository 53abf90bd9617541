"""Measures how long each fault of an exit delays the next pass, compared with an ordinary pass through the
decider."""

import statistics
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from bench_tools import Figure, Line, Site, figure, item, site, wait_for

ROOT = Path(__file__).resolve().parents[1]
WILD = ROOT / "tests" / "data" / "wild.py"

FAULTS = {
    "loop": "endless loop in Python",
    "stubborn": "a loop that catches everything",
    "catastrophe": "re.match('(a+)+$', ...)",
    "total": "sum(range(10**12))",
    "arrays": "one numpy call of minutes",
    "sorting": "numpy sorts without end",
    "sleep": "sleep that catches everything",
    "deaf": "sleep with SIGALRM blocked",
    "deep": "recursion without end",
    "huge": "10 GB at once",
    "hoard": "64 MB again and again",
    "leave": "os._exit",
    "crash": "segmentation fault",
    "system_exit": "sys.exit",
    "threads": "threads left behind",
    "printing": "1,000 lines printed",
    "patch": "nqspy itself changed",
    "forge": "a forged plan",
    "nonsense": "an answer of the wrong type",
    "signal_parent": "kill -9 of the daemon tried",
}


def bench_decider() -> Iterator[Figure]:
    """Yield a figure for each fault."""
    with site() as here:
        (here.home / "exits" / "wild.py").write_text(WILD.read_text())
        here.run("qmgr", "-c", "set machine pes=4", "-c", "reload exits")
        line = Line(here.home)
        ordinary = statistics.median(_delay(here, line, "plain") for _ in range(15))
        name = "ms of an ordinary pass in the child"
        yield figure("ordinary pass in the child", ordinary, "ms", None, "", "<= 20", ordinary <= 20)
        for fault, words in FAULTS.items():
            before = _losses(line)
            took = _delay(here, line, fault)
            note = "process begun anew" if _losses(line) > before else "same process"
            _calm(here, line)
            yield figure(words, took, "ms", ordinary, name, "<= 5000", took <= 5000, note)


def _losses(line: Line) -> int:
    """Return the number of exits' processes that the daemon has lost since its start."""
    text = str(line.call({"cmd": "status"})["result"]["decider"])
    return int(text.partition("lost ")[2].split()[0]) if "lost " in text else 0


def _delay(here: Site, line: Line, fault: str) -> float:
    """Return the ms from a submission to its start, right behind a request that causes the fault."""
    if fault != "plain":
        _submit(here, line, fault)
    id = _submit(here, line, "plain")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        at = _instants(line, id)
        if "starting" in at:
            return (at["starting"] - at["submitted"]).total_seconds() * 1000
        time.sleep(0.02)
    raise SystemExit(f"{fault}: the next request never started")


def _submit(here: Site, line: Line, name: str) -> str:
    one = item("true\n", here.folder)
    one["spec"]["name"] = name
    return line.call({"cmd": "submit", "items": [one]})["result"]["ids"][0]


def _instants(line: Line, id: str) -> dict[str, datetime]:
    found: dict[str, datetime] = {}
    after = 0
    while True:
        page = line.call({"cmd": "events", "after": after, "limit": 5000})["result"]
        if not page["events"]:
            return found
        after = page["last"]
        for each in page["events"]:
            if each.get("request") == id:
                found[each["kind"]] = datetime.fromisoformat(each["at"])


def _calm(here: Site, line: Line) -> None:
    """Delete all requests, reload the exits, and wait until no request remains."""
    left = line.call({"cmd": "list_requests"})["result"]
    if left:
        line.call({"cmd": "delete", "ids": [each["id"] for each in left], "kill": True})
    here.run("qmgr", "-c", "reload exits")
    wait_for(lambda: not line.call({"cmd": "list_requests"})["result"])
