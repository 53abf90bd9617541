"""When passes were made, and when what comes by time alone was seen to have come: a replay that goes another
way keeps to these instants, so that what has nothing to do with the change comes when it came."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct, field

from nqspy.engine.replay.recording import by_clock, of_pass
from nqspy.model import events as ev
from nqspy.model.event import Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Used

LEAST = 1_000
"""ms by which a pass may always be later than what it is made for."""


class Slot(Struct, frozen=True):
    """One pass: when it was asked for, when its plan came, and what running requests had used by then as far
    as that was told."""

    asked: Instant
    at: Instant
    samples: Mapping[Seq, Used] = field(default_factory=dict)


class Timetable:
    """Of a journal's ``events``. ``reach``: ms within which a pass is the one for what has happened; ``lag``:
    ms after which one is usually asked for, ``took`` what it usually takes."""

    def __init__(self, events: Sequence[Recorded]) -> None:
        # One that has seen nothing but what a pass did itself came by time, and is late for nothing.
        instants = {each.n: each.at for each in events if not _is_a_passes_own(each.event)}
        passes = [(each, each.event) for each in events if isinstance(each.event, ev.Decided)]
        slots = [Slot(event.asked or each.at, each.at, dict(event.samples)) for each, event in passes]
        self._slots = sorted(slots, key=lambda slot: slot.asked)
        self._asked = [slot.asked for slot in self._slots]
        self._clock = sorted(recorded.at for recorded in events if by_clock(recorded.event))
        saw = [instants.get(event.as_of) for _, event in passes]
        lags = sorted(slot.at - at for slot, at in zip(slots, saw, strict=True) if at is not None)
        waits = [slot.asked - at for slot, at in zip(slots, saw, strict=True) if at is not None]
        self.reach = max(LEAST, 2 * lags[len(lags) * 9 // 10] if lags else 0)
        self.lag = max(0, round(median(waits))) if waits else 0
        self.took = max(0, round(median(slot.at - slot.asked for slot in slots))) if slots else 0

    def next_pass(self, now: Instant) -> Slot:
        """The pass for what has happened now: the one that was made within `reach`, else one after the usual
        time."""
        found = self._next(now)
        asked = Instant(now + self.lag)
        return found if found is not None else Slot(asked, Instant(asked + self.took))

    def is_next(self, now: Instant) -> bool:
        """Whether a pass was asked for within `reach`."""
        return self._next(now) is not None

    def _next(self, now: Instant) -> Slot | None:
        place = bisect_left(self._asked, now)
        there = place < len(self._asked) and self._asked[place] - now <= self.reach
        return self._slots[place] if there else None

    def seen(self, due: Instant) -> Instant:
        """When it was seen that an instant had come."""
        place = bisect_left(self._clock, due)
        near = place < len(self._clock) and self._clock[place] - due <= self.reach
        return self._clock[place] if near else due

    def was_seen(self, due: Instant) -> bool:
        """Whether anything came by time at that instant or soon after."""
        place = bisect_left(self._clock, due)
        return place < len(self._clock) and self._clock[place] - due <= self.reach


def _is_a_passes_own(event: ev.Event) -> bool:
    """Whether a pass decided it, or what it decided has begun: no pass is asked for by that."""
    return of_pass(event) or isinstance(event, ev.Started)
