"""One level of the deficit rule: those who share it, their two accounts, and how time passes for them
(`balance` has the rule).

What is done for all who have work is done many times a second of a busy site, so they stand side by side in
`_Rows`, and nothing is looked up by name in a loop.
"""
# ruff: noqa: B905 - what stands in `_Rows` is as long by its making; ``strict`` takes as long as three rounds

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

import msgspec

from nqspy.model.ids import MINUTE, Instant
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


_Members = tuple[list[str], list[str], list[Entry], list[Work]]
"""Who is in W, in the order of names, side by side: names, keys, entries, work."""


class _Rows(msgspec.Struct, frozen=True):
    """The same with their entitlements, which ``parts`` has by name. (A Struct: to read a field of a named
    tuple takes several times as long.)"""

    names: list[str]
    keys: list[str]
    entries: list[Entry]
    work: list[Work]
    each: list[float]
    parts: dict[str, float]


_Held = tuple[_Rows, list[float]]
"""Who was in W in the time that passed last, with the entitlements and targets of then."""


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
        self._members: _Members | None = None  # until somebody enters or leaves
        self._rows: _Rows | None = None  # until other parts hold
        self._held: _Held | None = None
        # S of all members lies within this; None: not known.
        self._within: float | None = None

    def members(self) -> Mapping[str, Entry]:
        """Who is in W, in the order of names."""
        return self._entries

    def keys(self) -> Sequence[str]:
        """Keys of their accounts."""
        return self._side_by_side().keys

    def _side_by_side(self) -> _Rows:
        if self._rows is None:
            if self._members is None:
                names = list(self._entries)
                keys, work = [self._key + name for name in names], [self.work[name] for name in names]
                self._members = names, keys, list(self._entries.values()), work
            names, _, _, work = self._members
            wanted = {name: each.pes + each.ready for name, each in zip(names, work)}
            parts = self._divide(wanted)
            self._rows = _Rows(*self._members, [parts[name] for name in names], parts)
        return self._rows

    def _entered_or_left(self, entries: dict[str, Entry]) -> None:
        self._entries, self._members, self._rows = entries, None, None

    def copy(self) -> "Level":
        """A copy that can go on by itself."""

        def find(name: str) -> Entry:
            entry = self._peek(name)
            return entry.copy() if entry is not None else Entry()

        made, rows = Level(find, find, self._divide, self._cuts, self._owes, self._key), self._side_by_side()
        made.at, made.spent, made._within = self.at, self.spent, self._within
        made.work = {name: Work(work.rate, work.pes, work.ready) for name, work in self.work.items()}
        entries, work = [entry.copy() for entry in rows.entries], [made.work[name] for name in rows.names]
        made._entries = dict(zip(rows.names, entries, strict=True))
        made._members = rows.names, rows.keys, entries, work
        made._rows = _Rows(*made._members, rows.each, rows.parts)
        if self._held is not None:
            then, targets = self._held
            if then.names is not rows.names:  # others were in W
                entries = [made._entries.get(name) or find(name) for name in then.names]
            made._held = _Rows(then.names, then.keys, entries, then.work, then.each, then.parts), targets
        return made

    # ------------------------------------------------------------ what holds

    def parts(self) -> dict[str, float]:
        """e: the entitlement of each member, of the whole."""
        return self._side_by_side().parts

    def targets(self, terms: Terms, left: float = 1.0) -> dict[str, float]:
        """a: the entitlements, bent by so much of the past."""
        rows = self._side_by_side()
        pasts = None if left == 1.0 else [entry.past * left for entry in rows.entries]
        return dict(zip(rows.names, self._bent(rows, terms, pasts), strict=True))

    def _bent(self, rows: _Rows, terms: Terms, pasts: list[float] | None = None) -> list[float]:
        """The same, side by side; ``pasts``: instead of what their entries say."""
        parts, payback, hour = rows.each, terms.payback, terms.hour
        if not payback or len(parts) < 2 or not self._owes:
            return parts
        bent, least = list[float](), -hour
        for past, part in zip([entry.past for entry in rows.entries] if pasts is None else pasts, parts):
            bent.append(
                part * (1.0 + payback * (1.0 if past > hour else -1.0 if past < least else past / hour))
            )
        whole = sum(bent)
        return [part / whole for part in bent] if whole else parts

    def rate(self) -> int:
        """R: what all are charged (thousandths of a PE)."""
        return sum([work.rate for work in self._side_by_side().work])

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

    def corrected(self, amounts: Mapping[str, float], terms: Terms) -> "Standing | None":
        """How they would stand, who are owed, if so much more was used than was counted (`correct`); None
        where others are in W by now: a copy tells. Nothing is changed."""
        rows = self._side_by_side()
        then, targets = self._held or (rows, self._bent(rows, terms))
        if then.names is not rows.names:
            return None
        amounts = _of_those(rows, amounts)
        whole, most, least = sum(amounts.values()), terms.bound, -terms.bound
        pasts: list[float] = []
        present: dict[str, float] = {}
        for name, entry, part, target in zip(then.names, then.entries, then.each, targets):
            used, owed = amounts.get(name, 0.0), entry.present
            owed = (most if owed > most else least if owed < least else owed) + target * whole - used
            present[name] = most if owed > most else least if owed < least else owed
            pasts.append(entry.past + (part * whole - used))
        bent = self._bent(rows, terms, pasts)
        return Standing(rows.parts, dict(zip(rows.names, bent)), present)

    # ------------------------------------------------------------ time

    def advance(self, to: Instant, terms: Terms) -> bool:
        """Lets time pass at the rates that hold; whether any account has changed."""
        if to <= self.at and self._within == terms.bound:
            return False
        return bool(self.charge(to, {}, terms))

    def charge(self, to: Instant, amounts: Mapping[str, float], terms: Terms) -> Collection[str]:
        """Lets time pass and corrects it by these amounts, as `advance` and `correct` one after the other do.
        Answers the keys of accounts that changed."""
        if self._within != terms.bound:
            self._clip(terms)
        span = to - self.at
        if span <= 0:
            return self.correct(amounts, terms) if amounts else ()
        self.at = to
        if not self._entries:
            self._held = None
            return ()
        rows = self._rows or self._side_by_side()
        targets, rates = self._bent(rows, terms), [work.rate for work in rows.work]
        self._held, rate = (rows, targets), sum(rates)
        if self.spent is not None:
            self.spent += rate * span / PE
        if not rate or len(rates) == 1:
            self._alone(rate * span / PE, 2.0 ** (-span / terms.half_life))
            self.correct(amounts, terms)
            return rows.keys
        pieces = 1 if span <= PIECE else min(PIECES, ceil(span / PIECE))
        piece = span / pieces
        for _ in range(pieces - 1):
            self._pass(rows, rates, rate, targets, piece, terms)
            targets = self._bent(rows, terms)
        if amounts and self._owes:
            self._charge(rows, rates, rate, targets, piece, amounts, terms)
        else:
            self._pass(rows, rates, rate, targets, piece, terms)
            self.correct(amounts, terms)
        return rows.keys

    def _clip(self, terms: Terms) -> None:
        """S stays within b also when that has become less: an end changes the mean run."""
        most = terms.bound
        within, self._within = self._within, most
        if within is not None and within <= most:
            return
        least = -most
        for entry in self._entries.values():
            present = entry.present
            if present > most or present < least:
                entry.present = terms.clipped(present)

    def _pass(
        self, rows: _Rows, rates: list[int], rate_of_all: int, targets: list[float], span: float, terms: Terms
    ) -> None:
        """A piece of time."""
        whole, at, owes, most, least = rate_of_all * span / PE, self.at, self._owes, terms.bound, -terms.bound
        left, spread = 2.0 ** (-span / terms.half_life), faded(span, terms.half_life)
        for entry, rate, part, target in zip(rows.entries, rates, rows.each, targets):
            used = rate * span / PE
            due = part * whole
            entry.entitled += due
            entry.got += used
            entry.whole += whole
            if owes:
                entry.asof = at
                entry.past = entry.past * left + (due - used) * spread
                present = entry.present + target * whole - used
                entry.present = most if present > most else least if present < least else present

    def _charge(
        self,
        rows: _Rows,
        rates: list[int],
        rate_of_all: int,
        targets: list[float],
        span: float,
        amounts: Mapping[str, float],
        terms: Terms,
    ) -> None:
        """The last piece, as `_pass`, and the correction of the whole time, as `correct`, in one go."""
        at, most, least, (_, held) = self.at, terms.bound, -terms.bound, self._held or (rows, targets)
        left, spread = 2.0 ** (-span / terms.half_life), faded(span, terms.half_life)
        amounts = _of_those(rows, amounts)
        whole, whole_more = rate_of_all * span / PE, sum(amounts.values())
        for name, entry, rate, part, target, then in zip(
            rows.names, rows.entries, rates, rows.each, targets, held
        ):
            used = rate * span / PE
            more = amounts.get(name, 0.0)
            due = part * whole
            due_more = part * whole_more
            entry.entitled = entry.entitled + due + due_more
            entry.got = entry.got + used + more
            entry.whole = entry.whole + whole + whole_more
            entry.asof = at
            entry.past = entry.past * left + (due - used) * spread + (due_more - more)
            present = entry.present + target * whole - used
            if present > most:
                present = most
            elif present < least:
                present = least
            present = present + then * whole_more - more
            entry.present = most if present > most else least if present < least else present

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
        rows, targets = self._held or ((now := self._side_by_side()), self._bent(now, terms))
        theirs = _of_those(rows, amounts)
        if theirs is not amounts and not any(theirs.values()):
            return ()
        whole, most, least, owes = sum(theirs.values()), terms.bound, -terms.bound, self._owes
        for name, entry, part, target in zip(rows.names, rows.entries, rows.each, targets):
            used = theirs.get(name, 0.0)
            due = part * whole
            entry.entitled += due
            entry.got += used
            entry.whole += whole
            if owes:
                entry.past += due - used
                present = entry.present + target * whole - used
                entry.present = most if present > most else least if present < least else present
        return rows.keys

    # ------------------------------------------------------------ who has work

    def change(self, more: Mapping[str, Work], terms: Terms) -> None:
        """What these do changes by so much, from the instant on to which time has passed."""
        coming = [name for name, of in more.items() if self._add(name, of.rate, of.pes, of.ready, terms)]
        if coming:
            self._enter(coming, terms)

    def change_one(self, name: str, rate: int, pes: int, ready: int, terms: Terms) -> None:
        """The same of one."""
        if self._add(name, rate, pes, ready, terms):
            self._enter((name,), terms)

    def _add(self, name: str, rate: int, pes: int, ready: int, terms: Terms) -> bool:
        """The same of one, but for its entering W: answers whether it does."""
        work = self.work.get(name)
        if work is None:
            work = self.work[name] = Work()
        before = work.pes + work.ready
        wanted = before + pes + ready
        work.rate += rate
        if pes or ready:
            work.pes += pes
            work.ready += ready
        if wanted != before:
            most = max(1, terms.pes) if self._cuts else None
            if most is None or wanted < most or before < most:
                self._rows = None
        if wanted <= 0 and name in self._entries:
            entry = self._entries[name]
            self._entered_or_left({key: each for key, each in self._entries.items() if key != name})
            entry.away, entry.asof, entry.left = self.at, self.at, self.spent or 0.0
        if not (wanted or work.rate):
            del self.work[name]
        return wanted > 0 and name not in self._entries

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
        self._rows = None


def _of_those(rows: _Rows, amounts: Mapping[str, float]) -> Mapping[str, float]:
    """The amounts of those who are in W."""
    parts = rows.parts
    for name in amounts:  # mostly one or two
        if name not in parts:
            return {name: more for name, more in amounts.items() if name in parts}
    return amounts
