"""One level of the deficit rule: those who share it, their two accounts, and how time passes for them
(`balance` has the rule).

What is done for all who have work is done many times a second of a busy site, so they stand side by side in
`_Members`, and nothing is looked up by name in a loop.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from nqspy.model.ids import HOUR, MINUTE, Instant
from nqspy.model.owed import PE, Entry, Terms, Work, faded

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


class _Members(NamedTuple):
    """Who is in W, in the order of names: their keys, entries and work, side by side."""

    names: list[str]
    keys: list[str]
    entries: list[Entry]
    work: list[Work]


class _Held(NamedTuple):
    """Entitlements and targets as they were in the time that passed last, of those who were in W then."""

    parts: Mapping[str, float]
    members: _Members
    each: Sequence[float]
    targets: Sequence[float]


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
        self._key = key
        self._find, self._peek, self._divide, self._cuts, self._owes = find, peek, divide, cuts, owes
        self.work: dict[str, Work] = {}
        self.at = Instant(0)
        self.spent: float | None = None
        self._entries: dict[str, Entry] = {}
        self._members: _Members | None = None
        self._parts: dict[str, float] | None = None
        self._each: Sequence[float] = ()
        self._held: _Held | None = None
        # S of all members lies within this; None: not known.
        self._within: float | None = None

    def members(self) -> Mapping[str, Entry]:
        """Who is in W, in the order of names."""
        return self._entries

    def keys(self) -> Sequence[str]:
        """Keys of their accounts."""
        return self._side_by_side().keys

    def _side_by_side(self) -> _Members:
        if self._members is None:
            entries = self._entries
            self._members = _Members(
                list(entries),
                [self._key + name for name in entries],
                list(entries.values()),
                [self.work[name] for name in entries],
            )
        return self._members

    def _entered_or_left(self, entries: dict[str, Entry]) -> None:
        self._entries, self._members, self._parts = entries, None, None

    def copy(self) -> "Level":
        """A copy that can go on by itself."""

        def find(name: str) -> Entry:
            entry = self._peek(name)
            return entry.copy() if entry is not None else Entry()

        made = Level(find, find, self._divide, self._cuts, self._owes, self._key)
        made.work = {name: Work(work.rate, work.pes, work.ready) for name, work in self.work.items()}
        made.at, made.spent, made._parts, made._each = self.at, self.spent, self._parts, self._each
        made._within = self._within
        made._entries = {name: entry.copy() for name, entry in self._entries.items()}
        if (held := self._held) is not None:
            entries = [made._entries.get(name) or find(name) for name in held.members.names]
            made._held = held._replace(members=held.members._replace(entries=entries))
        return made

    # ------------------------------------------------------------ what holds

    def parts(self) -> dict[str, float]:
        """e: the entitlement of each member, of the whole."""
        if self._parts is None:
            wanted = {name: self.work[name].wanted for name in self._entries}
            self._parts = found = self._divide(wanted) if wanted else {}
            self._each = [found[name] for name in wanted]
        return self._parts

    def targets(self, terms: Terms, left: float = 1.0) -> dict[str, float]:
        """a: the entitlements, bent by so much of the past."""
        return dict(zip(self._entries, self._bent(terms, left), strict=True))

    def _bent(self, terms: Terms, left: float = 1.0) -> Sequence[float]:
        """The same, side by side."""
        self.parts()
        parts, payback = self._each, terms.payback
        if not payback or len(parts) < 2 or not self._owes:
            return parts
        unit, each = max(1, terms.pes) * HOUR, zip(self._side_by_side().entries, parts, strict=True)
        bent = [
            part * (1 + payback * (past if -1.0 <= past <= 1.0 else 1.0 if past > 0.0 else -1.0))
            for entry, part in each
            for past in (entry.past * left / unit,)
        ]
        whole = sum(bent)
        return [part / whole for part in bent] if whole else parts

    def rate(self) -> int:
        """R: what all are charged (thousandths of a PE)."""
        return sum([each.rate for each in self._side_by_side().work])

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
        targets, members = self._bent(terms), self._side_by_side()
        self._held = _Held(self.parts(), members, self._each, targets) if corrected else None
        rate = self.rate()
        if self.spent is not None:
            self.spent += rate * span / PE
        alone = not rate or len(members.entries) == 1
        pieces = 1 if alone else min(PIECES, ceil(span / PIECE))
        piece = span / pieces
        left = 2.0 ** (-piece / terms.half_life)
        if alone:
            self._alone(rate * span / PE, left)
            return True
        spread = faded(piece, terms.half_life)
        self._pass(piece, rate, left, spread, terms.bound, targets)
        for _ in range(pieces - 1):
            self._pass(piece, rate, left, spread, terms.bound, self._bent(terms))
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
        self, span: float, rate: int, left: float, spread: float, most: float, targets: Sequence[float]
    ) -> None:
        whole, at, owes, members = rate * span / PE, self.at, self._owes, self._side_by_side()
        for entry, work, part, target in zip(members.entries, members.work, self._each, targets, strict=True):
            used, due = work.rate * span / PE, part * whole
            entry.entitled += due
            entry.got += used
            entry.whole += whole
            if owes:
                entry.asof = at
                entry.past = entry.past * left + (due - used) * spread
                present = entry.present + target * whole - used
                entry.present = most if present > most else -most if present < -most else present

    def _alone(self, amount: float, left: float) -> None:
        """Who is the only member is entitled to what he gets; where nobody is charged only time passes."""
        for entry in self._entries.values():
            entry.asof = self.at
            entry.past *= left
            entry.entitled += amount
            entry.got += amount
            entry.whole += amount

    def correct(self, amounts: Mapping[str, float], terms: Terms) -> Collection[str]:
        """So much more (or less) was used than was counted, by name, in the time that has just passed: it is
        divided as that was. Who was not in W then is left out. Answers the keys of accounts that changed."""
        if self._within != terms.bound:
            self._clip(terms)
        if not any(amounts.values()):
            return ()
        held = self._held or _Held(self.parts(), self._side_by_side(), self._each, self._bent(terms))
        amounts = {name: more for name, more in amounts.items() if more and name in held.parts}
        if not amounts:
            return ()
        whole, most, owes, members = sum(amounts.values()), terms.bound, self._owes, held.members
        for name, entry, part, target in zip(
            members.names, members.entries, held.each, held.targets, strict=True
        ):
            used, due = amounts.get(name, 0.0), part * whole
            entry.entitled += due
            entry.got += used
            entry.whole += whole
            if owes:
                entry.past += due - used
                present = entry.present + target * whole - used
                entry.present = most if present > most else -most if present < -most else present
        return members.keys

    def charge(self, to: Instant, amounts: Mapping[str, float], terms: Terms) -> Collection[str]:
        """Lets time pass and corrects it by these amounts, as `advance` and `correct` one after the other do;
        in one go where that is a single step. Answers the keys of accounts that changed."""
        span = to - self.at
        if not 0 < span <= PIECE or len(self._entries) < 2 or not self._owes or not self.rate():
            passed = self.advance(to, terms)
            return self.correct(amounts, terms) or (self.keys() if passed else ())
        if self._within != terms.bound:
            self._clip(terms)
        self.at = to
        members, targets = self._side_by_side(), self._bent(terms)
        self._held = held = _Held(self.parts(), members, self._each, targets)
        amounts = {name: more for name, more in amounts.items() if name in held.parts}
        self._charge(span, amounts, held, terms)
        return members.keys

    def _charge(self, span: int, amounts: Mapping[str, float], held: _Held, terms: Terms) -> None:
        at, rate, most, whole_more = self.at, self.rate(), terms.bound, sum(amounts.values())
        whole, left, spread = rate * span / PE, 2.0 ** (-span / terms.half_life), faded(span, terms.half_life)
        if self.spent is not None:
            self.spent += whole
        for name, entry, work, part, target in zip(
            held.members.names, held.members.entries, held.members.work, held.each, held.targets, strict=True
        ):
            used, due = work.rate * span / PE, part * whole
            more, due_more = amounts.get(name, 0.0), part * whole_more
            entry.entitled = entry.entitled + due + due_more
            entry.got = entry.got + used + more
            entry.whole = entry.whole + whole + whole_more
            entry.asof = at
            entry.past = entry.past * left + (due - used) * spread + (due_more - more)
            present = entry.present + target * whole - used
            present = most if present > most else -most if present < -most else present
            present = present + target * whole_more - more
            entry.present = most if present > most else -most if present < -most else present

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
                entry = self._entries[name]
                self._entered_or_left({key: each for key, each in self._entries.items() if key != name})
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
        self._entered_or_left(dict(sorted(found.items())))

    def forget(self) -> None:
        """What divides the whole has changed."""
        self._parts = None
