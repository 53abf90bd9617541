"""How quotas were kept over a time, from the journal: the scheduler's own accounts, followed again
(`model.balance`), so that a report says of a past time what ``show shares`` said then.

Who has work is known from what runs and from what passes said could start (`events.Decided.ready`); of an
owner of whom none has spoken yet, as in journals of before, everything that is queued counts. Shares, PEs
and terms are those of the site as it is now.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from nqspy.model import events as ev
from nqspy.model.accounting import MEASURABLE
from nqspy.model.balance import Level
from nqspy.model.division import Division
from nqspy.model.domains import APPLICATION
from nqspy.model.ids import MINUTE, Instant, Seq
from nqspy.model.owed import PE, Entry, Work
from nqspy.model.requests import State, Used
from nqspy.model.site import Site
from nqspy.report.attempts import amount
from nqspy.report.over_time import Steps
from nqspy.report.replay import RequestHistory

_ENDS = (ev.Ended, ev.Requeued, ev.Exiting)
_RESTS = (ev.Suspended, ev.Exiting)
_RUNNING, _QUEUED = State.RUNNING, State.QUEUED


class QuotaSums(NamedTuple):
    """What a group was entitled to and was charged, what all were charged (ms), and how long it was (ms):
    while it had work, since the beginning."""

    entitled: float = 0.0
    got: float = 0.0
    whole: float = 0.0
    worked: float = 0.0

    def since(self, before: "QuotaSums") -> "QuotaSums":
        """Of the time since then."""
        return QuotaSums(*(now - then for now, then in zip(self, before, strict=True)))

    @property
    def deviation(self) -> float | None:
        """Deviation from entitlement in percentage points (`report.shares`); None where nothing was charged
        to anybody."""
        return (self.got - self.entitled) / self.whole * 100 if self.whole > 0 else None

    @property
    def parts(self) -> tuple[float | None, float | None]:
        """Entitled and got as fractions of what all were charged."""
        return (self.entitled / self.whole, self.got / self.whole) if self.whole > 0 else (None, None)


FLEETING = 15 * MINUTE
"""Work of less than this (ms), and of less than a tenth of the time of whoever had it longest, counts for no
largest deviation: what one charge less in a few seconds does to a department says nothing of its quota."""


def largest(sums: Mapping[str, QuotaSums]) -> float | None:
    """The largest deviation among these, without sign; None where there is none."""
    least = min(FLEETING, max((each.worked for each in sums.values()), default=0.0) / 10)
    found = [abs(s.deviation) for s in sums.values() if s.deviation is not None and s.worked >= least]
    return max(found, default=None)


@dataclass(slots=True)
class _Run:
    """An attempt that runs: charged so far and since when, at which rate it counts."""

    group: str
    pes: int
    rate: int
    charged: int
    since: Instant

    def counted(self, at: Instant) -> int:
        """What it counts as having used since then."""
        return round(self.rate * (at - self.since) / PE)


class QuotaAccounts:
    """The accounts of all domains followed from ``begin`` to ``end``, and before for who has work, and added
    up."""

    def __init__(self, site: Site, begin: Instant, end: Instant, step: int) -> None:
        self._each = [DomainAccounts(site, domain, begin, end, step) for domain in site.shared()]
        self.marks = self._each[0].marks
        self._sums: list[dict[str, QuotaSums]] | None = None

    @property
    def sums(self) -> list[dict[str, QuotaSums]]:
        """Those of each group at each of the marks passed so far."""
        if self._sums is None:
            self._sums = [_added_up(each) for each in zip(*(one.sums for one in self._each), strict=True)]
        return self._sums

    def take(self, recorded: ev.Recorded, histories: Mapping[Seq, RequestHistory]) -> None:
        """Takes one event, after ``histories`` have been moved on by it."""
        self._sums = None
        for each in self._each:
            each.take(recorded, histories)

    def sample(self, samples: Mapping[Seq, Used], at: Instant) -> None:
        """What running requests have used by now."""
        self._sums = None
        for each in self._each:
            each.sample(samples, at)

    def advance(self, to: Instant) -> None:
        """Lets time pass, to the end at most."""
        self._sums = None
        for each in self._each:
            each.advance(to)


def _added_up(those: Iterable[dict[str, QuotaSums]]) -> dict[str, QuotaSums]:
    """The sums of all domains; a group had work while it had some in any, at least as long as in one."""
    found: dict[str, QuotaSums] = {}
    for sums in those:
        for name, one in sums.items():
            other = found.get(name, QuotaSums())
            worked = max(one.worked, other.worked)
            found[name] = QuotaSums(
                one.entitled + other.entitled, one.got + other.got, one.whole + other.whole, worked
            )
    return found


class DomainAccounts(Steps):
    """Those of one domain; ``sums`` are those of each group at each of the marks passed so far."""

    def __init__(self, site: Site, domain: str, begin: Instant, end: Instant, step: int) -> None:
        super().__init__(begin, end, step)
        self.sums: list[dict[str, QuotaSums]] = []
        self._domain, self._domain_of = (
            domain,
            site.domains_by_queue(),
        )
        self._terms, self._charge = site.terms(domain), site.settings.usage.charge
        entries: dict[str, Entry] = {}
        division = Division(site.settings.groups, self._terms.pes)
        self._entries, self._worked, self._since = entries, dict[str, float](), dict[str, Instant]()
        self._level = Level(
            lambda name: entries.setdefault(name, Entry()), entries.get, division.parts, cuts=True
        )
        self._runs: dict[Seq, _Run] = {}
        self._still: dict[Seq, _Run] = {}
        self._known = {key[2:] for key, _ in site.accounts_in(domain) if key.startswith("u:")}
        self._booked: dict[Seq, int] = {}
        self._queued: dict[Seq, tuple[str, int]] = {}
        self._waiting: dict[str, int] = {}
        self._said: dict[str, int] = {}

    # ------------------------------------------------------------ time

    def _pass(self, to: Instant) -> None:
        if to > self._level.at:
            self._level.advance(to, self._terms)

    def _at_mark(self) -> None:
        """The sums at a mark; they begin at the first one."""
        if not self.sums:
            for entry in self._entries.values():
                entry.entitled = entry.got = entry.whole = 0.0
            self._worked.clear()
            self._since = dict.fromkeys(self._since, self._level.at)
        self.sums.append(self._now())

    def _now(self) -> dict[str, QuotaSums]:
        return {
            name: QuotaSums(entry.entitled, entry.got, entry.whole, self._work_of(name))
            for name, entry in self._entries.items()
        }

    def _work_of(self, name: str) -> float:
        """How long it has had work (ms)."""
        at = self._level.at
        return self._worked.get(name, 0.0) + at - self._since.get(name, at)

    # ------------------------------------------------------------ events

    def take(self, recorded: ev.Recorded, histories: Mapping[Seq, RequestHistory]) -> None:
        """Takes one event, after ``histories`` have been moved on by it."""
        event: Any = recorded.event
        at, kind = recorded.at, type(event)
        if kind is ev.Started or self.over:
            return
        if at != self._level.at:
            self.advance(at)
        if kind is ev.Decided:
            for seq, used in event.samples:
                self._book(seq, used, at)
            for key, pes in event.ready:
                domain, _, pair = key.rpartition("/")
                if (domain or APPLICATION) == self._domain:
                    self._say(pair, pes)
            return
        if kind in _ENDS:
            self._book(event.seq, event.used, at, last=True)
            self._still.pop(event.seq, None)
        elif kind is ev.Starting:
            self._booked[event.seq] = 0
        elif kind is ev.Resumed:
            self._go_on(event.seq, at)
        if kind in _RESTS:
            self._rest(event.seq, at)
            return
        for seq in (event.seq,) if hasattr(event, "seq") else getattr(event, "seqs", ()):
            history = histories.get(seq)
            if history is not None:
                self._look(history, at)

    def sample(self, samples: Mapping[Seq, Used], at: Instant) -> None:
        """What running requests have used by now."""
        self.advance(at)
        for seq, used in samples.items():
            self._book(seq, used, at)
        if self.sums and self.marks[-1] <= at:
            self.sums[-1] = self._now()

    def _look(self, history: RequestHistory, at: Instant) -> None:
        seq, spec = history.seq, history.spec
        state = history.state if self._is_mine(history.queue) else State.ENDED
        run, pes, group, rate, wide, more = self._runs.get(seq), spec.ask.pes, spec.group, 0, 0, 0
        if state is _RUNNING:
            if run is None and seq not in self._still:
                rate, wide = pes * PE, pes
                self._runs[seq] = _Run(group, pes, rate, self._booked.get(seq, 0), at)
        elif run is not None:
            group, rate, wide = run.group, -run.rate, -run.pes
            self._booked[seq] = run.charged + (run.counted(at) if history.ended is None else 0)
            del self._runs[seq]
        if state is _QUEUED:
            more = self._queue(seq, f"{spec.group}:{spec.owner}", pes)
        elif seq in self._queued:
            more = self._queue(seq, self._queued[seq][0], 0)
        if rate or wide or more:
            self._change(group, Work(rate, wide, more))

    def _is_mine(self, queue: str) -> bool:
        return self._domain_of.get(queue, APPLICATION) == self._domain

    def _rest(self, seq: Seq, at: Instant) -> None:
        """Suspended, or about to end: it is charged nothing more."""
        run = self._runs.pop(seq, None)
        if run is not None:
            run.charged += run.counted(at)
            self._still[seq] = run
            self._change(run.group, Work(-run.rate, -run.pes))

    def _go_on(self, seq: Seq, at: Instant) -> None:
        run = self._still.pop(seq, None)
        if run is not None:
            run.since = at
            self._runs[seq] = run
            self._change(run.group, Work(run.rate, run.pes))

    def _queue(self, seq: Seq, pair: str, pes: int) -> int:
        """Queues or takes it out; so many PEs more can its group start."""
        former, before = self._queued.pop(seq, (pair, 0))
        if pes:
            self._queued[seq] = (pair, pes)
        if before == pes:
            return 0
        self._waiting[former] = self._waiting.get(former, 0) - before
        self._waiting[pair] = self._waiting.get(pair, 0) + pes
        return 0 if pair in self._said or (self._known and pair not in self._known) else pes - before

    def _say(self, pair: str, pes: int) -> None:
        before = self._said.get(pair, self._waiting.get(pair, 0))
        self._said[pair] = pes
        self._change(pair.partition(":")[0], Work(ready=pes - before))

    def _change(self, group: str, more: Work) -> None:
        worked = group in self._since
        self._level.change({group: more}, self._terms)
        if worked is not (group in self._level.members()):
            if worked:
                self._worked[group] = self._work_of(group)
                del self._since[group]
            else:
                self._since[group] = self._level.at

    def _book(self, seq: Seq, used: Used, at: Instant, last: bool = False) -> None:
        run = self._runs.get(seq) or self._still.get(seq)
        if run is None:
            return
        span = max(0, at - run.since) if seq in self._runs else 0  # one that rests counts as using nothing
        more = amount(used, run.pes, self._charge) - run.charged
        self._level.correct({run.group: more - run.rate * span / PE}, self._terms)
        run.charged, run.since = run.charged + more, at
        if not last and span >= MEASURABLE and self._charge == "cpu":
            rate = max(0, round(more * PE / span))
            self._change(run.group, Work(rate - run.rate))
            run.rate = rate
