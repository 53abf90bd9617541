"""Measures turns in slots: two requests of 100 processes each share all PEs. Figures: how long after the
beginning of a slot the former gang has stopped and the next one runs, and how evenly both are served."""

import array
import math
import mmap
import time
from collections.abc import Iterator

from bench_tools import Figure, figure, site, wait_for

PROCESSES, SLOT, PES = 100, 1.0, 8
ROWS = 256
"""Slots of a run at most; a gang has two numbers a process for each: when it first and last ran in it."""
EVEN = 0.03
GANG = f"""#!/usr/bin/env python3
import mmap, os, sys, time
if sys.argv[1:]:
    with open(sys.argv[1], "r+b") as file:
        seen = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
    number = next(n for n in range({PROCESSES} - 1) if n == {PROCESSES} - 2 or os.fork() == 0)
    while True:
        now = time.monotonic()
        place = (int(now / {SLOT}) % {ROWS} * {PROCESSES} + number) * 2
        if not seen[place]:
            seen[place] = now
        seen[place + 1] = now
        time.sleep(0.001)
"""


def bench_rotation(seconds: float) -> Iterator[Figure]:
    """Yield the times of a change of slots, and the difference of both gangs' time, over some seconds."""
    with site() as here:
        here.set(f"set machine pes={PES}")
        here.set(f"set domain application depth=2 heartbeat={SLOT:g} placement=slots")
        program = here.folder / "gang.py"
        program.write_text(GANG)
        tables = []
        for name in ("one", "two"):
            path = here.folder / name
            path.write_bytes(bytes(ROWS * PROCESSES * 16))
            script = here.folder / f"{name}.sh"
            script.write_text(f"exec python3 {program} {path}\n")
            here.run("qsub", "-l", f"pes={PES}", str(script))
            with path.open("r+b") as file:
                tables.append(memoryview(mmap.mmap(file.fileno(), 0)).cast("d"))
        wait_for(lambda: all(any(table) for table in tables))
        began = math.ceil(time.monotonic() / SLOT) + 2
        time.sleep(max(0.0, (began + int(seconds / SLOT)) * SLOT - time.monotonic()))
        ended = int(time.monotonic() / SLOT) - 1
        stops, begins, ran = [], [], [0.0, 0.0]
        for slot in range(began, ended):
            for gang, table in enumerate(tables):
                place = slot % ROWS * PROCESSES * 2
                row = array.array("d", table[place : place + 2 * PROCESSES])
                first, last = min(filter(None, row), default=0.0) - slot * SLOT, max(row) - slot * SLOT
                if last > SLOT / 2:
                    begins.append(first)
                    ran[gang] += last - first
                elif last > 0:
                    stops.append(last)
        for name, values in (("the former gang has stopped", stops), ("the next one runs", begins)):
            values.sort()
            middle = values[len(values) // 2] * 1000 if values else 0.0
            most = f"at most {values[-1] * 1000:.1f} ms of {len(values)}" if values else "never seen"
            yield figure(f"a slot of {SLOT:g} s, until {name}", middle, "ms", None, "", "shown", None,
                         f"2 x {PROCESSES} processes, {most}")  # fmt: skip
        uneven = abs(ran[0] - ran[1]) / max(ran)
        yield figure("... difference of the time of two equal gangs", 100 * uneven, "%", None, "",
                     f"<= {100 * EVEN:g} %", uneven <= EVEN, f"{ended - began} slots")  # fmt: skip
