"""PBS's layout of PEs: ``select=2:ncpus=4:mpiprocs=2``, ``nodes=2:ppn=4``, ``place=``. Loaded on use."""

from nqspy.cli.resources import LAYOUT, Listed, Resources, blamed, consumable, note
from nqspy.model.amounts import Wrong, parse_number, parse_size

_PLACES = ("free", "pack", "scatter", "vscatter", "excl", "shared", "exclhost")
_MOST = 10**9


class Chunk:
    """Part of ``select`` or ``nodes``: ``count`` times these CPUs, MPI ranks, threads and bytes of memory."""

    def __init__(self) -> None:
        self.count = 1
        self.cpus = 1
        self.ranks: int | None = None
        self.threads: int | None = None
        self.memory = 0


def lay_out(listed: dict[str, Listed], found: Resources) -> None:
    """Add PEs, memory, units and layout for the words of `LAYOUT` to ``found``. Raises WrongResource."""
    for each in [listed[name] for name in LAYOUT if name in listed]:
        try:
            if each.name in ("select", "nodes"):
                _add(each, [_chunk(each, text, found) for text in each.text.split("+")], found)
            elif each.name == "place":  # stored only: there is one host
                for item in each.text.split(":"):
                    if item not in _PLACES and not (item.startswith("group=") and item[6:]):
                        raise Wrong(f"{item!r} must be one of {', '.join(_PLACES)}, group=NAME")
                found.layout["place"] = each.text
            else:
                found.layout["threads" if each.name == "ompthreads" else "ranks"] = _at_least(1, each.text)
        except Wrong as error:
            raise blamed(error, each) from None


def _add(each: Listed, chunks: list[Chunk], found: Resources) -> None:
    """Add the chunks' sums to ``found``; job-wide ``mem``, or greater ``ncpus`` beside ``nodes``, counts
    instead. Raises Wrong."""
    pes = sum(chunk.count * chunk.cpus for chunk in chunks)
    if not 1 <= pes <= _MOST:
        raise Wrong(f"{each.text!r} asks for {pes} PEs; ask for 1 to {_MOST:,}")
    found.asked["pes"] = max(pes, found.asked.get("pes", 0))
    if memory := sum(chunk.count * chunk.memory for chunk in chunks):
        found.asked.setdefault("memory", memory)
    ranks = (chunk.count * (min(chunk.cpus, 1) if chunk.ranks is None else chunk.ranks) for chunk in chunks)
    found.layout |= {
        "text": f"{each.name}={each.text}", "chunks": sum(chunk.count for chunk in chunks),
        "ranks": sum(ranks), "cpus": chunks[0].cpus,
    }  # fmt: skip
    if chunks[0].threads is not None:
        found.layout["threads"] = chunks[0].threads


def _chunk(each: Listed, text: str, found: Resources) -> Chunk:
    """Return the chunk of a part of ``select`` (default: ncpus 1) or ``nodes`` (P ranks, a CPU each, or a
    host)."""
    chunk, items, nodes = Chunk(), text.split(":"), each.name == "nodes"
    if items[0].isdigit():
        chunk.count = _at_least(1, items.pop(0))
    for item in items:
        name, equals, value = item.partition("=")
        if nodes and (not item or (equals and not value)):
            raise Wrong(f"{text!r} is not a list of nodes; write it like nodes=2:ppn=4")
        if not nodes and (not equals or not value):
            raise Wrong(f"{item!r} is not part of a chunk; write it like select=2:ncpus=4:mem=1gb")
        if not equals:
            note(each, "property", item, found)
        elif name in ("ppn", "ncpus", "procs") and nodes:
            chunk.cpus = _at_least(1, value)
        elif name == "ncpus":
            chunk.cpus = _at_least(0, value)
        elif name == "mpiprocs":
            chunk.ranks = _at_least(0, value)
        elif name == "ompthreads":
            chunk.threads = _at_least(1, value)
        elif name in ("mem", "vmem"):
            chunk.memory = parse_size(value)
            if chunk.memory < 0:
                raise Wrong(f"{value!r} is not an amount of memory; write it like mem=1gb")
        elif name in ("host", "vnode", "arch"):
            note(each, name, value, found)
        else:
            consumable(each, name, value, found, chunk.count)
    if nodes and chunk.ranks is None:
        chunk.ranks = chunk.cpus
    return chunk


def _at_least(least: int, text: str) -> int:
    return parse_number(text, least, _MOST)
