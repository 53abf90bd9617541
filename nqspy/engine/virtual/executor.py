"""Virtual executor: its attempts take the time given for them (`ports.Executor`).

It outlives its engine like real shepherds: ends are stored until the engine has committed them (`Forget`),
and an attempt that has begun, ended or been claimed as void never begins again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TypeVar

from nqspy.engine.virtual.attempts import Run, VirtualAttempt, cpu_at
from nqspy.engine.virtual.heap import Heap
from nqspy.engine.virtual.moves import StateMoves
from nqspy.engine.virtual.processors import Key, Processors
from nqspy.model import slots
from nqspy.model.actions import (
    Action,
    Adjust,
    Forget,
    Kill,
    Migrate,
    Resume,
    Signal,
    Start,
    Suspend,
    TakeTurns,
)
from nqspy.model.ids import Instant, Seq
from nqspy.model.observations import (
    Observation,
    ObservedEnded,
    ObservedLost,
    ObservedMovedOut,
    ObservedRunning,
    ObservedVoid,
)
from nqspy.model.requests import Ending, EndReason, Request, State, Used, finite
from nqspy.model.site import Site

T = TypeVar("T")

LEAST = 1_000
"""Least number of members that a `Recent` keeps; it has at most twice as many."""


class Recent(list[T]):
    """A list that keeps the last `LEAST` members if `append` or `extend` makes it longer than twice that."""

    def append(self, item: T) -> None:
        super().append(item)
        self._forget()

    def extend(self, items: Iterable[T]) -> None:
        super().extend(items)
        self._forget()

    def _forget(self) -> None:
        if len(self) > 2 * LEAST:
            del self[:-LEAST]


_due = attrgetter("due")


class VirtualExecutor:
    """Executor with attempts that run side by side, as fast as ``processors`` allow; a suspended one makes no
    progress. ``lengths``: returns the `Run` of a request; its end comes through ``heap``, and moves there
    when rates change. ``moves``: times to leave PEs and come back; ``migration``: time (ms) for which one
    that goes on on other PEs makes no progress. ``begun``: the last attempts that began (request, attempt),
    in order; ``moved``: number of moves off PEs so far."""

    def __init__(
        self,
        heap: Heap,
        lengths: Callable[[Request], Run],
        processors: Processors | None = None,
        moves: StateMoves | None = None,
        migration: int = 0,
    ) -> None:
        self._heap = heap
        self._migration = migration
        self._lengths = lengths
        self._processors = processors or Processors()
        self._moves = moves or StateMoves()
        self._attempts: dict[Seq, VirtualAttempt] = {}
        self._endless: dict[Seq, VirtualAttempt] = {}
        self._ends: dict[tuple[Seq, int], ObservedEnded] = {}
        self._latest: dict[Seq, int] = {}
        self._lost: set[tuple[Seq, int]] = set()
        self._endless_at = Instant(0)
        self._settled_at: Instant | None = None
        self._spent = 0.0
        self._next_move: Instant | None = None
        self.begun = Recent[Key]()
        self.moved = 0

    def do(self, action: Action, request: Request | None, site: Site, now: Instant) -> None:
        """Start, suspend, resume, move, adjust, signal, kill or forget an attempt; do nothing else."""
        if isinstance(action, Start):
            if request is not None and action.attempt > self._latest.get(action.seq, 0):
                begun = self._begin(action.seq, action.attempt, request, site, now)
                self.begun.append(begun.key)
                self._heap.push(now, ObservedRunning(action.seq, action.attempt))
                self._share_out(now, [begun])
        elif isinstance(action, Forget):
            self._ends.pop((action.seq, action.attempt), None)
            if self._latest.get(action.seq) == action.attempt:
                del self._latest[action.seq]
        elif isinstance(action, (Suspend, Resume, Kill, Signal, Adjust, Migrate, TakeTurns)):
            attempt = self._attempts.get(action.seq)
            if attempt is None or attempt.attempt != action.attempt:
                return
            if isinstance(action, TakeTurns) and request is not None:
                self._take_turns(attempt, _turns(site, request), now)
                return
            if isinstance(action, (Suspend, Resume)):
                self._pause(action, attempt, request, now)
            elif isinstance(action, Migrate):
                self._spent += attempt.settle(now) - attempt.demand * self._migration
                attempt.target += self._migration
                self._schedule_again(attempt, now)
            elif not isinstance(action, Adjust):
                self._act(action, attempt, now)
            elif request is not None:  # its wall limit changed
                self._spent += attempt.settle(now)
                attempt.wall_limit = None if attempt.run.unlimited else _limits(request, site)[0]
                self._schedule_again(attempt, now)

    def adopt(self, site: Site, observed: Mapping[Seq, Used], now: Instant) -> None:
        """Continue the attempts of a site, which another executor began. ``lengths`` gives their whole runs,
        ``observed`` the last reported use of some, by request. A request that is being ended ends now, as no
        other time is known."""
        adopted = []
        for request in site.started.values():
            attempt = self._begin(request.seq, request.attempts, request, site, now)
            if request.run.starting:
                self._heap.push(now, ObservedRunning(*attempt.key))
            order = request.ending
            if order is not None or request.state is State.EXITING:
                reason: EndReason = "exit" if order is None else "requeued" if order.rerun else "deleted"
                self._end(attempt, Ending(reason, 0 if order is None else None, None, request.used), now)
                continue
            attempt.turns = _turns(site, request)
            attempt.go_on_from(request, observed.get(request.seq), now)
            attempt.away = request.pes_released
            if request.pause is not None and request.pause.leaving:
                self._leave(attempt, request, request.pause.at, now)
            adopted.append(attempt)
        self._share_out(now, adopted)

    def _begin(self, seq: Seq, number: int, request: Request, site: Site, now: Instant) -> VirtualAttempt:
        """Begin an attempt. If nothing interferes, it runs to its end, or to the first limit that it
        meets."""
        run = self._lengths(request)
        wall, cpu = (None, None) if run.unlimited else _limits(request, site)
        needed, target = cpu_at(run, run.wall), run.wall
        demand = needed / run.wall if run.wall else 0.0
        reason: EndReason = "exit"
        if cpu is not None and needed > cpu:
            target, reason = run.wall * cpu // needed, "cpu_limit"
        until = request.attempt.until if request.attempt is not None else None
        attempt = VirtualAttempt(seq, number, run, demand, target, reason, wall, until, now)
        self._latest[seq], self._attempts[seq] = number, attempt
        return attempt

    def _share_out(self, now: Instant, touched: Sequence[VirtualAttempt] = ()) -> None:
        """Compute rates anew after attempts began, ended or paused; ``touched``: those of them that run.
        Changed ends are put in the heap: at the end of the instant if rates depend on all attempts, because
        one end is often followed by another."""
        apart = self._processors.apart
        attempts = touched if apart else list(self._attempts.values())
        if apart or self._settled_at != now:  # else all are as of now
            self._spent += sum([each.settle(now) for each in attempts])
            self._settled_at = now
        rates = self._processors.rates(attempts, now)
        if self._endless and self._endless_at != now:
            self._put_ends()
        endless = self._endless
        for attempt, rate in zip(attempts, rates):  # noqa: B905 - as long as three rounds; there is one for each
            if rate != attempt.rate or (attempt.due is None and attempt.seq not in endless):
                attempt.rate = rate
                self._unschedule(attempt)  # it goes to the end of the line
                endless[attempt.seq] = attempt
        self._endless_at = now
        if apart:
            self._put_ends()
        else:
            self._heap.put_off(self._put_ends)

    def _put_ends(self) -> None:
        endless, self._endless = self._endless, {}
        schedule, at = self._schedule, self._endless_at
        if self._processors.apart:
            for attempt in endless.values():
                schedule(attempt, at)
            return
        reserve = self._heap.reserve
        for attempt in endless.values():
            if not attempt.runs or attempt.is_bounded():
                schedule(attempt, at)
            elif (lasts := attempt.lasts()) is not None:
                attempt.due, attempt.number = at + lasts, reserve()
        # Only the earliest of the known ends are put in the heap.
        waiting = [each for each in self._attempts.values() if each.due is not None and each.end is None]
        first: Instant = min(map(_due, waiting), default=at)
        for attempt in waiting:
            if attempt.due == first:
                attempt.end = ObservedEnded(attempt.seq, attempt.attempt, attempt.own_end(first))
                self._heap.push(first, attempt.end, attempt.number)

    def _schedule(self, attempt: VirtualAttempt, now: Instant) -> None:
        """Put the end of an attempt in the heap, unless it has none; the heap must not have it yet."""
        found = attempt.next_end() if attempt.runs else attempt.hole_end()
        if found is not None:
            attempt.due = due = Instant(now + found[0])
            attempt.end = ObservedEnded(attempt.seq, attempt.attempt, found[1])
            attempt.number = self._heap.push(due, attempt.end)

    def _schedule_again(self, attempt: VirtualAttempt, now: Instant) -> None:
        """Put the end of an attempt whose limit or target has changed where it is now."""
        self._unschedule(attempt)
        self._schedule(attempt, now)
        if not self._processors.apart:
            self._heap.put_off(self._put_ends)  # it may have been the first

    def _unschedule(self, attempt: VirtualAttempt) -> None:
        self._endless.pop(attempt.seq, None)
        attempt.due = None
        if attempt.end is not None:
            self._heap.drop(attempt.number)
            attempt.end = None

    def _pause(
        self, action: Suspend | Resume, attempt: VirtualAttempt, request: Request | None, now: Instant
    ) -> None:
        """Suspend an attempt, or let it go on once it has come back to its PEs."""
        if isinstance(action, Suspend):
            attempt.coming = False
            self._set_running(attempt, False, now)
            if action.leaving:
                self._leave(attempt, request, now, now)
            return
        back = self._move(attempt, request, now, back=True) if attempt.away else now
        attempt.away, attempt.coming = False, back is None or back > now
        if back is not None and attempt.coming:
            self._heap.push(back, lambda at: self._come_back(attempt, at))
        elif not attempt.coming:
            self._set_running(attempt, True, now)

    def _take_turns(self, attempt: VirtualAttempt, turns: tuple[int, int] | None, now: Instant) -> None:
        """Let an attempt run for so much of each round of slots from now on; None: all the time."""
        if turns != attempt.turns:
            self._spent += attempt.settle(now)
            attempt.turns = turns
            self._unschedule(attempt)
            self._share_out(now, [attempt])

    def _set_running(self, attempt: VirtualAttempt, runs: bool, now: Instant) -> None:
        self._spent += attempt.settle(now)
        if attempt.runs != runs:
            attempt.runs = runs
            self._unschedule(attempt)
            self._share_out(now, [attempt])

    def _move(
        self, attempt: VirtualAttempt, request: Request | None, since: Instant, back: bool = False
    ) -> Instant | None:
        """Move the memory of an attempt off its PEs, or ``back``, from ``since`` on. Return when that is
        done; None: `_moved` reports it."""
        pes = request.spec.ask.pes if request is not None else 1
        done = self._moves.begin(attempt.key, pes, since, back)
        self._watch()
        return done

    def _leave(self, attempt: VirtualAttempt, request: Request | None, since: Instant, now: Instant) -> None:
        attempt.away = True
        self.moved += 1
        done = self._move(attempt, request, since)
        if done is not None:
            self._heap.push(max(now, done), ObservedMovedOut(*attempt.key))

    def _come_back(self, attempt: VirtualAttempt, now: Instant) -> Sequence[Observation]:
        """Let an attempt that is back on its PEs go on, unless it was suspended or ended meanwhile."""
        if attempt.coming and self._attempts.get(attempt.seq) is attempt:
            attempt.coming = False
            self._set_running(attempt, True, now)
        return ()

    def order_moves(self, rank: Callable[[Key], int], now: Instant) -> None:
        """Put the moves of memory of attempts in order, those of higher ``rank`` first."""
        if self._moves.next_done() is not None:
            self._moves.order(rank, now)
            self._watch()

    def _watch(self) -> None:
        """Push a call of `_moved` for the instant at which the next move is done."""
        done = self._moves.next_done()
        if done is not None and done != self._next_move:
            self._next_move = done
            self._heap.push(done, self._moved)

    def _moved(self, now: Instant) -> Sequence[Observation]:
        """Report attempts that have left their PEs; let those that are back go on, unless they ended."""
        observed = []
        for key in self._moves.done(now):
            attempt = self._attempts.get(key[0])
            if attempt is None or attempt.key != key:
                continue
            if attempt.away:
                observed.append(ObservedMovedOut(*key))
            else:
                self._come_back(attempt, now)
        self._watch()
        return observed

    def _act(self, action: Action, attempt: VirtualAttempt, now: Instant) -> None:
        self._spent += attempt.settle(now)
        assert isinstance(action, Kill | Signal)
        rerun = isinstance(action, Kill) and action.reason == "requeued"
        reason: EndReason = "signal" if isinstance(action, Signal) else "requeued" if rerun else "deleted"
        self._end(attempt, Ending(reason, None, action.signal, attempt.used(now)), now)
        self._share_out(now)

    def _end(self, attempt: VirtualAttempt, ending: Ending, now: Instant) -> None:
        self._unschedule(attempt)
        end = ObservedEnded(attempt.seq, attempt.attempt, ending)
        del self._attempts[end.seq]
        self._ends[end.seq, end.attempt] = end
        self._heap.push(now, end)

    def finish(self, seq: Seq, now: Instant) -> None:
        """End a request's attempt now with exit status 0, however long it would have run."""
        attempt = self._attempts.get(seq)
        if attempt is not None:
            self._spent += attempt.settle(now)
            self._end(attempt, Ending("exit", 0, None, attempt.used(now)), now)
            self._share_out(now)

    # ------------------------------------------------------------ what it tells

    def scan(self, expected: Mapping[Seq, int]) -> Sequence[Observation]:
        """Return what became of each expected attempt (by request); one that has not begun never will."""
        found: list[Observation] = []
        for seq, number in expected.items():
            attempt = self._attempts.get(seq)
            if attempt is not None and attempt.attempt == number:
                found.append(ObservedRunning(seq, number))
            elif (end := self._ends.get((seq, number))) is not None:
                found.append(end)
            elif (seq, number) in self._lost:
                found.append(ObservedLost(seq, number))
            else:
                self._latest[seq] = max(number, self._latest.get(seq, 0))
                found.append(ObservedVoid(seq, number))
        return found

    def use(self, now: Instant, but: Collection[Key] = ()) -> dict[Seq, tuple[int, Used]]:
        """Return, by request, attempt and use so far of each that runs now, except the attempts ``but``."""
        running = (a for a in self._attempts.values() if a.runs and a.key not in but)
        return {a.seq: (a.attempt, a.used(now)) for a in running}

    def spent(self, now: Instant) -> float:
        """Return the CPU time (ms) that all attempts together, ended ones too, have used so far."""
        running = [each for each in self._attempts.values() if each.runs]
        return self._spent + sum([each.demand * each.rate * each.ran(now - each.since) for each in running])

    def ended(self, ends: Iterable[ObservedEnded], now: Instant) -> None:
        """End these attempts, because their time has come; keep the ends until the engine forgets them."""
        for end in ends:
            attempt = self._attempts.get(end.seq)
            if attempt is not None and attempt.end is end:
                self._spent += attempt.settle(now)
                del self._attempts[end.seq]
                self._ends[end.seq, end.attempt] = end
        self._share_out(now)

    def fail(self) -> None:
        """Simulate a power cut: all attempts are lost, without a trace in later scans but "lost"."""
        for attempt in self._attempts.values():
            self._unschedule(attempt)
            self._lost.add((attempt.seq, attempt.attempt))
        self._attempts.clear()


def _turns(site: Site, request: Request) -> tuple[int, int] | None:
    """Return the time (ms) of a round of slots in which a request runs, and the length of the round; None: it
    runs all the time."""
    table = slots.table_for(site, request)
    return None if table is None else table.parts(request.seq)


def _limits(request: Request, site: Site) -> tuple[int | None, int | None]:
    """Return the wall and CPU time (ms) after which an attempt is ended; None: no limit."""
    ask, limits = request.spec.ask, site.settings.queues[request.queue].per_request
    both = (finite(ask.wall), limits.wall_limit), (ask.finite_cpu(), limits.cpu_limit)
    wall, cpu = (min([each for each in some if each is not None], default=None) for some in both)
    return wall, cpu
