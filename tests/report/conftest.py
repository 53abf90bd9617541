"""A diary: journals written by hand, event by event, with seconds from the evening's 21:00."""

from collections.abc import Callable
from typing import Any

import pytest
from report.pbs_book import house

from nqspy.engine.lifecycle import apply
from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.model.machine import Found
from nqspy.model.people import Group
from nqspy.model.queues import Queue
from nqspy.model.requests import Ask, Spec, Used
from nqspy.model.site import Site
from nqspy.report.night import Facts, night_bounds, night_report
from nqspy.report.time_text import zone_of

PARIS = zone_of("Europe/Paris")
NINE = 1_772_481_600_000
"""2026-03-02 21:00 in Paris (UTC+1), ms."""


class Diary:
    """Writes events and applies them to a site, like the engine."""

    def __init__(self, pes: int = 2, cpus: int | None = None, **shares: int) -> None:
        self.site = Site()
        self.site.host, self.site.zone = "ymp", "Europe/Paris"
        self.site.settings.machine.pes = pes
        self.site.found = Found(tuple(range(pes if cpus is None else cpus)))
        self.site.settings.queues["night"] = Queue("night", enabled=True, started=True)
        self.site.settings.queues["day"] = Queue("day", enabled=True, started=True)
        for name, share in shares.items():
            self.site.settings.groups[name] = Group(name, share=share)
        self.events: list[ev.Recorded] = []

    def at(self, second: float) -> Instant:
        return Instant(NINE + round(second * 1000))

    def add(self, second: float, event: ev.Event) -> ev.Recorded:
        recorded = ev.Recorded(len(self.events) + 1, self.at(second), event)
        self.events.append(recorded)
        apply(self.site, recorded)
        return recorded

    def submit(self, second: float, group: str, owner: str = "anne", queue: str = "night",
               state: Any = "queued", eligible: float | None = None, name: str = "job",
               after: Any = (), **ask: int) -> int:  # fmt: skip
        seq = self.site.next_seq
        spec = Spec(
            owner, 1000, name, queue, "s", "e", "/home/anne/w", group=group, ask=Ask(**ask),
            eligible=None if eligible is None else self.at(eligible), after=after,
        )  # fmt: skip
        self.add(second, ev.Submitted(seq, spec, queue, "held" if after else state))
        return seq

    def night(self, second: float = 0.0) -> None:
        self.add(second, ev.ShiftChanged("night", "evening", self.at(second)))

    def morning(self, second: float = 9 * 3600.0) -> None:
        self.add(second, ev.ShiftChanged("report", "night", self.at(second)))

    def decide(self, second: float, *starts: int, short: bool = False, wait: Any = (),
               started: float | None = None, samples: Any = ()) -> None:  # fmt: skip
        """Add a pass that starts these; the executor reports so at ``started`` (else at once)."""
        self.add(second, ev.Decided(self.site.n, tuple(samples), (), short, tuple(wait)))
        for seq in starts:
            request = self.site.requests[seq]
            pes = tuple(range(request.spec.ask.pes))
            self.add(second, ev.Starting(seq, request.attempts + 1, pes))
        for seq in starts:
            request = self.site.requests[seq]
            self.add(second if started is None else started, ev.Started(seq, request.attempts, request.pes))

    def end(self, second: float, seq: int, cpu: float, status: int = 0, reason: Any = "exit") -> None:
        request = self.site.requests[seq]
        used = Used(round(cpu * 1000), 0, 4096)
        self.add(second, ev.Ended(seq, request.attempts, reason, status, None, used, "", "/o", "/e"))

    def report(self, now: float = 9 * 3600, day: Any = None, **facts: Any) -> dict[str, Any]:
        """Return the night's report as of an instant."""
        bounds = night_bounds(self.events, PARIS, self.at(now), day)
        return night_report(self.events, self.site, bounds, self.at(now), Facts(**facts))


@pytest.fixture
def diary() -> type[Diary]:
    return Diary


@pytest.fixture
def book(diary: type[Diary]) -> Diary:
    """Return a site with a running, a waiting and a held request."""
    return house(diary)


@pytest.fixture
def evening() -> Callable[..., tuple[Any, ...]]:
    """Return a function: ``evening(2, pes=4)`` makes a diary in which d1 submitted two requests and the night
    has begun, and these requests."""

    def begun(count: int, **site: int) -> tuple[Any, ...]:
        book = Diary(**{"pes": 1, "d1": 1} | site)
        seqs = [book.submit(-60, "d1") for _ in range(count)]
        book.night()
        return book, *seqs

    return begun
