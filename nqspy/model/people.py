"""People: resource groups (departments) in the share tree, how use is charged, and roles."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Literal

from msgspec import Struct

from nqspy.model.accounts import lasting_use
from nqspy.model.tree import setting

Role = Literal["manager", "operator", "user"]

DEFAULT_GROUP = "default"
"""Group of a request whose owner is a member of none."""


@dataclass(slots=True)
class Group:
    """A resource group, a node of the share tree; ``share`` is a weight among siblings, users are leaves."""

    name: str
    parent: str | None = setting("name", None, "group above it; none: directly under the root")
    share: int = setting("number", 1, "weight among its siblings", low=0, high=1_000_000)
    members: tuple[str, ...] = setting("names", (), "users whose requests may be charged to it")
    limit: float | None = setting(
        "percent", None, "greatest part of the machine that it and groups below it hold and use", high=100
    )
    mail: tuple[str, ...] = setting(
        "names", (), "people who get its page of the night report; none: members with requests that night"
    )


@dataclass(slots=True)
class Usage:
    """Charging and decay of use."""

    half_life: int = setting("time", 24 * 3_600_000, "time after which half of a use is forgotten", low=1)
    charge: str = setting(
        "name", "cpu", "what is charged: CPU time, or PEs x wall time", words=("cpu", "pe_wall")
    )
    payback: float = setting(
        "percent",
        20.0,
        "greatest fraction of its part that a department's past gives or takes",
        low=0,
        high=50,
    )
    period: int = setting("time", 12 * 3_600_000, "planning period of the counters", low=1)


class Caller(Struct, frozen=True):
    """A caller: the socket peer as the kernel names it, never what a client says. ``groups``: names of the
    Unix groups. ``trusted``: the home's owner, root, or the daemon itself (shifts, ``queues.d``): managers
    without being named."""

    user: str
    uid: int
    gid: int = 0
    groups: tuple[str, ...] = ()
    trusted: bool = False

    @property
    def nameless(self) -> bool:
        """True if the user database has no name for the caller, other than root and the home's owner."""
        return self.user == str(self.uid) and not self.trusted


def lets_in(users: Collection[str], groups: Collection[str], who: str, memberships: Collection[str]) -> bool:
    """True if lists of users and Unix groups let in a user of these groups; empty lists let in all."""
    return not (users or groups) or who in users or not set(groups).isdisjoint(memberships)


_ADDRESS = re.compile(r"(?![-.])([\w.#$&'*+=?^{}~-]+@[\w.-]+|[\w.+-]+)", re.ASCII)


def is_address(text: str) -> bool:
    """True if mail can be sent there: the name of a local user, or ``name@domain`` (RFC 5322's dot-atoms, so
    nothing in it can be taken for an option, a second address or another header; and without the letters by
    which a mail program takes it for a program, a file or a way)."""
    return len(text) <= 254 and _ADDRESS.fullmatch(text) is not None


def addresses_in(text: str) -> list[str]:
    """The words of a list of addresses, which commas separate."""
    return [word for part in text.split(",") if (word := part.strip())]


def with_default(groups: Mapping[str, Group]) -> dict[str, Group]:
    """The groups, and ``default``, which stands at the root with share 1 even where it was not created."""
    return {**groups, DEFAULT_GROUP: groups.get(DEFAULT_GROUP) or Group(DEFAULT_GROUP)}


def entitlements(groups: Mapping[str, Group]) -> dict[str, float]:
    """Each group's part of the whole: the product of its shares up to the root, or to a missing parent."""
    return entitled_now(groups, groups)


def entitled_now(groups: Mapping[str, Group], active: Collection[str]) -> dict[str, float]:
    """Each group's part of the whole while only the ``active`` groups have work: what an idle group is
    entitled to goes to its siblings by weight, an idle subtree's to its parent's siblings. A group is active
    with any group below it that has a share. An idle one gets its part if it became active alone."""
    children: dict[str | None, list[str]] = {}
    for name, group in groups.items():
        children.setdefault(_parent(group, groups), []).append(name)

    @cache
    def awake(name: str) -> bool:
        return name in active or any(groups[each].share and awake(each) for each in children.get(name, ()))

    weights = {
        parent: sum(groups[each].share for each in below if awake(each)) for parent, below in children.items()
    }

    @cache
    def part(name: str) -> float:
        own, parent = groups[name].share, _parent(groups[name], groups)
        above = part(parent) if parent is not None else 1.0
        return above * own / (weights[parent] + (0 if awake(name) else own)) if own else 0.0

    return {name: part(name) for name in groups}


def without_share(groups: Mapping[str, Group], names: Iterable[str]) -> frozenset[str]:
    """Return those of these groups that are entitled to nothing: unknown, of share 0, or below such a one."""
    known = groups if DEFAULT_GROUP in groups else with_default(groups)
    return frozenset(n for n in names if n not in known or not all(known[g].share for g in lineage(known, n)))


def _parent(group: Group, groups: Mapping[str, Group]) -> str | None:
    return group.parent if group.parent in groups else None


def walk(
    groups: Mapping[str, Group], parent: str | None = None, depth: int = 0
) -> Iterator[tuple[Group, int]]:
    """The share tree, parents before children, with the depth of each group below the root."""
    for group in groups.values():
        if group.parent == parent:
            yield group, depth
            yield from walk(groups, group.name, depth + 1)


def lineage(groups: Mapping[str, Group], name: str) -> list[str]:
    """A group and all above it, itself first; only the name where there is no such group."""
    found = [name]
    while (group := groups.get(found[-1])) is not None and _parent(group, groups) not in (None, *found):
        found.append(str(group.parent))
    return found


def capped_pes(limit: float, pes: int) -> int:
    """Whole PEs, rounded up, that a group with that ``limit`` (percent) may hold of the machine's ``pes``."""
    return ceil(round(limit * pes / 100, 9))


def capped_use(limit: float, pes: int, half_life: int) -> float:
    """Decayed use (ms) that a group with that ``limit`` (percent) may have, of ``pes`` PEs always busy."""
    return lasting_use(limit / 100 * pes, half_life)
