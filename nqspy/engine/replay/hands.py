"""The executor of a replay: attempts run as long as they did, whenever they are started.

One that is started when it was started lives the same life to the millisecond. Of one that did not end by
itself it is not known how long it would have run: it runs to its limit. On another number of PEs one that may
run on several takes as much more or less time as its owner's times say.
"""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from nqspy.core.runtime import cpu_limit, planned_wall, wall_limit
from nqspy.engine.replay.lives import Life, Lives, told
from nqspy.engine.virtual.attempts import ENDLESS, Run, VirtualAttempt
from nqspy.engine.virtual.executor import VirtualExecutor
from nqspy.engine.virtual.heap import Heap
from nqspy.engine.virtual.processors import Key
from nqspy.model.actions import Action, Forget, Kill, Start
from nqspy.model.ids import Instant, Seq
from nqspy.model.moved_out import mean_move
from nqspy.model.observations import (
    Observation,
    ObservedEnded,
    ObservedExiting,
    ObservedLost,
    ObservedNotStarted,
    ObservedRunning,
    ObservedVoid,
)
from nqspy.model.requests import Ending, EndReason, Request, State, Used, finite
from nqspy.model.settings import Settings
from nqspy.model.site import Site

SLACK = 1.05
"""One that ran beyond a limit by no more than that was seen to be over it late, or ended in time."""


class RecordedHands(VirtualExecutor):
    """``lives`` says how long attempts run. It does nothing before it has taken over (`take_over`): up to
    then what became of attempts is in the journal. ``guessed``: requests whose lengths are not known."""

    def __init__(self, heap: Heap, lives: Lives) -> None:
        super().__init__(heap, self._run)
        self.lives = lives
        self.guessed: set[Seq] = set()
        self._settings = Settings()
        self._idle = True
        self._usual = 0.0
        self._exits: dict[Seq, int] = {}

    def do(self, action: Action, request: Request | None, site: Site, now: Instant) -> None:
        """As any executor, once it has taken over."""
        self._settings = site.settings
        if not self._idle:
            super().do(action, request, site, now)
            if isinstance(action, Forget):
                self._attempts.pop(action.seq, None)

    # ------------------------------------------------------------ taking over

    def take_over(self, site: Site, now: Instant) -> None:
        """Goes on with all that has been started, as the journal has it."""
        self._idle, self._settings = False, site.settings
        self._usual = mean_move(site.moves) or 0.0
        for request in site.started.values():
            self._go_on(request, site, now)

    def _go_on(self, request: Request, site: Site, now: Instant) -> None:
        run, seq = request.run, request.seq
        life = self._life(request)
        if request.state is State.EXITING or run.ending is not None:
            self._go_on_ending(request, life, now)
        elif run.starting:
            self._begin(request, site, now)
        else:
            attempt = self._take(seq, run.number, request, site, now)
            attempt.runs = request.state is not State.SUSPENDED
            attempt.wall = run.ran(now)
            attempt.done = float(min(attempt.wall, attempt.target))
            if request.pause is not None and request.pause.leaving:
                self._leave(attempt, request, request.pause.at, now)
            self._share_out(now, [attempt])
            self._vanish(request, life)

    def _move(
        self, attempt: VirtualAttempt, request: Request | None, since: Instant, back: bool = False
    ) -> Instant:
        """The way out takes what it took; who comes back goes on at once, as it did then."""
        if back or request is None:
            return since
        took = self.lives.move(request.seq, request.attempts, len(request.pes), since, self._usual)
        return Instant(since + took)

    def _go_on_ending(self, request: Request, life: Life | None, now: Instant) -> None:
        """It ends when it did, where its end was ordered then too."""
        seq, number, ordered = request.seq, request.run.number, request.run.ending is not None
        known = life is not None and (life.ordered is not None or not ordered)
        ending, at = Ending(_reason(request), None, None, request.used), Instant(now + self.lives.killing)
        if known and life is not None and life.over is not None and life.ending is not None:
            ending, at = life.ending, life.over
        self._latest[seq] = number
        end = self._ends[seq, number] = ObservedEnded(seq, number, ending)
        self._heap.push(max(now, at), end)

    # ------------------------------------------------------------ starts

    def _start(self, action: Start, request: Request, site: Site, now: Instant) -> None:
        self.begun.append((action.seq, action.attempt))
        self._begin(request, site, now)

    def _begin(self, request: Request, site: Site, now: Instant) -> None:
        """An attempt that was started and has not begun: it begins as it did, or after the usual time."""
        run, life = request.run, self._life(request)
        natural = self.lives.natural(request.seq)
        if natural is not None and natural.fate == "not_started":
            text = "" if natural.ending is None else natural.ending.text
            return self._tell(request, natural, ObservedNotStarted(request.seq, run.number, text), now)
        if life is not None and life.fate == "void":
            return self._tell(request, life, ObservedVoid(request.seq, run.number), now)
        began = None if life is None else life.began
        delay = self.lives.delay if began is None else max(0, began - now)
        attempt = self._take(request.seq, run.number, request, site, now)
        attempt.done, attempt.wall = float(-delay), -delay
        self._heap.push(Instant(now + delay), ObservedRunning(request.seq, run.number))
        self._share_out(now, [attempt])
        self._vanish(request, life)
        return None

    def _tell(self, request: Request, life: Life, seen: Observation, now: Instant) -> None:
        """It never begins: that is told as long after its start as it was."""
        self._latest[request.seq] = request.run.number
        took = (life.over or 0) - (life.starting or 0)
        self._heap.push(Instant(now + max(0, took)), seen)

    def _vanish(self, request: Request, life: Life | None) -> None:
        """It was lost then, and is again."""
        if life is not None and life.fate == "lost" and life.over is not None:
            used = told(life.ending)
            seen = ObservedLost(request.seq, request.run.number, used, brief=life.wall < BRIEF)
            self._heap.push(life.over, seen)

    def _life(self, request: Request) -> Life | None:
        """The life of this very attempt, if it was started when it is started now, and on as many PEs."""
        life = self.lives.of(request.seq, request.run.number)
        if life is None or not life.is_it(request.run.started):
            return None
        return life if life.pes in (0, request.spec.ask.pes) else None

    # ------------------------------------------------------------ how long it runs

    def _run(self, request: Request) -> Run:
        settings, ask = self._settings, request.spec.ask
        life, natural = self._life(request), self.lives.natural(request.seq)
        same = life is not None and life.fate in ("natural", "cut")
        chosen = life if same else natural
        if chosen is None or chosen.ending is None:
            return self._unknown(request, self.lives.of(request.seq, request.run.number))
        ending = chosen.ending if same else _on_size(request, chosen, chosen.ending)
        wall, cpu = chosen.wall if same else chosen.own_wall, ending.used.cpu
        if ending is not chosen.ending:
            wall = ending.used.wall
        limits = (
            (wall_limit(settings, request.queue, ask), wall),
            (cpu_limit(settings, request.queue, ask), cpu),
        )
        over = any(limit is not None and used > SLACK * limit for limit, used in limits)
        if chosen.fate == "cut" and not any(
            limit is not None and used * SLACK >= limit for limit, used in limits
        ):
            return self._unknown(request, chosen)
        return Run(wall, cpu, 0, ending.used.memory, not over, ending)

    def _unknown(self, request: Request, life: Life | None) -> Run:
        """It runs to its limit; its CPU time as that of the attempt that did not end by itself."""
        self.guessed.add(request.seq)
        used = told(None if life is None else life.ending)
        rate = used.cpu / used.wall if used.wall else float(request.spec.ask.pes)
        planned = planned_wall(self._settings, request.queue, request.spec.ask)
        wall = ENDLESS if planned is None else planned
        return Run(wall, round(wall * rate), memory=used.memory)

    # ------------------------------------------------------------ ends

    def _schedule(self, attempt: VirtualAttempt, now: Instant) -> None:
        super()._schedule(attempt, now)
        life = self.lives.of(attempt.seq, attempt.attempt) or self.lives.natural(attempt.seq)
        own = attempt.end is not None and attempt.end.ending is attempt.run.ending
        if own and life is not None and life.delivery:
            found = attempt.next_end()
            assert found is not None
            at = Instant(max(now, now + found[0] - life.delivery))
            used = told(attempt.run.ending)
            self._exits[attempt.seq] = self._heap.push(
                at, ObservedExiting(attempt.seq, attempt.attempt, used)
            )

    def _take_back(self, attempt: VirtualAttempt) -> None:
        if attempt.end is not None and (number := self._exits.pop(attempt.seq, None)) is not None:
            self._heap.drop(number)
        super()._take_back(attempt)

    def _act(self, action: Action, attempt: VirtualAttempt, now: Instant) -> None:
        if not isinstance(action, Kill):
            super()._act(action, attempt, now)
            return
        attempt.settle(now)
        life = self.lives.of(attempt.seq, attempt.attempt)
        again = life is not None and life.ordered == now and life.over is not None and life.ending is not None
        if again and life is not None and life.ending is not None:
            at, ending = life.over or now, life.ending
        else:
            reason: EndReason = "requeued" if action.reason == "requeued" else "deleted"
            at = Instant(now + self.lives.killing)
            ending = Ending(reason, None, action.signal, attempt.used(now))
        self._take_back(attempt)
        self._end(attempt, ending, at)

    def use(self, now: Instant, but: Collection[Key] = ()) -> dict[Seq, tuple[int, Used]]:
        """(attempt, what it has used so far) of what runs and has begun, ``but`` not of these."""
        going = (each for each in self._attempts.values() if each.runs and each.key not in but)
        return {a.seq: (a.attempt, a.used(now)) for a in going if a.wall + now >= a.since}

    def follows_its_life(self, request: Request) -> bool:
        """Whether an attempt was started when the journal has it started."""
        return self._life(request) is not None


BRIEF = 60_000
"""A life that was shorter than that was lost soon after its start."""


def _on_size(request: Request, life: Life, ending: Ending) -> Ending:
    """How an attempt would have ended on the PEs that the request has now, where it may run on several
    numbers of them and had others: in as much more or less time as its owner's times say."""
    mold, pes = request.spec.mold, request.spec.ask.pes
    if mold is None or life.pes == pes or life.pes not in mold.sizes:
        return ending
    now, then = (mold.expected_on(each, finite(mold.wall_on(each))) for each in (pes, life.pes))
    part = now / then if now and then else life.pes / pes
    used = ending.used
    cpu = round(used.cpu * part * pes / life.pes)
    return replace(ending, used=replace(used, wall=round(used.wall * part), cpu=cpu))


def _reason(request: Request) -> EndReason:
    """How one ends whose end was ordered, where nobody knows it better."""
    order = request.ending
    return "exit" if order is None else "requeued" if order.rerun else "deleted"


def used_by(uses: Mapping[Seq, tuple[int, Used]]) -> dict[Seq, Used]:
    """What each request has used."""
    return {seq: used for seq, (_, used) in uses.items()}
