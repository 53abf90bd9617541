"""``qsub -l NAME=VALUE,...``: named resources of NQS and PBS (pbs-clients.md 5) as what a request asks."""

from nqspy.cli.values import Wrong, parse_count, parse_number, parse_size, parse_time
from nqspy.cli.words import split_list
from nqspy.model.resource_names import GPUS, taken

LIMITS = {
    "walltime": ("wall", parse_time),
    "cput": ("cpu", parse_time),
    "pcput": ("cpu_process", parse_time),
    "mem": ("memory", parse_size),
    "vmem": ("memory", parse_size),
    "pmem": ("memory_process", parse_size),
    "pvmem": ("memory_process", parse_size),
    "ncpus": ("pes", parse_count),
    "procs": ("pes", parse_count),
    "pes": ("pes", parse_count),
    "mpp_p": ("pes", parse_count),
    "mpp_t": ("wall", parse_time),
    "p_mpp_t": ("cpu_process", parse_time),
    "nproc": ("per_request/process_limit", parse_count),
    "file": ("per_process/permfile_limit", parse_size),
}
"""Resource -> (what is asked, how its value is read). PEs are dedicated to a request, so MPP time is wall
time."""

_IN_CHUNK = ("ppn", "ncpus", "procs", "mpiprocs", "ompthreads", "mem", "host", "vnode", "arch", *GPUS)


DROPPED = ("host", "vnode", "arch", "property")
"""What a chunk may ask for and no site gives: kept as attributes of the request."""


def read_resources(text: str) -> tuple[list[tuple[str, int]], list[str], list[str]]:
    """What is asked as (target, value) in order, notes for the request's attributes, and what it needs.
    Raises Wrong."""
    asked: list[tuple[str, int]] = []
    notes: list[str] = []
    needs: list[str] = []
    last = ""
    for piece in split_list(text):
        name, equals, value = piece.strip().partition("=")
        if not equals and last in LIMITS and piece.strip():
            notes.append(f"warning:{last}:{LIMITS[last][1](name)}")
            continue
        if not equals and last == "needs":
            needs += _needs(name)
            continue
        last = name
        if not equals or not value:
            raise Wrong(f"{piece.strip()!r} is no resource; write it like walltime=1:00:00,mem=600mb")
        if name == "needs":
            needs += _needs(value)
        else:
            _one(name, value, asked, notes)
    return asked, notes, needs


def _needs(text: str) -> list[str]:
    """The names of ``nfs+licence`` and ``(nfs, licence)``."""
    names = [name.strip() for name in text.strip("() ").replace("+", ",").split(",")]
    if not all(name and "(" not in name and ")" not in name for name in names):
        raise Wrong(f"{text!r} names no probes; write it like needs=nfs+licence")
    return names


def _one(name: str, value: str, asked: list[tuple[str, int]], notes: list[str]) -> None:
    if name in LIMITS:
        target, read = LIMITS[name]
        asked.append((target, _least(name, read(value))))
    elif name == "nice":
        asked.append(("nice", parse_number(value, 0, 19)))
    elif name in ("nodes", "select"):
        asked += _chunks(value, notes)
    elif name in ("place", "software", *DROPPED[:-1]):
        if value != "0":
            notes.append(f"{name}:{value}")
    elif value.isascii() and value.isdigit() and not taken(name):
        asked.append(units_of(name, value))
    else:
        known = " ".join([*LIMITS, "nice", "nodes", "select", "needs"])
        raise Wrong(f"unknown resource {name}; known are {known}, and the site's consumables by number")


UNITS = "consumables/"
"""What the target of a consumable begins with, which is asked for by the unit."""


def units_of(name: str, value: str) -> tuple[str, int]:
    """So many units of a consumable, as it is asked for; the daemon knows which there are. Raises Wrong."""
    return UNITS + name, parse_count(value)


def _least(name: str, value: int) -> int:
    if LIMITS[name][0] == "pes" and value < 1:
        raise Wrong(f"{name} must be at least 1")
    if name == "nproc" and value in (0, 1):
        raise Wrong(f"nproc must be at least 2: the shell of a request and what it runs, not {value}")
    return value


def _chunks(text: str, notes: list[str]) -> list[tuple[str, int]]:
    """PEs, memory and GPUs of ``select=2:ncpus=4:mem=1gb+1`` and ``nodes=2:ppn=4``: the sum over the chunks.
    What is not given out here is noted."""
    pes, memory, units = 0, 0, dict[str, int]()
    for chunk in text.split("+"):
        items = chunk.split(":")
        number = parse_count(items.pop(0)) if items[0].isdigit() else 1
        each = 1
        for item in items:
            name, equals, value = item.partition("=")
            if equals and name not in _IN_CHUNK:
                raise Wrong(f"unknown resource {name} in {chunk!r}")
            if name in ("ppn", "ncpus", "procs"):
                each = parse_count(value)
            elif name == "mem":
                memory += number * parse_size(value)
            elif name in GPUS:
                units[name] = units.get(name, 0) + number * parse_count(value)
            elif not equals and item:
                notes.append(f"property:{item}")
            elif name in DROPPED and value != "0":
                notes.append(f"{name}:{value}")
        pes += number * each
    if pes < 1:
        raise Wrong(f"{text!r} asks for no PE")
    found = [("pes", pes), ("memory", memory)] if memory else [("pes", pes)]
    return found + [(UNITS + name, count) for name, count in units.items()]
