"""Two looks at a copy of a site, without and with exits on trial, in a process that has no rights."""

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
from nqspy.decider.worker import part_of_patience
from nqspy.engine.look_ahead import MOST
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Seq
from nqspy.model.machine import ExitSettings
from nqspy.model.site_copy import beyond, copy_site
from nqspy.ports import Exits
from nqspy.sim.trying.copied import NotTried, SiteCopy
from nqspy.sim.trying.examine import Examination, ask, foresee, lines_of
from nqspy.store.rows import no_collector
from nqspy.userexit.call_stats import CallWatch
from nqspy.userexit.guard import Guard
from nqspy.userexit.hooks import Hook
from nqspy.userexit.loader import Source
from nqspy.userexit.site_exits import SiteExits

ASKING, AHEAD = 0.15, 0.2
"""Seconds of CPU time for which each of the two looks asks about requests one by one, and lets time pass."""
SLOWER = 8
"""It may take so many times as long by the wall clock, where the machine is busy or exits sleep."""
PATIENCE = 60.0
"""Real seconds after which the process counts as hanging."""
LONG = 0.5
"""A call is long that took more than this part of its budget, by the wall clock."""
SHOWN = 100
"""Failures and long calls that are kept, of each kind the first."""

Key = tuple[str, str, Seq | None]
"""Exit, hook and request of a call."""


class FailedCall(Struct, frozen=True):
    """Calls that failed alike, as JSON has them; ``id`` None: about no request; ``times``: how often."""

    exit: str
    hook: str
    id: str | None
    text: str
    times: int = 1


class LongCall(Struct, frozen=True):
    """The longest call of a hook about one request, as JSON has it."""

    exit: str
    hook: str
    id: str | None
    ms: float
    budget_ms: int


class Tried(Struct):
    """Result of a trial. ``problems``: why the file cannot be loaded, the rest is empty then; ``row``:
    figures of its calls (``name by_hook calls``, as `userexit.hooks.entry` has them); ``left``: how many of
    those that wait were not looked at."""

    problems: list[str] = field(default_factory=list)
    was: Examination = field(default_factory=Examination)
    would: Examination = field(default_factory=Examination)
    row: dict[str, Any] = field(default_factory=dict)
    failed: list[FailedCall] = field(default_factory=list)
    long: list[LongCall] = field(default_factory=list)
    left: int = 0


class _Stopwatch(Guard):
    """Tells ``took`` after each call of a hook how long that was (ns)."""

    def __init__(self, took: Callable[[Hook, tuple[Any, ...], int], None]) -> None:
        super().__init__()
        self._tell = took

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], budget: int, wall: int | None = None
    ) -> Any:
        """Return what the function returns."""
        hook = getattr(function, "__self__", None)
        try:
            return super().call(function, args, budget, wall)
        finally:
            if isinstance(hook, Hook):
                self._tell(hook, args[0], self.took)


class TriedExits(SiteExits):
    """Exits at work on a copy of a site, with counts of failed calls, and the longest calls."""

    def __init__(self, sources: Iterable[Source], watch: CallWatch) -> None:
        self.failed_calls = Counter[tuple[Key, str]]()
        self.long_calls: dict[Key, tuple[int, int]] = {}
        ordered = sorted(sources, key=lambda source: source.path.name)
        super().__init__(
            Path("exits"), sources=ordered, watch=watch, guard=lambda: _Stopwatch(self._took)
        )  # fmt: skip
        self._calls.heard = lambda hook, seq, text: self._failed((hook.who, hook.name, seq), text)

    def failures(self) -> tuple[ExitFailure, ...]:
        """Return failures as `SiteExits` does; those of settings are kept besides."""
        found = super().failures()
        for each in found:
            if each.text.startswith("setting "):
                self._failed((each.exit, "", None), each.text)
        return found

    def _failed(self, key: Key, text: str) -> None:
        if (key, text) in self.failed_calls or len(self.failed_calls) < SHOWN:
            self.failed_calls[key, text] += 1

    def _took(self, hook: Hook, args: tuple[Any, ...], ns: int) -> None:
        budget, key = hook.exit.budget, (hook.who, hook.name, getattr(args[0], "seq", None))
        if ns > LONG * budget * 1_000_000 and (key in self.long_calls or len(self.long_calls) < SHOWN):
            self.long_calls[key] = max(self.long_calls.get(key, (0, budget)), (ns, budget))


def try_out(copy: SiteCopy, candidate: Source) -> Tried:
    """Try a file, in place of a loaded one of its name or besides, in another process. Raises NqspyError."""

    def work(pipes: WorkerPipes) -> None:
        logging.getLogger("nqspy.userexit").setLevel(logging.CRITICAL)  # what failed is told in the answer
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
        raise NotTried(f"the process of the exits answered nonsense: {error}") from None


# ---------------------------------------------------------------- in the process without rights


def _tried(copy: SiteCopy, candidate: Source, watch: CallWatch) -> Tried:
    name = candidate.path.stem
    with no_collector():
        others = [each for each in copy.loaded if each.path.stem != name]
        on_trial = _Look(copy, (*others, candidate), watch, name)
        if name not in on_trial.exits.declared():
            path = str(Path(*candidate.path.parts[-2:]))
            return Tried([each for each in on_trial.exits.problems if each.startswith(path)])
        before = _Look(copy, copy.loaded, watch)
        was, would = before.look(), on_trial.look()
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
        on_trial.long(), len(before.left),
    )  # fmt: skip


class _Look:
    """A look. The exits that are asked about each request are others than those under which time passes:
    what they fail on there shall not change what becomes of it."""

    def __init__(self, copy: SiteCopy, sources: Iterable[Source], watch: CallWatch, name: str = "") -> None:
        self.copy, self.left = copy, beyond(copy.site, MOST)
        self.twin = copy_site(copy.site, self.left)
        known = self.twin.settings.exits.get(name)
        if known is not None and not known.enabled:  # it is tried as it would be once it is on
            self.twin.settings.exits[name] = ExitSettings(name, True, known.budget, dict(known.values))
        self.exits, self.asked = (TriedExits(sources, watch) for _ in range(2))

    def look(self) -> Examination:
        """Look, and return the result."""
        found, spent = Examination(), part_of_patience(ASKING, SLOWER * ASKING)
        exits: Exits = self.exits if self.exits.declared() else NoExits()
        lines = lines_of(self.copy, self.twin, exits)
        ask(found, self.copy, self.twin, self.asked, lines, spent)
        foresee(found, self.copy, self.twin, exits, lines, part_of_patience(AHEAD, SLOWER * AHEAD))
        return found

    def failed(self) -> Counter[tuple[Key, str]]:
        """Return how often calls failed."""
        return self.asked.failed_calls + self.exits.failed_calls

    def long(self) -> list[LongCall]:
        """Return the long calls, longest first; of a hook and a request the longest one."""
        longest = dict(self.asked.long_calls)
        for key, took in self.exits.long_calls.items():
            longest[key] = max(took, longest.get(key, took))
        return [
            LongCall(exit, hook, self.copy.id_of(seq), round(ns / 1e6, 1), budget)
            for (exit, hook, seq), (ns, budget) in sorted(longest.items(), key=lambda each: -each[1][0])
        ]

    def row(self, name: str) -> dict[str, Any]:
        """Return an exit's row of a listing, both together."""
        one, other = (
            next(each for each in exits.listing() if each["name"] == name)["by_hook"]
            for exits in (self.exits, self.asked)
        )
        hooks: dict[str, Any] = {}
        for hook, own in one.items():
            pairs = ((key, [n, other[hook][key]]) for key, n in own.items())
            hooks[hook] = {key: max(both) if key == "longest_ms" else sum(both) for key, both in pairs}
        return {"name": name, "by_hook": hooks, "calls": sum(each["calls"] for each in hooks.values())}
