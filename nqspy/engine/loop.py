"""The heartbeat: `Engine.feed(inputs, now)` turns inputs into events, commits them, and only then answers
and acts.

It never sleeps and never asks the time. Its drivers are the daemon (an inbox, the site's clock) and the
simulator (a
heap, a virtual clock).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from traceback import format_exc
from typing import Any

from nqspy.engine.desk import exits as exits_desk
from nqspy.engine.desk import hands as hands_desk
from nqspy.engine.desk import requests, settings, shifts, submit
from nqspy.engine.desk.context import Desk, Group, Handler, Reply
from nqspy.engine.recheck import still_holds
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.actions import Action, Hold, Move, Notify, Plan, Redate, Start
from nqspy.model.errors import NqspyError, Refusal
from nqspy.model.ids import Instant, Seq
from nqspy.model.people import Caller
from nqspy.model.requests import Used
from nqspy.model.sightings import SeenUse, Sighting
from nqspy.model.site import Site
from nqspy.ports import CommitFailed, Decider, Exits, Hands, Journal

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
    cm.ScheduleRequest: requests.schedule,
    cm.AbortQueue: requests.abort_queue,
    cm.PurgeQueue: requests.purge_queue,
    cm.SwitchShift: shifts.switch,
    cm.AutomaticShift: shifts.automatic,
    cm.ReloadExits: exits_desk.reload,
}
"""Which desk serves which command."""

RETRY_COMMIT = 2_000
"""Time after which sightings that could not be committed are tried again, ms."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A command with the caller's identity; the reply comes back with ``handle`` (None: nobody waits)."""

    command: cm.Command
    caller: Caller
    handle: Any = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A plan that a decider in another process sent."""

    plan: Plan


Input = Asked | Decision | Sighting


@dataclass(slots=True)
class Outcome:
    """What a call of `Engine.feed` leaves for its driver: replies to send, notices to give, and when to
    call again.

    ``again``: at once (a pass is due); ``wake_at``: at that instant at the latest; ``pending``: events that
    nobody waits
    for are applied and not yet committed, call again soon.
    """

    replies: list[tuple[Any, Reply]] = field(default_factory=list)
    notices: list[Notify] = field(default_factory=list)
    again: bool = False
    wake_at: Instant | None = None
    pending: bool = False


class Engine:
    """Owns the site. ``plan`` is the last pass's: its reasons answer *why not*. ``resting``: no pass is run
    (a stop is under way)."""

    def __init__(
        self,
        site: Site,
        journal: Journal,
        hands: Hands,
        exits: Exits,
        decider: Decider,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.site = site
        self.journal = journal
        self.hands = hands
        self.exits = exits
        self.decider = decider
        self.log = log
        self.plan = Plan()
        self.samples: dict[Seq, Used] = {}
        self.commits = 0
        self.resting = False
        self._group = Group()
        self._dirty = True
        self._asked = False
        self._settings_at = 0
        self._retry: list[Sighting] = []
        self._shift_at: Instant | None = None
        self._shift_seen: Instant | None = None

    # ------------------------------------------------------------ feeding

    def feed(self, inputs: Sequence[Input], now: Instant) -> Outcome:
        """Takes inputs in their order at instant ``now``. A commit that fails refuses the whole group."""
        desk = self.desk(now)
        group = desk.group
        again, self._retry = self._retry, []
        inputs = (*again, *inputs) if again else inputs
        try:
            self._time(desk)
            for each in inputs:
                self._take(desk, each)
            if self._dirty and not group.replies and not self._asked and not self.resting:
                self._pass(desk)
            hurry = bool(group.replies or group.actions)
            committed = self._commit(group) if hurry else True
        except CommitFailed as error:
            return self._refuse(inputs, group, f"nothing was changed: {error}", now)
        except Exception:
            self.log(f"internal error, the group is refused:\n{format_exc()}")
            return self._refuse(
                [], group, "internal error; the daemon's log has it. Nothing was changed", now
            )
        return self._outcome(group, now, committed)

    def _outcome(self, group: Group, now: Instant, committed: bool) -> Outcome:
        pending = not group.replies and not group.actions and bool(group.batch.events)
        notices = [action for action in group.actions if isinstance(action, Notify)]
        if not pending:
            self._group = Group()
            self._hand_out(group.actions, now)
        again = self._dirty and not self._asked and not self.resting
        return Outcome(group.replies, notices, again, self._wake(now), pending)

    def flush(self, now: Instant) -> Outcome:
        """Commits what nobody waits for."""
        group = self._group
        if not group.batch.events:
            return Outcome([], [], False, self._wake(now))
        try:
            self._commit(group)
        except CommitFailed as error:
            return self._refuse([], group, str(error), now)
        self._group = Group()
        return Outcome([], [], self._dirty, self._wake(now))

    def desk(self, now: Instant) -> Desk:
        """A desk of the group that is being gathered."""
        return Desk(self.site, now, self._group, self.exits, self.journal, self._mark)

    def note(self, event: ev.Event, now: Instant) -> None:
        """Records something that the driver itself saw; committed with what comes next."""
        self.desk(now).emit(event)

    def _mark(self) -> None:
        self._dirty = True

    def _take(self, desk: Desk, each: Input) -> None:
        if isinstance(each, Asked):
            self._answer(desk, each)
        elif isinstance(each, SeenUse):
            request = self.site.started.get(each.seq)
            if request is not None and request.attempt == each.attempt:
                self.samples[each.seq] = each.used
        elif isinstance(each, Decision):
            self._asked = False
            self._carry_out(desk, each.plan)
        else:
            hands_desk.take(desk, each)
            if each.seq not in self.site.started:
                self.samples.pop(each.seq, None)

    def _answer(self, desk: Desk, asked: Asked) -> None:
        handler = HANDLERS.get(type(asked.command))
        before = self.site.n
        try:
            if handler is None:
                raise Refusal(f"{asked.command.cmd} is not offered here", "not_offered")
            reply = Reply(handler(desk, asked.command, asked.caller))
        except Refusal as refusal:
            reply = Reply(refusal=refusal)
        except NqspyError as error:
            reply = Reply(refusal=Refusal(str(error), "bad_value"))
        if self.site.n != before and isinstance(asked.command, (cm.Configure, cm.ApplyFiles, cm.SwitchShift)):
            self._shift_seen = None
        desk.group.replies.append((asked.handle, reply))

    # ------------------------------------------------------------ time

    def _time(self, desk: Desk) -> None:
        """What comes about by time alone: dates that have come, shifts that are due."""
        first = self.site.next_date()
        if first is not None and first <= desk.now:
            desk.emit(ev.Eligible(self.site.due(desk.now)))
            self._mark()
        seen = self._shift_seen
        if seen is None or desk.now < seen or (self._shift_at is not None and desk.now >= self._shift_at):
            self._look_at_shifts(desk)

    def _look_at_shifts(self, desk: Desk) -> None:
        firing = shifts.due(desk)
        retry = None
        if firing is not None:
            before = self.site.n
            if not shifts.enter(desk, firing):
                retry = Instant(desk.now + shifts.RETRY)
            self._settings_at = self.site.n if self.site.n != before else self._settings_at
        times = [t for t in (retry, shifts.next_change(desk)) if t is not None]
        self._shift_at, self._shift_seen = min(times, default=None), desk.now

    def _wake(self, now: Instant) -> Instant | None:
        retry = Instant(now + RETRY_COMMIT) if self._retry else None
        times = (self.site.next_date(), self._shift_at, self.plan.wake_at, retry)
        return min((t for t in times if t is not None and t > now), default=None)

    # ------------------------------------------------------------ passes

    def _pass(self, desk: Desk) -> None:
        self._dirty = False
        plan = self.decider.ask(self.site, desk.now, self.samples)
        if plan is None:
            self._asked = True
        else:
            self._carry_out(desk, plan)

    def _carry_out(self, desk: Desk, plan: Plan) -> None:
        """Turns a plan into events and orders, action by action, after a look at what happened since it was
        asked for."""
        if plan.as_of < self._settings_at:
            self._mark()
            return
        short_before = self.plan.short_of_pes
        self.plan = plan
        if not (plan.actions or plan.failures or plan.short_of_pes != short_before):
            return
        desk.emit(
            ev.Decided(plan.as_of, plan.samples, plan.failures, plan.short_of_pes, self._passed_over(plan))
        )
        exits_desk.tell_failures(desk, plan.failures)
        refused: set[Seq] = set()
        fresh = plan.as_of == desk.site.n - 1
        for action in plan.actions:
            if not fresh and not still_holds(self.site, action, refused):
                refused.add(getattr(action, "seq", 0))
                self._mark()
            else:
                _record(desk, action)

    def _passed_over(self, plan: Plan) -> tuple[tuple[Seq, str, str, str], ...]:
        """Reasons of requests that a later one of their own list was started before, for the night report."""
        latest: dict[tuple[str, str], Seq] = {}
        for seq in plan.starts:
            request = self.site.requests.get(seq)
            if request is not None:
                key = (request.queue, request.group)
                latest[key] = max(latest.get(key, 0), seq)
        found = []
        for seq, reason in plan.reasons.own.items():
            request = self.site.requests.get(seq)
            if request is not None and seq < latest.get((request.queue, request.group), 0):
                found.append((seq, reason.code.value, reason.who, reason.text))
        return tuple(found[:1000])

    # ------------------------------------------------------------ committing

    def _commit(self, group: Group) -> bool:
        if group.batch.events:
            self.journal.commit(group.batch, self.site)
            self.commits += 1
            return True
        return False

    def _refuse(self, inputs: Sequence[Input], group: Group, text: str, now: Instant) -> Outcome:
        """Nothing of the group happened: the site is rebuilt from the rows, those who wait are told,
        sightings come again."""
        self.log(text)
        self._group = Group()
        self.site = self.journal.load()
        self.exits.begin(self.site)
        self.plan, self._dirty, self._asked, self._shift_seen = Plan(), True, False, None
        self._retry = [
            each for each in inputs if isinstance(each, Sighting) and not isinstance(each, SeenUse)
        ]
        refusal = Refusal(text, "not_committed")
        handles = [each.handle for each in inputs if isinstance(each, Asked)]
        handles += [handle for handle, _ in group.replies if handle not in handles]
        return Outcome([(handle, Reply(refusal=refusal)) for handle in handles], [], False, self._wake(now))

    def _hand_out(self, actions: list[Action], now: Instant) -> None:
        for action in actions:
            if not isinstance(action, (Notify, Redate, Move, Hold)):
                seq: Seq = getattr(action, "seq", 0)
                self.hands.do(action, self.site.requests.get(seq), self.site, now)


def _record(desk: Desk, action: Action) -> None:
    if isinstance(action, Start):
        desk.emit(ev.Starting(action.seq, action.attempt, action.pes, action.forced))
    elif isinstance(action, Redate):
        desk.emit(ev.Redated(action.seqs, action.date, action.cause, action.who))
    elif isinstance(action, Move):
        former = desk.site.requests[action.seq].queue
        desk.emit(ev.Routed(action.seq, action.queue, former))
        desk.dirty()
    elif isinstance(action, Hold):
        desk.emit(ev.Held((action.seq,), "s", action.who, action.text))
    desk.act(action)
