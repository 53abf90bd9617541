"""The daemon's side of the decider: asks a worker process for plans, sends it all events, detects when it
hangs, and forks another from the engine's state when it is lost."""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nqspy.core.no_exits import NoExits
from nqspy.decider import messages, plans, sandbox
from nqspy.decider.backoff import Backoff, Loss, named, standstill
from nqspy.decider.orders import Answer, OpenOrders, PassAsked, W, answer_within, nothing
from nqspy.decider.process import FromWorker, WorkerEnded, WorkerPipes, WorkerProcess
from nqspy.decider.registry import ExitRegistry
from nqspy.decider.saved_state import AT_END, SavedState
from nqspy.decider.worker import WorkerTask, digests, look_ahead_limit, names, part_of
from nqspy.engine.inputs import Between, Decision
from nqspy.engine.look_ahead import AtOnce, Forecast, LookAhead, unknown
from nqspy.model import events as ev
from nqspy.model.actions import Plan
from nqspy.model.errors import Refusal
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import STARTED, Request, Used
from nqspy.model.site import Site
from nqspy.model.texts import counted
from nqspy.store.rows import no_collector
from nqspy.userexit.loader import Source

LOG = logging.getLogger("nqspy.decider")

CHECK = 0.25
"""Real seconds between two checks of a worker that owes an answer."""
GRACE = 1.0
"""Real seconds that a call of an exit may take beyond ten times its budget before the worker is killed."""
PASS = 30.0
"""Real seconds that the answer to any order may take at most."""
LOAD = 10.0
"""Real seconds that loading one file may take."""
OBSERVED = 0.2
"""Real seconds for which the daemon must have seen a call run before it kills the worker: the daemon may
itself have slept."""
QUESTION = 0.3
"""Real seconds to wait for a submit or route exit in addition to ten times the budgets."""
SILENT = "no estimate: the process of the user exits does not answer"

MAX_WAIT = 5.0
"""Real seconds that a look ahead, and what the worker does before it, may take."""

Starts = Mapping[Seq, Instant]
Forecasts = Mapping[Seq, Forecast]
LateForecasts = Callable[[float], Forecasts]
"""Function that waits at most so many real seconds and returns forecasts by request; for any thread."""


class DeciderClient:
    """Implements ``ports.Decider`` for the daemon: passes run in a worker process if there are exits, else in
    this process at once. Used in the engine's thread. ``put``: adds an input to the daemon's inbox; ``now``:
    returns the site's instant; ``report``: reports a lost worker to managers.

    ``problems``: a line for each file left out when the exits were loaded; ``user``: the user that exits run
    as, None: the daemon's; ``home``: the folder for their saved state, None: nothing is saved."""

    def __init__(
        self,
        site: Site,
        folder: Path,
        put: Callable[[Any], None],
        now: Callable[[], Instant],
        report: Callable[[Loss], None],
        home: Path | None = None,
    ) -> None:
        self.site, self.folder, self.problems = site, folder, list[str]()
        self.user = sandbox.user()
        # Returns how far (ms) the clock was set while attempts ran, by request; set by the daemon.
        self.clock_moved: Callable[[], Mapping[Seq, int]] = dict
        self.registry, self.backoff, self.saved = ExitRegistry(), Backoff(), SavedState(home)
        self._put, self._now, self._report = put, now, report
        self._plain = AtOnce(NoExits())
        self.worker: WorkerProcess | None = None
        self.sources: tuple[Source, ...] = ()
        self.loading: Any = None  # a `loading.Loading`: files that a second worker is loading
        self.later_events: list[ev.Recorded] = []
        self._events: list[ev.Recorded] = []
        self._failures = b""  # of exits, as the last worker reported them
        self._ids = count(1)
        self._asked: PassAsked | None = None
        self._open = OpenOrders()
        self._estimates = deque[tuple[messages.Order, Answer]]()  # not asked for yet
        self._estimate = nothing()  # the last one asked for
        self._observed: tuple[int, float] = (0, 0.0)
        self.saved.restore(self.backoff)
        self._was_off = {name for name in self.backoff.out if not self._enabled(name)}
        for name in set(self.backoff.out) - self._was_off:
            self.backoff.forgive(name)
        self.backoff.pardon(self._enabled)
        self._memory = site.settings.decider.memory
        self._paused = False

    # ------------------------------------------------------------ the door

    @property
    def needed(self) -> bool:
        """True if there is an exit to run, so that a worker is needed."""
        return any(name not in self.backoff.out for name in names(self.sources))

    def ask(self, site: Site, now: Instant, samples: Mapping[Seq, Used]) -> Plan | None:
        """Order a pass from the worker and return None; its plan comes as `FromWorker`. Without exits run the
        pass here and return its plan. While no worker may be forked, return a plan that starts nothing."""
        if not self.needed:
            return self._plain.ask(site, now, samples)
        if (worker := self._ready()) is None:
            self._paused = True
            return standstill(site)
        asked = PassAsked(next(self._ids), site.n, tuple(samples.items()))
        self._asked = asked
        self._open.add(asked.id)
        self.flush()
        stops, closings = dict(site.upcoming_stops), dict(site.closings)
        worker.send(messages.AskPass(asked.id, asked.n, now, asked.samples, stops, closings))
        return None

    def follow(self, events: Sequence[ev.Recorded]) -> None:
        """Keep these events, just applied to the site, for the worker; `flush` sends them."""
        if self.worker is not None:
            self._events += events
        if self.loading is not None:
            self.later_events += events

    def reset(self, site: Site) -> None:
        """Use another site from now on: kill the worker; the next is forked with this site."""
        self.site = site
        self.drop("the site was read again")
        if self.loading is not None:
            self.loading.again()
        self._was_off = {name for name in self.backoff.out if not self._enabled(name)}

    def forecast(
        self, site: Site, request: Request, now: Instant, samples: Mapping[Seq, Used]
    ) -> Callable[[float], Forecast]:
        """Return a function that returns the forecast for a request not submitted yet; it waits for the
        worker at most as many real seconds as it is given. This method itself does not wait."""
        between = Between(samples=tuple(samples.items()), moved=tuple(self.clock_moved().items()))
        late = self.forecasts(now, between, (request.seq,), request)
        return lambda seconds: late(seconds).get(request.seq, unknown(SILENT))

    def forecasts(
        self, now: Instant, between: Between, seqs: tuple[Seq, ...] | None, request: Request | None = None
    ) -> LateForecasts:
        """Return a function that returns when these requests would start (None: all that wait); ``request``:
        one of them that is not submitted yet. Call this in the engine's thread, the function in any."""
        site, silent, limit = self.site, messages.ForecastsMade(0, [], {}), look_ahead_limit(self.site)
        if not self.needed:
            with no_collector():
                ahead = LookAhead(site, now, between, request=request, wanted=seqs or ())
            return lambda seconds: ahead.forecasts(seqs, NoExits(), part_of(limit))
        asked = [request] if request is not None else map(site.to_be, site.requests if seqs is None else seqs)
        waiting = [each.seq for each in asked if each is not None and each.state not in STARTED]
        answer = self._later(messages.AskForecasts(0, 0, now, between, seqs, request))

        def wait(seconds: float) -> Forecasts:
            found = answer_within(answer, silent, seconds).read() or dict.fromkeys(waiting, unknown(SILENT))
            if request is not None:  # `ask_estimate` may have given it another number
                return dict(zip(waiting, found.values(), strict=False))
            return {seq: found[seq] for seq in waiting if seq in found}

        return wait

    def starts(
        self, now: Instant, between: Between, changes: tuple[ev.Change, ...]
    ) -> Callable[[float], tuple[Starts, Starts]]:
        """Return a function that returns the probable starts of all waiting requests: under the present
        settings, and after ``changes``. It raises Refusal if the worker does not answer in time."""
        if not self.needed:
            ahead = [LookAhead(self.site, now, between, changes=each) for each in ((), changes)]
            limit = look_ahead_limit(self.site)

            def simulate(seconds: float) -> tuple[Starts, Starts]:
                before, then = (each.starts(NoExits(), part_of(limit)) for each in ahead)
                return before, then

            return simulate
        answer = self._later(messages.AskStarts(0, 0, now, between, changes))
        silent = messages.StartsMade(0, {}, {})

        def wait(seconds: float) -> tuple[Starts, Starts]:
            if (found := answer_within(answer, silent, seconds)) is silent:
                raise Refusal("no_estimate", reason=SILENT)
            return found.before, found.then

        return wait

    # ------------------------------------------------------------ files

    def adopt(
        self, process: WorkerProcess, sources: tuple[Source, ...], answer: messages.ExitsLoaded
    ) -> None:
        """Use this worker, which has loaded ``sources``, from now on; ``answer``: its report of the load."""
        known = {row["name"] for row in answer.listing}
        self.sources = tuple(source for source in sources if source.path.stem in known)
        self.backoff.files = digests(self.sources)
        self.registry.add(answer.listing, answer.units, fresh=True)
        self.worker, self._failures = process if self.sources else None, answer.state
        if not self.sources:
            process.kill("there is nothing to do for it")
        self._events, self.later_events = self.later_events, []
        self.begin(self.site)

    # ------------------------------------------------------------ workers

    def forget(self) -> None:
        """Kill the worker and forget all exits, because there are none any more."""
        self.drop("there are no exits any more")
        self.sources, self.problems, self.registry = (), [], ExitRegistry()

    def fork(
        self, sources: tuple[Source, ...], listing: messages.Listing | None = None, forgiving: bool = False
    ) -> WorkerProcess:
        """Fork a worker with the present site and these files. ``listing``: figures of the lost worker that
        it replaces, to count on from; ``forgiving``: earlier failures do not count. Raises OSError."""
        site = self.site
        self._memory = site.settings.decider.memory
        box = sandbox.Sandbox(self._memory, True, 64, self.user)
        self.backoff.meet({} if forgiving else digests(sources))
        skips, backoffs = ((), ()) if forgiving else (tuple(self.backoff.skips), tuple(self.backoff.backoffs))
        work: Callable[[WorkerPipes], None] = WorkerTask(
            self.folder, sources, site, skips, backoffs, listing or [], self.saved.read(), forgiving,
            self._failures,
        )  # fmt: skip
        self.saved.born()
        put = self._put  # called in the worker's own thread
        return WorkerProcess("exits", work, box, lambda process, what: put(FromWorker(process, what)))

    def _ready(self) -> WorkerProcess | None:
        """Return the worker, forked if there is none; None: none may be forked yet, or the fork failed."""
        if self.worker is None and self.backoff.pause() <= 0:
            sources = tuple(s for s in self.sources if s.path.stem not in self.backoff.out)
            try:
                self.worker = self.fork(sources, self.registry.counted())
            except OSError as error:
                how = f"it cannot be started: {error}"
                self._report(self.backoff.lost(None, how, names(sources), self._now()))
                return None
            self._open.add(0)  # until it reports that the exits are loaded
            self._events.clear()
        return self.worker

    def drop(self, why: str) -> None:
        """Kill the worker, if any, for the reason ``why``. If a pass was under way, the engine hears that its
        plan will not come, and asks again."""
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.kill(why)
        self._open.clear()
        self._events.clear()
        if self._asked is not None:
            self._put(FromWorker(None, None, self._asked.id))

    def close(self) -> None:
        """Save the worker's state and kill it, because the daemon stops; waiting estimates get no answer."""
        if self.loading is not None:
            self.loading.drop()
        if self._asked is not None:  # the next worker reports failures in a plan not used
            self.saved.close(b"")
        elif self.worker is not None:
            nothing = messages.StateAnswered(0, b"")
            self.saved.close(self.query(messages.AskState(0, 0), nothing, AT_END).body)
        self.drop("the daemon ends")
        self.sources = ()
        for _, answer in self._estimates:
            if answer.set_running_or_notify_cancel():
                answer.set_result(None)

    # ------------------------------------------------------------ talk

    def flush(self) -> None:
        """Send the queued events to the worker."""
        if self._events and self.worker is not None:
            self.worker.send(messages.follow_events(self._events))
            self._events.clear()

    def start_query(self, order: messages.Order) -> Answer:
        """Send an order to the worker; return its future answer: None without a worker, or if it ends
        first."""
        if (worker := self._ready()) is None:
            return nothing()
        order.id, order.n = next(self._ids), self.site.n
        self.flush()
        answer = worker.ask(order)
        self._open.add(order.id, answer)
        return answer

    def _later(self, order: messages.Order) -> Answer:
        """Queue an order for an estimate; return its future answer. `ask_estimate` sends it."""
        answer: Answer = Future()
        self._estimates.append((order, answer))
        return answer

    def ask_estimate(self) -> None:
        """Send the next estimate to the worker once it has answered the last one, so that a pass waits for
        one at most; called at the end of each turn."""
        while self._estimates and self._estimate.done():
            order, answer = self._estimates.popleft()
            if answer.set_running_or_notify_cancel():
                if isinstance(order, messages.AskForecasts) and order.request is not None:
                    order.seqs = (self.site.next_seq,)  # others may have been submitted meanwhile
                    order.request = replace(order.request, seq=self.site.next_seq)
                self._estimate = self.start_query(order) if self.needed else nothing()
                self._estimate.add_done_callback(partial(self._estimated, answer))

    def _estimated(self, answer: Answer, found: Answer) -> None:
        """Hand on an estimate, in the worker's own thread, and wake the engine, which sends the next."""
        answer.set_result(found.result())
        self._put(FromWorker(None, None))

    def query(self, order: messages.Order, fallback: W, deadline: float) -> W:
        """Return the worker's answer to an order; ``fallback`` if none of the same type comes within
        ``deadline`` real seconds. The engine's thread waits for it, except while an earlier answer is
        overdue: then ``fallback`` at once."""
        self._forget_answered()
        if self._open.overdue:
            return fallback
        answer = self.start_query(order)
        try:
            message = answer.result(deadline)
        except TimeoutError:
            self._open[order.id].overdue = True
            return fallback
        self._open.pop(order.id, None)
        if isinstance(message, type(fallback)):
            self._stamped(message)
            return message
        if message is not None:
            self._useless(message, kill=isinstance(message, messages.OutOfStep))
        return fallback

    def _forget_answered(self) -> None:
        for answer in self._open.answered():
            if isinstance(answer, messages.OrderFailed | messages.OutOfStep):
                self._useless(answer)

    def _useless(self, answer: messages.WorkerMessage, kill: bool = True) -> None:
        LOG.warning("the process of the exits failed: %s", getattr(answer, "text", messages.why(answer)))
        if kill and self.worker is not None:
            self.worker.kill(messages.why(answer))

    @property
    def busy(self) -> bool:
        """True if the worker has not answered all orders, or there is no worker."""
        self._forget_answered()
        return self.worker is None or bool(self._open)

    # ------------------------------------------------------------ what comes back

    def receive(self, heard: FromWorker) -> Decision | None:
        """Handle a message or the end of a worker, taken from the inbox. Return a decision if a plan came, or
        one without a plan if it will not come; else None."""
        if heard.process is None:
            return self._nothing() if self._asked is not None and heard.id == self._asked.id else None
        if heard.process is not self.worker:
            if self.loading is not None:
                self.loading.hear(heard.process, heard.what)
            return None
        what = heard.what
        if isinstance(what, WorkerEnded):
            return self._lost(heard.process, what.how)
        self._open.pop(what.id, None)
        if isinstance(what, messages.ExitsLoaded):
            self._failures = what.state
            self.registry.add(what.listing, what.units)
            self.registry.follow(self.site, self.backoff.out)
        elif isinstance(what, messages.PlanMade) and self._asked is not None and what.id == self._asked.id:
            try:
                plan = plans.plan_of(what, self._asked.n, self._asked.samples, self.registry.names)
            except messages.BadWorkerMessage as error:
                heard.process.kill(str(error))
                return None
            self._asked, self._failures = None, what.state or self._failures
            self._stamped(what)
            self.backoff.well()
            return Decision(plan)
        elif isinstance(what, messages.OrderFailed | messages.OutOfStep):
            self._useless(what)
        return None

    def _stamped(self, answer: messages.WorkerMessage) -> None:
        if isinstance(answer, messages.PlanMade | messages.SubmitAnswered | messages.RouteAnswered):
            self.saved.note(answer.stamp)
            self.registry.figures([row for row in answer.listing if row.get("name") in self.registry.names])

    def _nothing(self) -> Decision:
        self._asked = None
        return Decision(None)

    def _lost(self, process: WorkerProcess, how: str) -> Decision | None:
        self.worker = None
        self._open.clear()
        self._events.clear()
        running = [name for name in names(self.sources) if name not in self.backoff.out]
        loss = self.backoff.lost(named(process.heartbeat.read(), self.site), how, running, self._now())
        self.saved.save(self.backoff)
        if loss.exit:
            self.registry.failed(loss.exit)
        self._report(loss)
        self._was_off |= {name for name in loss.off if not self._enabled(name)}
        self.registry.follow(self.site, self.backoff.out)
        return self._nothing() if self._asked is not None else None

    # ------------------------------------------------------------ looking after it

    def check(self) -> bool:
        """Send the kept events, and kill the worker if it hangs; called at the end of each turn of the
        engine. Return True if a pass may run again, because the back-off after a lost worker is over."""
        self.flush()
        self._forget_answered()
        worker = self.worker
        if worker is not None and self._open:
            now, call, limit = time.monotonic(), worker.heartbeat.read(), LOAD
            if call is not None and call.since != self._observed[0]:
                self._observed = (call.since, now)
            if call is not None and call.hook != "load":
                limit = self.registry.settings_of(call.exit).budget / 100 + GRACE
            if call is not None and now - self._observed[1] >= OBSERVED and call.age() > limit:
                worker.kill(f"it did not return within {call.age():.1f} s")
            elif self._open.age() > PASS:
                worker.kill(f"it did not answer within {PASS:.0f} s")
        if self.loading is not None:
            self.loading.check()
        if worker is not None:
            self.saved.check(self.start_query)
        if self._paused and self.backoff.pause() <= 0:
            self._paused = False
            return True
        return False

    def timeout(self) -> float | None:
        """Return the real seconds until `check` must be called again; None: only after new inputs."""
        if self._paused:
            return self.backoff.pause()
        if self.loading is not None or (self._open and self.worker is not None):
            return CHECK
        return self.saved.timeout() if self.worker is not None else None

    # ------------------------------------------------------------ settings

    def begin(self, site: Site) -> None:
        """Apply this site's settings. If an exit was switched on again, or the memory limit changed, kill the
        worker: the next one gets them."""
        self.site = site
        if self.backoff.pardon(self._enabled):
            self.saved.save(self.backoff)
        back = [name for name in self._was_off if self._enabled(name)]
        for name in back:
            self.backoff.forgive(name)
            self._was_off.discard(name)
            self.saved.save(self.backoff)
        if back:
            self.drop(f"exit {back[0]} comes back")
        elif site.settings.decider.memory != self._memory:
            self.drop("it may take another amount of memory")
        self.registry.follow(site, self.backoff.out)

    def _enabled(self, name: str) -> bool:
        known = self.site.settings.exits.get(name)
        return known is None or known.enabled

    def state(self) -> str:
        """Return a line on where passes and exits run, and how often this nqsd has lost the worker."""
        if not self.needed:
            return "passes run in nqsd itself, because no user exit is loaded"
        who = f" as {self.user[0]}" if self.user is not None else ""
        losses = self.backoff.losses
        lost = f"; lost {counted(losses, 'time')}" if losses else ""
        where = f"process {self.worker.pid}" if self.worker else "a process that starts when needed"
        return f"passes and exits run in {where}{who}{lost}"
