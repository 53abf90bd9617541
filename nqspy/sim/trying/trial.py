"""Two looks at a copy of a site, under the exits in force and under those on trial, in a process of its own
that has no rights."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from nqspy.core.no_exits import NoExits
from nqspy.decider import messages, sandbox
from nqspy.decider.backoff import named
from nqspy.decider.process import WorkerPipes, WorkerProcess
from nqspy.decider.worker import part_of_patience
from nqspy.engine.look_ahead import MOST
from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Seq
from nqspy.model.machine import ExitSettings
from nqspy.model.site import Site
from nqspy.model.twin import beyond, twin_of
from nqspy.ports import Exits
from nqspy.sim.trying.copied import NotTried, SiteCopy
from nqspy.sim.trying.looks import Answers, ForeseenStarts, asked, foreseen, lines_of
from nqspy.store.loading import no_collector
from nqspy.userexit.call_stats import CallWatch
from nqspy.userexit.guard import Guard
from nqspy.userexit.loader import Source
from nqspy.userexit.seats import Hook
from nqspy.userexit.site_exits import SiteExits

T = TypeVar("T")

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


Key = tuple[str, str, Seq | None, str]


class FailedCall(Struct, frozen=True):
    """Calls that failed alike; ``seq`` None: about no request; ``times``: how often."""

    exit: str
    hook: str
    seq: Seq | None
    text: str
    times: int = 1

    @property
    def key(self) -> Key:
        """Fields that are alike in calls that failed alike."""
        return self.exit, self.hook, self.seq, self.text


class LongCall(Struct, frozen=True):
    """The longest call of a hook about one request. Times in ms."""

    exit: str
    hook: str
    seq: Seq | None
    ms: float
    budget: int


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
    """Exits of these files at work on a copy of a site."""

    def __init__(self, sources: Iterable[Source], watch: CallWatch) -> None:
        self._failed_calls: dict[Key, int] = {}
        self._long: dict[tuple[str, str, Seq | None], tuple[int, int]] = {}
        super().__init__(
            Path("exits"),
            sources=sorted(sources, key=lambda source: source.path.name),
            watch=watch,
            guard=lambda: _Stopwatch(self._took),
        )
        self._calls.heard = lambda hook, seq, text: self._keep_failure(
            hook.exit.module.name, hook.name, seq, text
        )

    def failures(self) -> tuple[ExitFailure, ...]:
        """Return failures as `SiteExits` does; those of settings are kept besides."""
        found = super().failures()
        for each in found:
            if each.text.startswith("setting "):
                self._keep_failure(each.exit, "", None, each.text)
        return found

    def _keep_failure(self, exit: str, hook: str, seq: Seq | None, text: str) -> None:
        key = (exit, hook, seq, text)
        if key in self._failed_calls or len(self._failed_calls) < SHOWN:
            self._failed_calls[key] = self._failed_calls.get(key, 0) + 1

    def _took(self, hook: Hook, args: tuple[Any, ...], ns: int) -> None:
        budget = hook.exit.budget
        if ns > LONG * budget * 1_000_000:
            key = (hook.exit.module.name, hook.name, getattr(args[0], "seq", None))
            if key in self._long or len(self._long) < SHOWN:
                self._long[key] = (max(ns, self._long.get(key, (0, 0))[0]), budget)

    # ------------------------------------------------------------ what became of it

    def failed_calls(self) -> list[FailedCall]:
        """Which calls failed, the first of them first."""
        return [FailedCall(*key, times) for key, times in self._failed_calls.items()]

    def long_calls(self) -> list[LongCall]:
        """Which took long, longest first."""
        found = [LongCall(*key, round(ns / 1e6, 1), budget) for key, (ns, budget) in self._long.items()]
        return sorted(found, key=lambda call: -call.ms)


class OneLook(Struct):
    """Answers of the exits about each request, and what becomes of these."""

    said: Answers = field(default_factory=Answers)
    seen: ForeseenStarts = field(default_factory=ForeseenStarts)


class Tried(Struct):
    """Result of a trial. ``problems``: why the file cannot be loaded, the rest is empty then; ``row``:
    figures of its calls (``name by_hook calls``, as `userexit.seats.entry` has them); ``left``: how many of
    those that wait were not looked at."""

    problems: list[str] = field(default_factory=list)
    was: OneLook = field(default_factory=OneLook)
    would: OneLook = field(default_factory=OneLook)
    row: dict[str, Any] = field(default_factory=dict)
    failed: list[FailedCall] = field(default_factory=list)
    long: list[LongCall] = field(default_factory=list)
    left: int = 0


def try_out(copy: SiteCopy, candidate: Source) -> Tried:
    """Tries a file in the place of a loaded one of its name, else besides. None of its code runs in this
    process. Raises NqspyError."""

    def work(pipes: WorkerPipes) -> None:
        logging.getLogger("nqspy.userexit").setLevel(logging.CRITICAL)  # what failed is told in the answer
        answer = msgspec.msgpack.encode(_Trial(copy, candidate, pipes).tried())
        pipes.answer(messages.ExitsTried(0, answer))

    return in_a_sandbox(copy.site, work, Tried)


def in_a_sandbox(site: Site, work: Callable[[WorkerPipes], None], kind: type[T]) -> T:
    """Return the answer of ``work`` by `messages.ExitsTried`, decoded strictly. Raises NqspyError."""
    heard: list[Any] = []
    try:
        box = sandbox.Sandbox(site.settings.decider.memory, True, 64, sandbox.user())
        process = WorkerProcess("exits try", work, box, lambda _, what: heard.append(what))
    except OSError as error:
        raise NotTried(f"exits cannot be tried here: {error}") from None
    ended = _waited_for(process)
    answer = next((each for each in heard if isinstance(each, messages.ExitsTried)), None)
    if answer is None:
        raise NotTried(_why(process, site, ended))
    try:
        return msgspec.msgpack.decode(answer.body, type=kind)
    except msgspec.MsgspecError as error:
        raise NotTried(f"the process of the exits answered nonsense: {error}") from None


def _waited_for(process: WorkerProcess) -> bool:
    """Return True if it has ended by itself."""
    try:
        process.loaded.result(PATIENCE)
    except TimeoutError:
        process.kill(f"it did not answer within {PATIENCE:.0f} s")
        process.loaded.result()
        return False
    return True


def _why(process: WorkerProcess, site: Site, ended: bool) -> str:
    call = named(process.heartbeat.read(), site)
    how = process.how
    if call is None or not call.exit:
        return f"the process of the exits: {how}"
    about = f" about {site.id_of(call.seq)}" if call.seq is not None else ""
    did = "ended the process" if ended else "hangs"
    return f"exit {call.exit}: {call.hook}{about} {did}: {how}"


class _Trial(Struct, frozen=True):
    """In the process without rights."""

    copy: SiteCopy
    candidate: Source
    pipes: WorkerPipes

    def tried(self) -> Tried:
        copy, name = self.copy, self.candidate.path.stem
        others = [each for each in copy.loaded if each.path.stem != name]
        with no_collector():
            on_trial = _Look(copy, (*others, self.candidate), self.pipes, name)
            if not on_trial.knows(name):
                path = str(Path(*self.candidate.path.parts[-2:]))
                return Tried([each for each in on_trial.exits.problems if each.startswith(path)])
            before = _Look(copy, copy.loaded, self.pipes)
            was, would = before.look(), on_trial.look()
        known = {each.key for each in before.failed()}
        failed = [each for each in on_trial.failed() if each.exit == name or each.key not in known]
        failed += [FailedCall(name, "", None, text) for text in on_trial.unfit()]
        return Tried([], was, would, on_trial.row(name), failed, on_trial.long(), len(before.left))


class _Look:
    """A look. The exits that are asked about each request are others than those under which time passes:
    what they fail on there shall not change what becomes of it."""

    def __init__(self, copy: SiteCopy, sources: Iterable[Source], pipes: WorkerPipes, name: str = "") -> None:
        self.copy, self.left = copy, beyond(copy.site, MOST)
        self.twin = twin_of(copy.site, self.left)
        known = self.twin.settings.exits.get(name)
        if known is not None and not known.enabled:  # it is tried as it would be once it is on
            self.twin.settings.exits[name] = ExitSettings(name, True, known.budget, dict(known.values))
        self.exits, self.asked = (TriedExits(sources, pipes.heartbeat) for _ in range(2))

    def knows(self, name: str) -> bool:
        """Return True if that exit could be loaded."""
        return any(each["name"] == name for each in self.exits.listing())

    def look(self) -> OneLook:
        """Look, and return the result."""
        spent = part_of_patience(ASKING, SLOWER * ASKING)
        exits: Exits = self.exits if self.exits.listing() else NoExits()
        lines = lines_of(self.copy, self.twin, exits)
        answers = asked(self.copy, self.twin, self.asked, lines, spent)
        ahead = part_of_patience(AHEAD, SLOWER * AHEAD)
        return OneLook(answers, foreseen(self.copy, self.twin, exits, lines, ahead))

    def failed(self) -> list[FailedCall]:
        """Return the calls that failed."""
        found: dict[Key, FailedCall] = {}
        for each in (*self.asked.failed_calls(), *self.exits.failed_calls()):
            before = found.get(each.key)
            found[each.key] = each if before is None else replace(each, times=each.times + before.times)
        return list(found.values())

    def long(self) -> list[LongCall]:
        """Which took long, longest first; of a hook and a request the longest one."""
        both = sorted((*self.asked.long_calls(), *self.exits.long_calls()), key=lambda call: call.ms)
        longest = {(each.exit, each.hook, each.seq): each for each in both}
        return sorted(longest.values(), key=lambda call: -call.ms)

    def unfit(self) -> list[str]:
        """Settings in force that the files would not take."""
        return self.exits.unfit(self.copy.site.settings.exits)

    def row(self, name: str) -> dict[str, Any]:
        """Return an exit's row of a listing, both together."""
        one, other = (
            next(each for each in exits.listing() if each["name"] == name)
            for exits in (self.exits, self.asked)
        )
        hooks = {}
        for hook, figures in one["by_hook"].items():
            more = other["by_hook"][hook]
            longest = max(figures["longest_ms"], more["longest_ms"])
            hooks[hook] = {key: figures[key] + more[key] for key in figures} | {"longest_ms": longest}
        return {"name": name, "by_hook": hooks, "calls": sum(each["calls"] for each in hooks.values())}
