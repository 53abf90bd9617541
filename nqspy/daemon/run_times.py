"""Real run times: how far the site's clock was set while an attempt ran."""

import time
from collections.abc import Callable, Iterable, Sequence

from nqspy.answers.serving import SiteClock
from nqspy.model.events import Ended, Recorded, Requeued, Started
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site

_LEAST = 1_000.0
"""Real ms of the least step that counts; less is adjustment, or a pause between two readings."""


class RunTimes:
    """Compares the site's clock with the monotonic one since the start of each attempt, or of this daemon."""

    def __init__(self, clock: SiteClock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._monotonic = clock, monotonic
        self._offsets: dict[Seq, float] = {}

    def begin(self, site: Site) -> None:
        """Note the attempts that run already when this daemon starts."""
        offset = self._offset()
        self._offsets = dict.fromkeys(site.started, offset)

    def follow(self, happened: Sequence[Recorded]) -> None:
        """Note the committed starts and ends of attempts."""
        for recorded in happened:
            if isinstance(recorded.event, Started):
                self._offsets[recorded.event.seq] = self._offset()
            elif isinstance(recorded.event, Ended | Requeued):
                self._offsets.pop(recorded.event.seq, None)

    def unset(self, seq: Seq, now: Instant) -> Instant:
        """Return the instant that the clock would show if it had not been set since the attempt's start."""
        return Instant(now - self.moved((seq,)).get(seq, 0))

    def moved(self, seqs: Iterable[Seq] | None = None) -> dict[Seq, int]:
        """Return by request how far (ms, positive: forward) the clock was set since its attempt began,
        without steps below 1 s; ``seqs`` None: for all running attempts."""
        offset, least = self._offset(), _LEAST * self._clock.speed
        chosen = self._offsets if seqs is None else self._offsets.keys() & seqs
        moved = {seq: int(offset - self._offsets[seq]) for seq in chosen}
        return {seq: by for seq, by in moved.items() if abs(by) >= least}

    def _offset(self) -> float:
        return self._clock.now() - self._monotonic() * 1000 * self._clock.speed
