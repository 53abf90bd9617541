"""Replay of a journal event by event: an engine gets the recorded inputs at their instants, its passes see
what the recorded ones saw, and it must make the events that the journal has."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice, takewhile

from msgspec import Struct
from msgspec.structs import replace

from nqspy.engine import restart
from nqspy.engine.inputs import Decision, Input, Observed, PassDue
from nqspy.engine.lifecycle import apply
from nqspy.engine.look_ahead import AtOnce
from nqspy.engine.loop import Engine
from nqspy.engine.replay.recording import (
    Recording,
    ReplayJournal,
    by_clock,
    follows,
    is_input,
    of_pass,
    reloaded,
)
from nqspy.engine.virtual.driver import end
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.actions import Action, ExitFailure, Plan
from nqspy.model.events import Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request, Used
from nqspy.model.site import Site
from nqspy.ports import Batch, Exits

_LATER = (ev.SettingsChanged, ev.LoadedExits)
"""Events of a start that come after those that time alone caused."""


class ExitHistory:
    """User exits of the recorded time: those loaded then, with their recorded failures, for a replay. This
    base class has none, and does nothing."""

    def load(
        self, files: Mapping[str, str] | None, site: Site, again: bool = True, start: bool = False
    ) -> None:
        """Use these exits (content hashes by name; None: unknown) instead of all former ones. Not ``again``:
        do nothing if they are loaded already. ``start``: failures of files that stay the same count on."""

    def expect(self, failures: Sequence[ExitFailure], started: Collection[Seq]) -> None:
        """Make these failures happen in the next pass; ``started``: requests that it starts."""

    def lost_at(self, failures: Sequence[ExitFailure], at: Instant) -> None:
        """Record failures of exits that ran when their process was lost, at that instant."""


class StartUp(Observed):
    """Input: events of a start of the daemon and what it found, applied before what time alone causes."""


class ReplayDifference(Struct, frozen=True):
    """A place where replay and journal differ: events ``was`` in the journal, ``would`` in the replay."""

    was: tuple[Recorded, ...]
    would: tuple[Recorded, ...]

    @property
    def events(self) -> int:
        """Number of events that differ."""
        return max(len(self.was), len(self.would))


class Follower:
    """Replays a ``recording`` by an engine that makes its events again. ``place``: number of events replayed.
    ``differences``: where the engine made other events; there the site is set as recorded and the replay goes
    on. ``then``: user exits as recorded. No action is carried out: the journal has the results."""

    def __init__(self, recording: Recording, exits: Exits, then: ExitHistory | None = None) -> None:
        self.recording, self.events = recording, recording.events
        self.exits, self._then = exits, then or ExitHistory()
        site = recording.begin()
        self._first, self._since = site.n, site.at
        self.journal = ReplayJournal(recording.ended, self._since)
        self.decider = DeferredPlans(exits)
        self.place = 0
        self.differences: list[ReplayDifference] = []
        self._journaled: _JournaledSite | None = None
        self._pass_under_way: int | None = None
        self._short = False
        self.engine = self._make(site)
        self._begun = False

    @property
    def site(self) -> Site:
        """The present site of the replay."""
        return self.engine.site

    def _make(self, site: Site) -> Engine:
        engine = Engine(site, self.journal, _NoExecutor(), self.exits, self.decider, failed=end)
        engine.by_hand = True
        self.decider.reset(site)
        self._then.load(site.loaded_exits, site, again=False)
        self.exits.begin(site)
        self._pass_under_way, self._short = None, False
        return engine

    # ------------------------------------------------------------ steps

    def follow(self, until: int | None = None) -> None:
        """Replay the events up to number ``until`` of the recording (None: all)."""
        last = len(self.events) if until is None else until
        while self.place < last:
            self.step()

    def step(self) -> None:
        """Replay the next event, and those that the engine makes from the same inputs."""
        if not self._begun:
            self._begun = True
            self._ask_as_of(self._first)
        began, recorded, made = self.place, self.events[self.place], list[Recorded]()
        for inputs in self._possible_inputs(recorded):
            made = self._feed(inputs, recorded.at)
            if made:
                break
        if not self._matches(made):
            self._correct(began, made[self.place - began :])
        for recorded in self.events[began : self.place]:
            event = recorded.event
            if isinstance(event, ev.DaemonStarted):
                self.engine = self._make(reloaded(self.site))
            elif isinstance(event, ev.Decided):
                self._short = event.short_of_pes
            elif isinstance(event, ev.Alarm):
                self._then.lost_at(event.failures, recorded.at)
            self._ask_as_of(recorded.n)

    def _possible_inputs(self, recorded: Recorded) -> Iterator[Sequence[Input]]:
        """Yield inputs that may have caused an event; the first after which the engine makes events did."""
        event = recorded.event
        if isinstance(event, ev.Decided):
            yield self._decision(event)
        elif by_clock(event):
            yield ()
            yield (Observed(self._like(by_clock)),)
        elif follows(event) or of_pass(event):
            yield ()
        else:
            # While the daemon was started; settings are changed only after that.
            before = self.events[self.place - 1].event if self.place else None
            after_start = isinstance(before, ev.DaemonStarted) and not isinstance(event, _LATER)
            at_start = after_start or isinstance(event, ev.DaemonStarted)
            yield ((StartUp if at_start else Observed)(self._like(is_input)),)

    def _like(self, wanted: Callable[[ev.Event], bool]) -> tuple[ev.Event, ...]:
        """Return the next event, and those behind it for which ``wanted`` is true, of one instant and without
        a pass between."""
        events, passes = self.events, self.recording.passes
        before = events[self.place]
        found = [before.event]
        for place in range(self.place + 1, len(events)):
            recorded = events[place]
            apart = recorded.at != before.at or before.n in passes
            if apart or not wanted(recorded.event) or isinstance(recorded.event, ev.DaemonStarted):
                break
            found.append(recorded.event)
            before = recorded
        return tuple(found)

    def _feed(self, inputs: Sequence[Input], now: Instant) -> list[Recorded]:
        """Feed the engine, commit, and return the resulting events."""
        first = inputs[0] if inputs else None
        if not isinstance(first, StartUp):
            outcome = self.engine.feed(inputs, now)
        elif isinstance(first.events[0], ev.DaemonStarted):
            outcome = self.engine.note(first.events[0], now)
        else:
            outcome = restart.again(self.engine, first.events, now)
        made = list(outcome.happened)
        while outcome.pending:
            outcome = self.engine.flush(now)
            made += outcome.happened
        for recorded in made:
            if isinstance(recorded.event, ev.LoadedExits):
                start = recorded.n in self.recording.start_loads
                self._then.load(dict(recorded.event.files), self.site, start=start)
        return made

    # ------------------------------------------------------------ comparison

    def _matches(self, made: Sequence[Recorded]) -> bool:
        """True if these events are the next ones of the journal (texts may differ); ``place`` moves past
        those that are."""
        for each in made:
            was = self.events[self.place] if self.place < len(self.events) else None
            if was is None or was.at != each.at:
                return False
            if was.event != each.event and _without_texts(was.event) != _without_texts(each.event):
                return False
            self.place += 1
        return bool(made)

    def _correct(self, began: int, made: Sequence[Recorded]) -> None:
        """Record a difference, and set the site to its recorded state after the whole group of events."""
        first, last = self.place, max(self.place, began) + 1
        while last < len(self.events) and not _starts_a_group(self.events[last].event):
            last += 1
        self.differences.append(ReplayDifference(tuple(self.events[first:last]), tuple(made)))
        self._journaled = self._journaled or _JournaledSite(self.recording, self._since)
        self.journal, site = self._journaled.after(last)
        self.place, flying = last, self._pass_under_way
        self.engine = self._make(site)
        if flying is not None and flying >= last:
            self._ask(flying)

    # ------------------------------------------------------------ passes

    def _ask_as_of(self, n: int) -> None:
        """Ask for the passes that were asked for at event ``n``, if their plans came later."""
        for place in self.recording.passes.get(n, ()):
            event, before = self.events[place].event, self.events[place - 1].n if place else self._first
            assert isinstance(event, ev.Decided)
            later = event.asked is not None or before != event.as_of
            if place >= self.place and later:
                self._ask(place)

    def _ask(self, place: int) -> None:
        recorded = self.events[place]
        assert isinstance(recorded.event, ev.Decided)
        self._prepare(place)
        self.decider.later = True
        self._feed((PassDue(),), recorded.event.asked or recorded.at)
        self.decider.later = False
        self._pass_under_way = place

    def _prepare(self, place: int) -> None:
        event = self.events[place].event
        assert isinstance(event, ev.Decided)
        self.engine.samples = dict(event.samples)
        rest = islice(self.events, place + 1, None) if event.failures else ()
        own = takewhile(lambda each: not _starts_a_group(each.event), rest)
        started = [each.event.seq for each in own if isinstance(each.event, ev.Starting)]
        self._then.expect(event.failures, started)

    def _decision(self, event: ev.Decided) -> Sequence[Input]:
        """Return the input that causes a Decided event: the plan of its pass if that was asked for earlier,
        else the order to make one at once."""
        alone = self.place + 1 == len(self.events) or not of_pass(self.events[self.place + 1].event)
        reports = bool(event.failures or event.ready) or not alone
        short = self._short if reports else not event.short_of_pes
        self.engine.plan = replace(self.engine.plan, short_of_pes=short)
        if self._pass_under_way == self.place:
            self._pass_under_way = None
            return (Decision(self.decider.made),)
        self._prepare(self.place)
        return (PassDue(),)


def _without_texts(event: ev.Event) -> ev.Event:
    """Return the event without its texts for people, which each version may word anew. Wait reasons are
    sorted: older journals have them in any order."""
    match event:
        case ev.Decided():
            return replace(
                event, wait=tuple(sorted((seq, code, who, "") for seq, code, who, _ in event.wait))
            )
        case ev.Reserved():
            starts = {
                seq: each and replace(each, late="late" * bool(each.late))
                for seq, each in event.starts.items()
            }
            return replace(event, starts=starts, causes=dict.fromkeys(event.causes, ""))
    return replace(event, text="") if hasattr(event, "text") else event


def _starts_a_group(event: ev.Event) -> bool:
    return isinstance(event, ev.Decided) or is_input(event) or by_clock(event)


class _JournaledSite:
    """Site as the recorded events make it, without an engine; used where a replay differs."""

    def __init__(self, recording: Recording, since: Instant) -> None:
        self._recording, self._site = recording, recording.begin()
        self._journal, self._place = ReplayJournal(recording.ended, since), 0

    def after(self, place: int) -> tuple[ReplayJournal, Site]:
        """Return copies of journal and site after the first ``place`` events; ``place`` never decreases."""
        for recorded in self._recording.events[self._place : place]:
            if isinstance(recorded.event, ev.DaemonStarted):
                self._site = reloaded(self._site)
            apply(self._site, recorded)
            self._journal.commit(Batch([recorded]), self._site)
        self._place = place
        return self._journal.copy(), reloaded(self._site)


class DeferredPlans(AtOnce):
    """Decider that makes plans in this process; ``later``: True if a plan is only stored, as ``made``."""

    later = False
    made: Plan | None = None

    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        plan = super().ask(site, now, samples)
        if not self.later:
            return plan
        self.made = plan
        return None


class _NoExecutor:
    """Executor that does nothing, because the journal has the results of all actions (`ports.Executor`)."""

    def do(self, action: Action, request: Request | None, site: Site, now: Instant) -> None:
        pass

    def scan(self, expected: Mapping[Seq, int]) -> Sequence[ob.Observation]:
        return ()
