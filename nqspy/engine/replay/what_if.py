"""Virtual run of a recorded time with a change ("what if"): the journal's inputs at their instants.

People give the same commands at the same instants, requests run as long as recorded (`ReplayExecutor`), and
passes run at once. The run does not follow the journal: a change is compared with a run without it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from nqspy.engine.explain import reasons_of
from nqspy.engine.inputs import CommandAsked, Input, Observed, Outcome
from nqspy.engine.look_ahead import AtOnce
from nqspy.engine.replay import commands
from nqspy.engine.replay.commands import resubmitted, submission_at
from nqspy.engine.replay.follow import ExitHistory
from nqspy.engine.replay.recording import CALENDAR, Recording, ReplayJournal
from nqspy.engine.replay.runs import RecordedRuns, ReplayExecutor
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

REPLAY = "replay"
"""Source of changes that a replay makes."""
OVERTIME = DAY
"""Longest time (ms) for which two runs go on after the last event, for requests that one of them started."""
MAX_REASONS = 1_000
"""Most starts in one run but not yet in the other for which a reason is stored."""
_REFUSED = (ReasonCode.EXIT, ReasonCode.LINE_CLOSED)
"""Reasons that come from an exit."""


def no_changes(settings: Settings) -> tuple[ev.Change, ...]:
    """Return no changes of settings (default of `WhatIfChange.reapply`)."""
    return ()


@dataclass(frozen=True)
class WhatIfChange:
    """Change to be judged by a what-if run. ``commands``: carried out first; ``reapply``: returns settings to
    set again after a person changed settings; ``files``: True if recorded changes by files of ``queues.d``
    are left out; ``routed``: True if submissions are routed anew."""

    commands: Sequence[cm.Command] = ()
    reapply: Callable[[Settings], tuple[ev.Change, ...]] = no_changes
    files: bool = False
    routed: bool = False


class _JournalInput(Struct, frozen=True):
    """Input for the event at a place of the journal; -1: for the change."""

    place: int


class WhatIf(VirtualRun):
    """Virtual run of a recording with a ``change`` (None: without). ``place``: number of journal events
    processed; ``made``: events of this run, with the change's (source `REPLAY`); ``started``: requests that
    it started; ``refused``: refused submissions, and why; ``refusals``: by request, when an exit last refused
    it, and why."""

    executor: ReplayExecutor

    def __init__(
        self,
        recording: Recording,
        exits: Exits,
        then: ExitHistory | None = None,
        change: WhatIfChange | None = None,
    ) -> None:
        site = recording.begin()
        self.events, self.change = recording.events, change or WhatIfChange()
        self._start_loads = recording.start_loads
        self._runs = RecordedRuns((*recording.events, *recording.after))
        journal = ReplayJournal(recording.ended, site.at)
        sampled = any(isinstance(each.event, ev.Decided) and each.event.samples for each in recording.events)
        super().__init__(journal, self._runs.run_of, site.at, exits, AtOnce(exits), sampled=sampled)
        self.executor = ReplayExecutor(self.heap, self._runs, site.moves)
        self._then, self._plan, self._changed = then or ExitHistory(), Plan(), False
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
        self.heap.stream(self._journal_inputs())

    def _journal_inputs(self) -> Iterator[tuple[Instant, _JournalInput]]:
        """Yield commands of people and observations of the site at their instants; time never goes back. The
        change comes first; on a site without queues it comes before the first submission."""
        now, changed = self.now, bool(self.site.settings.queues)
        if changed:
            yield now, _JournalInput(-1)
        for place, recorded in enumerate(self.events):
            now = max(now, recorded.at)
            if not changed and isinstance(recorded.event, ev.Submitted):
                changed = True
                yield now, _JournalInput(-1)
            event: Any = recorded.event
            ends = isinstance(event, ev.Ended | ev.Requeued)
            if commands.is_replayed(event) or (ends and (event.seq, event.attempt) in self._runs.lost):
                yield now, _JournalInput(place)

    def run_to(self, at: Instant) -> set[Seq]:
        """Run up to and including an instant; return the requests that started for the first time."""
        before = len(self.made)
        while (due := self.heap.next_at()) is not None and due <= at:
            self.step(due)
        events = (each.event for each in self.made[before:])
        started = {event.seq for event in events if isinstance(event, ev.Starting)} - self.started
        self.started |= started
        return started

    def feed(self, inputs: Sequence[Any], asked: Any = ()) -> None:
        """Feed the engine the observations, then one by one the journal's inputs."""
        due = [each for each in inputs if isinstance(each, _JournalInput)]
        if due:
            asked = self._due_inputs(due)
            inputs = [each for each in inputs if not isinstance(each, _JournalInput)]
        super().feed(inputs, asked)

    def _collect(self, outcome: Outcome) -> None:
        self.made += outcome.happened
        for handle, reply in outcome.replies:
            if handle == REPLAY and reply.refusal is not None:
                raise reply.refusal
        if self.engine.plan is not self._plan:
            self._plan = self.engine.plan
            own = self._plan.reasons.own if self.exits.has("jobselect") else {}
            self.refusals |= {seq: (self.now, why) for seq, why in own.items() if why.code in _REFUSED}

    # ------------------------------------------------------------ inputs of the journal

    def _due_inputs(self, due: Sequence[_JournalInput]) -> Iterator[Input]:
        """Yield the inputs that are due, each made after those before it were processed."""
        for due_input in due:
            if due_input.place < 0:
                self._changed = True
                for command in self.change.commands:
                    yield CommandAsked(command, commands.privileged(REPLAY), REPLAY)
                yield from self._reapply()
                continue
            self.place = due_input.place + 1
            n, event = self.events[due_input.place].n, self.events[due_input.place].event
            yield from self._inputs_of(due_input.place, event)
            if isinstance(event, ev.LoadedExits):
                self._then.load(dict(event.files), self.site, start=n in self._start_loads)
            elif isinstance(event, ev.Alarm):
                self._then.lost_at(event.failures, self.now)
            elif isinstance(event, ev.SettingsChanged) and event.who != CALENDAR and self._changed:
                yield from self._reapply()
            elif isinstance(event, ev.Modified) and event.seq in self.site.started:
                request = self.site.started[event.seq]
                self.executor.do(Adjust(event.seq, request.attempts), request, self.site, self.now)

    def _reapply(self) -> Iterator[Input]:
        changes = self.change.reapply(self.site.settings)
        if changes:
            yield Observed((ev.SettingsChanged(changes, REPLAY, REPLAY),))

    def _inputs_of(self, place: int, event: ev.Event) -> Sequence[Input]:
        if isinstance(event, ev.Submitted):
            events = submission_at(self.events, place)
            try:
                if self.change.routed:
                    events = resubmitted(self.site, events, self.exits, self.now)
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
        return commands.inputs_of(self.site, event)


# ---------------------------------------------------------------- side by side


@dataclass(slots=True)
class WaitReasons:
    """Reasons why requests waited in one run when the other started them: ``would`` in the second run,
    ``was`` in the first."""

    would: dict[Seq, Reason] = field(default_factory=dict)
    was: dict[Seq, Reason] = field(default_factory=dict)


def side_by_side(was: WhatIf, would: WhatIf, done: Callable[[int], None] = lambda n: None) -> WaitReasons:
    """Run both to the end, in step. Return why requests waited in one run when they started in the other.
    ``done``: gets the number of journal events that ``was`` has processed. Raises Refusal of a change."""
    reasons, apart = WaitReasons(), set[Seq]()
    last = max((recorded.at for recorded in was.events), default=was.now)
    while True:
        at = min((at for each in (was, would) if (at := each.heap.next_at()) is not None), default=None)
        if at is None or at > last + OVERTIME:
            break
        if at > last and not any(_waits(each, seq) for seq in apart for each in (was, would)):
            break
        begun_was, begun_would = was.run_to(at), would.run_to(at)
        _ask(would, begun_was, reasons.would)
        _ask(was, begun_would, reasons.was)
        apart ^= begun_was
        apart ^= begun_would
        done(was.place)
    return reasons


def _waits(run: WhatIf, seq: Seq) -> bool:
    request = run.site.to_be(seq)
    return request is not None and request.attempt is None


def _ask(other: WhatIf, begun: set[Seq], reasons: dict[Seq, Reason]) -> None:
    """Store in ``reasons`` why the requests ``begun`` still wait in the other run."""
    for seq in sorted(begun):
        if len(reasons) < MAX_REASONS and seq not in reasons and _waits(other, seq):
            reason = reasons_of(other.engine, (seq,)).get(seq)
            if reason is not None:
                reasons[seq] = reason
