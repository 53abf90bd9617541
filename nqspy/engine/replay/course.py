"""A course of a recorded time: the journal's inputs at their instants, under a virtual clock.

People do what they did at the same instants, requests run as long as they ran (`hands`), and passes are made
at once. A course never follows the journal: a change is judged by two courses side by side, one without it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from nqspy.engine.explain import reasons_of
from nqspy.engine.inputs import CommandAsked, Input, Observed, Outcome
from nqspy.engine.look_ahead import AtOnce
from nqspy.engine.replay import acts
from nqspy.engine.replay.acts import as_taken_in, submitted_again
from nqspy.engine.replay.follow import ExitsThen
from nqspy.engine.replay.lives import Lives, RecordedHands
from nqspy.engine.replay.recording import CALENDAR, Recording, ReplayJournal
from nqspy.engine.virtual.driver import VirtualRun
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Adjust, Plan
from nqspy.model.errors import Refusal
from nqspy.model.events import Recorded
from nqspy.model.ids import DAY, Instant, Seq
from nqspy.model.observations import ObservedLost
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.settings import Settings
from nqspy.ports import Exits

OURS = "replay"
"""Source of changes that a replay makes."""
LONGER = DAY
"""So long two courses go on at most after the last event, for requests that only one of them has started."""
MOST = 1_000
"""Starts of which it is asked why they moved."""
_REFUSED = (ReasonCode.EXIT, ReasonCode.LINE_CLOSED)
"""Reasons that an exit has given."""


def nothing_again(settings: Settings) -> tuple[ev.Change, ...]:
    """Set nothing anew."""
    return ()


@dataclass(frozen=True)
class CourseChange:
    """Change of a recorded time: ``commands`` are carried out before anything happens; ``again``: what is set
    anew whenever a person has changed settings; ``files``: other files of ``queues.d`` hold than those that
    were applied then; ``routed``: requests are routed anew."""

    commands: Sequence[cm.Command] = ()
    again: Callable[[Settings], tuple[ev.Change, ...]] = nothing_again
    files: bool = False
    routed: bool = False


class _Act(Struct, frozen=True):
    """Input for what the journal has at a place; -1: for the change."""

    place: int


class Course(VirtualRun):
    """``place``: so many events of the journal have come; ``made``: what happened in the course, what the
    change sets (by `OURS`) included; ``started``: what it has started; ``refused``: submissions that are
    refused, and why; ``refusals``: when an exit last refused a request, and the reason."""

    hands: RecordedHands

    def __init__(
        self,
        recording: Recording,
        exits: Exits,
        then: ExitsThen | None = None,
        change: CourseChange | None = None,
    ) -> None:
        site = recording.begin()
        self.events, self.change = recording.events, change or CourseChange()
        self._lives = Lives((*recording.events, *recording.after))
        journal = ReplayJournal(recording.ended, site.at)
        told = any(isinstance(each.event, ev.Decided) and each.event.samples for each in recording.events)
        super().__init__(journal, self._lives.run, site.at, exits, AtOnce(exits), sampled=told)
        self.executor = self.hands = RecordedHands(self.heap, self._lives, site.moves)
        self._then, self._plan, self._changed = then or ExitsThen(), Plan(), False
        self.place = 0
        self.made: list[Recorded] = []
        self.started: set[Seq] = set()
        self.refused: dict[Seq, str] = {}
        self.refusals: dict[Seq, tuple[Instant, Reason]] = {}
        self.make(site)
        self._then.load(site.loaded_exits, site, again=False)
        exits.begin(site)
        self.executor.adopt(site, {}, site.at)
        self.heap.push(site.at, None)
        self.heap.stream(self._acts())

    def _acts(self) -> Iterator[tuple[Instant, _Act]]:
        """Yield what people did, and what was seen of the site, at its instants; no clock goes back. The
        change comes first, on a site that is set up only then before its first request."""
        now, changed = self.now, bool(self.site.settings.queues)
        if changed:
            yield now, _Act(-1)
        for place, recorded in enumerate(self.events):
            now = max(now, recorded.at)
            if not changed and isinstance(recorded.event, ev.Submitted):
                changed = True
                yield now, _Act(-1)
            event: Any = recorded.event
            ends = isinstance(event, ev.Ended | ev.Requeued)
            if acts.concerns(event) or (ends and (event.seq, event.attempt) in self._lives.lost):
                yield now, _Act(place)

    def go_to(self, at: Instant) -> set[Seq]:
        """Let happen what comes up to an instant; return what is started for the first time."""
        before = len(self.made)
        while (due := self.heap.next_at()) is not None and due <= at:
            self.step(due)
        events = (each.event for each in self.made[before:])
        begun = {event.seq for event in events if isinstance(event, ev.Starting)} - self.started
        self.started |= begun
        return begun

    def feed(self, inputs: Sequence[Any], asked: Any = ()) -> None:
        """Give the engine what is seen now, then one by one what the journal has."""
        due = [each for each in inputs if isinstance(each, _Act)]
        if due:
            asked = self._happens(due)
            inputs = [each for each in inputs if not isinstance(each, _Act)]
        super().feed(inputs, asked)

    def _take(self, outcome: Outcome) -> None:
        self.made += outcome.happened
        for handle, reply in outcome.replies:
            if handle == OURS and reply.refusal is not None:
                raise reply.refusal
        if self.engine.plan is not self._plan:
            self._plan = self.engine.plan
            own = self._plan.reasons.own if self.exits.has("jobselect") else {}
            self.refusals |= {seq: (self.now, why) for seq, why in own.items() if why.code in _REFUSED}

    # ------------------------------------------------------------ what happens again

    def _happens(self, due: Sequence[_Act]) -> Iterator[Input]:
        """Yield the inputs of what comes about; each is made when those before it were taken."""
        for act in due:
            if act.place < 0:
                self._changed = True
                for command in self.change.commands:
                    yield CommandAsked(command, acts.person(OURS), OURS)
                yield from self._set_again()
                continue
            self.place = act.place + 1
            event = self.events[act.place].event
            yield from self._again(act.place, event)
            if isinstance(event, ev.LoadedExits):
                self._then.load(dict(event.files), self.site)
            elif isinstance(event, ev.SettingsChanged) and event.who != CALENDAR and self._changed:
                yield from self._set_again()
            elif isinstance(event, ev.Modified) and event.seq in self.site.started:
                request = self.site.started[event.seq]
                self.hands.do(Adjust(event.seq, request.attempts), request, self.site, self.now)

    def _set_again(self) -> Iterator[Input]:
        changes = self.change.again(self.site.settings)
        if changes:
            yield Observed((ev.SettingsChanged(changes, OURS, OURS),))

    def _again(self, place: int, event: ev.Event) -> Sequence[Input]:
        if isinstance(event, ev.Submitted):
            events = as_taken_in(self.events, place)
            try:
                if self.change.routed:
                    events = submitted_again(self.site, events, self.exits, self.now)
            except Refusal as refusal:
                self.refused[event.seq] = str(refusal)
                return ()
            return (Observed(events),)
        applied = isinstance(event, ev.SettingsChanged) and event.source == "queues.d"
        of_files = applied or isinstance(event, ev.FilesApplied)
        if isinstance(event, ev.Routed) or (self.change.files and of_files):
            return ()
        if isinstance(event, ev.Ended | ev.Requeued):
            request = self.site.started.get(event.seq)
            return () if request is None else (ObservedLost(event.seq, request.attempts, request.used),)
        return acts.again(self.site, event)


# ---------------------------------------------------------------- side by side


@dataclass(slots=True)
class Moves:
    """Reasons why requests waited in one course when the other started them: ``kept`` in the second course,
    ``kept_then`` in the first."""

    kept: dict[Seq, Reason] = field(default_factory=dict)
    kept_then: dict[Seq, Reason] = field(default_factory=dict)


def side_by_side(was: Course, would: Course, far: Callable[[int], None] = lambda done: None) -> Moves:
    """Let two courses of a recording go to their end; ``far``: events done. Raises Refusal of a change."""
    moves, apart = Moves(), set[Seq]()
    last = max((recorded.at for recorded in was.events), default=was.now)
    while True:
        at = min((at for each in (was, would) if (at := each.heap.next_at()) is not None), default=None)
        if at is None or at > last + LONGER:
            break
        if at > last and not any(_waits(each, seq) for seq in apart for each in (was, would)):
            break
        begun, begun_there = was.go_to(at), would.go_to(at)
        _ask(would, begun, moves.kept)
        _ask(was, begun_there, moves.kept_then)
        apart ^= begun
        apart ^= begun_there
        far(was.place)
    return moves


def _waits(course: Course, seq: Seq) -> bool:
    request = course.site.to_be(seq)
    return request is not None and request.attempt is None


def _ask(other: Course, begun: set[Seq], kept: dict[Seq, Reason]) -> None:
    """Note why requests do not start in the other course."""
    for seq in sorted(begun):
        if len(kept) < MOST and seq not in kept and _waits(other, seq):
            reason = reasons_of(other.engine, (seq,)).get(seq)
            if reason is not None:
                kept[seq] = reason
