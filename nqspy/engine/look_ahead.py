"""Estimated starts of waiting requests: the latest start, and the probable one. Both come from runs of the
real engine on a copy of the site under a virtual clock (`virtual.ahead`). Only run times differ.

For the latest start each request runs as long as it may (`runtime.planned_wall`), for ever without a wall
limit. For the probable start it runs as long as similar requests did (`runtime.expected_wall`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nqspy.core import features, guarantees_times
from nqspy.core.backlog import Backlog
from nqspy.core.runtime import expected_wall, planned_wall, wall_limit
from nqspy.engine import calendar
from nqspy.engine.explain import self_blocked
from nqspy.engine.inputs import Between
from nqspy.engine.lifecycle import apply, place
from nqspy.engine.virtual.ahead import PATIENCE, AheadRun, Passes
from nqspy.engine.virtual.attempts import ENDLESS, Run
from nqspy.engine.virtual.moves import OutOnly
from nqspy.model.events import Change, Recorded, SettingsChanged
from nqspy.model.ids import DAY, Instant, Seq
from nqspy.model.lifetimes import Lifetimes, MeasuredMove, mean_move, slowest_move
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import STARTED, Request, State, Used
from nqspy.model.settings import Settings
from nqspy.model.site import Site
from nqspy.model.site_copy import beyond, copy_site
from nqspy.ports import Exits

MOST = 10_000
"""Most waiting requests to simulate: those with a reservation, and of each queue the earliest by date."""
SHOWN = 3
"""Most requests without a known end that a text names."""

Spent = Callable[[], float]
"""Function that returns the used fraction of the CPU time for an estimate; from 1 on the run stops."""

LATEST = "if every request runs to its wall limit and no later request goes first"
CHANCES = "; not guaranteed, as queue {queue} has backfill=probable"
MOVED = "; a request that gives way leaves each PE in {seconds:.3g} s, {which}"
UNMOVED = "; a request that gives way leaves its PEs at once (no request has done so yet)"
RESERVED = "reserved; it holds unless a request exceeds its wall limit"
REFUSABLE = " or a user exit refuses it"
PROBABLY = "if requests run as long as similar earlier requests"
BY_LIMITS = (
    "if requests run as long as their best guesses or limits, and those without as long again as so far;"
    " no request has ended yet"
)


def never() -> float:
    """Return 0 as the used fraction of the time: for an estimate without a time limit."""
    return 0.0


class StartEstimate(Struct, frozen=True):
    """Estimated start of a request (None: unknown), with text about its basis or why it is unknown. ``by``:
    requests to name in place of ``{by}`` in this text; readers may be forbidden to see some."""

    start: Instant | None
    basis: str
    by: tuple[Seq, ...] = ()


class Forecast(Struct, frozen=True):
    """Estimates of the start of a request: at the latest, and probably."""

    latest: StartEstimate
    probably: StartEstimate

    @property
    def start(self) -> Instant | None:
        """Return the probable start, else the latest; None: both are unknown."""
        return self.latest.start if self.probably.start is None else self.probably.start

    def as_dict(
        self, written: Callable[[Instant], str], named: Callable[[tuple[Seq, ...]], str], now: Instant
    ) -> dict[str, Any]:
        """Return both estimates for JSON, the probable one also at the top level; ``now`` becomes ``as_of``.
        ``written`` turns an instant into text, ``named`` several requests into one text."""

        def shown(estimate: StartEstimate) -> dict[str, Any]:
            names = named(estimate.by) if estimate.by else ""
            verb = "have" if ", " in names or names == "others" else "has"
            start = None if estimate.start is None else written(estimate.start)
            return {"start": start, "basis": estimate.basis.replace("{by} has", f"{names} {verb}")}

        latest, probably = shown(self.latest), shown(self.probably)
        return {**probably, "latest": latest, "probably": probably, "as_of": written(now)}


def unknown(why: str) -> Forecast:
    """Return a forecast with both starts unknown, for the reason ``why``."""
    return Forecast(StartEstimate(None, why), StartEstimate(None, why))


class LookAhead:
    """Estimates when the waiting requests of a site start, by simulation from ``now`` on. The constructor
    copies the site. Call one method, once, in any thread: it uses up the copy. ``request``: simulated as if
    submitted now; ``changes``: of settings, made on the copy first; ``wanted``: simulated even if beyond
    `MOST`."""

    def __init__(
        self,
        site: Site,
        now: Instant,
        between: Between,
        *,
        request: Request | None = None,
        changes: tuple[Change, ...] = (),
        wanted: Collection[Seq] = (),
    ) -> None:
        omitted = beyond(site, MOST).difference(wanted)
        self._site, self._now, self._between = copy_site(site, omitted), now, between
        self._omitted = omitted
        self._moves = site.moves  # runs add their own moves to their sites
        # Results of a simulation are no evidence of how long requests run.
        self._past = site.lifetimes.copy(closed=True)
        self._backlog: Backlog | None = None
        waiting = sum(map(len, site.waiting.values())) if omitted else 0
        self._bound = f"only {MOST:,} of {waiting:,} waiting requests were simulated" if omitted else ""
        copied = self._site
        if request is not None:
            copied.requests[request.seq] = request
            copied.next_seq = max(copied.next_seq, request.seq + 1)
            copied.tally.enter(request)
            place(copied, request)
        if changes:
            apply(copied, Recorded(copied.n + 1, now, SettingsChanged(changes)))
        if request is not None or changes:
            self._between = replace(between, due=True)

    # ------------------------------------------------------------ estimates

    def forecasts(self, seqs: Iterable[Seq] | None, exits: Exits, spent: Spent) -> dict[Seq, Forecast]:
        """Return both estimates of each waiting request of ``seqs`` (None: of all); an array's are for its
        next index. ``spent``: returns the used fraction of the CPU time for both runs; the first stops at
        0.5, the second at 1."""
        site = self._site
        asked = map(site.to_be, site.requests if seqs is None else seqs)
        waiting = [r for r in asked if r is not None and r.state not in STARTED and r.multiplicity]
        reserved = [self._reserved(each) for each in waiting]
        latest = self._estimates(waiting, _latest(self._now), exits, lambda: 2 * spent())
        probably = self._estimates(waiting, _probably(self._past, self._now), exits, spent, last=True)
        sure = RESERVED + (REFUSABLE if exits.has("jobselect") else "")
        forecasts = {}
        for request, at, one, other in zip(waiting, reserved, latest, probably, strict=True):
            if at is not None and (one.start is None or at <= one.start):
                one = StartEstimate(at, sure)
            if one.start is not None and other.start is not None and one.start < other.start:
                other = StartEstimate(one.start, one.basis)
            forecasts[request.seq] = Forecast(one, other)
        if seqs is None:
            forecasts |= dict.fromkeys(self._omitted, unknown(self._bound))
        return forecasts

    def starts(self, exits: Exits, spent: Spent) -> dict[Seq, Instant]:
        """Return, by request, the probable starts (ms) of those that start before ``spent`` reaches 1."""
        with self._asking(exits):
            run = self._run(_probably(self._past, self._now), exits, last=True)
            run.go_on_while(lambda: spent() < 1)
        return run.starts

    def _reserved(self, request: Request) -> Instant | None:
        """Return the start of a request's reservation if guaranteed, not late and not past; else None."""
        queue = self._site.settings.queues.get(request.queue)
        sure = queue is not None and queue.started and guarantees_times(self._site, request.queue)
        reservation = request.reservation if sure else None
        at = None if reservation is None or reservation.late else reservation.at
        return None if at is None or at < self._now else at

    # ------------------------------------------------------------ one run

    @contextmanager
    def _asking(self, exits: Exits) -> Iterator[None]:
        """Ask exits in the block about a simulated site, without traces in their statistics and failures."""
        try:
            with exits.rehearsal(self._now):
                yield
        finally:
            exits.begin(self._site)
            exits.failures()

    def _run(self, lengths: "_Lengths", exits: Exits, last: bool) -> AheadRun:
        site = self._site if last else copy_site(self._site)
        moves = OutOnly(lengths.per_move(self._moves) or 0)
        return AheadRun(site, lengths, self._now, exits, self._between, moves)

    def _estimates(
        self, requests: Sequence[Request], lengths: "_Lengths", exits: Exits, spent: Spent, last: bool = False
    ) -> list[StartEstimate]:
        """Return an estimate for each request, in order, from one run with these run times (``lengths``).
        ``last``: no other run follows, so this one may use up the copied site."""
        known = [self._at_once(request) for request in requests]
        open_ = {request.seq for request, estimate in zip(requests, known, strict=True) if estimate is None}
        if not open_:
            return [estimate for estimate in known if estimate is not None]
        with self._asking(exits):
            run = self._run(lengths, exits, last)
            going_on = run.go_on_while(lambda: not open_ <= run.starts.keys() and spent() < 1)
            unreached = [each for each in requests if each.seq in open_ and each.seq not in run.starts]
            why = self._unreached(run, lengths, unreached, cut=going_on and not run.is_over())
            takes, moved = lengths.per_move(self._moves), ""
            if run.executor.moved:
                seconds = (takes or 0) / 1000
                moved = UNMOVED if takes is None else MOVED.format(seconds=seconds, which=lengths.moved)
            basis, lucky = f"{lengths.basis}{moved}{self._how(exits)}", self._lucky()
            return [
                estimate
                or why.get(request.seq)
                or StartEstimate(run.starts[request.seq], basis + lucky.get(request.queue, ""))
                for request, estimate in zip(requests, known, strict=True)
            ]

    def _at_once(self, request: Request) -> StartEstimate | None:
        """Return "unknown" for a request that is held or waits for memory or a resource; else None."""
        if request.holds and request.state is State.HELD:
            return StartEstimate(None, "it is held")
        queue = self._site.settings.queues.get(request.queue)
        waits = request.state is State.QUEUED and queue is not None and queue.started
        reason = features.why_held(self._site, request) if waits else None
        if reason is not None and reason.code in (ReasonCode.MEMORY, ReasonCode.RESOURCE):
            return StartEstimate(None, f"{reason.text}; when that will be is unknown")
        return None

    def _how(self, exits: Exits) -> str:
        """Return text for the basis of an estimate: that exits were asked, or requests omitted; or empty."""
        asked = exits.has("jobselect") or exits.has("shrpri")
        text = "; user exits were asked about that time" if asked else ""
        return text + (self._bound and f"; {self._bound}")

    def _lucky(self) -> dict[str, str]:
        """Return a text by queue, for all queues of a domain in which one has ``backfill=probable``: starts
        there may delay its requests."""
        site, taking = self._site, dict[str, str]()
        for name, queue in site.settings.queues.items():
            if queue.kind == "batch" and not guarantees_times(site, name):
                taking.setdefault(site.domain_of(name).name, name)
        return {
            name: CHANCES.format(queue=taking[domain])
            for name in (site.settings.queues if taking else ())
            if (domain := site.domain_of(name).name) in taking
        }

    def _unreached(
        self, run: AheadRun, lengths: "_Lengths", requests: Sequence[Request], cut: bool
    ) -> dict[Seq, StartEstimate]:
        """Return estimates for requests that did not start in a run: unknown, with the reason, or rough
        (`_beyond`). ``cut``: the run stopped at its time limit; else nothing more could happen in it."""
        settings, going, held = run.site.settings, list(run.site.started.values()), None
        paused = tuple(each.seq for each in going if each.state is State.SUSPENDED)
        endless = tuple(each.seq for each in going if lengths(settings, each).wall >= ENDLESS)
        endless = tuple(seq for seq in endless if seq not in paused)
        # A script that holds no PEs is named only if no request that holds some has no end.
        endless = tuple(seq for seq in endless if run.site.started[seq].pes) or endless
        if endless:
            held = StartEstimate(None, lengths.endless, endless[:SHOWN])
        elif paused:
            held = StartEstimate(None, "{by} has to resume first, at an unknown time", paused[:SHOWN])
        if cut and held is not None and not run.heap.sure:  # shifts alone are to come
            far = StartEstimate(None, f"{held.basis}; {self._far(run)}", held.by)
            return dict.fromkeys([each.seq for each in requests], far)
        if cut:
            return {each.seq: self._beyond(run, lengths, each) for each in requests}
        own = self_blocked(run.engine, [each.seq for each in requests])
        return {
            each.seq: held
            if held is not None and (each.seq not in own or self._waits_for_shift(run, each))
            else self._never(run, each, own.get(each.seq), held)
            for each in requests
        }

    def _waits_for_shift(self, run: AheadRun, request: Request) -> bool:
        """True if a shift starts the request's queue, which the simulation left stopped."""
        queue, shifts = run.site.settings.queues.get(request.queue), run.site.settings.shifts.values()
        stopped = queue is not None and not queue.started
        return stopped and any(shift.starts(request.queue) for shift in shifts)

    def _never(
        self, run: AheadRun, request: Request, own: Reason | None, held: StartEstimate | None = None
    ) -> StartEstimate:
        """Return why a request does not start in the simulation. ``own``: its reason at the end, if that
        holds whatever else runs; ``held``: estimate of requests that wait for some without a known end."""
        queue = run.site.settings.queues.get(request.queue)
        if self._waits_for_shift(run, request):
            return StartEstimate(None, f"no start is found within {PATIENCE // DAY} days")
        if queue is None or not queue.started:
            return StartEstimate(None, f"queue {request.queue} is stopped")
        if own is not None and own.code is ReasonCode.EXIT:  # its text may name others
            text = f"exit {own.who} refuses it"
            return StartEstimate(None, text) if held is None else replace(held, basis=f"{text}; {held.basis}")
        return StartEstimate(None, "it cannot start with the present settings")

    def _far(self, run: AheadRun) -> str:
        return f"the simulation stopped before its start, after {run.count} others{self._how(run.exits)}"

    def _beyond(self, run: AheadRun, lengths: "_Lengths", request: Request) -> StartEstimate:
        """Estimate roughly, by the work ahead of it, the start of a request that the run has not reached
        (unknown for a latest start)."""
        far, backlog = self._far(run), self._backlog
        if backlog is None:
            work: dict[str, int] = {}  # PE ms remaining to running requests, by domain
            for each in run.site.started.values():
                wall, domain = lengths(run.site.settings, each).wall, run.site.domain_of(each.queue).name
                if wall < ENDLESS:
                    rest = max(0, wall - each.run.ran(run.now)) * each.spec.ask.pes
                    work[domain] = work.get(domain, 0) + rest
            backlog = self._backlog = Backlog(run.site, self._past, work)
        there = run.site.to_be(request.seq)
        if not lengths.guesses or there is None or there.state is not State.QUEUED:
            return StartEstimate(None, far)
        start, own = Instant(run.now + backlog.wait(there)), self_blocked(run.engine, [request.seq])
        opens, settings = None, run.site.settings
        queue = settings.queues.get(request.queue)
        if queue is not None and not queue.started:
            starting = [shift for shift in settings.shifts.values() if shift.starts(queue.name)]
            firing = calendar.next_firing(settings, run.site.timezone, run.now, starting)
            opens = None if firing is None else firing.at
        reason, rough = own.get(request.seq), "roughly, from the work that waits in front of it"
        if request.seq in own and (opens is None or (reason is not None and reason.code is ReasonCode.NEVER)):
            return self._never(run, request, reason)
        return StartEstimate(max(start, opens or start), f"{rough}; {far}")


# ---------------------------------------------------------------- how long requests run


class _Lengths(Struct, frozen=True):
    """Run times of attempts for an estimate, and texts about them. ``of``: returns the whole wall time (ms)
    of a request, None: unknown. ``per_move``: returns the time (ms) in which a suspended request leaves one
    PE, from recent moves; ``moved``: text about that. ``basis``: text about the run times; ``endless``: about
    requests without a known end. ``guesses``: starts beyond the simulated time are estimated roughly."""

    of: Callable[[Settings, Request], int | None]
    per_move: Callable[[Sequence[MeasuredMove]], float | None]
    moved: str
    basis: str
    endless: str
    guesses: bool = False

    def __call__(self, settings: Settings, request: Request) -> Run:
        wall = self.of(settings, request)
        if wall is None:
            return Run(ENDLESS, ENDLESS * request.spec.ask.pes, unlimited=True)
        return Run(wall, wall * request.spec.ask.pes, unlimited=True)


def _latest(now: Instant) -> _Lengths:
    def of(settings: Settings, request: Request) -> int | None:
        ask = request.spec.ask
        wall = planned_wall(settings, request.queue, ask)
        outran = wall is not None and request.attempt is not None and request.run.ran(now) >= wall
        return None if outran and wall_limit(settings, request.queue, ask) is None else wall

    return _Lengths(of, slowest_move, "as the slowest recent one did", LATEST, "{by} has no wall limit")


def probable_runs(site: Site, now: Instant) -> Callable[[Settings, Request], Run]:
    """Return a function that returns a request's probable run (`expected_wall`) under given settings, from
    the run times that this site knows now."""
    return _probably(site.lifetimes.copy(closed=True), now)


def _probably(past: Lifetimes, now: Instant) -> _Lengths:
    def of(settings: Settings, request: Request) -> int | None:
        ran = max(0, request.run.ran(now)) if request.attempt is not None else 0
        return expected_wall(settings, past, request, ran)

    endless = "{by} has no limit, and no request has ended yet to estimate from"
    return _Lengths(
        of, mean_move, "as recent ones did", PROBABLY if past.known else BY_LIMITS, endless, guesses=True
    )


class AtOnce(Passes):
    """Decider that makes each plan in this process when it is asked for (`ports.Decider`)."""

    def forecast(
        self, site: Site, request: Request, now: Instant, samples: Mapping[Seq, Used]
    ) -> Callable[[float], Forecast]:
        """Return a function that estimates the start of a request not yet submitted, on a copy made now. It
        ignores the time limit that it is given."""
        ahead = LookAhead(site, now, Between(samples=tuple(samples.items())), request=request)
        return lambda seconds: ahead.forecasts((request.seq,), self._exits, never)[request.seq]
