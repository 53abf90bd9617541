"""Figures of a recorded or what-if run: starts of requests, how busy the machine was, how quotas were kept.
`sim.replay` compares two runs of one night by them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import structs

from nqspy.model import events as ev
from nqspy.model.arrays import ArraySpec
from nqspy.model.configure import copy_of
from nqspy.model.domains import account_key
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import State
from nqspy.model.site import Site
from nqspy.report.night_metrics import Busy, ShortMoments, busy_share
from nqspy.report.past_site import PastSite
from nqspy.report.quota_accounts import QuotaAccounts
from nqspy.report.replay import HistoryReplay, RequestHistory
from nqspy.report.shares import QuotaSums, largest

_WAITS: Mapping[State, Literal["waiting", "held", "queued"]] = {State.HELD: "held", State.WAITING: "waiting"}


@dataclass(frozen=True)
class RunFigures:
    """Figures of one run over a time. ``starts``: each request's first start in it; ``busy`` as in the night
    report, up to the last end if none waited only for a PE; ``sums``: the quotas' accounts, by group;
    ``histories``: of all requests."""

    starts: Mapping[Seq, Instant]
    busy: Busy | None
    sums: QuotaSums
    histories: Mapping[Seq, RequestHistory]

    @property
    def deviation(self) -> float | None:
        """Return the largest deviation from entitlement (percentage points); None: no group has one."""
        return largest(self.sums.deviations.values())

    @property
    def used(self) -> float | None:
        """Return allocated PE time as a fraction of the available PE time; None without time."""
        return None if self.busy is None else self.busy.allocated

    def wait(self, seqs: Iterable[Seq]) -> float | None:
        """Return the mean time (s) from submission to first start of those that started; None: none did."""
        started = [seq for seq in seqs if seq in self.starts and seq in self.histories]
        waits = [self.starts[seq] - self.histories[seq].request.submitted for seq in started]
        return sum(waits) / len(waits) / 1000 if waits else None


def figures(
    before: Site, events: Sequence[ev.Recorded], begin: Instant, end: Instant, charge: str
) -> RunFigures:
    """Return the figures from ``begin`` to ``end``; ``before``: the site before ``events``."""
    bare = Site(copy_of(before.settings), before.found, before.host, before.zone)
    then = PastSite(before, bare)
    accounts = QuotaAccounts(then, charge, begin, end, max(1, end - begin))
    replay, short = HistoryReplay({}, watchers=(accounts,)), ShortMoments()
    starts: dict[Seq, Instant] = {}
    for recorded in (*_former(before), *events):
        event = recorded.event
        if isinstance(event, ev.Starting) and recorded.n:
            starts.setdefault(event.seq, recorded.at)
        replay.add(recorded)
        if recorded.at < end or not isinstance(event, ev.Decided):
            short.add(recorded, replay.queued)
    accounts.advance(end)
    every = replay.histories.values()
    ends = (history.ended for history in every if history.ended is not None)
    last = short.until(end) or min(end, max(ends, default=end))
    busy = busy_share(every, min(starts.values(), default=None), last, then.pes, then.cpus)
    return RunFigures(starts, busy, accounts.total(), replay.histories)


def _former(site: Site) -> Iterator[ev.Recorded]:
    """Yield events, all of number 0, that bring a new replay to the site's requests and their states."""
    made: list[tuple[Instant, ev.Event]] = []
    for request in site.requests.values():
        state = _WAITS.get(request.state, "queued")
        array = None if request.array is None else ArraySpec(request.array.left)
        spec = structs.replace(request.spec, array=array)  # an index that has begun is a request of its own
        made.append((request.submitted, ev.Submitted(request.seq, spec, request.queue, state)))
        run = request.attempt
        if run is not None:
            made.append((run.started, ev.Starting(request.seq, run.number, run.pes, units=run.units)))
            made += [] if run.starting else [(run.started, ev.Started(request.seq, run.number, run.pes))]
    for at, event in sorted(made, key=lambda pair: pair[0]):
        yield ev.Recorded(0, at, event)
    ready = (  # startable PEs, as reported by passes
        (account_key(domain, key[2:]), account.entry.ready)
        for domain in site.shared()
        for key, account in site.accounts_in(domain)
        if key.startswith("u:")
    )
    yield ev.Recorded(0, site.at, ev.Decided(site.n, ready=tuple(ready)))
