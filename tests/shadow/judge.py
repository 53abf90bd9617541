"""The shadow: finds the passes in a journal, and judges each in the site that it saw."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from shadow.followed import Followed
from shadow.look import Decision, Difference, PassLook

from nqspy.model import events as ev
from nqspy.model.cause import Caused
from nqspy.model.events import Promised
from nqspy.model.ids import MINUTE, SECOND, Instant, Seq, array_of
from nqspy.model.requests import Reservation
from nqspy.model.site import Site

PAUSE = 2 * MINUTE
"""ms without an event after which no request may be left that could start. The journal has no idle passes."""
_OF_A_PASS = (
    ev.Starting, ev.Reserved, ev.Redated, ev.Routed, ev.Held, ev.Suspended, ev.Resumed, ev.Deleting, Promised,
    ev.Alarm, ev.ExitOff,
)  # fmt: skip
"""Events that belong to a decision if they follow it at the same instant."""
_MATTERS = (ev.ResourceChanged, ev.PressureChanged, ev.Resumed, ev.Modified, ev.Restored, ev.MachineFound)
"""Events that change more than their own request."""
_TROUBLE = (ev.Alarm, ev.ExitOff, ev.DaemonStarted, ev.Restored)
"""Events after which a pass may be missing for a while."""


@dataclass(slots=True)
class Verdict:
    """How many ``passes`` were judged, and how many ``pauses``, in which nothing happened; ``partly``: how
    many of both could not be judged as a whole, by why; ``whole``: how many were."""

    passes: int = 0
    pauses: int = 0
    whole: int = 0
    partly: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)


class Shadow:
    """Judges a journal. ``site``: settings and machine before its first event, to be changed; ``pause`` as
    `PAUSE`; None: pauses are not judged."""

    def __init__(self, site: Site, pause: int | None = PAUSE) -> None:
        self._verdict = Verdict()
        self._followed = Followed(site)
        self._pause = pause
        self._coming: deque[ev.Recorded] = deque()
        self._pass: list[ev.Recorded] = []
        self._last: ev.Recorded | None = None
        self._exits: tuple[str, ...] | None = None
        self._troubled = True

    def take_all(self, events: Iterable[ev.Recorded]) -> Verdict:
        """Judge a journal to its end. An event waits until it is known which pass saw it."""
        for recorded in events:
            event = recorded.event
            if self._pass and not (recorded.at == self._pass[0].at and _is_of_a_pass(event)):
                self._judge()
            if self._pass or isinstance(event, ev.Decided):
                self._pass.append(recorded)
            else:
                self._look_at_pause(recorded)
                self._coming.append(recorded)
        if self._pass:
            self._judge()
        return self._verdict

    def _follow(self, count: int, unseen: bool = False) -> None:
        for _ in range(count):
            self._take(self._coming.popleft(), unseen)

    def _take(self, recorded: ev.Recorded, unseen: bool = False) -> None:
        self._followed.take(recorded, unseen)
        self._last = recorded
        self._troubled = self._troubled or isinstance(recorded.event, _TROUBLE)

    def _look_at_pause(self, recorded: ev.Recorded) -> None:
        """Judge whether none was left waiting before this event, if nothing had happened for long."""
        last = self._coming[-1] if self._coming else self._last
        if self._pause is None or last is None or recorded.at - last.at < self._pause:
            return
        self._follow(len(self._coming))
        if not self._troubled and not isinstance(recorded.event, ev.DaemonStarted):
            self._verdict.pauses += 1
            decision = Decision(last.n, last.at, Instant(last.at + SECOND), exits=self._exits)
            self._close(PassLook(self._followed, decision))

    def _judge(self) -> None:
        """Judge the pass that is complete now, in the site as it was by the last event that it saw."""
        (decided, *block), self._pass = self._pass, []
        event: Any = decided.event
        self._follow(sum(each.n <= event.as_of for each in self._coming))
        first = self._last.at if self._last is not None else decided.at
        unseen, waited = list(self._coming), self._followed.queued()
        self._follow(len(unseen), unseen=True)
        self._exits, self._troubled = event.exits, False
        self._verdict.passes += 1
        decision = _decision(decided, block, min(first, decided.at), unseen)
        matters = any(isinstance(each.event, _MATTERS) for each in unseen)
        dropped = matters or not waited.isdisjoint(decision.unseen)
        # What begins late ends late: a start of the plan may delay a reservation by then.
        dropped = dropped or any(isinstance(each.event, ev.Started) for each in unseen)
        decision = decision._replace(dropped=dropped)
        look = PassLook(self._followed, decision)
        if matters:
            look.doubts.add("something else happened while it was decided")
        for each in (decided, *block):
            if isinstance(each.event, ev.Starting):
                look.start(each.event)
            elif isinstance(each.event, ev.Redated):
                look.remember_orders()
            elif isinstance(each.event, ev.Routed):
                look.moved.add(each.event.seq)
            self._take(each)
            look.refresh()
        self._close(look)
        self._followed.see()

    def _close(self, look: PassLook) -> None:
        look.left()
        self._verdict.whole += not look.doubts
        self._verdict.partly.update(look.doubts)
        self._verdict.differences += look.differences


def _decision(
    decided: ev.Recorded, block: list[ev.Recorded], first: Instant, unseen: list[ev.Recorded]
) -> Decision:
    event: Any = decided.event
    happened: list[Any] = [each.event for each in block]
    made: dict[Seq, Reservation | None] = {}
    for what in happened:
        made |= what.starts if isinstance(what, ev.Reserved) else {}
    return Decision(
        n=decided.n,
        first=first,
        last=decided.at,
        unseen={seq for each in unseen for seq in _named(each.event)},
        exits=event.exits,
        wait={seq: code for seq, code, *_ in event.wait},
        made=made,
        starts={array_of(what.seq) or what.seq for what in happened if isinstance(what, ev.Starting)},
    )


def _is_of_a_pass(event: ev.Event) -> bool:
    return isinstance(event, _OF_A_PASS) and not (isinstance(event, Caused) and event.because().is_person)


def _named(event: Any) -> Iterable[Seq]:
    """Return the requests that an event is about."""
    return tuple(event.seqs) if hasattr(event, "seqs") else (getattr(event, "seq", 0),)
