"""Policies for a workload as texts of qmgr commands, and lists of them that a command line asks for."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from nqspy.model.requests import Ask
from nqspy.sim.batch import Texts, ask_of, exact_ask_of
from nqspy.sim.main import ONE_QUEUE
from nqspy.sim.night_site import NAME as NIGHT
from nqspy.sim.workloads.jobs import NotSimulated, SimulatedJob
from nqspy.sim.workloads.moldable import Molding, any_size, narrow, wide

SITE = f"{ONE_QUEUE}set sched_factor share 0 cpu 0 memory 0 time 0\n"
"""Commands for the site without a configuration: one queue, by submit time, then place in the list."""


class BatchPolicy(Struct, frozen=True):
    """A policy to simulate: ``commands`` of qmgr applied after the site's; ``ask``: returns what a job asks
    for; ``molding``: chooses the numbers of PEs on which it can run (None: its width)."""

    name: str
    commands: str = ""
    ask: Callable[[SimulatedJob], Ask] = ask_of
    molding: Molding | None = None


_FCFS = "set queue batch order=fcfs"
_ALL = (
    BatchPolicy("fcfs", f"{_FCFS} backfill=none"),
    BatchPolicy("firstfit", _FCFS),
    BatchPolicy("sjf", "set queue batch order=sjf backfill=none"),
    BatchPolicy("easy", f"{_FCFS} reserve=1"),
    BatchPolicy("easy-sjbf", f"{_FCFS} reserve=1 backfill_order=shortest"),
    BatchPolicy("conservative", f"{_FCFS} reserve=all"),
    BatchPolicy("easy-exact", f"{_FCFS} reserve=1", exact_ask_of),
    BatchPolicy("easy-probable", f"{_FCFS} reserve=1 backfill=probable"),
)
_MOLDINGS = {"narrow": narrow, "wide": wide, "mold": any_size}
_SIZES = tuple(
    replace(policy, name=f"{policy.name}-{name}", molding=molding)
    for policy in _ALL
    if policy.name in ("fcfs", "easy", "conservative")
    for name, molding in _MOLDINGS.items()
)
"""Policies for jobs that can run on several numbers of PEs (`molding`)."""

BATCH_POLICIES: Mapping[str, BatchPolicy] = {policy.name: policy for policy in (*_ALL, *_SIZES)}
"""Policies by name (manual page `sim`): to add one is a line above."""
POLICY_NAMES = (*BATCH_POLICIES, NIGHT)

FORM = "write it like 'sched_factor share=0,10,20', a setting of qmgr with values"


class Variation(Struct, frozen=True):
    """A value of a setting: ``name`` in tables (``share=10``), ``command`` of qmgr, ``source`` for errors."""

    name: str
    command: str
    source: str


class Variant(Struct, frozen=True):
    """A policy (None: that of ``--config``, else the default) with changed settings behind it."""

    policy: str | None
    changes: tuple[Variation, ...] = ()

    @property
    def texts(self) -> Texts:
        """Return the changes as commands of qmgr."""
        return [(f"--vary '{change.source}'", change.command + "\n") for change in self.changes]

    def label(self, other: str) -> str:
        """Return the variant's name for tables; ``other``: the name for a policy of None."""
        return ", ".join((self.policy or other, *(change.name for change in self.changes)))


def variants_of(policy: str | None, varied: Sequence[str]) -> list[Variant]:
    """Return all combinations of a policy in the list (``fcfs,easy``) and settings. Raises NotSimulated."""
    choices = [list(changes_of(text)) for text in varied]
    return [Variant(name, found) for name in policies_of(policy) for found in product(*choices)]


def count_of(policy: str | None, varied: Sequence[str]) -> int:
    """Return the number of variants that `variants_of` would return. Raises NotSimulated."""
    return prod((len(policies_of(policy)), *(sum(1 for _ in changes_of(text)) for text in varied)))


def policies_of(text: str | None) -> list[str | None]:
    """Return the policies in a list (``fcfs,easy``); [None] if it is None. Raises NotSimulated."""
    if text is None:
        return [None]
    names, known = [word.strip() for word in text.split(",")], f"there are {', '.join(POLICY_NAMES)}"
    if not all(names):
        raise NotSimulated(f"--policy '{text}' has an empty name; write it like fcfs,easy; {known}")
    for place, name in enumerate(names):
        if name not in POLICY_NAMES:
            raise NotSimulated(f"there is no policy {name}; {known}")
        if name in names[:place]:
            raise NotSimulated(f"--policy names {name} twice")
    return list(names)


_VALUES = re.compile(r"(?P<name>[\w-]+)\s*=\s*(?P<values>(?:\([^()]*\)|[^\s(),]|\s*,\s*)*)")
_COMMA = re.compile(r",(?![^(]*\))")


def changes_of(text: str) -> Iterator[Variation]:
    """Yield a `Variation` for each value in a text of ``--vary`` (``NAME=V,V...``). Raises NotSimulated."""
    match = _VALUES.search(text)
    if match is None:
        raise NotSimulated(f"--vary '{text}' has no values; {FORM}")
    if text.count("=") > 1:
        raise NotSimulated(f"--vary '{text}' has more than one =; {FORM}")
    values = [value.strip() for value in _COMMA.split(match["values"])]
    if not all(values):
        raise NotSimulated(f"--vary '{text}' has an empty value; {FORM}")
    before, after = text[: match.start()].removeprefix("set ").strip(), text[match.end() :].strip()
    for value in values:
        setting = f"{match['name']}={value}"
        yield Variation(setting, " ".join(filter(None, ("set", before, setting, after))), text)
