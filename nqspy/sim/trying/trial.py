"""Examination of a copy of a site twice, without and with exits on trial, in a process without rights."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from nqspy.core.no_exits import NoExits
from nqspy.decider import messages, sandbox
from nqspy.decider.backoff import named
from nqspy.decider.process import WorkerPipes, WorkerProcess
from nqspy.decider.worker import part_of_wait
from nqspy.engine.look_ahead import MOST
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Seq
from nqspy.model.machine import ExitSettings
from nqspy.model.site_copy import beyond, copy_site
from nqspy.ports import Exits
from nqspy.sim.trying.copied import NotTried, SiteCopy
from nqspy.sim.trying.examine import Examination, ask, queue_lists, simulate
from nqspy.store.rows import no_collector
from nqspy.userexit.call_stats import CallWatch
from nqspy.userexit.guard import Guard
from nqspy.userexit.hooks import Hook
from nqspy.userexit.loader import Source
from nqspy.userexit.site_exits import SiteExits

ASKING, AHEAD = 0.15, 0.2
"""Seconds of CPU time for which each examination asks about requests one by one, and simulates ahead."""
SLOWER = 8
"""Factor for real time: the machine may be busy, exits may sleep."""
PATIENCE = 60.0
"""Real seconds after which the process counts as hanging."""
LONG = 0.5
"""Fraction of its budget, in real time, above which a call counts as long."""
SHOWN = 100
"""Most failures and long calls that are stored, of each kind the first ones."""

Key = tuple[str, str, Seq | None]
"""Exit, hook and request of a call."""


class FailedCall(Struct, frozen=True):
    """Calls that failed in the same way, for JSON; ``id`` None: about no request; ``times``: how often."""

    exit: str
    hook: str
    id: str | None
    text: str
    times: int = 1


class LongCall(Struct, frozen=True):
    """The longest call of a hook about one request, for JSON."""

    exit: str
    hook: str
    id: str | None
    ms: float
    budget_ms: int


class Tried(Struct):
    """Result of a trial: examinations without the file (``was``) and with it (``would``). ``problems``: why
    it cannot be loaded, the rest is empty then; ``row``: figures of its calls (``name by_hook calls``, as
    `userexit.hooks.entry` has them); ``skipped``: number of waiting requests that were not examined."""

    problems: list[str] = field(default_factory=list)
    was: Examination = field(default_factory=Examination)
    would: Examination = field(default_factory=Examination)
    row: dict[str, Any] = field(default_factory=dict)
    failed: list[FailedCall] = field(default_factory=list)
    long: list[LongCall] = field(default_factory=list)
    skipped: int = 0


class _Stopwatch(Guard):
    """Guard that calls ``report`` after each call of a hook, with its duration in ns."""

    def __init__(self, report: Callable[[Hook, tuple[Any, ...], int], None]) -> None:
        super().__init__()
        self._report = report

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], budget: int, wall: int | None = None
    ) -> Any:
        """Call ``function`` as `Guard` does; return its result."""
        hook = getattr(function, "__self__", None)
        try:
            return super().call(function, args, budget, wall)
        finally:
            if isinstance(hook, Hook):
                self._report(hook, args[0], self.took)


class TriedExits(SiteExits):
    """Exits that run on a copy of a site, with notes on calls, by exit, hook and request (`Key`).
    ``failed_calls``: how often a call failed, by call and text; ``long_calls``: by call, its longest duration
    (ns) and its budget (ms), if that was more than `LONG` of the budget."""

    def __init__(self, sources: Iterable[Source], watch: CallWatch) -> None:
        self.failed_calls = Counter[tuple[Key, str]]()
        self.long_calls: dict[Key, tuple[int, int]] = {}
        ordered = sorted(sources, key=lambda source: source.path.name)
        super().__init__(
            Path("exits"), sources=ordered, watch=watch, guard=lambda: _Stopwatch(self._note_duration)
        )  # fmt: skip
        self._calls.heard = lambda hook, seq, text: self._failed((hook.who, hook.name, seq), text)

    def failures(self) -> tuple[ExitFailure, ...]:
        """Return failures like `SiteExits`; add failures of exits' settings to ``failed_calls``."""
        result = super().failures()
        for each in result:
            if each.text.startswith("setting "):
                self._failed((each.exit, "", None), each.text)
        return result

    def _failed(self, key: Key, text: str) -> None:
        if (key, text) in self.failed_calls or len(self.failed_calls) < SHOWN:
            self.failed_calls[key, text] += 1

    def _note_duration(self, hook: Hook, args: tuple[Any, ...], ns: int) -> None:
        budget, key = hook.exit.budget, (hook.who, hook.name, getattr(args[0], "seq", None))
        if ns > LONG * budget * 1_000_000 and (key in self.long_calls or len(self.long_calls) < SHOWN):
            self.long_calls[key] = max(self.long_calls.get(key, (0, budget)), (ns, budget))


def try_out(copy: SiteCopy, candidate: Source) -> Tried:
    """Try a file in another process; it replaces a loaded one of its name. Raises NotTried."""

    def work(pipes: WorkerPipes) -> None:
        logging.getLogger("nqspy.userexit").setLevel(logging.CRITICAL)  # failures are in the answer
        answer = msgspec.msgpack.encode(_tried(copy, candidate, pipes.heartbeat))
        pipes.answer(messages.ExitsTried(0, answer))

    heard: list[Any] = []
    try:
        box = sandbox.Sandbox(copy.site.settings.decider.memory, True, 64, sandbox.user())
        process = WorkerProcess("exits try", work, box, lambda _, what: heard.append(what))
    except OSError as error:
        raise NotTried(f"exits cannot be tried here: {error}") from None
    hangs = False
    try:
        process.loaded.result(PATIENCE)
    except TimeoutError:
        hangs = True
        process.kill(f"it did not answer within {PATIENCE:.0f} s")
        process.loaded.result()
    answer = next((each for each in heard if isinstance(each, messages.ExitsTried)), None)
    if answer is None:
        call = named(process.heartbeat.read(), copy.site)
        if call is None or not call.exit:
            raise NotTried(f"the process of the exits: {process.how}")
        about = f" about {copy.site.id_of(call.seq)}" if call.seq is not None else ""
        did = "hangs" if hangs else "ended the process"
        raise NotTried(f"exit {call.exit}: {call.hook}{about} {did}: {process.how}")
    try:
        return msgspec.msgpack.decode(answer.body, type=Tried)
    except msgspec.MsgspecError as error:
        raise NotTried(f"the process of the exits sent an answer that cannot be read: {error}") from None


# ---------------------------------------------------------------- in the process without rights


def _tried(copy: SiteCopy, candidate: Source, watch: CallWatch) -> Tried:
    name = candidate.path.stem
    with no_collector():
        others = [each for each in copy.loaded if each.path.stem != name]
        on_trial = _Examiner(copy, (*others, candidate), watch, name)
        if name not in on_trial.exits.declared():
            path = str(Path(*candidate.path.parts[-2:]))
            return Tried([problem for problem in on_trial.exits.problems if problem.startswith(path)])
        before = _Examiner(copy, copy.loaded, watch)
        was, would = before.examine(), on_trial.examine()
    known = before.failed()
    failed = {
        (key, text): times
        for (key, text), times in on_trial.failed().items()
        if key[0] == name or (key, text) not in known
    }
    unfit = [FailedCall(name, "", None, text) for text in on_trial.exits.unfit(copy.site.settings.exits)]
    return Tried(
        [], was, would, on_trial.row(name),
        [FailedCall(exit, hook, copy.id_of(seq), text, n) for ((exit, hook, seq), text), n in failed.items()]
        + unfit,
        on_trial.long(), len(before.omitted),
    )  # fmt: skip


class _Examiner:
    """Examiner of a copied site under a set of exits. Requests are asked about with other exit objects than
    the simulation's, so that failures do not change it. ``name``: exit that counts as switched on."""

    def __init__(self, copy: SiteCopy, sources: Iterable[Source], watch: CallWatch, name: str = "") -> None:
        self.copy, self.omitted = copy, beyond(copy.site, MOST)
        self.site = copy_site(copy.site, self.omitted)
        known = self.site.settings.exits.get(name)
        if known is not None and not known.enabled:  # it is tried as if it were on
            self.site.settings.exits[name] = ExitSettings(name, True, known.budget, dict(known.values))
        self.exits, self.asked = (TriedExits(sources, watch) for _ in range(2))

    def examine(self) -> Examination:
        """Examine the copied site; return the result by request."""
        result, spent = Examination(), part_of_wait(ASKING, SLOWER * ASKING)
        exits: Exits = self.exits if self.exits.declared() else NoExits()
        lists = queue_lists(self.copy, self.site, exits)
        ask(result, self.copy, self.site, self.asked, lists, spent)
        simulate(result, self.copy, self.site, exits, lists, part_of_wait(AHEAD, SLOWER * AHEAD))
        return result

    def failed(self) -> Counter[tuple[Key, str]]:
        """Return how often calls failed, by call and text."""
        return self.asked.failed_calls + self.exits.failed_calls

    def long(self) -> list[LongCall]:
        """Return the long calls, longest first: one of each hook and request."""
        longest = dict(self.asked.long_calls)
        for key, measured in self.exits.long_calls.items():
            longest[key] = max(measured, longest.get(key, measured))
        return [
            LongCall(exit, hook, self.copy.id_of(seq), round(ns / 1e6, 1), budget)
            for (exit, hook, seq), (ns, budget) in sorted(longest.items(), key=lambda each: -each[1][0])
        ]

    def row(self, name: str) -> dict[str, Any]:
        """Return an exit's number of calls and its figures by hook, over both sets of exits."""
        one, other = (
            next(each for each in exits.listing() if each["name"] == name)["by_hook"]
            for exits in (self.exits, self.asked)
        )
        hooks: dict[str, Any] = {}
        for hook, own in one.items():
            pairs = ((key, [n, other[hook][key]]) for key, n in own.items())
            hooks[hook] = {key: max(both) if key == "longest_ms" else sum(both) for key, both in pairs}
        return {"name": name, "by_hook": hooks, "calls": sum(each["calls"] for each in hooks.values())}
