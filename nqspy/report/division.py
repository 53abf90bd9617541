"""Fair division of the machine at one instant: what each group would hold if the PEs went by share to those
that have work, and to none more than its work can use."""

from collections.abc import Mapping

from nqspy.model.people import Group, capped_pes, with_default


class Division:
    """Divides ``pes`` PEs along the share tree; what one cannot use goes to its siblings by weight, then to
    those of its parent. A group without a share (or unknown to the tree) gets what the others leave."""

    def __init__(self, groups: Mapping[str, Group], pes: int) -> None:
        self._groups, self._pes = with_default(groups), pes
        self._below: dict[str | None, list[str]] = {}
        self._known: dict[tuple[tuple[str, int], ...], dict[str, float]] = {}
        for name, group in self._groups.items():
            parent = group.parent if group.parent in self._groups else None
            self._below.setdefault(parent, []).append(name)

    def of(self, wanted: Mapping[str, int]) -> dict[str, float]:
        """PEs that each group with work would hold, groups below it included, and under ``""`` all of them;
        ``wanted``: PEs that a group's own requests could use."""
        key = tuple(sorted((name, min(pes, self._pes)) for name, pes in wanted.items() if pes > 0))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._divide(dict(key))
        return found

    def _divide(self, wanted: Mapping[str, int]) -> dict[str, float]:
        for name in wanted:
            if name not in self._groups:
                self._groups[name] = Group(name, share=0)
                self._below.setdefault(None, []).append(name)
        needs: dict[str, int] = {}
        for name in self._below.get(None, ()):
            self._need(name, wanted, needs)
        found: dict[str, float] = {}
        self._share_out(None, float(self._pes), needs, found)
        found[""] = sum(found.get(name, 0.0) for name in self._below.get(None, ()))
        return found

    def _need(self, name: str, wanted: Mapping[str, int], needs: dict[str, int]) -> int:
        below = sum(self._need(each, wanted, needs) for each in self._below.get(name, ()))
        limit = self._groups[name].limit
        most = self._pes if limit is None else capped_pes(limit, self._pes)
        needs[name] = min(wanted.get(name, 0) + below, most)
        return needs[name]

    def _share_out(
        self, parent: str | None, pes: float, needs: Mapping[str, int], found: dict[str, float]
    ) -> None:
        names = [name for name in self._below.get(parent, ()) if needs[name] > 0]
        weighted = {name: self._groups[name].share for name in names if self._groups[name].share}
        first = fill(weighted, needs, pes)
        rest = fill(dict.fromkeys((n for n in names if n not in first), 1), needs, pes - sum(first.values()))
        for name, part in (first | rest).items():
            found[name] = part
            self._share_out(name, part, needs, found)


def fill(weights: Mapping[str, int], needs: Mapping[str, int], amount: float) -> dict[str, float]:
    """Divides an amount by weight so that none gets more than it needs, and what it leaves goes to the others
    by weight."""
    found: dict[str, float] = {}
    total = sum(weights.values())
    for name in sorted(weights, key=lambda each: needs[each] / weights[each]):
        found[name] = min(float(needs[name]), max(0.0, amount) * weights[name] / total)
        amount -= found[name]
        total -= weights[name]
    return found
