"""How quotas were kept over a time, from the journal: the scheduler's own accounts, followed again
(`model.balance`), so that a report says of a past time what ``show shares`` said then.

Who has work is known from what runs and from what passes said could start (`events.Decided.ready`); of an
owner of whom none has spoken yet, as in journals of before, everything that is queued counts. Shares,
domains, PEs and terms are those that held at each instant (`site_then`); the measure is that of now.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple

from nqspy.model import events as ev
from nqspy.model.charging import amount, begun, charged, counted, uncharged
from nqspy.model.division import Division
from nqspy.model.domains import APPLICATION
from nqspy.model.ids import MINUTE, Instant, Seq
from nqspy.model.level import Level
from nqspy.model.owed import Entry, Work
from nqspy.model.requests import Attempt, Request, Spec, State, Used
from nqspy.model.site import Site
from nqspy.report.over_time import Steps
from nqspy.report.site_then import SiteThen

_ENDS = (ev.Ended, ev.Requeued, ev.Exiting)


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


class QuotaAccounts(Steps):
    """The accounts of all domains, followed from ``begin`` to ``end`` while requests are (`replay.Watcher`),
    and before for who has work, and added up: ``sums`` are those of each group at each of the marks passed so
    far."""

    def __init__(self, then: SiteThen, charge: str, begin: Instant, end: Instant, step: int) -> None:
        super().__init__(begin, end, step)
        self.sums: list[dict[str, QuotaSums]] = []
        self._then, self._charge = then, charge
        self._at = Instant(0)
        self._each: dict[str, DomainAccounts] = {}
        self._of_queue: dict[str, DomainAccounts] = {}
        self._tune()
        self._runs: dict[Seq, Request] = {}
        self._gone: tuple[DomainAccounts, str, Work] | None = None
        self._closed = False

    def _tune(self) -> None:
        """Other settings hold from now on; the accounts of a domain that is gone are kept."""
        site = self._then.site
        for domain in site.shared():
            if domain in self._each:
                self._each[domain].tune(site)
            else:
                self._each[domain] = DomainAccounts(site, domain, self._at)
        self._of_queue = {queue: self._each[name] for queue, name in site.domains_by_queue().items()}

    # ------------------------------------------------------------ time

    def _pass(self, to: Instant) -> None:
        for each in self._each.values():
            if to > each.level.at:
                each.level.advance(to, each.terms)

    def _at_mark(self) -> None:
        """The sums at a mark; they begin at the first one."""
        if not self.sums:
            for each in self._each.values():
                each.begin()
        self.sums.append(self._now())

    def _now(self) -> dict[str, QuotaSums]:
        """Of all domains; a group had work while it had some in any, at least as long as in one."""
        found: dict[str, QuotaSums] = {}
        for each in self._each.values():
            for name, entry in each.entries.items():
                entitled, got, whole, worked = found.get(name, QuotaSums())
                found[name] = QuotaSums(
                    entitled + entry.entitled,
                    got + entry.got,
                    whole + entry.whole,
                    max(worked, each.work_of(name)),
                )
        return found

    # ------------------------------------------------------------ events

    def take(self, recorded: ev.Recorded) -> None:
        """Takes one event, before the requests it concerns leave their places."""
        event, at = recorded.event, recorded.at
        self._closed = self.over
        if self._closed or isinstance(event, ev.Started):
            return
        if at != self._at:
            self._at = at
            self.advance(at)
        if self._then.take(recorded):
            self._tune()
        if isinstance(event, ev.Decided):
            for seq, used in event.samples:
                self._told(seq, used, at)
            for key, pes in event.ready:
                domain, _, pair = key.rpartition("/")
                if (found := self._each.get(domain or APPLICATION)) is not None:
                    found.say(pair, pes)

    def leave(self, request: Request, event: Any, at: Instant) -> None:
        """It waits no more, or is charged what it used, or counts as having used, and nothing more."""
        if self._closed:
            return
        mine, run, spec, gone = self._of(request), request.attempt, request.spec, Work()
        if request.state is State.QUEUED:
            gone.ready = mine.wait(spec, -spec.ask.pes * request.multiplicity)
        elif run is not None and run.charged_at is not None:
            if isinstance(event, _ENDS):
                request.attempt = self._booked(request, event.used, at)
            else:
                more, span = round(counted(request, at)), uncharged(run, at)
                request.attempt = charged(request, run.used, more, at, span, self._charge)
            if request.state is State.RUNNING:
                gone = Work(-run.rate, -spec.ask.pes)
        self._gone = mine, spec.group, gone

    def enter(self, request: Request, at: Instant) -> None:
        """It waits, or is charged from now on."""
        if self._closed:
            return
        mine, spec, more = self._of(request), request.spec, Work()
        if request.state is State.QUEUED:
            more.ready = mine.wait(spec, spec.ask.pes * request.multiplicity)
        elif request.state is State.RUNNING:
            run = request.attempt = begun(request, self._then.site.held_by(request), at)
            more, self._runs[request.seq] = Work(run.rate, spec.ask.pes), request
        if self._gone is not None:
            former, group, gone = self._gone
            self._gone = None
            if former is mine and group == spec.group:
                more.add(gone)
            else:
                former.change(group, gone)
        mine.change(spec.group, more)

    def total(self) -> dict[str, QuotaSums]:
        """The sums between the first and the last of the marks that are passed."""
        first = self.sums[0]
        return {name: sums.since(first.get(name, QuotaSums())) for name, sums in self.sums[-1].items()}

    def sample(self, samples: Mapping[Seq, Used], at: Instant) -> None:
        """What running requests have used by now."""
        self.advance(at)
        for seq, used in samples.items():
            self._told(seq, used, at)
        if self.sums and self.marks[-1] <= at:
            self.sums[-1] = self._now()

    def _of(self, request: Request) -> "DomainAccounts":
        return self._of_queue.get(request.queue) or self._each[APPLICATION]

    def _told(self, seq: Seq, used: Used, at: Instant) -> None:
        request = self._runs.get(seq)
        if request is None or request.attempt is None:
            return
        former, made = request.run, self._booked(request, used, at)
        request.attempt = made
        if made.rate != former.rate:
            self._of(request).change(request.group, Work(made.rate - former.rate))

    def _booked(self, request: Request, used: Used, at: Instant) -> Attempt:
        """Corrects what was counted of its use by what it was."""
        run, mine = request.run, self._of(request)
        span = uncharged(run, at)
        more = amount(used, self._charge, request, self._then.site.held_by) - run.charged
        missing = {request.group: more - counted(request, at)}
        since = Instant(at - span)
        passed = self.reached > 0 and self.marks[self.reached - 1] > since
        before = self._now() if passed else {}
        mine.level.correct(missing, mine.terms)
        if passed:
            self._spread(before, since, at)
        return charged(request, used, more, at, span, self._charge)

    def _spread(self, before: Mapping[str, QuotaSums], since: Instant, at: Instant) -> None:
        """What was corrected just now belongs to all the time since then: without that a part could be
        negative where more was counted than used."""
        changes = {name: now.since(before.get(name, QuotaSums())) for name, now in self._now().items()}
        for place in range(bisect_right(self.marks, since), self.reached):
            part, sums = (self.marks[place] - since) / (at - since), self.sums[place]
            for name, change in changes.items():
                former = sums.get(name, QuotaSums())
                sums[name] = QuotaSums(*(a + b * part for a, b in zip(former, change, strict=True)))


class DomainAccounts:
    """The groups' accounts of one domain, and who waits in it; ``known``: owners of whom a pass has spoken,
    as far as that is known without the events."""

    def __init__(self, site: Site, domain: str, at: Instant) -> None:
        self._name = domain
        self.entries: dict[str, Entry] = {}
        self.level = Level(self._entry, self.entries.get, self._divide, cuts=True, owes=False)
        self.level.at = at
        self.tune(site)
        self._known = {key[2:] for key, _ in site.accounts_in(domain) if key.startswith("u:")}
        self._waiting: dict[str, int] = {}
        self._said: dict[str, int] = {}
        self._worked: dict[str, float] = {}
        self._since: dict[str, Instant] = {}

    def tune(self, site: Site) -> None:
        """Other terms and shares, from the instant on to which time has passed."""
        self.terms = site.terms(self._name)
        self._division = Division(site.settings.groups, self.terms.pes, site.pes())
        self.level.forget()

    def _entry(self, name: str) -> Entry:
        return self.entries.setdefault(name, Entry())

    def _divide(self, wanted: Mapping[str, int]) -> dict[str, float]:
        return self._division.parts(wanted)

    def begin(self) -> None:
        """Everything is counted from now on."""
        for entry in self.entries.values():
            entry.entitled = entry.got = entry.whole = 0.0
        self._worked.clear()
        self._since = dict.fromkeys(self._since, self.level.at)

    def work_of(self, name: str) -> float:
        """How long a group has had work (ms)."""
        at = self.level.at
        return self._worked.get(name, 0.0) + at - self._since.get(name, at)

    def wait(self, spec: Spec, pes: int) -> int:
        """So many PEs more are waited for; so many of them are startable: all, until a pass has spoken of
        their owner."""
        pair = f"{spec.group}:{spec.owner}"
        self._waiting[pair] = self._waiting.get(pair, 0) + pes
        return 0 if pair in self._said or (self._known and pair not in self._known) else pes

    def say(self, pair: str, pes: int) -> None:
        """A pass says for how many PEs an owner in a group has startable requests."""
        before = self._said.get(pair, self._waiting.get(pair, 0))
        self._said[pair] = pes
        self.change(pair.partition(":")[0], Work(ready=pes - before))

    def change(self, group: str, more: Work) -> None:
        """What a group does changes by so much."""
        worked = group in self._since
        self.level.change({group: more}, self.terms)
        if worked is not (group in self.level.members()):
            if worked:
                self._worked[group] = self.work_of(group)
                del self._since[group]
            else:
                self._since[group] = self.level.at
