"""What is laid out over time, and how long it may be known: where nothing but submissions has happened since,
and nothing that it tells has begun or ended, the next pass goes on with it (`Site.memos`)."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nqspy.core.timeline.profile import FOREVER, Claims, Profile
from nqspy.core.timeline.untimed import Untimed
from nqspy.model.ids import Instant, Seq
from nqspy.model.site import Site

Span = tuple[int, int, Claims]
"""From when until when somebody has which amounts."""


class HeldSpans(NamedTuple):
    """What somebody has from ``begin`` until ``end``; ``kept_on``: and of it for ever."""

    begin: int
    end: int
    claims: Claims
    kept_on: Claims

    def spans(self) -> tuple[Span, ...]:
        """The same, one after the other."""
        first = self.begin, self.end, self.claims
        return (first, (self.end, FOREVER, self.kept_on)) if self.kept_on else (first,)


class KeptSpans(dict[Seq, HeldSpans]):
    """What is kept for whom."""

    def __init__(self, kept: Mapping[Seq, HeldSpans] | None = None) -> None:
        super().__init__(kept or {})
        self._line: list[tuple[int, Seq]] | None = None

    def copy(self) -> "KeptSpans":
        """The same, to be changed by whoever asks."""
        made = KeptSpans(self)
        made._line = None if self._line is None else self._line.copy()
        return made

    def __setitem__(self, seq: Seq, held: HeldSpans) -> None:
        super().__setitem__(seq, held)
        if self._line is not None:
            heapq.heappush(self._line, (held.begin, seq))

    def first(self, but: Seq) -> tuple[int, Seq] | None:
        """From when the first of what is kept for others than one is, and for whom."""
        if self._line is None:
            self._line = sorted((held.begin, seq) for seq, held in self.items())
        own: list[tuple[int, Seq]] = []
        while self._line and (self._line[0][1] == but or not self._stands(self._line[0])):
            begin, seq = heapq.heappop(self._line)
            own += [(begin, seq)] if seq == but and self._stands((begin, seq)) else []
        found = self._line[0] if self._line else None
        for each in own[:1]:
            heapq.heappush(self._line, each)
        return found

    def _stands(self, entry: tuple[int, Seq]) -> bool:
        held = self.get(entry[1])
        return held is not None and held.begin == entry[0]


@dataclass(slots=True)
class TimeLayout:
    """``profile``: what is free when; ``kept``: what for whom who is promised a start, ``untimed``: for whom
    without a time; ``running``: until when who holds PEs, and who that is; ``idle``: PEs by domain that
    nobody holds; ``claimed``: what those that wait would hold."""

    profile: Profile
    untimed: Untimed
    kept: KeptSpans
    running: list[tuple[int, Seq]]
    idle: dict[str, int]
    claimed: dict[Seq, Claims]

    def copy(self, now: Instant) -> "TimeLayout":
        """The same, to be changed by whoever asks."""
        profile, untimed, kept = self.profile.copy(now), self.untimed.copy(), self.kept.copy()
        return TimeLayout(profile, untimed, kept, self.running, self.idle.copy(), self.claimed.copy())


@dataclass(slots=True)
class _Note:
    """A layout made at ``made``, that holds before ``until`` while the same shifts are to come."""

    layout: TimeLayout
    made: Instant
    until: int
    shifts: tuple[object, object]


def holds(site: Site, now: Instant) -> bool:
    """Whether what was laid out of a site as it is is noted, and holds still."""
    note: _Note | None = site.memos.get(_NAME)
    return note is not None and note.made <= now < note.until and note.shifts == _shifts(site)


def recall(site: Site, now: Instant) -> TimeLayout | None:
    """What was laid out of a site as it is, if it still holds."""
    found: TimeLayout | None = site.memos[_NAME].layout.copy(now) if holds(site, now) else None
    return found


def remember(site: Site, now: Instant, layout: TimeLayout, until: int) -> None:
    """Notes what was laid out and holds until then, but for who stands still: when he goes on changes with
    time."""
    if not site.paused:
        until = min([until, *(stop.at for stop in site.upcoming_stops.values())])
        site.memos[_NAME] = _Note(layout.copy(now), now, max(until, now + 1), _shifts(site))


def _shifts(site: Site) -> tuple[object, object]:
    return dict(site.upcoming_stops), dict(site.closings)


_NAME = "layout"
