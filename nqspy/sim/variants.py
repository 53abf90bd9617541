"""What is laid side by side: policies, and settings that take one value after the other."""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from msgspec import Struct

from nqspy.sim.batch import NotSimulated, Texts
from nqspy.sim.batch_policies import BATCH_POLICIES
from nqspy.sim.night_site import NAME as NIGHT

POLICY_NAMES = (*BATCH_POLICIES, NIGHT)

FORM = "it is written 'sched_factor share=0,10,20': what follows `set` in qmgr, with values"


class Variation(Struct, frozen=True):
    """One value of a setting: ``name`` as tables have it (``share=10``), ``command`` of qmgr, ``source``:
    what was written, for errors."""

    name: str
    command: str
    source: str


class Variant(Struct, frozen=True):
    """A way to schedule: a policy (None: whatever else is said) and changes behind it."""

    policy: str | None
    changes: tuple[Variation, ...] = ()

    @property
    def texts(self) -> Texts:
        """The changes, as commands of qmgr."""
        return [(f"--vary '{change.source}'", change.command + "\n") for change in self.changes]

    def label(self, other: str) -> str:
        """What tables call it; ``other``: where it has no policy of its own."""
        return ", ".join((self.policy or other, *(change.name for change in self.changes)))


def variants_of(policy: str | None, varied: Sequence[str]) -> list[Variant]:
    """Each policy of a list (``fcfs,easy``) with each value of each setting. Raises NotSimulated."""
    choices = [list(changes_of(text)) for text in varied]
    return [Variant(name, found) for name in policies_of(policy) for found in product(*choices)]


def count_of(policy: str | None, varied: Sequence[str]) -> int:
    """How many variants these make, without making them. Raises NotSimulated."""
    return prod((len(policies_of(policy)), *(sum(1 for _ in changes_of(text)) for text in varied)))


def policies_of(text: str | None) -> list[str | None]:
    """The policies of a list, [None] where there is none. Raises NotSimulated."""
    if text is None:
        return [None]
    names = [word.strip() for word in text.split(",")]
    if not all(names):
        known = ", ".join(POLICY_NAMES)
        raise NotSimulated(
            f"--policy '{text}' has a name that is empty; it is written fcfs,easy; there are {known}"
        )
    for place, name in enumerate(names):
        if name not in POLICY_NAMES:
            raise NotSimulated(f"there is no policy {name}; there are {', '.join(POLICY_NAMES)}")
        if name in names[:place]:
            raise NotSimulated(f"--policy names {name} twice")
    return list(names)


_VALUES = re.compile(r"(?P<name>[\w-]+)\s*=\s*(?P<values>(?:\([^()]*\)|[^\s(),]|\s*,\s*)*)")
_COMMA = re.compile(r",(?![^(]*\))")


def changes_of(text: str) -> Iterator[Variation]:
    """The values of one setting: ``sched_factor share=0,10`` is ``set sched_factor share=0`` and ``set
    sched_factor share=10``. A list in brackets is one value. Raises NotSimulated."""
    match = _VALUES.search(text)
    if match is None:
        raise NotSimulated(f"--vary '{text}' names no values; {FORM}")
    if text.count("=") > 1:
        raise NotSimulated(f"--vary '{text}' has more than one =; {FORM}")
    values = [value.strip() for value in _COMMA.split(match["values"])]
    if not all(values):
        raise NotSimulated(f"--vary '{text}' has a value that is empty; {FORM}")
    before, after = text[: match.start()].removeprefix("set ").strip(), text[match.end() :].strip()
    for value in values:
        setting = f"{match['name']}={value}"
        yield Variation(setting, " ".join(filter(None, ("set", before, setting, after))), text)
