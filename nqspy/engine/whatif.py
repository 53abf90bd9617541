"""When a waiting request would start: the same pass, run forward on a copy of the front of the line."""

from dataclasses import replace

from nqspy.core.passes import run_pass
from nqspy.engine.loop import Engine
from nqspy.model.actions import Redate, Start
from nqspy.model.events import Ended, Event, Recorded, Redated, Starting
from nqspy.model.ids import Instant, Seq
from nqspy.model.lifecycle import apply, place
from nqspy.model.requests import Request, Used, finite
from nqspy.model.site import Account, Site

FRONT = 300
"""Requests of each queue that are looked at: the first in line."""
ROUNDS = 100
"""Passes run forward at most."""
UNKNOWN = 3_600_000
"""Length of a request of which nothing is known, ms."""

Estimate = tuple[Instant | None, str]


def estimate(engine: Engine, request: Request, now: Instant) -> Estimate:
    """(start, basis): the instant at which it would start if every request ran as long as expected, and
    what that rests on.

    None with a basis that says why no start can be told.
    """
    queue = engine.site.settings.queues.get(request.queue)
    if queue is None or not queue.started:
        return None, f"queue {request.queue} is stopped"
    site = _front(engine.site, request)
    ends = {seq: _expected_end(site, r, now) for seq, r in site.started.items()}
    at = now
    for _ in range(ROUNDS):
        engine.exits.begin(site)
        plan = run_pass(site, at, engine.exits, {})
        for seq in _carry_out(site, plan.actions, at):
            if seq == request.seq:
                engine.exits.begin(engine.site)
                return at, "requests run as long as their limits or their group's last requests say"
            ends[seq] = _expected_end(site, site.started[seq], at)
        if not ends:
            break
        at = _next_end(site, ends)
    engine.exits.begin(engine.site)
    return None, "no start within the looked-at future; see its reason"


def _next_end(site: Site, ends: dict[Seq, Instant]) -> Instant:
    at = min(ends.values())
    for seq in [seq for seq, end in ends.items() if end == at]:
        request = site.started[seq]
        length = at - (request.started or at)
        _happen(
            site,
            at,
            Ended(seq, request.attempt, "exit", 0, None, Used(max(length, request.used.cpu), length)),
        )
        del ends[seq]
    return at


def _happen(site: Site, at: Instant, event: Event) -> None:
    apply(site, Recorded(site.n + 1, at, event))


def _carry_out(site: Site, actions: tuple[object, ...], at: Instant) -> list[Seq]:
    begun = []
    for action in actions:
        if isinstance(action, Start):
            _happen(site, at, Starting(action.seq, action.attempt, action.pes, action.forced))
            begun.append(action.seq)
        elif isinstance(action, Redate):
            _happen(site, at, Redated(action.seqs, action.date, action.cause, action.who))
    return begun


def _front(site: Site, wanted: Request) -> Site:
    """A copy with all that runs, the first of each queue by date, and the request that is asked about."""
    copy = Site(site.settings, site.found, site.host, site.zone, shift=site.shift, n=site.n, at=site.at)
    copy.next_seq = site.next_seq
    copy.accounts = {key: Account(a.value, a.at, list(a.recent)) for key, a in site.accounts.items()}
    chosen = list(site.started.values())
    for columns in site.waiting.values():
        first = columns.date.argsort(kind="stable")[:FRONT].tolist()
        chosen += [columns.request(row) for row in first]
    if all(each is not wanted for each in chosen):
        chosen.append(wanted)
    for request in chosen:
        twin = replace(request, slot=-1)
        copy.requests[twin.seq] = twin
        place(copy, twin)
    return copy


def _expected_end(site: Site, request: Request, now: Instant) -> Instant:
    began = request.started if request.started is not None else now
    return Instant(max(now + 1, began + _length(site, request)))


def _length(site: Site, request: Request) -> int:
    """Expected wall time: its limit, else its queue's, but no more than its group's last requests used on
    average."""
    queue = site.settings.queues[request.queue].per_request
    limits = (
        finite(request.spec.ask.wall),
        queue.wall_limit,
        finite(request.spec.ask.cpu_wanted()),
        queue.cpu_limit,
    )
    limit = min((each for each in limits if each is not None), default=UNKNOWN)
    account = site.accounts.get(f"g:{request.group}")
    if account is None or not account.recent:
        return limit
    return min(limit, max(1, round(sum(account.recent) / len(account.recent))))
