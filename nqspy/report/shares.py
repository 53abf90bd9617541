"""Departments: the leaves of the share tree, and how well quotas were kept:

*deviation from entitlement* = got - entitled, where over the time in which a group had work (W of
`model.balance`) *got* is what was charged to it and *entitled* what it was entitled to, its entitlement at
each moment of what all were charged then, both as parts of what all were charged in that time. The one
definition of ``show shares``, the night report and the quota report.
"""

from collections.abc import Mapping

from nqspy.model.owed import Entry
from nqspy.model.people import Group, entitlements, with_default


def departments(groups: Mapping[str, Group]) -> list[str]:
    """The leaves of the share tree, in the order they were created."""
    parents = {group.parent for group in groups.values()}
    return [name for name in groups if name not in parents]


def department_shares(groups: Mapping[str, Group]) -> dict[str, float]:
    """Entitlements of the departments, the group ``default`` among them with share 1 where it is not set up,
    as in scheduling."""
    tree = with_default(groups)
    shares = entitlements(tree)
    return {name: shares[name] for name in departments(tree)}


def charge_words(charge: str) -> str:
    """What is charged (`Usage.charge`), in words."""
    return "CPU time" if charge == "cpu" else "PE x wall time"


def quota_object(entry: Entry) -> dict[str, float | None]:
    """``entitled``, ``got`` and ``deviation`` of an account (fractions; None where nothing was charged to
    anybody while it had work)."""
    if entry.whole <= 0:
        return {"entitled": None, "got": None, "deviation": None}
    entitled, got = entry.entitled / entry.whole, entry.got / entry.whole
    return {"entitled": entitled, "got": got, "deviation": got - entitled}
