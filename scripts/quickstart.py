"""The main job on real input: five departments' lists through an unattended night, told from the journal
afterwards.

A daemon is started in a temporary home at 20:55 of an accelerated clock (360 times as fast) on 2 PEs; five
lists of real
work are submitted; at 21:00 the night shift starts them; after 06:00 and after the last request the night
is told.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from nqspy import Client

CLOCK = "2026-03-02T20:55:00+01:00 x360"
PES = 2
NIGHT = 9 * 3600 / 360
"""Real seconds between 21:00 and 06:00."""
SLACK = 1.03
"""Nights of work in the lists: a little more than one, so that the night ends full."""
DEPARTMENTS = {"d1": (30, 38), "d2": (25, 31), "d3": (20, 25), "d4": (15, 19), "d5": (10, 12)}
"""Departments with (share, requests): 125 requests in all."""
ENOUGH = 0.8
"""Least fraction of the CPU time wanted by processes that the machine must have given, for the night's
figures to mean anything: the lists fill it to the last minute."""
OTHER = "set sched_factor share 0"
"""Changes with which the night is replayed: no share counts, the lists are taken in the order of
submission."""
KINDS = ("compress", "sort", "matrix", "integrate", "chain")

WORK = '''\
"""One request's work: KIND AMOUNT FOLDER NUMBER. Reads a file, computes, writes a file."""
import hashlib, lzma, math, os, subprocess, sys
import random
kind, amount, folder, number = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
os.makedirs(folder, exist_ok=True)
source, target = os.path.join(os.path.dirname(folder), "input.txt"), os.path.join(folder, f"{kind}.{number}")
text = open(source, "rb").read()
if kind == "compress":
    packer = lzma.LZMACompressor(preset=2)
    with open(target, "wb") as out:
        for n in range(amount):
            piece = text[n * 997 % 500000:][:20000] + b"%d" % n
            out.write(packer.compress(piece))
        out.write(packer.flush())
elif kind == "sort":
    lines = text.split(b"\\n")
    rng = random.Random(number)
    with open(target + ".in", "wb") as out:
        for _ in range(amount * 25):
            out.write(b"%08x %s\\n" % (rng.getrandbits(32), rng.choice(lines)))
    words = ["sort", "--parallel=1", "-S", "32M", "-o", target, target + ".in"]
    subprocess.run(words, check=True, env={"LC_ALL": "C"})
elif kind == "matrix":
    import numpy as np
    a = np.frombuffer(text[:240 * 240], np.uint8).reshape(240, 240).astype(float) / 255
    b = a
    for _ in range(amount):
        b = a @ b
        b /= np.abs(b).max()
    np.savetxt(target, b[:8, :8])
elif kind == "integrate":
    steps = amount * 100
    total = sum(math.sin(x / steps) * math.exp(-x / steps) for x in range(steps)) / steps
    with open(target, "w") as out:
        out.write(f"{total!r}\\n")
else:
    before = os.path.join(folder, f"chain.{number - 1}")
    if number:
        with open(before) as earlier:  # the step before must have ended: the dependency exit sees to it
            state = bytes.fromhex(earlier.read())
    else:
        state = hashlib.sha256(text).digest()
    for _ in range(amount * 100):
        state = hashlib.sha256(state).digest()
    with open(target, "w") as out:
        out.write(state.hex())
'''


def main() -> int:
    """Run the night; return 0 if every request ended 0 and every order was kept."""
    parser = argparse.ArgumentParser(prog="scripts/quickstart", description=__doc__.split("\n")[0])
    parser.add_argument("--keep", action="store_true", help="leave the daemon running and the home in place")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    night = Night(Path(tempfile.mkdtemp(prefix="nqspy-night-")), options.keep)
    try:
        night.prepare()
        night.submit()
        night.watch()
        return night.tell()
    except BaseException:
        night.stop()
        raise


class Night:
    """One night in one temporary folder: ``home`` of the daemon, ``work`` of the departments."""

    def __init__(self, folder: Path, keep: bool) -> None:
        self.keep = keep
        self.folder, self.home, self.work = folder, folder / "home", folder / "work"
        self.bin = Path(sys.executable).parent
        self.console = Console(highlight=False)
        self.env = os.environ | {
            "NQSPY_HOME": str(self.home),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.total = sum(count for _, count in DEPARTMENTS.values())
        self.wanted = self.given = 0.0

    def run(self, *words: str, check: bool = True) -> str:
        """Run one of our commands; return its output. Ends the night when it fails."""
        done = subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise SystemExit(f"{' '.join(words)} ended {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    # ------------------------------------------------------------ before nine

    def prepare(self) -> None:
        """Fill the home with the shipped site, calibrate the work, write the lists, start the daemon."""
        self.run("nqsd", "init", "--home", str(self.home), "--site", "day-night")
        (self.home / "queues.d" / "30-groups.qmgr").unlink()
        (self.home / "queues.d" / "90-quickstart.qmgr").write_text(_site())
        for name in DEPARTMENTS:
            (self.work / name).mkdir(parents=True)
        line = "the night shift runs unattended %d\n"
        (self.work / "input.txt").write_text("".join(line % (n * 7919 % 10007) for n in range(20_000)))
        (self.work / "work.py").write_text(WORK)
        speeds = self._calibrate()
        for name in DEPARTMENTS:
            (self.work / f"{name}.list").write_text("".join(self._lines(name, speeds)))
        self.run("nqsd", "start", "--home", str(self.home), "--clock", CLOCK)

    def _calibrate(self) -> dict[str, float]:
        """Return the units of work a second for each kind, with all PEs at work: each kind is tried on a
        small amount."""
        self.console.print("calibrating five kinds of work to this machine")
        speeds = {kind: self._speed(kind) for kind in KINDS}
        part = self.given / self.wanted
        if part < ENOUGH:
            self.console.print(too_busy(f"{PES} processes at a time got {part:.0%} of {PES} CPUs"))
        return speeds

    def _speed(self, kind: str) -> float:
        small, large = (self._cpu(kind, amount) for amount in (40, 400))
        if large - small > 0.25:
            return 360 / (large - small)
        return 3600 / (self._cpu(kind, 4000) - small)

    def _cpu(self, kind: str, amount: int) -> float:
        """Return the CPU seconds of one piece of work while another one runs beside it."""
        words = [sys.executable, str(self.work / "work.py"), kind, str(amount)]
        began = time.monotonic()
        running = [
            subprocess.Popen([*words, str(self.work / f"try{n}"), "0"], env=self.env) for n in range(PES)
        ]
        ends = [os.wait4(each.pid, 0) for each in running]
        for each in running:
            each.returncode = 0
        used = sum(use.ru_utime + use.ru_stime for _, _, use in ends)
        self.wanted += PES * (time.monotonic() - began)
        self.given += used
        return used / PES

    def _lines(self, name: str, speeds: dict[str, float]) -> Iterator[str]:
        """Yield the lines of a department's ordered list: kinds in turn, the steps of its chain with one job
        name."""
        share, count = DEPARTMENTS[name]
        each = NIGHT * PES * SLACK * share / 100 / count
        script = self.work / "request.sh"
        if not script.exists():
            script.write_text(
                f'#QSUB -lM 24mw -s /bin/sh\nexec "{sys.executable}" "{self.work}/work.py" "$@"\n'
            )
        steps = 0
        for n in range(count):
            kind = KINDS[n % len(KINDS)]
            length = each * (0.7 + 0.6 * ((n * 37) % 100) / 100)
            amount = max(1, round(length * speeds[kind]))
            number, word = (steps, "chain") if kind == "chain" else (n, f"{kind}{n}")
            steps += kind == "chain"
            folder = self.work / name
            where = f"-q night -A {name} -r {word} -x -o {folder}/ -e {folder}/"
            yield f"{where} {script} {kind} {amount} {folder} {number}\n"

    def submit(self) -> None:
        """Submit the five lists, as the operators do between five and nine."""
        for name in DEPARTMENTS:
            ids = self.run("qsub", "--list", str(self.work / f"{name}.list")).split()
            self.console.print(f"{name}: {len(ids)} requests, {ids[0]} to {ids[-1]}")

    # ------------------------------------------------------------ the night

    def watch(self) -> None:
        """Show progress until it is past 06:00 on the night's clock and no request remains."""
        done = TextColumn("{task.completed}/{task.total} requests")
        bar = Progress(TextColumn("{task.description}"), BarColumn(), done,
                       TimeElapsedColumn(), console=self.console)  # fmt: skip
        with bar:
            task = bar.add_task("night", total=self.total)
            client = Client(self.home)
            limit = time.monotonic() + 6 * NIGHT
            while time.monotonic() < limit:
                status = client.call("status")
                bar.update(task, completed=self.total - status["requests"], description=status["clock"][:16])
                if not status["requests"] and status["clock"] >= "2026-03-03T06:00":
                    return
                time.sleep(1)
        self.console.print("the night did not end in time")

    # ------------------------------------------------------------ the morning

    def tell(self) -> int:
        """Print counters, shares, busy processors, places of outputs, and the last line; return the exit
        status."""
        report = json.loads(self.run("nqspy", "report", "night", "--json"))
        print(self.run("nqspy", "counters"))
        print(self.run("nqspy", "report", "night"))
        held, used = report["busy"], report["cpu_busy"]
        if held and used < ENOUGH * held:
            print(too_busy(f"requests held {held:.0%} of the processors and got {used:.0%}"))
        print(f"the same night once more, and with other factors: nqspy replay -c '{OTHER}'")
        print(self.run("nqspy", "replay", "--brief", "-c", OTHER))
        print(f"outputs: {self.work}/d1 ... d5; lists, home and log: {self.folder}")
        self.finish(report["line"])
        wrong = report["ended_ok"] != self.total or not report["order_kept"]
        return 1 if wrong else 0

    def finish(self, line: str) -> None:
        """Stop the daemon unless the options keep it running; print ``line``, the night's last one."""
        if self.keep:
            print(f"the daemon goes on: NQSPY_HOME={self.home}")
        else:
            self.stop()
        print(line)

    def stop(self) -> None:
        """Stop the daemon; running requests are queued again."""
        self.run("nqsd", "stop", "--home", str(self.home), "--requeue", check=False)


def too_busy(what: str) -> str:
    """Return the text of an error: other work on the machine takes the time that an accelerated clock
    needs."""
    return (
        f"this machine is too busy for the clock: {what}. A night of {NIGHT:.0f} s needs them whole: its "
        "figures say little, and requests may pass their limits. Try again when it is quiet."
    )


def _site() -> str:
    groups = "".join(f"create group {name} share={share}\n" for name, (share, _) in DEPARTMENTS.items())
    return f"""\
set timezone Europe/Paris
set machine pes={PES}
{groups}set exit large_memory nproc={PES} hmax=115mw
"""


if __name__ == "__main__":
    sys.exit(main())
