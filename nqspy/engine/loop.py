"""The engine: `Engine.feed(inputs, now)` turns inputs into events, and commits them before it replies and
acts.

It never sleeps and never reads the time. Its drivers are the daemon (an inbox, the site's clock) and the
simulator (a heap, a virtual clock).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from traceback import format_exc
from typing import Any

from msgspec.structs import replace

from nqspy.engine.enact import decided, enact, is_recorded
from nqspy.engine.handlers import (
    depend,
    observations,
    operations,
    request_mail,
    requests,
    settings,
    shifts,
    submit,
)
from nqspy.engine.handlers import exits as exits_desk
from nqspy.engine.handlers import health as health_desk
from nqspy.engine.handlers.context import CommitGroup, Handler, Reply, Transaction
from nqspy.engine.inputs import Between, CommandAsked, Decision, Input, Observed, Outcome, PassDue, Use, noted
from nqspy.engine.outage import Outage
from nqspy.engine.passed_over import passed_over
from nqspy.engine.recheck import Recheck
from nqspy.model import actions as ac
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model import observations as ob
from nqspy.model.actions import Action, Hold, Move, Notify, Plan, Redate, Reserving, Resume, Start, Suspend
from nqspy.model.errors import NqspyError, Refusal, as_refusal
from nqspy.model.facts import Promise
from nqspy.model.ids import Instant, Seq, array_of
from nqspy.model.reasons import Reason
from nqspy.model.requests import MOMENT, Used
from nqspy.model.site import Site
from nqspy.ports import CommitFailed, Decider, Executor, Exits, Journal

HANDLERS: dict[type[cm.Command], Handler] = {
    cm.Submit: submit.submit,
    cm.Configure: settings.configure,
    cm.ApplyFiles: settings.apply_files,
    cm.Delete: requests.delete,
    cm.HoldRequests: requests.hold,
    cm.ReleaseRequests: requests.release,
    cm.MoveRequests: requests.move,
    cm.ModifyRequest: requests.modify,
    cm.RerunRequests: requests.rerun,
    cm.SuspendRequests: requests.suspend,
    cm.SignalRequests: operations.signal,
    cm.WriteMessage: operations.message,
    cm.ExchangeRequests: operations.exchange,
    cm.ScheduleRequest: requests.schedule,
    cm.AbortQueue: requests.abort_queue,
    cm.PurgeQueue: requests.purge_queue,
    cm.CorrectUsage: settings.correct_use,
    cm.SwitchShift: shifts.switch,
    cm.AutomaticShift: shifts.automatic,
    cm.ReloadExits: exits_desk.reload,
}

SETTLING = (cm.Configure, cm.ApplyFiles, cm.SwitchShift, cm.AutomaticShift, cm.ReloadExits)
"""Commands after which a plan that is still being made is dropped, and the due shift is determined again."""


_RESETTLING = (ev.SettingsChanged, ev.FilesApplied, ev.ShiftChanged, ev.ShiftFailed)
"""Events with the same effect as the commands in `SETTLING`, when recorded events are applied again."""
_RECORDS = (ev.Alarm, ev.DaemonStarted, ev.Reported)
"""Events that change nothing that a pass reads, so no pass is due after them."""
_NEWS = (ob.Observation, ob.SiteObservation)
_APPLIED = (Notify, Redate, Reserving, Move, Hold, Promise)
"""Actions that need no order to the executor: all that they do is their event, or a mail."""

INTERNAL = "internal error, see the daemon's log"
RETRY_COMMIT = 2_000
"""Time (ms) after a failed commit in which new inputs are processed, but no pass, no due date or shift, and
no repeated observation."""
FIRST_PAUSE, LONGEST_PAUSE = 1_000, 64_000
"""Shortest and longest back-off (ms) to the next pass while the re-check drops actions of plan after plan:
doubled with each plan."""


class Engine:
    """Turns inputs into events, commits them, and owns the site that results. ``failed``: gets each internal
    error before it is logged; if it raises, the call ends. ``patient``: True if a due pass runs before the
    replies of a call are returned, else in the next call. ``plan``: of the last pass, with its reasons for
    ``qstat --why``. ``paused``: no pass is run (the daemon stops); ``by_hand``: passes run only when the
    driver orders one (`PassDue`). ``notes``: texts of the executor about started attempts, by request;
    ``samples``: last reported use of running attempts, by request; ``commits``: number of commits."""

    def __init__(
        self,
        site: Site,
        journal: Journal,
        executor: Executor,
        exits: Exits,
        decider: Decider,
        log: Callable[[str], None] = lambda text: None,
        failed: Callable[[Exception], None] = lambda error: None,
        patient: bool = False,
    ) -> None:
        self.site = site
        self.journal = journal
        self.executor = executor
        self.exits = exits
        self.decider = decider
        self.log = log
        self.failed = failed
        self._patient = patient
        self.plan = Plan()
        self.samples: dict[Seq, Used] = {}
        self.notes: dict[Seq, str] = {}
        # Set by the driver: returns how far (ms) the clock was set while attempts ran, by request.
        self.clock_moved: Callable[[], Mapping[Seq, int]] = dict
        self.commits = 0
        self.paused = self.by_hand = False
        self._group = CommitGroup()
        self._dirty = True
        # True while a plan is being made; True if settings changed since; requests that changed since.
        self._asked = False
        self._void = False
        self._changed, self._pass_failed = set[Seq](), False
        self._asked_at = Instant(0)
        # Plans in a row of which the re-check dropped actions.
        self._drops = 0
        # Observations to apply again, the one being applied, and when to try again after a commit failed.
        self._retry: list[ob.Observation | ob.SiteObservation] = []
        self._applying: ob.Observation | ob.SiteObservation | None = None
        self._again_at: Instant | None = None
        # The last instant for which a plan asked for a pass, and that was handled.
        self._woken: Instant | None = None
        self.outage = Outage()
        # When the shifts were last checked (None: check now), and when to check them again.
        self._shifts_checked: Instant | None = None
        self._shift_at: Instant | None = None

    def go_on(self, between: Between) -> None:
        """Go on from the ``between`` of another engine; this one has a copy of its site."""
        self.plan = Plan(wake_at=between.wake_at, short_of_pes=between.short_of_pes)
        self.samples, self._woken, self._dirty = dict(between.samples), between.woken, between.due

    @property
    def between(self) -> Between:
        """State of this engine between two passes that is not in its site; for `go_on` of another engine."""
        used, due = tuple(self.samples.items()), self._dirty or self._asked
        moved = tuple(self.clock_moved().items())
        return Between(due, self.plan.wake_at, self._woken, self.plan.short_of_pes, used, moved)

    # ------------------------------------------------------------ feeding

    def feed(self, inputs: Sequence[Input], now: Instant, asked: Iterable[Input] = ()) -> Outcome:
        """Process ``inputs`` at ``now``, then those that ``asked`` yields, each processed before the next is
        read. Commit all events if there is a reply or an action, else keep them (`Outcome.pending`). If
        anything fails, undo all events since the last commit and refuse the commands of this call."""
        tx = self.transaction(now)
        group, received = tx.group, list(inputs)
        try:
            self._gather(tx, chain(inputs, noted(asked, received)) if asked else inputs)
            hurry = bool(group.replies or group.actions)
            if hurry:
                self._commit(group)
        except CommitFailed as error:
            self.outage.failed(str(error), now)
            return self._refuse(received, f"nothing was changed: {error}", now, error.passing)
        except Exception as error:
            self.failed(error)
            self.log(f"internal error, the group is refused:\n{format_exc()}")
            return self._refuse(received, f"{INTERNAL}; nothing was changed", now)
        return self._outcome(group, now, hurry)

    def _gather(self, tx: Transaction, inputs: Iterable[Input]) -> None:
        events = tx.group.batch.events
        before, waits = len(events), self._waits(tx.now)
        if not waits:
            self.outage.report(tx)
            self._time(tx)
            again, self._retry = self._retry, []
            for observation in again:
                if isinstance(observation, ob.Observation):
                    self.adopt(tx, observation)
                else:
                    self._hear(tx, observation)
        depend.settle(tx)
        if self._asked:
            self._watch(events, before)
        for each in inputs:
            before = len(events)
            self._apply(tx, each)
            if len(events) > before:
                depend.settle(tx)
                if self._asked:
                    self._watch(events, before)
        if self._pass_is_due() and (self._patient or not tx.group.replies) and not waits:
            self._pass(tx)

    def _pass_is_due(self) -> bool:
        return self._dirty and not self._asked and not self.paused and not self.by_hand

    def _waits(self, now: Instant) -> bool:
        """True within `RETRY_COMMIT` after a failed commit: new inputs are processed, all else waits."""
        at = self._again_at
        return at is not None and at - RETRY_COMMIT <= now < at

    def _watch(self, events: Sequence[ev.Recorded], begin: int) -> None:
        """Record the requests of the events from place ``begin`` on as changed while a plan is being made."""
        for recorded in events[begin:]:
            event: Any = recorded.event
            self._changed.update(event.seqs if hasattr(event, "seqs") else (getattr(event, "seq", 0),))

    def flush(self, now: Instant) -> Outcome:
        """Commit pending events, for which no caller waits; if that fails, undo them (see `_refuse`)."""
        group = self._group
        try:
            self._commit(group)
        except CommitFailed as error:
            self.outage.failed(str(error), now)
            return self._refuse((), str(error), now)
        return self._outcome(group, now, True)

    def note(self, event: ev.Event, now: Instant) -> Outcome:
        """Apply an event of the driver (a start, an alarm); the next commit stores it and logs alarms."""
        tx = self.transaction(now)
        tx.emit(event)
        if isinstance(event, ev.Alarm):
            tx.group.alarms.append(event.text)
        return self._outcome(tx.group, now, False)

    def transaction(self, now: Instant) -> Transaction:
        """Return a transaction for events and actions of the group of the next commit."""
        return Transaction(
            self.site, now, self._group, self.exits, self.journal, self._mark, self.decider, self.samples
        )

    def _mark(self) -> None:
        self._dirty = True

    def _outcome(self, group: CommitGroup, now: Instant, committed: bool) -> Outcome:
        notices: list[Notify] = []
        if committed:
            self._group, self._again_at = CommitGroup(), None
            self.outage.committed()
            if group.actions:
                notices = [action for action in group.actions if isinstance(action, Notify)]
                self._hand_out(group.actions, now)
        pending = not committed and bool(group.batch.events)
        due = self._pass_is_due() or self._shifts_checked is None or bool(self._retry)
        again = due and not self._waits(now)
        happened = group.batch.events if committed else ()
        return Outcome(group.replies, notices, again, self._wake(now), pending, happened)

    def _wake(self, now: Instant) -> Instant | None:
        times = (self.site.next_date(), self._shift_at, self.plan.wake_at, self._again_at)
        coming = [t for t in times if t is not None and t > now]
        return min(coming) if coming else None

    # ------------------------------------------------------------ one input

    def _apply(self, tx: Transaction, each: Input) -> None:
        if isinstance(each, Use):  # no event follows from it, nor from the next
            self._sample(each.uses)
        elif isinstance(each, ob.ObservedUse):
            self._sample({each.seq: (each.attempt, each.used)})
        elif isinstance(each, ob.ObservedNote):
            request = self.site.started.get(each.seq)
            self.notes.pop(each.seq, None)
            if request is not None and request.attempts == each.attempt and each.text:
                self.notes[each.seq] = each.text
        elif isinstance(each, ob.Observation):
            self._observe(tx, each, observations.apply)
        elif isinstance(each, CommandAsked):
            self._answer(tx, each)
        elif isinstance(each, Decision):
            self._decided(tx, each.plan)
        elif isinstance(each, ob.SiteObservation):
            self._hear(tx, each)
        elif isinstance(each, Observed):
            self.happen_again(tx, each.events)
        elif isinstance(each, PassDue):
            self._pass(tx)

    def happen_again(self, tx: Transaction, events: Sequence[ev.Event]) -> None:
        """Apply recorded events again, in a replay; passes and shift checks that they cause become due."""
        for event in events:
            tx.emit(event)
        submitted = [event.seq for event in events if isinstance(event, ev.Submitted)]
        depend.judge_now(tx, [seq for seq in submitted if seq in self.site.requests])
        if not all(isinstance(event, _RECORDS) for event in events):
            self._mark()
        if any(isinstance(event, _RESETTLING) for event in events):
            self._void, self._shifts_checked = self._asked, None
        for seq in [seq for seq in self.samples if seq not in self.site.started]:
            del self.samples[seq]

    def _hear(self, tx: Transaction, news: ob.SiteObservation) -> None:
        self._retry = health_desk.without_older(self._retry, news)
        tx.group.observations.append(news)
        self._applying = news
        health_desk.apply(tx, news)
        self._applying = None

    def adopt(self, tx: Transaction, observation: ob.Observation) -> None:
        """Apply an observation from the scan after a restart, or from a commit that failed. Repeat orders
        (kill, suspend, resume) that the executor may have missed."""
        if isinstance(observation, ob.ObservedRunning) and observation.used != Used():
            self._sample({observation.seq: (observation.attempt, observation.used)})
        self._observe(tx, observation, observations.adopt)

    def _observe(
        self,
        tx: Transaction,
        observation: ob.Observation,
        apply: Callable[[Transaction, ob.Observation], None],
    ) -> None:
        tx.group.observations.append(observation)
        self._applying = observation
        apply(tx, observation)
        self._applying = None
        if observation.seq not in self.site.started:
            self.samples.pop(observation.seq, None)
            self.notes.pop(observation.seq, None)

    def _sample(self, uses: Mapping[Seq, tuple[int, Used]]) -> None:
        started, samples = self.site.started, self.samples
        for seq, (attempt, used) in uses.items():
            request = started.get(seq)
            if request is not None and request.attempts == attempt:
                samples[seq] = (samples.get(seq) or request.used).most(used)

    def _answer(self, tx: Transaction, asked: CommandAsked) -> None:
        handler = HANDLERS.get(type(asked.command))
        try:
            if handler is None:
                raise Refusal("not_offered", cmd=asked.command.cmd or "that")
            reply = Reply(handler(tx, asked.command, asked.caller))
            if isinstance(asked.command, SETTLING):
                self._void, self._shifts_checked = self._asked, None
        except NqspyError as error:
            refusal = as_refusal(error)
            reply = Reply(refusal=refusal)
            if refusal.code == "no_room":
                self.outage.full(tx.now)
        tx.group.replies.append((asked.handle, reply))

    # ------------------------------------------------------------ time

    def _time(self, tx: Transaction) -> None:
        """Apply what is due without an input: dates of requests, shifts, the pass for which a plan asked."""
        first = self.site.next_date()
        if first is not None and first <= tx.now:
            tx.emit(ev.Eligible(self.site.due(tx.now)))
            self._mark()
        wake = self.plan.wake_at
        if wake is not None and self._woken != wake <= tx.now:
            self._woken = wake
            self._mark()
        checked = self._shifts_checked
        if checked is None or tx.now < checked or (self._shift_at is not None and tx.now >= self._shift_at):
            due, self._shift_at = shifts.enter_due(tx)
            self._shifts_checked = tx.now
            if due:
                self._void = self._asked

    # ------------------------------------------------------------ passes

    def _pass(self, tx: Transaction) -> None:
        self._dirty, self._asked_at = False, tx.now
        try:
            plan = self.decider.ask(self.site, tx.now, self.samples)
        except Exception as error:
            # A pass that breaks down must not keep ends and submissions from being committed.
            self.failed(error)
            trace = format_exc()
            self.log(f"a pass failed, nothing is started until something changes:\n{trace}")
            if not self._pass_failed:
                tx.alarm("scheduler", f"a pass failed: {INTERNAL}", "a pass failed", trace)
            self._pass_failed = True
            return
        self._pass_failed = False
        if plan is None:
            self._asked, self._void, self._changed = True, False, set()
        else:
            self._carry_out(tx, plan, None)

    def _decided(self, tx: Transaction, plan: Plan | None) -> None:
        """Carry out a plan of another process, if one was asked for, after a re-check of each action. If
        settings changed since, or the engine is paused, only report the failures of exits in it. Then, or if
        ``plan`` is None (its pass failed), make another pass due."""
        if not self._asked:
            return
        self._asked = False
        if plan is None or self._void or self.paused:
            if plan is not None and plan.failures:
                # Exits are not asked again about what they failed on, so these must be reported now.
                short, asked = self.plan.short_of_pes, self._asked_earlier(tx)
                tx.emit(ev.Decided(plan.as_of, failures=plan.failures, short_of_pes=short, asked=asked))
                exits_desk.report_failures(tx, plan.failures)
            self._mark()
        else:
            # A start that was right when the pass was asked for is right a moment later, too.
            at = Instant(max(self._asked_at, tx.now - MOMENT))
            self._carry_out(tx, plan, Recheck(self.site, self._changed, at, self.samples))

    def _carry_out(self, tx: Transaction, plan: Plan, recheck: Recheck | None) -> None:
        """Turn the actions of a plan into events and orders. ``recheck`` drops actions that no longer fit the
        site; None: the plan was made just now."""
        short_before, self.plan = self.plan.short_of_pes, plan
        if not is_recorded(plan, short_before):
            self._drops = 0
            return
        wait = passed_over(self.site, plan) if self.journal.remembers else ()
        tx.emit(decided(plan, wait, self.exits, self._asked_earlier(tx)))
        exits_desk.report_failures(tx, plan.failures)
        stands = None if recheck is None else recheck.stands
        for order in enact(self.site, plan, tx.now, tx.emit, stands):
            if isinstance(order, (Move, Suspend, Resume, ac.Migrate)):
                self._mark()
            tx.act(order)
            if isinstance(order, Start):
                request_mail.warn_of_shift(tx, order.seq)
        if recheck is None or not recheck.drops:
            self._drops = 0
        else:
            self._decide_again(recheck.fallen, tx.now)

    def _decide_again(self, fallen: Mapping[Seq, Reason], now: Instant) -> None:
        """Make another pass due, because the re-check dropped actions: at once after the first such plan in a
        row, after a growing back-off (`FIRST_PAUSE`) after the next ones. ``fallen``: the dropped starts,
        with the reasons to show until then."""
        if self._drops == 0:
            self._mark()
        pause = min(FIRST_PAUSE << self._drops, LONGEST_PAUSE)
        self._drops += 1
        reasons, wake = self.plan.reasons, self.plan.wake_at or now + pause
        wake = Instant(max(now + FIRST_PAUSE, min(wake, now + pause)))
        # The reason of a dropped index that has not begun is its array's.
        known = self.site.requests
        waiting = {seq if seq in known else array_of(seq) or seq: why for seq, why in fallen.items()}
        self.plan = replace(self.plan, wake_at=wake, reasons=replace(reasons, own={**reasons.own, **waiting}))

    def _asked_earlier(self, tx: Transaction) -> Instant | None:
        """Return when the pass of the plan at hand was asked for; None: at the instant of ``tx``."""
        return self._asked_at if self._asked_at != tx.now else None

    # ------------------------------------------------------------ committing

    def _commit(self, group: CommitGroup) -> None:
        if group.batch.events:
            self.journal.commit(group.batch, self.site)
            self.commits += 1
        for text in group.alarms:
            self.log(text)

    def _refuse(self, inputs: Sequence[Input], text: str, now: Instant, passing: bool = False) -> Outcome:
        """Undo a group that could not be committed: read the site again from the database, and refuse the
        group's commands with ``text`` (``passing``: as busy, so that clients repeat them). Observations are
        applied again later, except readings of use, notes, and one that broke its handler."""
        self.log(text)
        unapplied = [
            e for e in inputs if isinstance(e, _NEWS) and not isinstance(e, (ob.ObservedUse, ob.ObservedNote))
        ]
        by_id = {id(each): each for each in (*self._group.observations, *self._retry, *unapplied)}
        self._retry = [each for each in by_id.values() if each is not self._applying]
        self._applying = None
        self._group = CommitGroup()
        self.site = self.journal.load()
        self.decider.reset(self.site)
        self.exits.begin(self.site)
        self.plan, self._dirty, self._void, self._shifts_checked = Plan(), True, self._asked, None
        self._again_at = Instant(now + RETRY_COMMIT)
        reply = Reply(refusal=Refusal("busy" if passing else "not_committed", reason=text))
        replies = [(each.handle, reply) for each in inputs if isinstance(each, CommandAsked)]
        return Outcome(replies, [], False, self._wake(now))

    def _hand_out(self, actions: list[Action], now: Instant) -> None:
        for action in actions:
            if not isinstance(action, _APPLIED):
                seq: Seq = getattr(action, "seq", 0)
                try:
                    self.executor.do(action, self.site.requests.get(seq), self.site, now)
                except Exception as error:
                    self.failed(error)
                    self.log(f"the executor could not do {action}:\n{format_exc()}")
                    if isinstance(action, Start):
                        text = f"it could not be started: {INTERNAL}"
                        self._retry.append(ob.ObservedNotStarted(seq, action.attempt, text))
