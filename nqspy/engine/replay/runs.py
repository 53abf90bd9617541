"""Run times of attempts in a journal (`RecordedRuns`): length, end, times of starts, kills and moves; and an
executor that repeats them (`ReplayExecutor`).

An attempt that ended by itself would have run as long at any other time. The length of all others is unknown.
"""

from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace

from nqspy.engine.virtual.attempts import ENDLESS, Run, VirtualAttempt
from nqspy.engine.virtual.executor import VirtualExecutor
from nqspy.engine.virtual.heap import Heap
from nqspy.engine.virtual.processors import Key
from nqspy.model import events as ev
from nqspy.model.actions import Action, Kill, Start
from nqspy.model.cause import EXECUTOR
from nqspy.model.events import MovedOut, Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.lifetimes import MeasuredMove, mean_move
from nqspy.model.observations import ObservedNotStarted, ObservedRunning
from nqspy.model.requests import Ending, Request, Used, finite
from nqspy.model.site import Site

_OWN_ENDS = ("exit", "signal", "memory_limit", "file_limit", "process_limit")
"""End reasons that would come at any other time too."""


class RecordedRuns:
    """Attempts found in ``events``. ``limited``: requests with a last attempt that a limit ended; ``lost``:
    attempts with an end that was not seen; ``not_started``: attempts that could not be started, and why;
    ``killing``: median time (ms) from the order to kill an attempt to its end."""

    def __init__(self, events: Iterable[Recorded]) -> None:
        self.limited: set[Seq] = set()
        self.lost: set[Key] = set()
        self.not_started: dict[Key, str] = {}
        self._own: dict[Seq, tuple[int, Ending]] = {}
        self._used: dict[Seq, Used] = {}
        self._starting: dict[Key, tuple[Instant, int]] = {}
        self._begun: set[Key] = set()
        self._delays: dict[Seq, int] = {}
        self._ordered: dict[Key, Instant] = {}
        self._kills: list[int] = []
        self._moves: dict[Seq, list[MeasuredMove]] = {}
        void: Key | None = None
        for recorded in events:
            event: Any = recorded.event
            held = isinstance(event, ev.Held) and event.cause == EXECUTOR
            if held and void is not None and void[0] in event.seqs:  # it cannot be started
                self.not_started[void] = event.text
            void = self._take(event, recorded.at)
        self._delay = _middle(self._delays.values())
        self.killing = _middle(self._kills)
        self._all_moves = [move for moves in self._moves.values() for move in moves]

    def _take(self, event: Any, at: Instant) -> Key | None:
        """Record an event; return the attempt that it requeues if that had not begun, else None."""
        if isinstance(event, ev.Starting):
            self._starting[event.seq, event.attempt] = at, len(event.pes)
        elif isinstance(event, ev.Started):
            self._begun.add((event.seq, event.attempt))
            since = self._starting.get((event.seq, event.attempt), (None, 0))[0]
            if since is not None:
                self._delays[event.seq] = max(0, (at if event.began is None else event.began) - since)
        elif isinstance(event, MovedOut):
            pes = self._starting.get((event.seq, event.attempt), (at, 0))[1]
            self._moves.setdefault(event.seq, []).append((pes, event.took))
        elif isinstance(event, ev.Deleting):
            self._ordered.setdefault((event.seq, event.attempt), at)
        elif isinstance(event, ev.Requeued | ev.Ended) and event.attempt:
            return self._over(event, at)
        return None

    def _over(self, event: ev.Ended | ev.Requeued, at: Instant) -> Key | None:
        seq, key = event.seq, (event.seq, event.attempt)
        ordered, (since, pes) = self._ordered.get(key), self._starting.get(key, (None, 0))
        self._used[seq] = event.used
        self.limited.discard(seq)
        if ordered is not None:
            self._kills.append(at - ordered)
        elif isinstance(event, ev.Requeued):
            if since is not None and key not in self._begun:
                return key
            self.lost.add(key)
        elif event.end_reason == "lost":
            self.lost.add(key)
        elif event.end_reason in _OWN_ENDS:
            self._own[seq] = pes, Ending(
                event.end_reason, event.exit_status, event.exit_signal, event.used, event.text,
                event.stdout, event.stderr,
            )  # fmt: skip
        else:
            self.limited.add(seq)
        return None

    # ------------------------------------------------------------ answers

    def run_of(self, request: Request) -> Run:
        """Return the run of a request: as its last attempt ran that ended by itself; without one a run
        without an end."""
        if (found := self._own.get(request.seq)) is not None:
            (pes, ending), mold, now = found, request.spec.mold, request.spec.ask.pes
            if mold is not None and pes != now and pes in mold.sizes:
                # On another size its time changes in the ratio of the owner's wall times.
                walls = [mold.expected_on(each, finite(mold.wall_on(each))) for each in (now, pes)]
                part = walls[0] / walls[1] if walls[0] and walls[1] else pes / now
                wall, cpu = round(ending.used.wall * part), round(ending.used.cpu * part * now / pes)
                ending = replace(ending, used=replace(ending.used, wall=wall, cpu=cpu))
            return Run(ending.used.wall, ending.used.cpu, memory=ending.used.memory, ending=ending)
        used = self._used.get(request.seq, Used())
        rate = used.cpu / used.wall if used.wall else float(request.spec.ask.pes)
        return Run(ENDLESS, round(ENDLESS * rate), memory=used.memory)

    def delay(self, seq: Seq) -> int:
        """Return the time (ms) from the order to start a request to its begin: of its last attempt, else the
        median of all."""
        return self._delays.get(seq, self._delay)

    def move(self, seq: Seq, pes: int, usual: Iterable[MeasuredMove]) -> int:
        """Return the time (ms) in which a request leaves ``pes`` PEs, from its recorded moves, else from all
        recorded ones, else from ``usual``."""
        own = mean_move(self._moves.get(seq) or self._all_moves or tuple(usual))
        return round(pes * (own or 0))


def _middle(values: Iterable[int]) -> int:
    found = list(values)
    return round(median(found)) if found else 0


class ReplayExecutor(VirtualExecutor):
    """Executor with recorded run times. ``usual``: moves before the recorded time. ``unknown``: requests that
    run without a known end; if a limit ended them in the journal, with wall limit and progress (ms) at their
    CPU limit, else None."""

    def __init__(self, heap: Heap, runs: RecordedRuns, usual: Sequence[MeasuredMove]) -> None:
        super().__init__(heap, runs.run_of)
        self._runs, self._usual = runs, usual
        self.unknown: dict[Seq, tuple[int | None, int] | None] = {}

    def _start(self, action: Start, request: Request, site: Site, now: Instant) -> None:
        text = self._runs.not_started.get((action.seq, action.attempt))
        if text is not None:
            self._latest[action.seq] = action.attempt
            self._heap.push(now, ObservedNotStarted(action.seq, action.attempt, text))
            return
        attempt = self._begin(action.seq, action.attempt, request, site, now)
        delay = self._runs.delay(action.seq)
        attempt.done, attempt.wall = float(-delay), -delay
        self._heap.push(Instant(now + delay), ObservedRunning(action.seq, action.attempt))
        self._share_out(now, [attempt])

    def _begin(self, seq: Seq, number: int, request: Request, site: Site, now: Instant) -> VirtualAttempt:
        attempt = super()._begin(seq, number, request, site, now)
        if attempt.run.wall >= ENDLESS:
            limits = attempt.wall_limit, attempt.target
            self.unknown[seq] = limits if seq in self._runs.limited else None
        return attempt

    def _move(
        self, attempt: VirtualAttempt, request: Request | None, since: Instant, back: bool = False
    ) -> Instant:
        """Return the end of a move: leaving takes the recorded time, coming back none."""
        if back or request is None:
            return since
        return Instant(since + self._runs.move(request.seq, len(request.pes), self._usual))

    def _act(self, action: Action, attempt: VirtualAttempt, now: Instant) -> None:
        super()._act(action, attempt, Instant(now + self._runs.killing) if isinstance(action, Kill) else now)

    def use(self, now: Instant, but: Collection[Key] = ()) -> dict[Seq, tuple[int, Used]]:
        """Return attempt and use so far of those that have begun, except ``but``."""
        uses = super().use(now, but)
        return {seq: use for seq, use in uses.items() if use[1].wall >= 0}
