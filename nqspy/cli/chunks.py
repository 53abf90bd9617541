"""How PEs are laid out by PBS's words: ``select=2:ncpus=4:mpiprocs=2``, ``nodes=2:ppn=4``, ``place=``
(pbs-clients.md 5). Only loaded when one of them is given."""

from nqspy.cli.resources import Listed, Resources, blamed, consumable, note
from nqspy.model.amounts import Wrong, parse_count, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NOTED = ("host", "vnode", "arch")
_PLACES = ("free", "pack", "scatter", "vscatter")
_SHARING = ("excl", "shared", "exclhost")
_MOST = 10**9


class Chunk:
    """One chunk of a list: how many times, and what each has. ``ranks``: MPI processes."""

    def __init__(self) -> None:
        self.count = 1
        self.cpus = 1
        self.ranks: int | None = None
        self.threads: int | None = None
        self.memory = 0


def lay_out(listed: dict[str, Listed], found: Resources) -> None:
    """Adds what these words ask for, and the layout of the request. Raises WrongResource."""
    for name, read in _READERS.items():
        if name not in listed:
            continue
        try:
            read(listed[name], found)
        except Wrong as error:
            raise blamed(error, listed[name]) from None


def _add(each: Listed, chunks: list[Chunk], found: Resources) -> None:
    """The sums over the chunks. A job-wide ``mem`` or greater ``ncpus`` beside ``nodes`` counts."""
    pes = sum(chunk.count * chunk.cpus for chunk in chunks)
    if not 1 <= pes <= _MOST:
        raise Wrong(f"{each.text!r} asks for {'no PE' if pes < 1 else f'{pes} PEs'}")
    memory = sum(chunk.count * chunk.memory for chunk in chunks)
    found.asked["pes"] = max(pes, found.asked.get("pes", 0))
    if memory:
        found.asked.setdefault("memory", memory)
    first = chunks[0]
    found.layout |= {
        "text": f"{each.name}={each.text}",
        "chunks": sum(chunk.count for chunk in chunks),
        "ranks": sum(chunk.count * _ranks(chunk) for chunk in chunks),
        "cpus": first.cpus,
    }
    if first.threads is not None:
        found.layout["threads"] = first.threads


def _ranks(chunk: Chunk) -> int:
    if chunk.ranks is not None:
        return chunk.ranks
    return 1 if chunk.cpus else 0


def _select(each: Listed, found: Resources) -> None:
    """``[N:]name=value[:name=value...]`` joined by plus signs; without ``ncpus`` 1."""
    _add(each, [_chunk(each, text, found) for text in each.text.split("+")], found)


def _begun(text: str) -> tuple[Chunk, list[str]]:
    """A chunk with its count, and the items that say what each has."""
    chunk, items = Chunk(), text.split(":")
    if items[0].isdigit():
        chunk.count = _at_least(1, items.pop(0))
    return chunk, items


def _chunk(each: Listed, text: str, found: Resources) -> Chunk:
    chunk, items = _begun(text)
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not value:
            raise Wrong(f"{item!r} is no part of a chunk; write it like select=2:ncpus=4:mem=1gb")
        _item(each, chunk, name, value, found)
    return chunk


def _item(each: Listed, chunk: Chunk, name: str, value: str, found: Resources) -> None:
    if name == "ncpus":
        chunk.cpus = _at_least(0, value)
    elif name == "mpiprocs":
        chunk.ranks = _at_least(0, value)
    elif name == "ompthreads":
        chunk.threads = _at_least(1, value)
    elif name in ("mem", "vmem"):
        chunk.memory = _amount(value)
    elif name in _NOTED:
        note(each, name, value, found)
    else:
        consumable(each, name, value, found, chunk.count)


def _nodes(each: Listed, found: Resources) -> None:
    """``N[:ppn=P][:property...]`` or a host's name, joined by plus signs: P ranks with a CPU each."""
    _add(each, [_node(each, text, found) for text in each.text.split("+")], found)


def _node(each: Listed, text: str, found: Resources) -> Chunk:
    chunk, items = _begun(text)
    for item in items:
        name, equals, value = item.partition("=")
        if not item or (equals and not value):
            raise Wrong(f"{text!r} is no list of nodes; write it like nodes=2:ppn=4")
        if not equals:
            note(each, "property", item, found)
        elif name in ("ppn", "ncpus", "procs"):
            chunk.cpus = _at_least(1, value)
        else:
            _item(each, chunk, name, value, found)
    chunk.ranks = chunk.cpus if chunk.ranks is None else chunk.ranks
    return chunk


def _place(each: Listed, found: Resources) -> None:
    """``free|pack|scatter|vscatter[:excl|shared|exclhost][:group=NAME]``: kept, for there is one host."""
    for item in each.text.split(":"):
        if item not in (*_PLACES, *_SHARING) and not (item.startswith("group=") and item[6:]):
            raise Wrong(f"{item!r} is none of {', '.join((*_PLACES, *_SHARING))}, group=NAME")
    found.layout["place"] = each.text


def _number(each: Listed, found: Resources) -> None:
    """``procs=``, ``mpiprocs=``, ``ompthreads=`` for the whole request."""
    found.layout["threads" if each.name == "ompthreads" else "ranks"] = _at_least(1, each.text)


def _amount(text: str) -> int:
    amount = parse_size(text)
    if amount < 0:
        raise Wrong(f"{text!r} is no amount for a chunk; write it like mem=1gb")
    return amount


def _at_least(least: int, text: str) -> int:
    number = parse_count(text)
    if not least <= number <= _MOST:
        raise Wrong(f"{text!r} is not a number from {least} to {_MOST}")
    return number


_READERS: "dict[str, Callable[[Listed, Resources], None]]" = {
    "select": _select, "nodes": _nodes, "procs": _number, "mpiprocs": _number, "ompthreads": _number,
    "place": _place,
}  # fmt: skip
