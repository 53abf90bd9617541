"""A level of the deficit rule: its members, their two accounts, and the passing of time (`balance` has the
rule). A busy site computes all members with work many times a second, so they are kept side by side in
`_Rows`, and no loop looks up names."""
# ruff: noqa: B905 - what stands in `_Rows` is as long by its making; ``strict`` takes as long as three rounds

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

import msgspec
from msgspec.structs import force_setattr, replace

from nqspy.model.accounts import Entry, remaining, remaining_of_even
from nqspy.model.ids import HOUR, MINUTE, Instant

PE = 1000
"""Rate at which one busy PE is charged: ms in a second."""

UNKNOWN_RUN = HOUR
"""Mean run time before any request has ended, ms."""

SHORTEST = 1_000
"""Least time (ms) used as mean run time, so that the bound b does not become 0."""


PIECE = 10 * MINUTE
PIECES = 200
"""Length (ms) of the pieces in which a long time is computed, and most pieces."""

GRACE = MINUTE
"""Time (ms): a member that leaves W and is back sooner counts as if it had not left."""

OWN_PART = 0.06
"""A group that is back before all others together were charged b meanwhile (the whole site was idle, a shift
had stopped its queue) comes with its own S, as far as this part of b: L has the rest. With none of it weeks
of nights drift by a point, with much of it the evenings pay for the mornings at once."""


class Terms(msgspec.Struct, frozen=True):
    """Terms of the deficit rule: ``pes``; ``half_life`` (ms); ``payback`` p (a fraction); ``run``: mean run
    time of the last ended requests (ms); ``machine``: PEs of all domains (0: these)."""

    pes: int = 1
    half_life: int = 24 * HOUR
    payback: float = 0.2
    run: float = UNKNOWN_RUN
    machine: int = 0
    bound: float = 0.0
    """b: what all PEs are charged in the time of a mean run (ms)."""
    hour: float = 0.0
    """Charge of all PEs in an hour (ms). A long account L of that much, or more, bends a target by p."""

    def __post_init__(self) -> None:
        pes = max(1, self.pes)
        force_setattr(self, "bound", pes * max(self.run, SHORTEST))
        force_setattr(self, "hour", float(pes * HOUR))

    def clipped(self, present: float) -> float:
        """Return ``present``, the account S of a member (ms), limited to the range from -b to b."""
        return min(max(present, -self.bound), self.bound)


class Work(msgspec.Struct):
    """Work of a member, charged at ``rate`` (1/1000 PE) on ``pes`` PEs; ``ready``: PEs that could start."""

    rate: int = 0
    pes: int = 0
    ready: int = 0


class Standing(NamedTuple):
    """Entitlement e (``parts``), target a and account S (``present``, ms) of a level's members, by name."""

    parts: dict[str, float]
    targets: dict[str, float]
    present: dict[str, float]


class _Rows(msgspec.Struct, frozen=True):
    """Members of W side by side, in the order of names; ``each``: entitlements (by name: ``parts``)."""

    names: list[str]
    keys: list[str]
    entries: list[Entry]
    work: list[Work]
    each: list[float]
    parts: dict[str, float]


_Held = tuple[_Rows, list[float]]
"""Members of W in the time that passed last, with the entitlements and targets of then."""


_Used = tuple[list[float], float]
"""Use of each member of `_Rows`, and the sum."""


def _used(amounts: Mapping[str, float], rows: _Rows) -> _Used | None:
    """Return the amounts of members in the order of ``rows``, and their sum; None: no member has one."""
    found = {name: more for name, more in amounts.items() if more and name in rows.parts}
    return ([found.get(name, 0.0) for name in rows.names], sum(found.values())) if found else None


Divide = Callable[[Mapping[str, int]], dict[str, float]]
"""Function that returns the entitlements of members that want so many PEs."""


class Level:
    """Members that share: the groups, or the users of one group. ``work``: of each; ``at``: how far time has
    passed. ``find`` returns the entry of a name, creating it, ``peek`` only an existing one; ``key``:
    beginning of the accounts' keys. ``divide`` returns entitlements of members that want so many PEs;
    ``cuts``: none counts for more than all PEs. ``spent``: use charged to all so far (groups only)."""

    def __init__(
        self,
        find: Callable[[str], Entry],
        peek: Callable[[str], Entry | None],
        divide: Divide,
        cuts: bool = False,
        key: str = "",
    ) -> None:
        self._key = key
        self._find, self._peek, self._divide, self._cuts = find, peek, divide, cuts
        self.work: dict[str, Work] = {}
        self.at = Instant(0)
        self.spent: float | None = None
        self._entries: dict[str, Entry] = {}
        self._rows: _Rows | None = None  # until other parts hold
        self._held: _Held | None = None
        # S of all members lies within this; None: not known.
        self._within: float | None = None

    def members(self) -> Mapping[str, Entry]:
        """Return the entries of the members with work (W, see `balance`) by name, in the order of names."""
        return self._entries

    def keys(self) -> Sequence[str]:
        """Return the keys of the accounts of the members of W."""
        return self._side_by_side().keys

    def _side_by_side(self) -> _Rows:
        if self._rows is None:
            names, work = list(self._entries), [self.work[name] for name in self._entries]
            parts = self._divide({name: each.pes + each.ready for name, each in zip(names, work)})
            keys, entries = [self._key + name for name in names], list(self._entries.values())
            self._rows = _Rows(names, keys, entries, work, [parts[name] for name in names], parts)
        return self._rows

    def copy(self) -> "Level":
        """Return an independent copy."""

        def find(name: str) -> Entry:
            entry = self._peek(name)
            return entry.copy() if entry is not None else Entry()

        made = Level(find, find, self._divide, self._cuts, self._key)
        made.at, made.spent, made._within = self.at, self.spent, self._within
        made.work = {name: Work(work.rate, work.pes, work.ready) for name, work in self.work.items()}
        made._entries = {name: entry.copy() for name, entry in self._entries.items()}
        rows, entries = self._side_by_side(), list(made._entries.values())
        made._rows = replace(rows, entries=entries, work=[made.work[name] for name in rows.names])
        if self._held is not None:
            then, targets = self._held
            if then.names != rows.names:
                entries = [made._entries.get(name) or find(name) for name in then.names]
            made._held = replace(then, entries=entries), targets
        return made

    # ------------------------------------------------------------ what holds

    def parts(self) -> dict[str, float]:
        """Return the entitlement e of each member of W, as a fraction of the whole."""
        return self._side_by_side().parts

    def targets(self, terms: Terms, fraction: float = 1.0) -> dict[str, float]:
        """Return the target a of each member of W: its entitlement, raised or lowered by its long account L
        (of which this ``fraction`` counts)."""
        rows = self._side_by_side()
        return dict(zip(rows.names, self._bent(rows, terms, fraction), strict=True))

    def _bent(self, rows: _Rows, terms: Terms, fraction: float = 1.0) -> list[float]:
        """Return the targets of these members, side by side."""
        parts, payback, hour = rows.each, terms.payback, terms.hour
        if not payback or len(parts) < 2:
            return parts
        pasts, least = [entry.past * fraction for entry in rows.entries], -hour
        bent = [
            part * (1.0 + payback * (1.0 if past > hour else -1.0 if past < least else past / hour))
            for past, part in zip(pasts, parts)
        ]
        whole = sum(bent)
        return [part / whole for part in bent] if whole else parts

    def standing(self, terms: Terms, to: Instant | None = None) -> Standing:
        """Return entitlements, targets and accounts S as of `at`, or as of a later instant ``to`` if nothing
        is charged until then."""
        fraction = 1.0 if to is None or to <= self.at else remaining(to - self.at, terms.half_life)
        present = {name: terms.clipped(entry.present) for name, entry in self._entries.items()}
        return Standing(self.parts(), self.targets(terms, fraction), present)

    # ------------------------------------------------------------ time

    def advance(self, to: Instant, terms: Terms) -> Collection[str]:
        """Let time pass at the present rates up to ``to``; return the keys of the accounts that changed."""
        return () if to <= self.at and self._within == terms.bound else self.charge(to, {}, terms)

    def charge(self, to: Instant, amounts: Mapping[str, float], terms: Terms) -> Collection[str]:
        """Let time pass up to ``to`` at the present rates, and charge also ``amounts`` (ms by name) that
        rates did not count. Return the keys of the accounts that changed."""
        if self._within != terms.bound:
            self._clip(terms)
        span = to - self.at
        if span <= 0:
            return self.correct(amounts, terms)
        self.at = to
        if not self._entries:
            self._held = None
            return ()
        rows = self._side_by_side()
        targets, rates = self._bent(rows, terms), [work.rate for work in rows.work]
        self._held, rate, alone = (rows, targets), sum(rates), len(rates) == 1
        if self.spent is not None:
            self.spent += rate * span / PE
        pieces = 1 if span <= PIECE or alone or not rate else min(PIECES, ceil(span / PIECE))
        piece = span / pieces if pieces > 1 else span
        fraction, spread = remaining(piece, terms.half_life), remaining_of_even(piece, terms.half_life)
        used, nothing = ([each * piece / PE for each in rates], rate * piece / PE), ([0.0] * len(rates), 0.0)
        held, more = targets, (_used(amounts, rows) if amounts else None) or nothing
        for _ in range(1, pieces):
            self._step(rows, used, targets, nothing, held, terms, fraction, spread)
            targets = self._bent(rows, terms)
        self._step(rows, used, None if alone else targets, more, held, terms, fraction, spread)
        return rows.keys

    def _clip(self, terms: Terms) -> None:
        """Limit S of all members to the range from -b to b, because b may have become less."""
        most = terms.bound
        within, self._within = self._within, most
        if within is not None and within <= most:
            return
        least = -most
        for entry in self._entries.values():
            present = entry.present
            if present > most or present < least:
                entry.present = terms.clipped(present)

    def correct(self, amounts: Mapping[str, float], terms: Terms) -> Collection[str]:
        """Charge use by name (ms; negative: less) that rates did not count in the time that passed last;
        return keys of changed accounts. It is divided as that time was, without members that came since."""
        if self._within != terms.bound:
            self._clip(terms)
        if not amounts:
            return ()
        rows, targets = self._held or ((now := self._side_by_side()), self._bent(now, terms))
        if (more := _used(amounts, rows)) is None:
            return ()
        self._step(rows, ([0.0] * len(targets), 0.0), targets, more, targets, terms)
        return rows.keys

    def _step(
        self,
        rows: _Rows,
        used: _Used,
        targets: list[float] | None,
        more: _Used,
        held: list[float],
        terms: Terms,
        fraction: float = 1.0,
        spread: float = 1.0,
    ) -> None:
        """Charge what each member used, by ``targets`` (None: no member owes another), then what was not
        counted, by ``held``. ``fraction``: part of the past that stays after decay; ``spread``: of this use.
        """
        at, most, least = self.at, terms.bound, -terms.bound
        (each_used, whole), (each_more, extra) = used, more
        for entry, got, part, target, missed, then in zip(
            rows.entries, each_used, rows.each, targets or held, each_more, held
        ):
            due, due_extra = part * whole, part * extra
            entry.entitled = entry.entitled + due + due_extra
            entry.got = entry.got + got + missed
            entry.whole = entry.whole + whole + extra
            entry.asof = at
            entry.past = entry.past * fraction + (due - got) * spread + (due_extra - missed)
            present = entry.present
            if targets is not None:
                present = present + target * whole - got
                present = most if present > most else least if present < least else present
            present = present + then * extra - missed
            entry.present = most if present > most else least if present < least else present

    # ------------------------------------------------------------ who has work

    def change(self, more: Mapping[str, Work], terms: Terms) -> None:
        """Add ``more`` work to that of members by name, from now on. Members with new work enter W."""
        coming = [name for name, of in more.items() if self._add(name, of.rate, of.pes, of.ready, terms)]
        if coming:
            self._enter(coming, terms)

    def change_one(self, name: str, rate: int, pes: int, ready: int, terms: Terms) -> None:
        """Add to the work of one member, from now on: rate, PEs in use, PEs that could start."""
        if self._add(name, rate, pes, ready, terms):
            self._enter((name,), terms)

    def _add(self, name: str, rate: int, pes: int, ready: int, terms: Terms) -> bool:
        """Add to the work of one member. Return True if the member thereby enters W, to which the caller must
        add it."""
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
            self._entries, self._rows = {k: each for k, each in self._entries.items() if k != name}, None
            entry.away, entry.asof, entry.left = self.at, self.at, self.spent or 0.0
        if not (wanted or work.rate):
            del self.work[name]
        return wanted > 0 and name not in self._entries

    def _enter(self, names: Iterable[str], terms: Terms) -> None:
        others = [each.present for each in self._entries.values()]
        mean = sum(others) / len(others) if others else 0.0
        found = dict(self._entries)
        self._within = None
        for name in names:
            entry = found[name] = self._find(name)
            if entry.away is not None:
                missed = None if self.spent is None else self.spent - entry.left
                if entry.away and self.at - entry.away < GRACE:
                    entry.present = terms.clipped(entry.present)
                elif not entry.away or missed is None or missed >= terms.bound:
                    entry.present = mean
                else:
                    most = OWN_PART * terms.bound
                    entry.present = min(most, max(-most, entry.present))
                entry.away, entry.asof = None, self.at
        self._entries, self._rows = dict(sorted(found.items())), None

    def forget(self) -> None:
        """Drop the computed entitlements, so that they are computed anew after a change of shares."""
        self._rows = None
