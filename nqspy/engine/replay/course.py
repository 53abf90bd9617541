"""The other course of a night: a journal's inputs under other settings or user exits.

As long as nothing is decided otherwise it follows the journal. From the first difference on it goes by
itself, under a virtual clock: people do what they did at the same instants, requests run as long as they ran
(`hands`), passes are made when they were made where that makes sense (`timetable`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nqspy.engine.enact import tells
from nqspy.engine.inputs import CommandAsked, Decision, Input, Observed, PassDue
from nqspy.engine.replay import acts
from nqspy.engine.replay.follow import ExitsThen, Follower, in_order
from nqspy.engine.replay.hands import RecordedHands
from nqspy.engine.replay.lives import Lives
from nqspy.engine.replay.recording import CALENDAR, Recording
from nqspy.engine.replay.resubmit import Resubmission, as_taken_in
from nqspy.engine.replay.timetable import Slot, Timetable
from nqspy.engine.virtual.heap import Heap
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Adjust
from nqspy.model.errors import Refusal
from nqspy.model.event import Recorded
from nqspy.model.ids import DAY, Instant, Seq
from nqspy.model.observations import ObservedEnded
from nqspy.model.requests import Used
from nqspy.model.settings import Settings
from nqspy.ports import Exits

OURS = "replay"
"""Source of changes that a replay makes."""
LONGER = DAY
"""So long a course goes on at most after the journal's last event, for requests that start later then."""


def nothing_again(settings: Settings) -> tuple[ev.Change, ...]:
    """Set nothing anew."""
    return ()


@dataclass(frozen=True)
class CourseChange:
    """What is other than it was: ``commands`` are carried out before anything happens; ``again``: what is set
    anew whenever somebody has changed settings; ``files``: other files of ``queues.d`` hold than those that
    were applied then; ``routed``: requests are routed anew; ``asked``: submissions are shown to the submit
    exits again, as they were accepted then."""

    commands: Sequence[cm.Command] = ()
    again: Callable[[Settings], tuple[ev.Change, ...]] = nothing_again
    files: bool = False
    routed: bool = False
    asked: bool = False


class _Act(Struct, frozen=True):
    """What the journal has at a place comes about."""

    place: int


class _Ask(Struct, frozen=True):
    """A pass is asked for."""

    slot: Slot


class OtherCourse(Follower):
    """``was`` follows the same recording unchanged, and is never behind; ``last``: the latest instant of the
    journal; ``left``: when it parted from that, None: it has not; ``made``: what happened in it, what the
    change itself sets included (by `OURS`); ``refused``: submissions that are refused now, with what was
    said."""

    def __init__(
        self,
        recording: Recording,
        exits: Exits,
        then: ExitsThen | None,
        change: CourseChange,
        was: Follower,
    ) -> None:
        self.heap, self.change, self.was = Heap(), change, was
        self.timetable = Timetable(recording.events)
        self.hands = RecordedHands(self.heap, Lives((*recording.events, *recording.after)))
        self.last = max((recorded.at for recorded in recording.events), default=Instant(0))
        self.left: Instant | None = None
        self.made: list[Recorded] = []
        self.refused: dict[Seq, str] = {}
        self.changed = False
        self._given = self._looked = 0
        self._now = self._tick = Instant(0)
        self._wake: Instant | None = None
        self._asking = False
        super().__init__(recording, exits, then, self.hands)
        self._again = Resubmission(exits, was, change.asked)
        self.stop = self._first_place()

    def _first_place(self) -> int:
        """Where the change is made: at the beginning, on a site that is set up only then before its first
        request."""
        if self.site.settings.queues:
            return 0
        submitted = (n for n, each in enumerate(self.events) if isinstance(each.event, ev.Submitted))
        return next(submitted, len(self.events))

    # ------------------------------------------------------------ the change

    def _make_change(self) -> None:
        """Raises Refusal."""
        self.changed, self.stop = True, len(self.events)
        now = self.events[self.place - 1].at if self.place else self.site.at
        commands = [CommandAsked(command, acts.person(OURS), command) for command in self.change.commands]
        if commands:
            outcome = self.engine.feed(commands, now)
            for _, reply in outcome.replies:
                if reply.refusal is not None:
                    raise reply.refusal
            self.made += outcome.happened
            self._set_again(now)

    def _set_again(self, now: Instant) -> None:
        changes = self.change.again(self.site.settings)
        if changes:
            again = Observed((ev.SettingsChanged(changes, OURS, OURS),))
            self.made += super()._feed((again,), now)

    def _feed(self, inputs: Sequence[Input], now: Instant) -> list[Recorded]:
        made = super()._feed(inputs, now)
        self.made += made
        self._now = now
        if self.changed and any(_is_set(recorded.event) for recorded in made):
            self._set_again(now)
        return made

    def same(self, made: Recorded, recorded: Recorded) -> bool:
        """Whether an event is the one that the journal has, but for what the change itself brings along."""
        if super().same(made, recorded):
            return True
        return self.changed and made.at == recorded.at and _alike(made.event, recorded.event)

    # ------------------------------------------------------------ following

    @property
    def next_at(self) -> Instant | None:
        """When something happens next; None: nothing does."""
        if self.left is None:
            return self.events[self.place].at if self.place < len(self.events) else None
        at = self.heap.next_at()
        return at if at is not None and not self._is_over(at) else None

    def step(self) -> None:
        """Lets happen what comes next."""
        if self.left is not None:
            self._go_on()
            return
        if not self.changed and self.place >= self.stop:
            self._make_change()
        if self.changed and self._is_of_files(self.events[self.place].event):
            self._leave(self._now)
        elif not (self.changed and self._looks_itself()):
            super().step()

    def _ways(self, recorded: Recorded) -> Iterator[Sequence[Input]]:
        event = recorded.event
        if self.changed and self.change.routed and isinstance(event, ev.Submitted):
            inputs, count = self._come_again(self.place)
            self._given = self.place + count
            yield inputs
            return
        for inputs in super()._ways(recorded):
            given = [len(each.events) for each in inputs if isinstance(each, Observed)]
            self._given = self.place + sum(given)
            yield inputs

    def _looks_itself(self) -> bool:
        """Whether it leaves its journal before the next event of that: a pass that decided nothing then, or
        a shift that did not come then, may do so now."""
        if self._flying is not None or self._looked == self.place:
            return False
        self._looked, following = self.place, self.events[self.place].at
        now = self._now
        if self.engine.wants_pass and following > now and not self.timetable.is_next(now):
            return self._decides(now)
        wake = self._wake
        if wake is not None and now < wake < following and not self.timetable.was_seen(wake):
            return self._comes_by_itself(wake)
        return False

    def _decides(self, now: Instant) -> bool:
        """Whether a pass has anything to tell now that nobody told then."""
        plan, short = self.decider.look(self.site, now, self.engine.samples), self._short
        if not tells(plan, short) or self._was_asleep(now):
            return False
        self._leave(now)
        return True

    def _was_asleep(self, now: Instant) -> bool:
        """Whether the daemon made no pass then although one had been called for: under the settings of then
        it would have told something."""
        was = self.was
        was.follow(self.place)
        return tells(was.decider.look(was.site, now, was.engine.samples), was._short)

    def _comes_by_itself(self, wake: Instant) -> bool:
        if self._feed((), wake):
            self._leave(wake)
            return True
        return self.engine.wants_pass and self._decides(wake)

    # ------------------------------------------------------------ going its own way

    def _put_right(self, began: int, made: Sequence[Recorded]) -> None:
        """Leaves the journal: what has happened has."""
        self._leave(self._now)

    def _leave(self, now: Instant) -> None:
        self.left, place = now, max(self.place, self._given)
        self.heap.stream(self._acts(place, now))
        self.hands.take_over(self.site, now)
        if self._flying is not None and self.decider.made is not None:
            self.heap.push(max(now, self.events[self._flying].at), Decision(self.decider.made))
        self._flying = None
        self._look_forward(now)

    def _acts(self, place: int, now: Instant) -> Iterator[tuple[Instant, _Act]]:
        """What people did from there on, at its instants; no clock goes back."""
        for n, recorded in enumerate(self.events[place:], place):
            now = max(now, recorded.at)
            if acts.concerns(recorded.event):
                yield now, _Act(n)

    def _met(self, recorded: Recorded) -> None:
        if self.left is None:
            super()._met(recorded)

    def _go_on(self) -> None:
        now, items = self.heap.pop()
        inputs, adjusted, asks = list[Input](), list[Seq](), list[Slot]()
        for item in items:
            if isinstance(item, _Act):
                inputs += self._acted(item.place)
                event = self.events[item.place].event
                adjusted += [event.seq] if isinstance(event, ev.Modified) else []
            elif isinstance(item, _Ask):
                asks.append(item.slot)
            elif item is not None:
                inputs.append(item)
        inputs.sort(key=_is_asked)
        ends = [each for each in inputs if isinstance(each, ObservedEnded)]
        if ends:
            self.hands.ended(ends, now)
        self._feed(inputs, now)
        for seq in adjusted:
            self._adjust(seq, now)
        for slot in asks:
            self._asking = False
            self._make_pass(slot, now)
        self._look_forward(now)

    def _adjust(self, seq: Seq, now: Instant) -> None:
        request = self.site.started.get(seq)
        if request is not None:
            self.hands.do(Adjust(seq, request.attempts), request, self.site, now)

    def _is_over(self, at: Instant) -> bool:
        """Whether nobody is interested any more: all that started in the journal has started."""
        return at > self.last and (at > self.last + LONGER or not self.behind)

    @property
    def behind(self) -> bool:
        """Whether something waits still that had been started in the journal."""
        waiting, lives = self.site.waiting, self.hands.lives
        return any(lives.began(request.seq) for columns in waiting.values() for request in columns.requests())

    # ------------------------------------------------------------ passes

    def _make_pass(self, slot: Slot, now: Instant) -> None:
        if not self.engine.wants_pass:
            return
        self.engine.samples = self._used(slot, now)
        self.decider.later = slot.at > now
        self._feed((PassDue(),), now)
        if self.decider.later and self.decider.made is not None:
            self.heap.push(slot.at, Decision(self.decider.made))
        self.decider.later = False

    def _used(self, slot: Slot, now: Instant) -> dict[Seq, Used]:
        """What running requests have used as far as that is told: what was told of those that run as they
        did, of others what they must have used."""
        found = dict[Seq, Used]()
        for seq, (_, used) in self.hands.use(now).items():
            request = self.site.started.get(seq)
            if request is None or request.run.starting:
                continue
            if not self.hands.follows_its_life(request):
                found[seq] = used
            elif seq in slot.samples:
                found[seq] = slot.samples[seq]
        return found

    def _look_forward(self, now: Instant) -> None:
        """When a pass is made next, and when something comes by time."""
        if self.engine.wants_pass and not self._asking:
            slot = self.timetable.next_pass(now)
            self._asking = True
            self.heap.push(slot.asked, _Ask(slot))
        wake = self._wake
        if wake is not None and wake != self._tick:
            self._tick = wake
            self.heap.push(max(now, self.timetable.seen(wake)), None)

    # ------------------------------------------------------------ what people did

    def _acted(self, place: int) -> Sequence[Input]:
        event = self.events[place].event
        if isinstance(event, ev.Submitted):
            return self._come_again(place)[0]
        if isinstance(event, ev.Routed):
            return ()
        return () if self._is_of_files(event) else acts.again(self.site, event)

    def _come_again(self, place: int) -> tuple[Sequence[Input], int]:
        """A request comes in again; and how many events of the journal that is."""
        events = as_taken_in(self.events, place)
        if not self.change.routed:
            return (Observed(events),), len(events)
        try:
            return (Observed(self._again.routed(self.site, events, self.events[place].at)),), len(events)
        except Refusal as refusal:
            self.refused[events[0].seq] = str(refusal)
            return (), len(events)

    def _is_of_files(self, event: ev.Event) -> bool:
        """Whether files were applied in whose place others hold."""
        applied = isinstance(event, ev.SettingsChanged) and event.source == "queues.d"
        return self.change.files and (applied or isinstance(event, ev.FilesApplied))


def _is_asked(item: Any) -> bool:
    return isinstance(item, CommandAsked)


def _is_set(event: ev.Event) -> bool:
    """Whether somebody has set something, who is no shift."""
    return isinstance(event, ev.SettingsChanged) and event.who not in (CALENDAR, OURS)


def _alike(made: Any, recorded: Any) -> bool:
    """Whether they differ only in the numbers of events, or in what is set besides."""
    if type(made) is not type(recorded):
        return False
    if isinstance(made, ev.Decided | ev.Reserved):
        return bool(replace(in_order(made), as_of=0) == replace(in_order(recorded), as_of=0))
    if isinstance(made, ev.SettingsChanged):
        own = len(recorded.changes)
        return bool(replace(made, changes=made.changes[:own]) == recorded)
    return False
