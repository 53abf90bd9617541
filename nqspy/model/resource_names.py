"""Names of what every site gives out (``qsub -l NAME=VALUE``): a consumable has another one.

The clients import this: it imports only `options`.
"""

from nqspy.model.options import OPTIONS

KNOWN = (
    *(name for option in OPTIONS for name in option.resources),
    "nodes", "select", "place", "software", "host", "vnode", "arch", "filesystems", "ppn", "mpiprocs",
    "ompthreads", "property",
)  # fmt: skip
"""What ``-l`` reads in a way of its own."""
GPUS = ("gpus", "ngpus")
"""Other words for the consumable ``gpu``, where no consumable bears them."""
_LONG = 5
"""Letters of names among which one that has a slip is recognised."""


def taken(name: str) -> str:
    """The known name that this one is, or is but for one letter; empty for any other."""
    if name in KNOWN or name in GPUS:
        return name if name in KNOWN else ""
    near = (each for each in KNOWN if len(each) >= _LONG and len(name) >= _LONG - 1 and _is_slip(name, each))
    return next(near, "")


def _is_slip(name: str, known: str) -> bool:
    """Whether one letter too many, too few, or another, or two that changed places are all that differs."""
    at = 0
    while at < min(len(name), len(known)) and name[at] == known[at]:
        at += 1
    rest, wanted = name[at:], known[at:]
    crossed = rest[:2] == wanted[1::-1] and rest[2:] == wanted[2:]
    return crossed or rest[1:] == wanted[1:] or rest == wanted[1:] or rest[1:] == wanted
