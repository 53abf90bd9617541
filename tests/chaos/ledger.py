"""What clients were told, and nothing else: promises to which the site is held afterwards."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.jobs import Job

from nqspy.model.ids import Seq, request_named


@dataclass(slots=True)
class Bar:
    """Between these lengths of the marks' file the request must not begin (``until`` None: for ever)."""

    why: str
    since: int
    until: int | None = None


@dataclass(slots=True)
class Promise:
    """One request as its client knows it.

    ``standing``: acknowledged, refused (it must not exist) or unknown (no answer came, or one after a
    repetition). ``line``: the list it is in, and its place there. ``after``: what it waits for. ``index``:
    which of its array it is. ``bars``: when it must not begin. ``asked``: what was asked of it, answered or
    not. ``wish``: the application that it is, ``inner``: those that it calls.
    """

    job: Job
    owner: int
    standing: str = "unknown"
    id: str = ""
    line: tuple[str, int] | None = None
    after: tuple[str, str] | None = None
    index: int | None = None
    bars: list[Bar] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    wish: Any = None
    inner: list[Any] = field(default_factory=list)

    @property
    def seq(self) -> Seq | None:
        return request_named(self.id, {self.id.partition(".")[2]})


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault: what, from when to when (seconds since the beginning), and between which lengths of the
    marks."""

    what: str
    begun: float
    over: float
    since: int
    until: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was not kept; ``token`` empty: it concerns the whole site."""

    what: str
    token: str
    text: str


class Ledger:
    """All promises, faults and counts of one run. Clients and faults write from their threads."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.promises: dict[str, Promise] = {}
        self.strikes: list[Strike] = []
        self.counts: Counter[str] = Counter()
        self.violations: list[Violation] = []
        self.stories: dict[str, str] = {}
        self.begun = time.monotonic()
        self._guard = threading.Lock()

    def clock(self) -> float:
        return round(time.monotonic() - self.begun, 3)

    def length(self) -> int:
        """Length of the marks' file now."""
        return (self.work / "marks").stat().st_size

    def enter(self, promise: Promise) -> None:
        with self._guard:
            self.promises[promise.job.token] = promise

    def tell(self, promise: Promise, text: str) -> None:
        """Something was said to, or by, the client of a request."""
        promise.told.append(f"{self.clock():8.3f}  [{self.length()}]  {text}")

    def count(self, what: str, number: int = 1) -> None:
        with self._guard:
            self.counts[what] += number

    def struck(self, what: str, begun: float, since: int, text: str = "") -> None:
        strike = Strike(what, begun, self.clock(), since, self.length(), text)
        with self._guard:
            self.strikes.append(strike)
            self.counts[f"fault {what}"] += 1

    @contextmanager
    def striking(self, what: str, text: str = "") -> Iterator[None]:
        """A fault strikes meanwhile; none has where this raises."""
        begun, since = self.clock(), self.length()
        yield
        self.struck(what, begun, since, text)

    def broken(self, what: str, token: str, text: str) -> None:
        with self._guard:
            self.violations.append(Violation(what, token, text))

    def story(self, token: str, events: list[str], marks: list[str]) -> str:
        """Everything about one request and the faults around it."""
        promise = self.promises.get(token)
        told = promise.told if promise else []
        lines = [f"  {token} ({promise.job.kind if promise else 'nobody submitted it'})"]
        for head, each in (("told", told), ("event", events), ("mark", marks)):
            lines += [f"    {head:<6} {line}" for line in each]
        times = [float(line.split()[0]) for line in told] or [0.0]
        near = [s for s in self.strikes if s.over >= min(times) - 2 and s.begun <= max(times) + 20]
        lines += [f"    fault  {s.begun:8.3f}-{s.over:.3f}  [{s.since}-{s.until}]  {s.what} {s.text}"
                  for s in near[:30]]  # fmt: skip
        return "\n".join(lines)

    def report(self, seed: int) -> str:
        """Verdict, all counts, and the first stories of what went wrong."""
        kinds = Counter(each.what for each in self.violations)
        verdict = f"{len(self.violations)} BROKEN" if kinds else "nothing lost, nothing run twice"
        lines = [f"seed {seed}: {verdict}; {self.counts['seconds']} s"]
        lines += [f"  {number:>7} {name}" for name, number in sorted(self.counts.items())]
        lines += [f"  {number:>7} BROKEN: {what}" for what, number in kinds.items()]
        for what in kinds:
            for each in [each for each in self.violations if each.what == what][:5]:
                lines.append(f"! {what} {each.token}: {each.text}")
                lines += [self.stories[each.token]] if each.token in self.stories else []
        return "\n".join(lines)
