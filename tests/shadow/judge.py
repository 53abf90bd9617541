"""The shadow itself: finds the passes in the journal, and has each looked at in the site that it saw."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shadow.followed import Followed
from shadow.look import PassLook, SeenDecision, ShadowDifference

from nqspy.model import events as ev
from nqspy.model.cause import Caused
from nqspy.model.ids import MINUTE, SECOND, Instant, Seq, array_of
from nqspy.model.promises import Promised
from nqspy.model.reservation import Reservation
from nqspy.model.site import Site

PAUSE = 2 * MINUTE
"""ms without an event after which whoever could start was left waiting: a pass that does nothing is not in
the journal."""
_OF_A_PASS = (
    ev.Starting, ev.Reserved, ev.Redated, ev.Routed, ev.Held, ev.Suspended, ev.Resumed, ev.Deleting, Promised,
    ev.Alarm, ev.ExitOff,
)  # fmt: skip
"""What follows a decision at the same instant is its own."""
_MATTERS = (ev.ResourceChanged, ev.PressureChanged, ev.Resumed, ev.Modified, ev.Restored, ev.MachineFound)
"""What changes more than its own request."""
_TROUBLE = (ev.Alarm, ev.ExitOff, ev.DaemonStarted, ev.Restored)
"""After these a pass may be missing for a while."""


ALWAYS = Instant(0)


@dataclass(slots=True)
class Verdict:
    """How many ``passes`` were judged, and how many ``pauses``, in which nothing happened; ``partly``: how
    many of both could not be judged as a whole, by why; ``whole``: how many were."""

    passes: int = 0
    pauses: int = 0
    whole: int = 0
    partly: Counter[str] = field(default_factory=Counter)
    differences: list[ShadowDifference] = field(default_factory=list)


class Shadow:
    """Takes the journal's events in their order. ``site``: settings and machine before the first of them, to
    be changed; judged are passes between ``begin`` and ``end``. ``pause`` as `PAUSE`; None: pauses are not
    looked at."""

    def __init__(
        self, site: Site, begin: Instant = ALWAYS, end: Instant | None = None, pause: int | None = PAUSE
    ) -> None:
        self.verdict = Verdict()
        self._followed = Followed(site)
        self._begin, self._end, self._pause = begin, end, pause
        self._coming: deque[ev.Recorded] = deque()
        self._pass: list[ev.Recorded] = []
        self._last: ev.Recorded | None = None
        self._pes: dict[str, Sequence[int]] = {}
        self._exits: tuple[str, ...] | None = None
        self._troubled = True

    def take_all(self, events: Iterable[ev.Recorded]) -> Verdict:
        """Takes events, to the end."""
        for recorded in events:
            self.take(recorded)
        return self.finish()

    def watch(self, events: Iterable[ev.Recorded]) -> Iterator[ev.Recorded]:
        """Takes events while they go by."""
        for recorded in events:
            self.take(recorded)
            yield recorded

    def recall(self, events: Iterable[ev.Recorded]) -> None:
        """What had happened to the site, but for settings and requests, before the first event."""
        for recorded in events:
            if isinstance(recorded.event, ev.ResourceChanged | ev.PressureChanged):
                self._followed.take(recorded)

    def take(self, recorded: ev.Recorded) -> None:
        """Takes one event. It is kept until it is known which pass saw it."""
        event = recorded.event
        if self._pass and not (recorded.at == self._pass[0].at and _is_of_a_pass(event)):
            self._judge()
        if self._pass or isinstance(event, ev.Decided):
            self._pass.append(recorded)
        else:
            self._look_at_pause(recorded)
            self._coming.append(recorded)

    def finish(self) -> Verdict:
        """No more events come."""
        if self._pass:
            self._judge()
        self._follow(len(self._coming))
        return self.verdict

    # ------------------------------------------------------------ what happened

    def _follow(self, count: int, unseen: bool = False) -> None:
        for _ in range(count):
            self._take(self._coming.popleft(), unseen)

    def _take(self, recorded: ev.Recorded, unseen: bool = False) -> None:
        self._followed.take(recorded, unseen)
        self._last = recorded
        if isinstance(recorded.event, ev.SettingsChanged | ev.MachineFound):
            self._pes.clear()
        self._troubled = self._troubled or isinstance(recorded.event, _TROUBLE)

    def _is_judged(self, at: Instant) -> bool:
        return at >= self._begin and (self._end is None or at < self._end)

    # ------------------------------------------------------------ passes and pauses

    def _look_at_pause(self, recorded: ev.Recorded) -> None:
        """Whether nobody was left waiting before this event, where nothing had happened for long."""
        last = self._coming[-1] if self._coming else self._last
        if self._pause is None or last is None or recorded.at - last.at < self._pause:
            return
        self._follow(len(self._coming))
        away = self._troubled or isinstance(recorded.event, ev.DaemonStarted)
        if self._is_judged(last.at) and not away:
            self.verdict.pauses += 1
            decision = SeenDecision(last.n, last.at, Instant(last.at + SECOND), exits=self._exits)
            look = PassLook(self._followed, decision, self._pes)
            look.left()
            self._close(look)

    def _judge(self) -> None:
        """Judges the pass that is complete now: in the site as it was by the last event that it saw."""
        (decided, *block), self._pass = self._pass, []
        event: Any = decided.event
        self._follow(sum(each.n <= event.as_of for each in self._coming))
        first = self._last.at if self._last is not None else decided.at
        unseen = list(self._coming)
        self._follow(len(unseen), unseen=True)
        self._exits, self._troubled = event.exits, False
        if self._is_judged(decided.at):
            self.verdict.passes += 1
            self._look_at(decided, block, min(first, decided.at), unseen)
        else:
            for each in (decided, *block):
                self._take(each)
        self._followed.taken.see()

    def _look_at(
        self, decided: ev.Recorded, block: list[ev.Recorded], first: Instant, unseen: list[ev.Recorded]
    ) -> None:
        event: Any = decided.event
        happened: list[Any] = [each.event for each in block]
        made: dict[Seq, Reservation | None] = {}
        for what in happened:
            made |= what.starts if isinstance(what, ev.Reserved) else {}
        decision = SeenDecision(
            n=decided.n,
            first=first,
            last=decided.at,
            unseen={seq for each in unseen for seq in _named(each.event)},
            exits=event.exits,
            wait={seq: code for seq, code, *_ in event.wait},
            made=made,
            starts={array_of(what.seq) or what.seq for what in happened if isinstance(what, ev.Starting)},
        )
        look = PassLook(self._followed, decision, self._pes)
        if any(isinstance(each.event, _MATTERS) for each in unseen):
            look.doubts.add("something else happened while it was decided")
        for each in (decided, *block):
            if isinstance(each.event, ev.Starting):
                look.start(each.event)
            elif isinstance(each.event, ev.Redated):
                look.remember_turns()
            elif isinstance(each.event, ev.Routed):
                look.moved.add(each.event.seq)
            self._take(each)
            look.refresh()
        look.left()
        self._close(look)

    def _close(self, look: PassLook) -> None:
        self.verdict.whole += not look.doubts
        self.verdict.partly.update(look.doubts)
        self.verdict.differences += look.differences


def _is_of_a_pass(event: ev.Event) -> bool:
    return isinstance(event, _OF_A_PASS) and not (isinstance(event, Caused) and event.because().is_person)


def _named(event: Any) -> Iterable[Seq]:
    """The requests that an event is about."""
    return tuple(event.seqs) if hasattr(event, "seqs") else (getattr(event, "seq", 0),)
