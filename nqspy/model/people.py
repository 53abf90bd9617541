"""People: resource groups (departments) in the share tree, how use is charged, and roles."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NewType

from nqspy.model.tree import setting

Role = Literal["manager", "operator", "user"]
UserName = NewType("UserName", str)

DEFAULT_GROUP = "default"
"""Group of a request whose owner is a member of none."""


@dataclass(slots=True)
class Group:
    """A resource group, a node of the share tree; shares are relative weights among siblings, users are
    leaves."""

    name: str
    parent: str | None = setting("name", None, "group above it; none: directly under the root")
    share: int = setting("number", 1, "weight among its siblings", low=0, high=1_000_000)
    members: tuple[str, ...] = setting("names", (), "users whose requests may be charged to it")
    mail: tuple[str, ...] = setting(
        "names", (), "who gets its page of the night report; none: its members who had requests in that night"
    )


@dataclass(slots=True)
class Usage:
    """How use is charged and forgotten."""

    half_life: int = setting("time", 24 * 3_600_000, "time after which half of a use is forgotten", low=1)
    charge: str = setting(
        "name", "cpu", "what is charged: CPU time, or PEs x wall time", words=("cpu", "pe_wall")
    )
    period: int = setting("time", 12 * 3_600_000, "planning period of the counters", low=1)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the socket peer as the kernel names it, never what a client says. ``groups``: names of the
    Unix groups.

    ``trusted``: the home's owner, root, or the daemon itself (shifts, ``queues.d``): managers without being
    named.
    """

    user: str
    uid: int
    gid: int = 0
    groups: tuple[str, ...] = ()
    trusted: bool = False


_IN_ADDRESS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+/=?^_`{|}~-")


def is_address(text: str) -> bool:
    """Whether mail can be sent there: the name of a local user, or ``name@domain`` (RFC 5322's dot-atoms, so
    nothing in it can be taken for an option, a second address or another header)."""
    name, at, domain = text.partition("@")
    sound = 0 < len(text) <= 254 and not text.startswith("-") and set(name) | set(domain) <= _IN_ADDRESS
    return sound and bool(name) and (bool(domain) or not at)


def with_default(groups: Mapping[str, Group]) -> dict[str, Group]:
    """The groups, and ``default``, which stands at the root with share 1 even where it was not created."""
    return {**groups, DEFAULT_GROUP: groups.get(DEFAULT_GROUP) or Group(DEFAULT_GROUP)}


def entitlements(groups: Mapping[str, Group]) -> dict[str, float]:
    """Each group's part of the whole: the product of its share among its siblings, up to the root
    (semantics.md 1). A parent that does not exist counts as the root."""
    weights: dict[str | None, int] = {}
    for group in groups.values():
        parent = _parent(group, groups)
        weights[parent] = weights.get(parent, 0) + group.share
    found: dict[str, float] = {}

    def part(name: str) -> float:
        if name not in found:
            group, parent = groups[name], _parent(groups[name], groups)
            above = part(parent) if parent is not None else 1.0
            found[name] = above * group.share / weights[parent] if weights[parent] else 0.0
        return found[name]

    return {name: part(name) for name in groups}


def _parent(group: Group, groups: Mapping[str, Group]) -> str | None:
    return group.parent if group.parent in groups else None
