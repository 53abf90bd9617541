"""Measures a long list for programs, and what it costs clients that submit meanwhile."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from bench_tools import BIN, Figure, Site, figure, fill, item, site

SUBMITTERS, EVERY = 8, 1.0
WORDS = ["qstat", "-f", "-F", "json", "batch"]
"""Queue for the eight clients' submissions: the list has the same requests in every round."""

_SUBMIT = """
import socket, sys, time
home, head, who, end = sys.argv[1], sys.argv[2], sys.argv[3], time.perf_counter() + float(sys.argv[4])
s = socket.socket(socket.AF_UNIX); s.connect(home + "/nqsd.sock")
n = 0
while time.perf_counter() < end:
    s.sendall((head[:-1] + ',"key":"%s-%d"}\\n' % (who, n)).encode())
    assert b'"ok":true' in s.recv(65536)
    n += 1
print(n)
"""


def bench_list(count: int, rounds: int, seconds: float) -> Iterator[Figure]:
    """Yield the time of ``qstat -f -F json`` of many requests; then its cost once a second while eight
    clients submit, in turn with rounds without it."""
    with site() as here:
        here.run(
            "qmgr", "-c", "stop queue batch", "-c", "create batch_queue other", "-c", "enable queue other"
        )
        fill(here.home, here.folder, count)
        alone = [_asked(here) for _ in range(rounds + 2)][2:]
        floor = _encoding(here.run(*WORDS))
        took = statistics.median(alone)
        name = f"{' '.join(WORDS)}, {count} requests"
        yield figure(name, took, "s", floor, "json.dumps of the same", "< 1 s", took < 1)
        quiet, asked, times = [], [], list[float]()
        for number in range(rounds):
            quiet.append(_rate(here, f"q{number}", seconds, None))
            asked.append(_rate(here, f"a{number}", seconds, times))
        took = statistics.median(times)
        name = "the same while 8 submit"
        yield figure(name, took, "s", floor, "json.dumps of the same", "< 1 s", took < 1)
        ours, before = statistics.median(asked), statistics.median(quiet)
        name, note = "the same while no one asks", "one list a second"
        met = ours >= 0.8 * before
        yield figure("durable submits meanwhile", ours, "/s", before, name, ">= 0.8 x", met, note)


def _asked(here: Site) -> float:
    """Return the seconds of one list, from the command's start to its end."""
    began = time.perf_counter()
    subprocess.run([str(BIN / WORDS[0]), *WORDS[1:]], env=here.env, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def _encoding(text: str) -> float:
    document = json.loads(text)
    began = time.perf_counter()
    json.dumps(document)
    return time.perf_counter() - began


def _rate(here: Site, who: str, seconds: float, times: list[float] | None) -> float:
    """Return the submissions a second of all clients in ``seconds``; with ``times``, lists are asked for
    meanwhile, and the seconds of each are appended to it."""
    message = json.dumps(
        {"v": 1, "id": 1, "cmd": "submit", "text": "id", "items": [item("/bin/true\n", here.folder, "other")]}
    )
    words = [sys.executable, "-I", "-S", "-c", _SUBMIT, str(here.home), message]
    clients = [
        subprocess.Popen([*words, f"{who}-{n}", str(seconds)], stdout=subprocess.PIPE, text=True)
        for n in range(SUBMITTERS)
    ]
    end = time.perf_counter() + seconds
    while times is not None and time.perf_counter() < end:
        times.append(_asked(here))
        time.sleep(max(0.0, min(EVERY - times[-1], end - time.perf_counter())))
    return sum(int(each.communicate()[0]) for each in clients) / seconds
