"""Quotas kept over a time, from the journal: charges of each department and its entitlement to them.

*W* (`shares.balance`) is followed through the events: it changes with what runs, and with what passes
reported as startable (`events.Decided.ready`). Everything queued counts for an owner without such a report,
as in older journals. Shares, domains and PEs are those that held at each instant (`past_site`).

Charges are the measured ones. The use between two measurements is spread evenly over the time in which the
request ran. The scheduler can't do that: it counts a running request as busy until it is measured, and
corrects that later, when others may have work. So a report must not add up the scheduler's accounts.

Time is added up from event to event. A clock that is set back adds nothing, so no time is negative."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from msgspec import Struct

from nqspy.model import events as ev
from nqspy.model.domains import APPLICATION
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request, Spec, State, Used
from nqspy.model.site import Site
from nqspy.report.over_time import marks_of
from nqspy.report.past_site import PastSite
from nqspy.report.replay import HistoryReplay
from nqspy.report.shares import QuotaSums, add_up
from nqspy.shares import amount, division_of

_ENDS = (ev.Ended, ev.Requeued, ev.Exiting)


class QuotaAccounts:
    """Follows requests (`replay.Watcher`) and sums, from ``begin`` to ``end``, each group's charges and its
    entitlement to them. ``marks``: instants ``step`` apart, at which `sums` are known."""

    def __init__(self, then: PastSite, charge: str, begin: Instant, end: Instant, step: int) -> None:
        self.marks = marks_of(begin, end, step)
        self._then, self._charge = then, charge
        self._at, self._passed = Instant(0), 0
        self._marked: list[int] = []
        self._each: dict[str, DomainWork] = {}
        self._of_queue: dict[str, DomainWork] = {}
        self._runs: list[_Run] = []
        self._latest: dict[Seq, _Run] = {}
        self._tune()

    def _tune(self) -> None:
        """Follow changed settings: a new domain gets an account, a deleted one keeps its account."""
        site = self._then.site
        for domain in site.shared():
            if domain in self._each:
                self._each[domain].tune(site)
            else:
                self._each[domain] = DomainWork(site, domain)
        self._of_queue = {queue: self._each[name] for queue, name in site.domains_by_queue().items()}

    def advance(self, to: Instant) -> None:
        """Add up the time to an instant; note the sums of marks that it passes. Marks that a clock set back
        reaches again become open, except the first."""
        while len(self._marked) > 1 and self.marks[len(self._marked) - 1] > to:
            self._marked.pop()
        while len(self._marked) < len(self.marks) and self.marks[len(self._marked)] <= to:
            self._pass(Instant(self.marks[len(self._marked)]))
            self._marked.append(self._passed)
        self._pass(to)
        self.__dict__.pop("sums", None)

    def _pass(self, to: Instant) -> None:
        span, self._at = to - self._at, to
        if span > 0:
            for each in self._each.values():
                each.note(self._passed)
            self._passed += span

    def add(self, recorded: ev.Recorded) -> None:
        """Add an event, before its requests change their states."""
        event = recorded.event
        if isinstance(event, ev.Started):
            return
        if recorded.at != self._at:
            self.advance(recorded.at)
        if self._then.add(recorded):
            self._tune()
        if isinstance(event, ev.Decided):
            for seq, used in event.samples:
                self._measured(seq, used)
            for key, pes in event.ready:
                domain, _, pair = key.rpartition("/")
                if (found := self._each.get(domain or APPLICATION)) is not None:
                    found.set_ready(pair, pes)

    def leave(self, request: Request, event: Any, at: Instant) -> None:
        """Count a request no longer as waiting or running; call it before the event changes its state."""
        work, spec, run = self._of(request), request.spec, self._run_of(request)
        if request.state is State.QUEUED:
            work.change(spec.group, work.wait(spec, -spec.ask.pes * request.multiplicity))
        elif run is not None:
            if request.state is State.RUNNING:
                run.rest(self._passed)
                work.change(spec.group, -spec.ask.pes)
            if isinstance(event, _ENDS):
                self._measured(request.seq, event.used)

    def enter(self, request: Request, at: Instant) -> None:
        """Count a request's PEs for its group if it is queued or runs now, from the last `advance` on."""
        work, spec = self._of(request), request.spec
        if request.state is State.QUEUED:
            work.change(spec.group, work.wait(spec, spec.ask.pes * request.multiplicity))
        elif request.state is State.RUNNING:
            run = self._run_of(request)
            if run is None:
                run = _Run(request, work, request.run.number, [(self._passed, 0)])
                self._runs.append(run)
                self._latest[request.seq] = run
            run.since = self._passed
            work.change(spec.group, spec.ask.pes)

    def sample(self, samples: Mapping[Seq, Used], at: Instant) -> None:
        """Note the use of running requests that was measured at ``at``, and add up the time until then."""
        self.advance(at)
        for seq, used in samples.items():
            self._measured(seq, used)

    def _of(self, request: Request) -> "DomainWork":
        return self._of_queue.get(request.queue) or self._each[APPLICATION]

    def _run_of(self, request: Request) -> "_Run | None":
        run, attempt = self._latest.get(request.seq), request.attempt
        return run if run is not None and attempt is not None and attempt.number == run.number else None

    def _measured(self, seq: Seq, used: Used) -> None:
        run = self._latest.get(seq)
        if run is not None:
            more = amount(used, self._charge, run.request, self._then.site.held_by)
            run.measured(self._passed, more)

    @cached_property
    def sums(self) -> list[QuotaSums]:
        """Return the sums since the first mark, at each mark that is passed."""
        each = zip(*(self._sums_of(domain) for domain in self._each.values()), strict=True)
        return [QuotaSums.together(sums) for sums in each]

    def _sums_of(self, domain: "DomainWork") -> list[QuotaSums]:
        if len(self._marked) < 2:
            return [QuotaSums() for _ in self._marked]
        runs = [run for run in self._runs if run.domain is domain]
        return list(_sums_at(domain, self._marked, self._passed, runs))

    def by_domain(self) -> dict[str, QuotaSums]:
        """Return each domain's sums between the first and the last mark that is passed."""
        return {name: (self._sums_of(domain) or [QuotaSums()])[-1] for name, domain in self._each.items()}

    def total(self) -> QuotaSums:
        """Return the sums between the first and the last mark that is passed."""
        return self.sums[-1] if self.sums else QuotaSums()


def quotas_since(
    begin: Instant,
    now: Instant,
    events: Iterable[ev.Recorded],
    site: Site,
    before: Site,
    samples: Mapping[Seq, Used],
) -> dict[str, QuotaSums]:
    """Return each domain's sums from ``begin`` to ``now``. ``events``: from the submission of the oldest
    request that had not ended at ``begin``; ``before``: the site before them; ``samples``: present use."""
    span = max(1, now - begin)
    accounts = QuotaAccounts(PastSite(site, before), site.settings.usage.charge, begin, now, span)
    replay = HistoryReplay(site.requests, watchers=(accounts,))
    for recorded in events:
        replay.add(recorded)
    accounts.sample(samples, now)
    return accounts.by_domain()


class _Run(Struct, eq=False):
    """An attempt, with times in ms passed since the first event: ``points`` (time, charged), ``spans`` in
    which it ran; ``since``: begin of the present one, None: it does not run now."""

    request: Request
    domain: "DomainWork"
    number: int
    points: list[tuple[int, int]]
    spans: list[tuple[int, int]] = []
    since: int | None = None

    def rest(self, at: int) -> None:
        """Note that it does not run any more, or not now, from ``at`` (time passed) on."""
        if self.since is not None:
            self.spans.append((self.since, at))
            self.since = None

    def measured(self, at: int, used: int) -> None:
        """Note the use (ms charged) that was measured at ``at`` (time passed)."""
        former, most = self.points[-1]
        if former == at and len(self.points) > 1:
            self.points.pop()
        self.points.append((at, max(used, most)))

    def ran(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the spans between two times in which it ran."""
        spans = self.spans if self.since is None else [*self.spans, (self.since, end)]
        return ((max(a, begin), min(b, end)) for a, b in spans if a < end and b > begin)

    def charges(self) -> Iterator[tuple[int, int, float]]:
        """Yield its use (begin, end, ms charged), spread over the time in which it ran."""
        for (begin, before), (end, used) in pairwise(self.points):
            spans = [(a, b) for a, b in self.ran(begin, end) if b > a] if used > before else []
            whole = sum(b - a for a, b in spans)
            yield from ((a, b, (used - before) * (b - a) / whole) for a, b in spans)
            if used > before and not spans:
                yield end, end, used - before


def _sums_at(
    domain: "DomainWork", marks: Sequence[int], end: int, runs: Iterable[_Run]
) -> Iterator[QuotaSums]:
    """Yield the sums at each mark, added up between instants at which the division changes or a mark is."""
    starts, at_mark = (at for at, _ in domain.stretches), set(marks)
    bounds = sorted({*marks, *(at for at in starts if marks[0] < at < marks[-1])})
    amounts, all_held = dict[str, _Amounts](), _Amounts(bounds)
    for run in runs:
        own = amounts.setdefault(run.request.group, _Amounts(bounds))
        for begin, until, more in run.charges():
            own.add(begin, until, more)
        for begin, until in run.ran(run.points[0][0], end):
            all_held.add(begin, until, run.request.spec.ask.pes * (until - begin))
    got, entitled, worked, held = dict[str, float](), dict[str, float](), dict[str, float](), 0.0
    charged, held_by_bin = {name: own.by_bin() for name, own in amounts.items()}, all_held.by_bin()
    yield QuotaSums()
    for place, (begin, last) in enumerate(pairwise(bounds)):
        used = {name: bins[place] for name, bins in charged.items() if bins[place]}
        parts, whole = domain.parts_at(begin), sum(used.values())
        add_up(got, used)
        add_up(entitled, {name: part * whole for name, part in parts.items()} if parts else used)
        add_up(worked, dict.fromkeys(parts, float(last - begin)))
        held += held_by_bin[place]
        if last in at_mark:
            yield QuotaSums(dict(got), dict(entitled), held, dict(worked))


class _Amounts:
    """Amounts by time, added up between ``bounds``; what is outside is left out."""

    def __init__(self, bounds: Sequence[int]) -> None:
        self._bounds = bounds
        self._single = [0.0] * (len(bounds) - 1)
        self._rates = [0.0] * len(bounds)
        self._full = [0] * len(bounds)

    def add(self, begin: int, end: int, more: float) -> None:
        """Add an amount from ``begin`` to ``end``; at a single instant it counts to the time before."""
        bounds, rate = self._bounds, more / max(1, end - begin)
        if begin == end:
            if bounds[0] < end <= bounds[-1]:
                self._single[bisect_left(bounds, end) - 1] += more
            return
        begin, end = max(begin, bounds[0]), min(end, bounds[-1])
        if end <= begin:
            return
        first, last = bisect_right(bounds, begin) - 1, bisect_left(bounds, end) - 1
        if first == last:
            self._single[first] += rate * (end - begin)
            return
        self._single[first] += rate * (bounds[first + 1] - begin)
        self._single[last] += rate * (end - bounds[last])
        for place, sign in ((first + 1, 1), (last, -1)):
            self._rates[place] += sign * rate
            self._full[place] += sign

    def by_bin(self) -> list[float]:
        """Return the amount between each bound and the next."""
        found, rate, full = list[float](), 0.0, 0
        for place, single in enumerate(self._single):
            full += self._full[place]
            rate = rate + self._rates[place] if full else 0.0  # removes rounding where nothing runs
            found.append(single + max(0.0, rate) * (self._bounds[place + 1] - self._bounds[place]))
        return found


class DomainWork:
    """Work of groups in one domain. ``stretches``: times passed (ms), each with the entitlements that hold
    from it on: fraction of the PEs by group with work."""

    def __init__(self, site: Site, domain: str) -> None:
        self._name = domain
        self.stretches: list[tuple[int, dict[str, float]]] = [(0, {})]
        self._wanted: dict[str, int] = {}
        self.tune(site)
        self._known = {key[2:] for key, _ in site.accounts_in(domain) if key.startswith("u:")}
        self._waiting: dict[str, int] = {}
        self._ready: dict[str, int] = {}

    def tune(self, site: Site) -> None:
        """Read the site's changed PEs and shares: the division follows them from now on."""
        self._division = division_of(site, self._name)
        self._changed = True

    def note(self, at: int) -> None:
        """Note from when (time passed, ms) the present division of the PEs holds, if it has changed."""
        if self._changed:
            self._changed = False
            parts = self._division.parts({name: pes for name, pes in self._wanted.items() if pes > 0})
            if parts != self.stretches[-1][1]:
                self.stretches.append((at, parts))

    def parts_at(self, at: int) -> dict[str, float]:
        """Return the entitlement (fraction of the PEs) at an instant of each group with work."""
        return self.stretches[bisect_right(self.stretches, at, key=lambda each: each[0]) - 1][1]

    def wait(self, spec: Spec, pes: int) -> int:
        """Count ``pes`` more PEs (less if negative) as waited for by the owner; return how many of them count
        as startable: all, or 0 if a pass reports that owner."""
        pair = f"{spec.group}:{spec.owner}"
        self._waiting[pair] = self._waiting.get(pair, 0) + pes
        return 0 if pair in self._ready or (self._known and pair not in self._known) else pes

    def set_ready(self, pair: str, pes: int) -> None:
        """Set the PEs for which the owner in ``pair`` (``GROUP:USER``) has startable requests, by a pass."""
        before = self._ready.get(pair, self._waiting.get(pair, 0))
        self._ready[pair] = pes
        self.change(pair.partition(":")[0], pes - before)

    def change(self, group: str, pes: int) -> None:
        """Count ``pes`` more PEs (less if negative) on which a group runs or could start."""
        self._wanted[group] = self._wanted.get(group, 0) + pes
        self._changed = True
