"""What groups, and users inside a group, are owed: the two accounts of the deficit rule, exactly as
semantics.md 1 defines them ("The deficit rule, exactly"). The scheduler, ``show shares`` and the reports all
use this; nothing here decides.

*W*, who has work: a group with a request that runs, or with a queued one that could start. Runs and ends are
events; what could start the last pass says (`events.Decided.ready`, only what changed: the number of PEs for
which each owner in each group has startable requests, at most the machine's). So between two passes W costs
nothing, however many wait, and a replay sees what was seen. An absence of less than `GRACE` is none: between
the end of a chain's link and the start of the next lies a pass.

*Time* passes in steps: every event that changes a rate, W, or the terms first lets the time since the last
one pass at the rates that held (`Level.advance`), in pieces of at most `PIECE` since the target bends with
the long account. Between two events nothing is computed. A running request counts as charged at its *rate*
(`Request.rate`); when its use is told, the difference to what was counted is corrected at once
(`Level.correct`), in its own account and, as part of what all were entitled to, in everybody's. Sums of rates
are whole numbers, and everything is added up in the order of names, so that the same events give the same
digits.

The groups' level knows the whole machine. Each group's users are a level of their own, of equal weight, over
the PEs that the group holds; it only moves on with events of that group.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from nqspy.model.division import Division, alike
from nqspy.model.ids import HOUR, MINUTE, Instant
from nqspy.model.owed import PE, Entry, Terms, Work, faded
from nqspy.model.people import Group

PIECE = 10 * MINUTE
PIECES = 200
"""A long time is computed in pieces: of that length, at most so many."""

GRACE = MINUTE
"""Who leaves W and is back before that time had not left."""

KEPT = 0.06
"""A group that is back before all others together were charged b meanwhile (the whole site was idle, a shift
had stopped its queue) comes with its own S, as far as this part of b: L has the rest. With none of it weeks
of nights drift by a point, with much of it the evenings pay for the mornings at once."""


class Standing(NamedTuple):
    """Of each member of a level: e, a and S."""

    parts: dict[str, float]
    targets: dict[str, float]
    present: dict[str, float]


class Level:
    """Those who share: the groups, or the users of one group. ``find`` gives the entry of a name, made where
    there is none, ``peek`` only one that is there, ``key`` what stands before names in keys of accounts;
    ``divide`` the entitlements of those who want so many PEs; ``cuts``: nobody's wish counts there for more
    than all PEs; ``owes`` False: it is only added up what each was entitled to and got, nobody is owed the
    difference. ``spent``: what all were charged while time passed, ever (the groups' level only)."""

    def __init__(
        self,
        find: Callable[[str], Entry],
        peek: Callable[[str], Entry | None],
        divide: Callable[[Mapping[str, int]], dict[str, float]],
        cuts: bool = False,
        owes: bool = True,
        key: str = "",
    ) -> None:
        self._key, self._keys = key, list[str]()
        self._find, self._peek, self._divide, self._cuts, self._owes = find, peek, divide, cuts, owes
        self.work: dict[str, Work] = {}
        self.at = Instant(0)
        self.spent: float | None = None
        self._entries: dict[str, Entry] = {}
        self._parts: dict[str, float] | None = None
        # Entitlements and targets as they were in the time that passed last.
        self._held: tuple[dict[str, float], dict[str, float]] | None = None
        # S of all members lies within this; None: not known.
        self._within: float | None = None

    def members(self) -> Mapping[str, Entry]:
        """Who is in W, in the order of names."""
        return self._entries

    def keys(self) -> Sequence[str]:
        """Keys of their accounts."""
        if len(self._keys) != len(self._entries):
            self._keys = [self._key + name for name in self._entries]
        return self._keys

    def copy(self) -> "Level":
        """A copy that can go on by itself."""

        def find(name: str) -> Entry:
            entry = self._peek(name)
            return entry.copy() if entry is not None else Entry()

        made = Level(find, find, self._divide, self._cuts, self._owes, self._key)
        made.work = {name: Work(work.rate, work.pes, work.ready) for name, work in self.work.items()}
        made.at, made.spent, made._parts, made._held = self.at, self.spent, self._parts, self._held
        made._within = self._within
        made._entries = {name: entry.copy() for name, entry in self._entries.items()}
        return made

    # ------------------------------------------------------------ what holds

    def parts(self) -> dict[str, float]:
        """e: the entitlement of each member, of the whole."""
        if self._parts is None:
            wanted = {name: self.work[name].wanted for name in self._entries}
            self._parts = self._divide(wanted) if wanted else {}
        return self._parts

    def targets(self, terms: Terms, left: float = 1.0) -> dict[str, float]:
        """a: the entitlements, bent by so much of the past."""
        parts = self.parts()
        if not terms.payback or len(parts) < 2 or not self._owes:
            return parts
        unit, payback, bent = max(1, terms.pes) * HOUR, terms.payback, {}
        for name, entry in self._entries.items():
            past = entry.past * left / unit
            bent[name] = parts[name] * (1 + payback * (1.0 if past > 1.0 else -1.0 if past < -1.0 else past))
        whole = sum(bent.values())
        return {name: part / whole for name, part in bent.items()} if whole else parts

    def rate(self) -> int:
        """R: what all are charged (thousandths of a PE)."""
        work = self.work
        return sum([work[name].rate for name in self._entries])

    def standing(self, terms: Terms) -> "Standing":
        """How the members stand."""
        return Standing(
            self.parts(), self.targets(terms), {name: entry.present for name, entry in self._entries.items()}
        )

    def resting(self, to: Instant, terms: Terms) -> "Standing":
        """How they will stand at a later instant if nobody is charged until then. Nothing is changed."""
        left, most = 2.0 ** (-float(max(0, to - self.at)) / terms.half_life), terms.bound
        present = {name: entry.present for name, entry in self._entries.items()}
        if any(abs(each) > most for each in present.values()):
            present = {name: terms.clipped(each) for name, each in present.items()}
        return Standing(self.parts(), self.targets(terms, left), present)

    # ------------------------------------------------------------ time

    def advance(self, to: Instant, terms: Terms, corrected: bool = True) -> bool:
        """Lets time pass at the rates that hold; whether any account has changed. ``corrected`` False: nobody
        will `correct` that time."""
        if self._within != terms.bound:
            self._clip(terms)
        span = to - self.at
        self.at = max(self.at, to)
        if span <= 0:
            return False
        if not self._entries:
            self._held = None
            return False
        parts, targets = self.parts(), self.targets(terms)
        self._held = (parts, targets) if corrected else None
        rate = self.rate()
        if self.spent is not None:
            self.spent += rate * span / PE
        alone = not rate or len(self._entries) == 1
        pieces = 1 if alone else min(PIECES, ceil(span / PIECE))
        piece = span / pieces
        left = 2.0 ** (-piece / terms.half_life)
        if alone:
            self._alone(rate * span / PE, left)
            return True
        spread = faded(piece, terms.half_life)
        self._pass(piece, rate, left, spread, terms.bound, parts, targets)
        for _ in range(pieces - 1):
            self._pass(piece, rate, left, spread, terms.bound, parts, self.targets(terms))
        return True

    def _clip(self, terms: Terms) -> None:
        """S stays within b also when that has become less: an end changes the mean run."""
        most = terms.bound
        within, self._within = self._within, most
        if within is not None and within <= most:
            return
        for entry in self._entries.values():
            if abs(entry.present) > most:
                entry.present = terms.clipped(entry.present)

    def _pass(
        self,
        span: float,
        rate: int,
        left: float,
        spread: float,
        most: float,
        parts: Mapping[str, float],
        targets: Mapping[str, float],
    ) -> None:
        whole, work, at, owes = rate * span / PE, self.work, self.at, self._owes
        for name, entry in self._entries.items():
            used, due = work[name].rate * span / PE, parts[name] * whole
            entry.entitled += due
            entry.got += used
            entry.whole += whole
            if owes:
                entry.asof = at
                entry.past = entry.past * left + (due - used) * spread
                present = entry.present + targets[name] * whole - used
                entry.present = most if present > most else -most if present < -most else present

    def _alone(self, amount: float, left: float) -> None:
        """Who is the only member is entitled to what he gets; where nobody is charged only time passes."""
        for entry in self._entries.values():
            entry.asof = self.at
            entry.past *= left
            entry.entitled += amount
            entry.got += amount
            entry.whole += amount

    def correct(self, amounts: Mapping[str, float], terms: Terms) -> Iterable[str]:
        """So much more (or less) was used than was counted, by name, in the time that has just passed: it is
        divided as that was. Who was not in W then is left out. Answers whose accounts changed."""
        if self._within != terms.bound:
            self._clip(terms)
        if not any(amounts.values()):
            return ()
        parts, targets = self._held if self._held is not None else (self.parts(), self.targets(terms))
        amounts = {name: more for name, more in amounts.items() if more and name in parts}
        if not amounts:
            return ()
        whole, most, entries, owes = sum(amounts.values()), terms.bound, self._entries, self._owes
        for name, part in parts.items():
            used, due, entry = amounts.get(name, 0.0), part * whole, entries.get(name) or self._find(name)
            entry.entitled += due
            entry.got += used
            entry.whole += whole
            if owes:
                entry.past += due - used
                present = entry.present + targets[name] * whole - used
                entry.present = most if present > most else -most if present < -most else present
        return parts

    # ------------------------------------------------------------ who has work

    def change(self, more: Mapping[str, Work], terms: Terms) -> None:
        """What these do changes by so much, from the instant on to which time has passed."""
        coming: list[str] = []
        most = max(1, terms.pes)
        for name, change in more.items():
            work = self.work.get(name)
            if work is None:
                work = self.work[name] = Work()
            before = work.pes + work.ready
            work.add(change)
            wanted = work.pes + work.ready
            if wanted != before and not (self._cuts and wanted >= most and before >= most):
                self._parts = None
            if wanted > 0 and name not in self._entries:
                coming.append(name)
            elif wanted <= 0 and name in self._entries:
                entry = self._entries.pop(name)
                self._keys = []
                entry.away, entry.asof, entry.left = self.at, self.at, self.spent or 0.0
            if not (wanted or work.rate):
                del self.work[name]
        if coming:
            self._enter(coming, terms)

    def _present(self, entry: Entry, mean: float, terms: Terms) -> float:
        """S of one that enters W."""
        if entry.away and self.at - entry.away < GRACE:
            return terms.clipped(entry.present)
        missed = None if self.spent is None else self.spent - entry.left
        if not entry.away or missed is None or missed >= terms.bound:
            return mean
        most = KEPT * terms.bound
        return min(most, max(-most, entry.present))

    def _enter(self, names: Iterable[str], terms: Terms) -> None:
        others = [each.present for each in self._entries.values()]
        mean = sum(others) / len(others) if others else 0.0
        found = dict(self._entries)
        self._within = None
        for name in names:
            entry = found[name] = self._find(name)
            if entry.away is not None:
                entry.present = self._present(entry, mean, terms)
                entry.away, entry.asof = None, self.at
        self._entries, self._keys = dict(sorted(found.items())), []

    def forget(self) -> None:
        """What divides the whole has changed."""
        self._parts = None


@dataclass(slots=True)
class Balance:
    """The accounts of a site (or of a report that follows its events). ``find`` gives the entry of an
    account's key (``g:GROUP``, ``u:GROUP:USER``), made where there is none, ``peek`` one that is there;
    ``changed``: keys whose entries changed, until whoever keeps them has taken note."""

    find: Callable[[str], Entry]
    peek: Callable[[str], Entry | None]
    terms: Terms = field(default_factory=Terms)
    changed: set[str] = field(default_factory=set)
    _division: Division = field(default_factory=lambda: Division({}, 1))
    _users: dict[str, Level] = field(default_factory=dict)
    _ready: dict[str, int] = field(default_factory=dict)
    groups: Level = field(init=False)

    def __post_init__(self) -> None:
        self.groups = Level(
            lambda name: self.find(f"g:{name}"),
            lambda name: self.peek(f"g:{name}"),
            self._divide,
            cuts=True,
            key="g:",
        )
        self.groups.spent = 0.0

    def _divide(self, wanted: Mapping[str, int]) -> dict[str, float]:
        return self._division.parts(wanted)

    def is_bare(self, group: str) -> bool:
        """Whether a group has no share."""
        return self._division.is_bare(group)

    def users(self, group: str) -> Level:
        """The level of a group's users."""
        level = self._users.get(group)
        if level is None:
            level = Level(
                lambda name: self.find(f"u:{group}:{name}"),
                lambda name: self.peek(f"u:{group}:{name}"),
                lambda wanted: self._alike(group, wanted),
                key=f"u:{group}:",
            )
            level.at = self.groups.at
            self._users[group] = level
        return level

    def _alike(self, group: str, wanted: Mapping[str, int]) -> dict[str, float]:
        work = self.groups.work.get(group)
        return alike(wanted, max(1, work.pes if work is not None else 1))

    def tune(self, terms: Terms, groups: Mapping[str, Group]) -> None:
        """Other terms, other shares: from the instant on to which time has passed."""
        self.terms, self._division = terms, Division(groups, terms.pes, terms.machine or None)
        for level in (self.groups, *self._users.values()):
            level.forget()

    # ------------------------------------------------------------ what happens

    def advance(self, at: Instant, groups: Iterable[str] = ()) -> None:
        """Lets time pass for the groups, and for the users of these."""
        if self.groups.advance(at, self.terms):
            self.changed.update(self.groups.keys())
        for group in groups:
            level = self.users(group)
            if level.advance(at, self.terms):
                self.changed.update(level.keys())

    def advance_all(self, at: Instant) -> None:
        """Lets time pass for everybody: before the terms change."""
        self.advance(at, list(self._users))

    def change(self, group: str, owner: str, rate: int = 0, pes: int = 0, ready: int = 0) -> None:
        """What an owner in a group does changes by so much; time has passed before."""
        more, users = Work(rate, pes, ready), self.users(group)
        self.groups.change({group: more}, self.terms)
        users.change({owner: more}, self.terms)
        if pes:
            users.forget()
        self.changed.update((f"g:{group}", f"u:{group}:{owner}"))

    def ready(self, pairs: Iterable[tuple[str, int]], at: Instant) -> None:
        """What a pass found startable: PEs by ``GROUP:USER``."""
        known = [(*pair.partition(":")[::2], pes) for pair, pes in pairs]
        self.advance(at, dict.fromkeys(group for group, _, _ in known))
        for group, owner, pes in known:
            self._ready[f"{group}:{owner}"] = pes
            entry = self.peek(f"u:{group}:{owner}")
            before = entry.ready if entry is not None else 0
            if pes != before:
                self.find(f"u:{group}:{owner}").ready = pes
                self.change(group, owner, ready=pes - before)

    def restore(self, group: str, owner: str, pes: int) -> None:
        """What a pass had said before a restart."""
        self.change(group, owner, ready=pes)
        self._ready[f"{group}:{owner}"] = pes

    def startable(self) -> Mapping[str, int]:
        """What a pass said last: PEs by ``GROUP:USER``; who is left out has none."""
        return self._ready

    def correct(self, amounts: Mapping[tuple[str, str], float]) -> None:
        """So much more was used than was counted, by (group, owner); time has passed before."""
        by_group: dict[str, dict[str, float]] = {}
        for (group, owner), more in amounts.items():
            by_group.setdefault(group, {})[owner] = more
        changed = self.groups.correct(
            {group: sum(each.values()) for group, each in by_group.items()}, self.terms
        )
        self.changed.update(["g:" + name for name in changed])
        for group, each in by_group.items():
            changed = self.users(group).correct(each, self.terms)
            self.changed.update([f"u:{group}:{name}" for name in changed])

    def begin_period(self, keys: Iterable[str]) -> None:
        """Another shift is in force: what each was entitled to and got is counted anew; time has passed
        before."""
        for key in keys:
            entry = self.find(key)
            if entry.whole:
                entry.entitled = entry.got = entry.whole = 0.0
                self.changed.add(key)
