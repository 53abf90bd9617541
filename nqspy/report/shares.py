"""Entitlements: what part of the whole each group of the share tree is entitled to (semantics.md 1)."""

from collections.abc import Iterable, Mapping

from nqspy.model.people import Group


def entitlements(groups: Mapping[str, Group]) -> dict[str, float]:
    """Each group's fraction of the whole: its weight among its siblings times its parent's fraction."""
    siblings: dict[str | None, int] = {}
    for group in groups.values():
        parent = _parent(group, groups)
        siblings[parent] = siblings.get(parent, 0) + group.share
    return {name: _fraction(name, groups, siblings) for name in groups}


def _fraction(name: str, groups: Mapping[str, Group], siblings: Mapping[str | None, int]) -> float:
    fraction = 1.0
    seen: set[str] = set()
    step: str | None = name
    while step is not None and step not in seen:
        seen.add(step)
        group = groups[step]
        total = siblings[_parent(group, groups)]
        fraction *= group.share / total if total else 0.0
        step = _parent(group, groups)
    return fraction


def _parent(group: Group, groups: Mapping[str, Group]) -> str | None:
    return group.parent if group.parent in groups else None


def departments(groups: Mapping[str, Group]) -> list[str]:
    """The leaves of the share tree, in the order they were created."""
    parents = {group.parent for group in groups.values()}
    return [name for name in groups if name not in parents]


def among(names: Iterable[str], fractions: Mapping[str, float]) -> dict[str, float]:
    """The fractions of these groups, scaled so that they sum to 1; a group without share is left out."""
    chosen = {name: fractions[name] for name in names if fractions.get(name, 0.0) > 0.0}
    total = sum(chosen.values())
    return {name: value / total for name, value in chosen.items()}
