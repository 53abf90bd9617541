"""Fair division of the machine at one instant: the PEs that each group with work would hold by its share, and
no more than its work and its cap can use. Scheduler and reports use it as entitlement (semantics.md 1)."""

from collections.abc import Mapping
from operator import itemgetter

from nqspy.model.people import Group, capped_pes, with_default, without_share

MOST = 1_000
"""Most divisions that an object keeps: few come, again and again."""

ROUNDING = 1e-9
"""Rest of PEs that counts as 0: it comes from rounding in sums."""


class Division:
    """Division of ``pes`` PEs along the share tree. What a group cannot use goes to its siblings by weight,
    then to those of its parent. A group without a share (`without_share`) has no right to a part: it gets
    what all others leave, in equal parts. A group's own requests share with the groups below it, with weight
    1. Caps are parts of the ``machine``'s PEs, of which ``pes`` may be a domain's."""

    def __init__(self, groups: Mapping[str, Group], pes: int, machine: int | None = None) -> None:
        self._groups, self._pes = with_default(groups), pes
        self._machine = pes if machine is None else machine
        self._below: dict[str | None, list[str]] = {}
        self._known: dict[tuple[tuple[str, int], ...], tuple[dict[str, float], dict[str, float]]] = {}
        self._bare: dict[str, bool] = {}
        for name, group in self._groups.items():
            parent = group.parent if group.parent in self._groups else None
            self._below.setdefault(parent, []).append(name)

    def of(self, wanted: Mapping[str, int]) -> dict[str, float]:
        """Return the PEs that each group with work would hold, with groups below it, by name; ``""`` has
        their sum. ``wanted``: PEs that a group's own requests could use, by name."""
        return self._cached(wanted)[0]

    def parts(self, wanted: Mapping[str, int]) -> dict[str, float]:
        """Return the entitlement e_g of each group with own requests: a fraction of what all of them get."""
        return self._cached(wanted)[1]

    def is_bare(self, name: str) -> bool:
        """True if a group has no share (`without_share`)."""
        found = self._bare.get(name)
        if found is None:
            found = self._bare[name] = bool(without_share(self._groups, (name,)))
        return found

    def _cached(self, wanted: Mapping[str, int]) -> tuple[dict[str, float], dict[str, float]]:
        most = self._pes
        key = tuple(sorted([(name, pes if pes < most else most) for name, pes in wanted.items() if pes > 0]))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST:
                self._known.clear()
            found = self._known[key] = self._divide(dict(key))
        return found

    def _divide(self, wanted: dict[str, int]) -> tuple[dict[str, float], dict[str, float]]:
        for name in wanted:
            if name not in self._groups:
                self._groups[name] = Group(name, share=0)
                self._below.setdefault(None, []).append(name)
        bare = {name for name in wanted if self.is_bare(name)}
        found: dict[str, float] = {}
        own: dict[str, float] = {}
        remaining = float(self._pes)
        for those in (False, True):
            theirs = {name: pes for name, pes in wanted.items() if (name in bare) is those}
            if theirs:
                needs: dict[str, int] = {}
                for name in self._below.get(None, ()):
                    self._need(name, theirs, needs)
                self._share_out(None, remaining, theirs, needs, found, own, those)
                remaining = self._pes - self._given(found)
                remaining = remaining if remaining > ROUNDING else 0.0
        found[""] = self._given(found)
        for name in wanted:
            own.setdefault(name, 0.0)
        whole = sum(own.values())
        return found, {name: part / whole if whole else 1 / len(own) for name, part in own.items()}

    def _given(self, found: Mapping[str, float]) -> float:
        return sum(found.get(name, 0.0) for name in self._below.get(None, ()))

    def _most(self, name: str) -> int:
        limit = self._groups[name].limit
        return self._pes if limit is None else min(self._pes, capped_pes(limit, self._machine))

    def _need(self, name: str, wanted: Mapping[str, int], needs: dict[str, int]) -> int:
        need = wanted.get(name, 0)
        for each in self._below.get(name, ()):
            need += self._need(each, wanted, needs)
        needs[name] = need = min(need, self._most(name))
        return need

    def _share_out(
        self,
        parent: str | None,
        pes: float,
        wanted: Mapping[str, int],
        needs: Mapping[str, int],
        found: dict[str, float],
        own: dict[str, float],
        alike: bool,
    ) -> None:
        """Divide PEs among the groups below a parent into ``found`` (each with groups below) and ``own`` (its
        own requests). ``alike``: in equal parts, down to the groups without a share."""
        names = [name for name in self._below.get(parent, ()) if needs[name] > 0]
        weights = {name: 1 if alike else self._groups[name].share for name in names}
        most = {name: min(float(needs[name]), self._most(name) - found.get(name, 0.0)) for name in names}
        if parent is not None and wanted.get(parent):
            weights[""], most[""] = 1, float(wanted[parent])
        # Those with a share come first; the others have what is left, alike.
        parts = fill({name: weight for name, weight in weights.items() if weight}, most, pes)
        rest = {name: 1 for name, weight in weights.items() if not weight}
        if rest:
            parts |= fill(rest, most, pes - sum(parts.values()))
        for name, part in parts.items():
            if name == "":
                own[str(parent)] = part
                continue
            found[name] = found.get(name, 0.0) + part
            if any(needs[each] > 0 for each in self._below.get(name, ())):
                below = alike and bool(self._groups[name].share)
                self._share_out(name, part, wanted, needs, found, own, below)
            else:
                own[name] = part


def fill(weights: Mapping[str, int], needs: Mapping[str, float], amount: float) -> dict[str, float]:
    """Return ``amount`` divided by weight, by name. No name gets more than its need; what it leaves goes to
    the others by weight."""
    found: dict[str, float] = {}
    total = sum(weights.values())
    for name in sorted(weights, key=lambda each: needs[each] / weights[each]):
        found[name] = min(float(needs[name]), max(0.0, amount) * weights[name] / total)
        amount -= found[name]
        total -= weights[name]
    return found


def alike(needs: Mapping[str, int], amount: float) -> dict[str, float]:
    """Return ``amount`` (PEs) divided equally among users up to their needs (PEs), as parts of the sum."""
    found, remaining = dict[str, float](), len(needs)
    for name, need in sorted(needs.items(), key=itemgetter(1)):  # `fill` with weights of 1
        part = (amount if amount > 0.0 else 0.0) / remaining
        found[name] = part = part if part < need else float(need)
        amount -= part
        remaining -= 1
    whole = sum(found.values())
    return {name: part / whole if whole else 1 / len(found) for name, part in found.items()}
