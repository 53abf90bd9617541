"""FCFS by AccaSim, for `scripts/bench sim --accasim PYTHON`: run by a Python that has accasim installed.

    PYTHON scripts/accasim_peer.py LOG.swf NODES CORES

Prints the seconds of CPU time that it took, and how many jobs it started, on so many nodes of so many cores.
"""

import collections
import collections.abc
import json
import os
import sys
import tempfile
import time
from pathlib import Path


def main(log: str, nodes: int, cores: int) -> None:
    """One run, in a folder of its own."""
    for name in ("Mapping", "Iterable"):  # it was written for Python 3.6
        setattr(collections, name, getattr(collections.abc, name))
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import FirstInFirstOut
    from accasim.base.simulator_class import Simulator

    work = Path(tempfile.mkdtemp(prefix="nqspy-bench-"))
    own = work / "log.swf"  # it sorts its log in place
    own.write_text(Path(log).read_text())
    os.chdir(work)
    Path("machine.json").write_text(
        json.dumps({"groups": {"node": {"core": cores}}, "resources": {"node": nodes}})
    )
    began = time.process_time()
    simulator = Simulator(
        str(own), "machine.json", FirstInFirstOut(FirstFit()), scheduling_output=True,
        statistics_output=False, show_statistics=False, RESULTS_FOLDER_PATH=str(work / "results"),
    )  # fmt: skip
    simulator.start_simulation()
    took = time.process_time() - began
    jobs = sum(1 for line in (work / "results" / "sched-log.swf").open() if line.strip())
    print(json.dumps({"seconds": took, "jobs": jobs}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
