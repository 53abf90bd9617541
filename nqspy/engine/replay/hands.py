"""The executor of a course: attempts run as the journal says that they ran (`Lives`)."""

from collections.abc import Collection, Sequence

from nqspy.engine.replay.lives import Lives
from nqspy.engine.virtual.attempts import ENDLESS, VirtualAttempt
from nqspy.engine.virtual.executor import VirtualExecutor
from nqspy.engine.virtual.heap import Heap
from nqspy.engine.virtual.processors import Key
from nqspy.model.actions import Action, Kill, Start
from nqspy.model.ids import Instant, Seq
from nqspy.model.lifetimes import MeasuredMove
from nqspy.model.observations import ObservedNotStarted, ObservedRunning
from nqspy.model.requests import Request, Used
from nqspy.model.site import Site


class RecordedHands(VirtualExecutor):
    """``usual``: moves before the journal's time. ``unknown``: requests that run without a known end, with
    the limits that end them where a limit ended them in the journal, else None."""

    def __init__(self, heap: Heap, lives: Lives, usual: Sequence[MeasuredMove]) -> None:
        super().__init__(heap, lives.run)
        self._lives, self._usual = lives, usual
        self.unknown: dict[Seq, tuple[int | None, int] | None] = {}

    def _start(self, action: Start, request: Request, site: Site, now: Instant) -> None:
        text = self._lives.not_started.get((action.seq, action.attempt))
        if text is not None:
            self._latest[action.seq] = action.attempt
            self._heap.push(now, ObservedNotStarted(action.seq, action.attempt, text))
            return
        attempt = self._take(action.seq, action.attempt, request, site, now)
        delay = self._lives.delay(action.seq)
        attempt.done, attempt.wall = float(-delay), -delay
        self._heap.push(Instant(now + delay), ObservedRunning(action.seq, action.attempt))
        self._share_out(now, [attempt])

    def _take(self, seq: Seq, number: int, request: Request, site: Site, now: Instant) -> VirtualAttempt:
        attempt = super()._take(seq, number, request, site, now)
        if attempt.run.wall >= ENDLESS:
            limits = attempt.wall_limit, attempt.target
            self.unknown[seq] = limits if seq in self._lives.limited else None
        return attempt

    def _move(
        self, attempt: VirtualAttempt, request: Request | None, since: Instant, back: bool = False
    ) -> Instant:
        """Take as long to leave as in the journal, and no time to come back."""
        if back or request is None:
            return since
        return Instant(since + self._lives.move(request.seq, len(request.pes), self._usual))

    def _act(self, action: Action, attempt: VirtualAttempt, now: Instant) -> None:
        super()._act(action, attempt, Instant(now + self._lives.killing) if isinstance(action, Kill) else now)

    def use(self, now: Instant, but: Collection[Key] = ()) -> dict[Seq, tuple[int, Used]]:
        """Return (attempt, what it has used so far) of those that have begun, ``but`` not of these."""
        uses = super().use(now, but)
        return {seq: told for seq, told in uses.items() if told[1].wall >= 0}
