"""Calls of deciding exits: whether an exit is called at all, its budget, the effects of a failure."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from nqspy.engine.zones import local
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Instant, Seq
from nqspy.ports import PassView
from nqspy.userexit import clock
from nqspy.userexit.call_stats import UNWATCHED, CallWatch, Mark, Subject, Trace
from nqspy.userexit.errors import described
from nqspy.userexit.guard import Guard, is_ctrl_c
from nqspy.userexit.hooks import Failed, Hook
from nqspy.userexit.view import View


class Calls:
    """Calls functions of exits; the caller enters ``guard`` by ``with`` first. ``trace``: the latest answers.
    ``failures``: since `begin`; each is also passed to ``heard``. ``really``: present instant in a simulation
    ahead, else None. ``again``: earliest end of the back-offs for owners met since `begin`."""

    def __init__(self, guard: Guard, watch: CallWatch) -> None:
        self.guard = guard
        self._watch = None if watch is UNWATCHED else watch
        self.trace = Trace()
        self.failures: list[ExitFailure] = []
        self.really: Instant | None = None
        self.again: Instant | None = None
        self.heard: Callable[[Hook, Seq | None, str], None] = lambda hook, seq, text: None
        self._zone = "UTC"
        self._view: PassView | None = None
        self._views: dict[str, View] = {}

    def begin(self, zone: str) -> None:
        """Forget failures and views, before a pass or a submission; ``zone``: time zone of texts."""
        self.failures, self.again, self._zone = [], None, zone
        self.forget()

    def forget(self) -> None:
        """Drop the views made so far."""
        self._view = None
        self._views.clear()

    def view_for(self, who: str, view: PassView) -> View:
        """Return the view for the exit of that name."""
        if view is not self._view:
            self._view = view
            self._views.clear()
        found = self._views.get(who)
        if found is None:
            found = self._views[who] = View(view, who, self.guard.shielded, _clock=clock)
        return found

    def ask(self, hook: Hook, subject: Subject, seq: Seq | None, args: tuple[Any, ...]) -> Any:
        """Return an exit's answer to ``args``; None: it has none, or it failed in this pass and is not called
        again. `Failed`: it failed on this subject now, or there is a back-off."""
        record = hook.record
        if record.marked:  # it may not be asked about this or its owner for a while
            owner, now = whose(args), args[-1]
            if (mark := record.back_off_of(owner, now, self.really)) is not None:
                if mark.until > now:
                    self.again = min(mark.until, self.again or mark.until)
                return Failed(back_off_text(owner, mark, self._zone), backed_off=True)
            if (skipped := record.skipped(subject, now, self.really)) is not None:
                return Failed(skipped)
        if hook.exit.down:
            return None
        if self._watch is None:
            return self.call(hook, subject, seq, args)
        self._watch.enter(hook.who, hook.name, seq if subject is None else subject, whose(args))
        try:
            return self.call(hook, subject, seq, args)
        finally:
            self._watch.leave()

    def call(self, hook: Hook, subject: Subject, seq: Seq | None, args: tuple[Any, ...]) -> Any:
        """Ask an exit as `ask` does, without regard to back-offs."""
        record = hook.record
        try:
            answer = self.guard.call(hook.run, (args,), hook.exit.budget)
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            took, message = self.guard.took, described(self.guard, hook.exit.module.path, error)
            if self.really is not None:
                hook.exit.down = True
                return Failed(message[0])
            record.took(took)
            return self.failed(hook, subject, seq, args, *message)
        if self.really is not None:
            return answer
        record.answered(self.guard.took)
        if seq is not None:
            self.trace.note(seq, hook.who, hook.name, args[-1], answer, None)
        return answer

    def failed(
        self, hook: Hook, subject: Subject, seq: Seq | None, args: tuple[Any, ...], text: str, trace: str
    ) -> Failed:
        """Record a failed call in all figures; its exit is not called again in this pass."""
        self.heard(hook, seq, text)
        now, owner = args[-1], whose(args)
        off = hook.record.failed(subject, owner, now, text)
        hook.exit.down = True
        if off:
            hook.record.forgive()
        note = back_off_text(owner, hook.record.back_off_of(owner, now), self._zone)
        if seq is not None:
            self.trace.note(seq, hook.who, hook.name, now, None, text)
        self.failures.append(ExitFailure(hook.who, seq, text, trace, off, note))
        return Failed(text)


def whose(args: tuple[Any, ...]) -> str:
    """Return the owner that a call of a deciding hook is about: of its request, or of the share term."""
    first = args[0]
    return first if isinstance(first, str) else str(first.owner)


def back_off_text(owner: str, mark: Mark | None, zone: str) -> str:
    """Return text behind "exit NAME failed ": when it is asked again, to the minute; empty: no back-off."""
    if mark is None:
        return ""
    when = local(Instant(mark.until - 1), zone) + timedelta(minutes=1)
    on = f"requests of {owner} that ended its process" if mark.lost else f"five requests of {owner} in a row"
    return f"on {on}; it is called for {owner} again at {when:%H:%M}"
