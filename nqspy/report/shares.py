"""Departments: the leaves of the share tree, and their parts among themselves."""

from collections.abc import Iterable, Mapping

from nqspy.model.people import Group


def departments(groups: Mapping[str, Group]) -> list[str]:
    """The leaves of the share tree, in the order they were created."""
    parents = {group.parent for group in groups.values()}
    return [name for name in groups if name not in parents]


def among(names: Iterable[str], fractions: Mapping[str, float]) -> dict[str, float]:
    """The fractions of these groups, scaled so that they sum to 1; a group without share is left out."""
    chosen = {name: fractions[name] for name in names if fractions.get(name, 0.0) > 0.0}
    total = sum(chosen.values())
    return {name: value / total for name, value in chosen.items()}
