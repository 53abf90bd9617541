"""Exits on trial, watched: which of their calls failed, and which took long."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from nqspy.model.actions import ExitFailure
from nqspy.model.ids import Seq
from nqspy.userexit.call_stats import CallWatch
from nqspy.userexit.guard import Guard
from nqspy.userexit.loader import Source
from nqspy.userexit.seats import Hook
from nqspy.userexit.site_exits import SiteExits

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
        """What is alike in calls that failed alike."""
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
        """What the function returns."""
        hook = getattr(function, "__self__", None)
        try:
            return super().call(function, args, budget, wall)
        finally:
            if isinstance(hook, Hook):
                self._tell(hook, args[0], self.took)


class TriedExits(SiteExits):
    """These files at work on a copy of a site."""

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
        """As `SiteExits`; those of settings are kept besides."""
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
