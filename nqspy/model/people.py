"""People: resource groups (departments) in the share tree, the charge of use, and roles."""

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
    """A resource group (department), a node of the share tree; the users in it are the leaves."""

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
    """Settings of charging and decay of use."""

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
    """The caller of a command as the kernel names the peer of the socket (`rpc.auth`), never as a client
    says. ``groups``: its Unix groups. ``trusted``: True for the home's owner, root and the daemon itself
    (shifts, ``queues.d``), which are managers without being named."""

    user: str
    uid: int
    gid: int = 0
    groups: tuple[str, ...] = ()
    trusted: bool = False

    @property
    def nameless(self) -> bool:
        """True if the user database has no name for the caller, unless it is root or the home's owner."""
        return self.user == str(self.uid) and not self.trusted


def lets_in(users: Collection[str], groups: Collection[str], who: str, memberships: Collection[str]) -> bool:
    """True if lists of users and Unix groups admit a user of groups ``memberships``; both empty: all
    users."""
    return not (users or groups) or who in users or not set(groups).isdisjoint(memberships)


_ADDRESS = re.compile(r"(?![-.])([\w.#$&'*+=?^{}~-]+@[\w.-]+|[\w.+-]+)", re.ASCII)


def is_address(text: str) -> bool:
    """True if mail can be sent to a text: the name of a local user, or ``name@domain`` (dot-atoms of RFC
    5322). It cannot be an option, a second address, another header, a program, a file or a route."""
    return len(text) <= 254 and _ADDRESS.fullmatch(text) is not None


def addresses_in(text: str) -> list[str]:
    """Return the addresses in a text, where commas separate them."""
    return [word for part in text.split(",") if (word := part.strip())]


def with_default(groups: Mapping[str, Group]) -> dict[str, Group]:
    """Return the groups with ``default``, which is at the root with share 1 even if it was not created."""
    return {**groups, DEFAULT_GROUP: groups.get(DEFAULT_GROUP) or Group(DEFAULT_GROUP)}


def entitlements(groups: Mapping[str, Group]) -> dict[str, float]:
    """Return each group's part of the whole (0 to 1): its share among its siblings, times that of its parent,
    and so on up to the root or a missing parent."""
    return entitled_now(groups, groups)


def entitled_now(groups: Mapping[str, Group], active: Collection[str]) -> dict[str, float]:
    """Return each group's part of the whole (0 to 1) while only ``active`` groups have work. The part of an
    idle group goes to its siblings by weight, that of an idle subtree to the siblings of its parent. A group
    is active with any group below it that has a share. An idle group gets what it would have if active."""
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
    """Return the names of groups that have no entitlement: unknown, of share 0, or below a group of share 0.
    A group whose parent is unknown counts as at the root."""
    known = groups if DEFAULT_GROUP in groups else with_default(groups)
    return frozenset(n for n in names if n not in known or not all(known[g].share for g in lineage(known, n)))


def _parent(group: Group, groups: Mapping[str, Group]) -> str | None:
    return group.parent if group.parent in groups else None


def walk(
    groups: Mapping[str, Group], parent: str | None = None, depth: int = 0
) -> Iterator[tuple[Group, int]]:
    """Yield the groups of the share tree below ``parent`` (None: all), parents before children, each with its
    depth. ``depth``: that of the groups directly below ``parent``."""
    for group in groups.values():
        if group.parent == parent:
            yield group, depth
            yield from walk(groups, group.name, depth + 1)


def lineage(groups: Mapping[str, Group], name: str) -> list[str]:
    """Return the names of a group and all groups above it, its own first; of an unknown one only its own."""
    found = [name]
    while (group := groups.get(found[-1])) is not None and _parent(group, groups) not in (None, *found):
        found.append(str(group.parent))
    return found


def capped_pes(limit: float, pes: int) -> int:
    """Return how many of ``pes`` PEs a group with a ``limit`` in per cent may hold, rounded up."""
    return ceil(round(limit * pes / 100, 9))


def capped_use(limit: float, pes: int, half_life: int) -> float:
    """Return the decayed use (ms) that a group with a ``limit`` (per cent) may have: that of ``limit`` per
    cent of ``pes`` PEs that are always busy."""
    return lasting_use(limit / 100 * pes, half_life)
