"""``qsub -l NAME=VALUE,...``: named resources of NQS and PBS (pbs-clients.md 5), and what they ask for."""

from nqspy.cli.words import split_list
from nqspy.model.amounts import Wrong, late_warning, parse_count, parse_number, parse_size, parse_time
from nqspy.model.options import GPUS, OPTIONS, resource_named

_READ = {"time": parse_time, "size": parse_size, "count": parse_count}
LIMITS = {
    name: (option.path.removeprefix("ask/"), _READ[option.unit])
    for option in OPTIONS
    if option.unit in _READ
    for name in option.resources
}
"""Limits by resource: target, and function that reads a value. MPP time is wall time: PEs are not shared."""

_WITH_WARNING = ("mpp_p", "mpp_t", "p_mpp_t")
"""Resources with NQS's names: behind a comma they have a value to warn at. PBS's have one value."""

LAYOUT = ("select", "nodes", "place", "procs", "mpiprocs", "ompthreads")
"""Resources that describe the layout of the PEs (`chunks`)."""

NOTED = ("software", "filesystems", "host", "vnode", "arch")
"""Resources that are stored as attributes of the request and have no other effect."""

DROPPED = ("host", "vnode", "arch", "filesystems", "property")
"""Resources that a request may name, although no site offers them."""

KNOWN = (*LIMITS, "speedup", "nice", *LAYOUT[:3], "needs")
"""Resources that exist at every site."""

_OF_A_CHUNK = ("nodes", "ncpus", "mem", "vmem", "procs", "ppn", "mpiprocs", "ompthreads", "host", "vnode",
               "arch", "gpus", "ngpus")  # fmt: skip
"""Resources that cannot be used with ``select`` and ``place``: they belong into the chunks."""

UNITS = "consumables/"
"""Prefix of the target of a consumable that has an option of its own."""


class WrongResource(Wrong):
    """A resource's value cannot be read; ``unknown``: True if there is no such resource."""

    def __init__(self, name: str, text: str, unknown: bool = False) -> None:
        super().__init__(text)
        self.name = name
        self.unknown = unknown
        self.by: object = None


def blamed(error: Wrong, each: "Listed") -> WrongResource:
    """Return the error about a resource, with the option that had it."""
    found = error if isinstance(error, WrongResource) else WrongResource(each.name, str(error))
    found.by = each.by
    return found


class Listed:
    """A resource of a list: ``text`` (its value), ``warning`` (value to warn at, or empty), ``whole``: the
    list, ``by``: the option that has it."""

    __slots__ = ("by", "name", "text", "warning", "whole")

    def __init__(self, name: str, text: str, whole: str, by: object = None) -> None:
        self.name, self.text, self.whole, self.by = name, text, whole, by
        self.warning = ""


class Resources:
    """Sum of the listed resources: ``asked`` by target, ``consumables`` by name, ``notes``, ``layout``, the
    ``mold`` of several numbers of PEs, and ``dropped``: those asked for and not provided."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}
        self.consumables: dict[str, int] = {}
        self.notes: list[str] = []
        self.layout: dict[str, object] = {}
        self.mold: dict[str, object] = {}
        self.dropped: list[tuple[Listed, str]] = []


def read_list(text: str, by: object = None) -> list[Listed]:
    """Return the resources of one ``-l``, in order; ``by``: its option. Raises Wrong."""
    found: list[Listed] = []
    for piece in split_list(text):
        name, equals, value = piece.strip().partition("=")
        last = found[-1] if found else None
        if not equals and last is not None and name and last.name in (*_WITH_WARNING, "needs"):
            last.warning = f"{last.warning}+{name}" if last.warning else name
            continue
        if name == "wd" and not equals:
            value = "wd"
        elif not equals or not value:
            behind = f" (behind {last.name}={last.text})" if last is not None else ""
            raise Wrong(f"{piece.strip()!r}{behind} is not a resource; write it like walltime=1:00:00")
        found.append(Listed(name, value.removeprefix("=").strip(), text, by))
    return found


def target(listed: Listed) -> str:
    """Return the target of a resource: the limit that it asks for, else its name; several may share one."""
    return LIMITS[listed.name][0] if listed.name in LIMITS else listed.name


def read_needs(listed: Listed) -> list[str]:
    """Return the names of ``nfs+licence``, ``nfs,licence`` or ``(nfs, licence)``. Raises Wrong."""
    text = f"{listed.text}+{listed.warning}" if listed.warning else listed.text
    names = [name.strip() for name in text.strip("() ").replace("+", ",").split(",")]
    if not all(name and "(" not in name and ")" not in name for name in names):
        raise Wrong(f"{text!r} names no probes; write it like needs=nfs+licence")
    return names


def resolve(listed: dict[str, Listed]) -> Resources:
    """Return the sum of all resources, without the layout (`chunks`). Raises WrongResource."""
    found = Resources()
    new = "select" if "select" in listed else "place"
    mixed = [listed[name] for name in _OF_A_CHUNK if name in listed] if new in listed else []
    for each in mixed:
        way = "write it into the chunks, like select=2:ncpus=4:mem=1gb"
        raise blamed(Wrong(f"{each.name}= cannot be used with {new}=; {way}"), each)
    for each in listed.values():
        try:
            _one(each, found)
        except Wrong as error:
            raise blamed(error, each) from None
    for each in listed.values():
        if "sizes" in found.mold and "pes" in found.asked and target(each) == "pes":
            raise blamed(Wrong("the number of PEs is given twice; give it once"), each)
    return found


def _one(each: Listed, found: Resources) -> None:
    name, text = each.name, each.text
    where, read = LIMITS.get(name, ("", parse_count))
    several = where in _MOLDED and (text[:1] == "(" or (where == "pes" and "-" in text[1:]))
    if name == "speedup" or several:
        from nqspy.cli import sizes

        if each.warning:
            raise Wrong("several sizes cannot have a warning; leave it out")
        part = _MOLDED[target(each)]
        if part in found.mold:
            raise Wrong(f"{name}= is given twice; give it once")
        readers = {"sizes": sizes.read_sizes, "walls": sizes.read_times, "speedup": sizes.read_speedup}
        found.mold[part] = readers[part](name, text)
    elif where:
        value = read(text)
        if where == "pes" and value < 1:
            raise Wrong(f"{name} must be at least 1")
        if name == "nproc" and value in (0, 1):
            raise Wrong(f"nproc must be at least 2 (a shell and its command), not {value}")
        if where == "pes":
            value = max(value, found.asked.get("pes", 0))
        if name not in ("vmem", "pvmem") or where not in found.asked:  # of both mem and vmem mem counts
            found.asked[where] = value
        if each.warning:
            if 0 <= value < read(each.warning):
                raise late_warning(each.warning, text)
            found.notes.append(f"warning:{name}:{read(each.warning)}")
    elif name == "nice":
        found.asked["nice"] = parse_number(text, 0, 19)
    elif name in NOTED:
        note(each, name, text, found)
    elif name not in LAYOUT:
        consumable(each, name, text, found)


_MOLDED = {"pes": "sizes", "wall": "walls", "speedup": "speedup"}
"""Fields of a request that may run on several numbers of PEs, and their names in its mold."""


def note(each: Listed, name: str, value: str, found: Resources) -> None:
    """Store in ``found`` a resource without effect here, as an attribute of the request, unless it is 0."""
    if value == "0":
        return
    found.notes.append(f"{name}:{value}")
    if name in DROPPED:
        found.dropped.append((each, value if name == "property" else f"{name}={value}"))


def consumable(each: Listed, name: str, value: str, found: Resources, times: int = 1) -> None:
    """Add ``value`` units of a consumable to ``found``, for each of so many chunks. Raises WrongResource."""
    if value.isascii() and value.isdigit() and not resource_named(name):
        found.consumables[name] = found.consumables.get(name, 0) + times * parse_count(value)
        return
    if not resource_named(name) and (name in GPUS or value.removeprefix("-").isdigit()):
        raise WrongResource(name, f"{name}={value}: units must be a whole number from 0 upward")
    where = "" if each.name == name else f" in {each.name}={each.text}"
    known = f"{' '.join(KNOWN)}, and the site's consumables by number"
    raise WrongResource(name, f"unknown resource {name}{where}; resources: {known}", unknown=True)


def parse_array(text: str) -> dict[str, object]:
    """Return fields for ``1-1000:2%50`` or ``1-10,15``: indices, and the most at a time. Raises Wrong."""
    from nqspy.model import keys

    listed, percent, limit = text.partition("%")
    try:
        array: dict[str, object] = {"indices": keys.read_indices(listed)}
    except ValueError as error:
        raise Wrong(str(error)) from None
    if percent:
        array["limit"] = parse_number(limit, 1, keys.MOST_INDICES)
    return array
