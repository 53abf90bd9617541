"""Attributes of queues, complexes, groups and other objects as keywords: derived from the settings."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import cast

from msgspec import Struct

from nqspy.core import features as features  # declares the features' settings
from nqspy.model import registry
from nqspy.model.options import OPTIONS
from nqspy.model.tree import Declared, Unit
from nqspy.qmgr.cursor import Keyword, keywords

SPELLING = {
    "run_limit": "Run_limit", "user_limit": "User_limit", "group_limit": "Group_limit",
    "cpu_limit": "Cpu_limit", "memory_limit": "Memory_limit", "permfile_limit": "Permfile_limit",
    "tempfile_limit": "Tempfile_limit", "corefile_limit": "COREfile_limit", "data_limit": "DAta_limit",
    "stack_limit": "STack_limit", "working_set_limit": "Working_set_limit", "priority": "PRiority",
    "destinations": "DEStinations", "pipeonly": "PIpeonly", "loadonly": "Loadonly",
    "nice_value_limit": "NIce_value_limit", "destination": "DEStination", "mail": "MAIl",
    "shell_strategy": "SHell_strategy", "per_request": "PER_Request", "per_process": "PER_Process",
}  # fmt: skip
"""Spellings as in the manual: the capitals always suffice."""

SYNONYMS = {
    "mpp_pe_limit": "pe_limit",
    "mpp_time_limit": "wall_limit",
    "nice_value_limit": "nice",
    "destination": "destinations",
    "batch_limit": "run_limit",
    "from": "sender",
}
"""Other names of attributes, from UNICOS and Sterling."""

BRANCHES = {
    "per_request": "a limit of each request as a whole",
    "per_process": "a limit of each process",
    "sched_factor": "weights of the intra-queue priority of this queue",
}
"""Groups of a queue's settings with a keyword in front, and their sentences."""

IGNORED = keywords("Server")
"""Ignored in old scripts: the program of a pipe queue in Sterling's NQS."""


@cache
def settings_of(kind: str, branch: str = "") -> Mapping[str, Declared]:
    """Return the settings directly below an object, or in one of its branches (``per_request``), by name."""
    prefix = f"{branch}/" if branch else ""
    declaring = registry.object_of(kind)
    every = declaring.known if declaring is not None else {}
    below = {path.removeprefix(prefix): info for path, info in every.items() if path.startswith(prefix)}
    return {name: info for name, info in below.items() if "/" not in name}


@cache
def keywords_of(kind: str, branch: str = "") -> Mapping[str, Keyword]:
    """Return the keywords of an object's attributes, with synonyms and branch words."""
    found = words_of(settings_of(kind, branch), but="" if kind == "global" else "batch_limit")
    return found | words_of(BRANCHES) if kind == "queue" and not branch else found


def words_of(names: Iterable[str], but: str = "") -> dict[str, Keyword]:
    """Return attributes of these names as keywords, with their synonyms, except the name ``but``."""
    found = keywords(*(SPELLING.get(name, name) for name in names))
    return found | {
        other: Keyword.spelt(other, name)
        for other, name in SYNONYMS.items()
        if name in found and other not in found and other != but
    }


class AskAttribute(Struct, frozen=True):
    """Attribute of ``modify request``: its path below `Spec` (``ask/cpu``), its value's unit and bounds."""

    path: str
    info: Declared


def _of_request(in_process: bool) -> dict[str, AskAttribute]:
    start, found = "per_process/", dict[str, AskAttribute]()
    for option in OPTIONS:
        if option.modify and option.modify.startswith(start) == in_process:
            name = option.modify.removeprefix(start)
            unit = cast(Unit, "name" if option.unit == "date" else option.unit)
            info = Declared(unit, None, option.doc, low=option.low, high=option.high, name=name)
            found[name] = AskAttribute(option.path, info)
    return found


MODIFY = _of_request(in_process=False)
"""Attributes of ``modify request``."""
MODIFY_PROCESS = _of_request(in_process=True)
"""Attributes of ``modify request ID per_process``."""
