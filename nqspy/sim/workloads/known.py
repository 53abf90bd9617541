"""Workloads by name: a generator's name, or a file by its ending. To add one is a file here and a line
below."""

from collections.abc import Callable, Mapping
from pathlib import Path

from nqspy.sim.workloads.jobs import MOST_PES, BadWorkload, Workload
from nqspy.sim.workloads.lublin import lublin
from nqspy.sim.workloads.night import night
from nqspy.sim.workloads.psched import psched
from nqspy.sim.workloads.recorded import open_recorded
from nqspy.sim.workloads.swf import open_swf
from nqspy.sim.workloads.t3d import t3d
from nqspy.sim.workloads.wanted import Wanted

GENERATORS: Mapping[str, Callable[[Wanted], Workload]] = {
    "lublin": lublin,
    "night": night,
    "psched": psched,
    "t3d": t3d,
}
"""What is invented, by name."""

FILES: Mapping[str, Callable[[Path, Wanted], Workload]] = {
    ".swf": lambda path, wanted: open_swf(path, wanted.pes, wanted.memory),
    ".csv": open_recorded,
}
"""Who reads a file, by its ending (without .gz)."""


def open_workload(word: str, wanted: Wanted) -> Workload:
    """The generator of that name, else the file. Raises BadWorkload."""
    found = _opened(word, wanted)
    if found.pes > MOST_PES:
        raise BadWorkload(f"{found.name}: a machine has at most {MOST_PES} PEs, not {found.pes}: say --pes N")
    return found


def _opened(word: str, wanted: Wanted) -> Workload:
    if word in GENERATORS:
        return GENERATORS[word](wanted)
    path = Path(word)
    ending = Path(word.removesuffix(".gz")).suffix.lower()
    if ending in FILES:
        if wanted.jobs is not None:
            raise BadWorkload(f"--jobs is of an invented workload: {word} has the jobs that it has")
        return FILES[ending](path, wanted)
    known = ", ".join((*GENERATORS, *(f"FILE{each}" for each in FILES)))
    raise BadWorkload(f"there is no workload {word}; there are {known}")
