"""Departments: the leaves of the share tree, and how well quotas were kept.

*Deviation from entitlement*: what a group got less what it was entitled to, as parts of what all were charged
in a time, in percentage points. *Got* is what was charged to it. *Entitled* is its entitlement at each moment
(`shares.division`) of what all were charged at that moment. Both sum to what all were charged, so the parts
sum to 1, the deviations sum to 0, and each lies between -100 and 100.

`deviations` is the one definition: of ``show shares``, both reports, `nqspy replay` and the simulator.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from nqspy.model.people import Group, entitlements, with_default

LEAST_PART = 0.01
LEAST = 1_000
"""Least use for a deviation: this part of the PE time of requests, and this many ms."""
TOO_LITTLE = "too little use to tell"


def parts(amounts: Mapping[str, float]) -> dict[str, float]:
    """Return each amount as a fraction of their sum; empty if the sum is 0."""
    whole = sum(amounts.values())
    return {name: each / whole for name, each in amounts.items()} if whole > 0 else {}


def add_up(sums: dict[str, float], more: Mapping[str, float]) -> None:
    """Add amounts to ``sums``, name by name, in place."""
    for name, amount in more.items():
        sums[name] = sums.get(name, 0.0) + amount


def deviations(got: Mapping[str, float], entitled: Mapping[str, float]) -> dict[str, float]:
    """Return each group's deviation from entitlement, in percentage points; nothing without charges."""
    mine, due = parts(got), parts(entitled)
    if not mine or not due:
        return {}
    return {name: 100 * (mine.get(name, 0.0) - due.get(name, 0.0)) for name in dict.fromkeys((*due, *mine))}


def largest(points: Iterable[float | None]) -> float | None:
    """Return the largest absolute value of some deviations; None if there are none."""
    return max((abs(point) for point in points if point is not None), default=None)


class QuotaSums(Struct, frozen=True):
    """Sums over a time, by group: what each got and was entitled to (ms of what is charged), and how long it
    had work (ms). ``held``: PE time (ms) that all requests held."""

    got: Mapping[str, float] = {}
    entitled: Mapping[str, float] = {}
    held: float = 0.0
    worked: Mapping[str, float] = {}

    @classmethod
    def together(cls, each: Iterable["QuotaSums"]) -> "QuotaSums":
        """Return the sums of all domains; a group had work as long as in the domain where it had most."""
        got, entitled, worked, held = dict[str, float](), dict[str, float](), dict[str, float](), 0.0
        for sums in each:
            add_up(got, sums.got)
            add_up(entitled, sums.entitled)
            worked.update({name: max(worked.get(name, 0.0), ms) for name, ms in sums.worked.items()})
            held += sums.held
        return cls(got, entitled, held, worked)

    def since(self, before: "QuotaSums") -> "QuotaSums":
        """Return the sums of the time after that of ``before``, which began at the same instant."""
        each = ((self.got, before.got), (self.entitled, before.entitled), (self.worked, before.worked))
        less = ({name: ms - then.get(name, 0.0) for name, ms in now.items()} for now, then in each)
        got, entitled, worked = less
        return QuotaSums(got, entitled, self.held - before.held, worked)

    @property
    def little(self) -> bool:
        """True if groups had work, but used too little (`LEAST`) for a deviation to mean anything."""
        return bool(self.worked) and sum(self.got.values()) < max(LEAST, LEAST_PART * self.held)

    @property
    def deviations(self) -> dict[str, float]:
        """Return each group's deviation (percentage points) from entitlement; empty after too little use."""
        return {} if self.little else deviations(self.got, self.entitled)

    def row(self, name: str) -> dict[str, float | None]:
        """Return ``entitled``, ``got``, ``deviation`` of a group, as parts of all charges; None: too little
        use."""
        deviation = self.deviations.get(name)
        if deviation is None:
            return {"entitled": None, "got": None, "deviation": None}
        due, got = (parts(each).get(name, 0.0) for each in (self.entitled, self.got))
        return {"entitled": due, "got": got, "deviation": deviation}


def departments(groups: Mapping[str, Group]) -> list[str]:
    """Return the leaves of the share tree, in the order they were created."""
    parents = {group.parent for group in groups.values()}
    return [name for name in groups if name not in parents]


def department_shares(groups: Mapping[str, Group]) -> dict[str, float]:
    """Return the departments' entitlements, with the group ``default`` (share 1 if it is not set up)."""
    tree = with_default(groups)
    shares = entitlements(tree)
    return {name: shares[name] for name in departments(tree)}


def charge_words(charge: str) -> str:
    """Return in words what is charged (`Usage.charge`)."""
    return "CPU time" if charge == "cpu" else "PE x wall time"
