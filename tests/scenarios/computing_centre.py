"""The computing centre of seed 003 as it is shipped (``queues.d/``, ``exits/``), in a simulator's hands."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.harness import Centre, item, moment

from nqspy.engine.virtual.attempts import Run
from nqspy.model import commands as cm
from nqspy.model import events as ev
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Request
from nqspy.sim.night_site import site_of
from nqspy.userexit.site_exits import SiteExits

ROOT = Path(__file__).parents[2]
EVENING = "2026-03-02T20:55:00+01:00"
"""A Monday, five minutes before the night shift."""


class Site(Centre):
    """The shipped site. ``run``: seconds of each request; ``folder``: where its exits lie; ``more``: qmgr
    commands; ``options``: of the simulation."""

    def __init__(
        self,
        run: Callable[[Request], float],
        *,
        at: str = EVENING,
        pes: int = 2,
        more: str = "",
        folder: Path = ROOT / "exits",
        decided: tuple[Any, Any] | None = None,
        **options: Any,
    ) -> None:
        """``decided``: exits and decider, where passes do not run at once."""
        self.exits, options["decider"] = decided or (SiteExits(folder), options.get("decider"))
        assert not self.exits.problems

        def lengths(request: Request) -> Run:
            """It takes the memory it asks for."""
            return Run(wall=round(run(request) * 1000), memory=request.spec.ask.memory or 0)

        super().__init__("", at=at, pes=pes, lengths=lengths, exits=self.exits, **options)
        self.sim.configure(site_of(ROOT, ""))
        self.qmgr(more)

    def list_of(self, department: str, *lines: str) -> list[Seq]:
        """Hands in a department's list for the night, as an operator does."""
        items = tuple(item(f"op queue=night account={department} {line}", self.sim.now) for line in lines)
        ids = self.ask(cm.Submit(items))["ids"]
        return [int(name.partition(".")[0]) for name in ids]


@dataclass
class Measured:
    """What a night's journal says, counted here once more from the bare events."""

    starts: list[Seq]
    group: dict[Seq, str]
    first_empty: Instant
    used: dict[str, float]
    busy: float
    ended: int

    def in_order(self, lists: dict[str, list[Seq]]) -> bool:
        """Whether each list was started in its own order."""
        return all([s for s in self.starts if self.group[s] == name] == seqs for name, seqs in lists.items())

    def deviation(self, shares: dict[str, float]) -> float:
        """Largest difference between a department's part of the CPU time and its share, in points."""
        total, whole = sum(self.used.values()), sum(shares.values())
        return (
            max(abs(self.used.get(name, 0) / total - share / whole) for name, share in shares.items()) * 100
        )


def measure(site: Centre, lists: dict[str, list[Seq]], pes: int) -> Measured:
    """Counts a night: runs are (start, end) of each request; time is that of the events."""
    group = {seq: name for name, seqs in lists.items() for seq in seqs}
    start: dict[Seq, Instant] = {}
    end: dict[Seq, Instant] = {}
    short, last_short, starts = False, Instant(0), []
    for recorded in site.journal.events():
        event, at = recorded.event, recorded.at
        if isinstance(event, ev.Decided):
            last_short = at if short or event.short_of_pes else last_short
            short = event.short_of_pes
        elif isinstance(event, ev.Starting):
            start[event.seq] = at
            starts.append(event.seq)
        elif isinstance(event, ev.Ended):
            end[event.seq] = at
    first = min(start.values())
    first_empty = min(max(start[seq] for seq in seqs) for seqs in lists.values())
    used = dict.fromkeys(lists, 0.0)
    for seq, begun in start.items():
        used[group[seq]] += max(0, min(end[seq], first_empty) - begun)
    held = sum(min(end[seq], last_short) - begun for seq, begun in start.items() if begun < last_short)
    busy = held / (pes * (last_short - first))
    return Measured(starts, group, first_empty, used, busy, len(end))


def lists_for(site: Site, shares: dict[str, int], requests: int, seed: int) -> dict[str, list[Seq]]:
    """Lists in proportion to the shares, so that all last for most of the night."""
    chance, whole = random.Random(seed), sum(shares.values())
    found = {}
    for name, share in shares.items():
        count = max(2, round(requests * share / whole))
        lines = [f"name={name}-{n}-{chance.randint(200, 900)} mem=4mw cpu=1800" for n in range(count)]
        found[name] = site.list_of(name, *lines)
    return found


def seconds_in_name(request: Request) -> float:
    """The length that a request's name ends with."""
    return float(request.name.rpartition("-")[2])


def until_all_ended(site: Site) -> Instant:
    """Lets the night pass, and the morning if it must be."""
    site.until("2026-03-03T06:00:00+01:00")
    while site.site.requests:
        site.later(minutes=10)
        assert site.sim.now < moment("2026-03-03T20:00:00+01:00"), "it never ends"
    return site.sim.now
