"""Fixtures of a folder of exits in a temporary home, and a small site that the exits read."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from nqspy.model.machine import ExitSettings
from nqspy.model.queues import Queue
from nqspy.model.site import Site
from nqspy.ports import Answer
from nqspy.userexit.site_exits import SiteExits

HEAD = "from nqspy.userexit import *\nfrom nqspy.userexit import userexit\n"


@dataclass
class Req:
    """A request as exits see it."""

    seq: int
    owner: str = "anne"
    name: str = "job"
    group: str = "d1"
    queue: str = "night"
    memory: int | None = 8
    name_given: bool = True
    date_in_queue: int = 0
    pes: int = 1
    state: str = "queued"
    submitted: int = 0
    cpu: int | None = None
    wall: int | None = None
    attributes: tuple[str, ...] = ()
    array: str | None = None
    index: int | None = None
    count: int = 1

    @property
    def id(self) -> str:
        return f"{self.seq}.host"


class Chosen(list[Req]):
    """Selected requests, by date in queue."""

    def seqs(self) -> tuple[int, ...]:
        return tuple(r.seq for r in self)

    reach = seqs


@dataclass
class House:
    """A pass over a few requests: waiting, running and offered ones."""

    now: int = 1_000_000
    shift: str | None = "night"
    queued: list[Req] = field(default_factory=list)
    started: list[Req] = field(default_factory=list)
    offered: list[tuple[Req, Answer | None]] = field(default_factory=list)
    queues: dict[str, Queue] = field(default_factory=lambda: {"night": Queue("night"), "day": Queue("day")})
    stock: dict[tuple[str | None, str], float] = field(default_factory=dict)

    def queue(self, name: str) -> Queue:
        return self.queues[name]

    def waiting(self, **asked: Any) -> Chosen:
        return Chosen(sorted(fitting(self.queued, asked), key=lambda r: (r.date_in_queue, r.seq)))

    def running(self, **asked: Any) -> list[Req]:
        return fitting(self.started, asked)

    def ahead(self, request: Req) -> list[tuple[Req, Answer | None]]:
        return [pair for pair in self.offered if pair[0].queue == request.queue]

    def stock_shrpri(self, owner: str | None, group: str) -> float:
        return self.stock.get((owner, group), 0.0)

    def offer(self, exits: SiteExits, request: Req) -> Answer | None:
        """Offer a candidate as a pass does, and start it unless it is refused; return the answer."""
        answer = exits.jobselect(request, self)
        self.offered.append((request, answer))
        if answer is None or answer.verdict == "force":
            self.queued = [r for r in self.queued if r is not request]
            self.started.append(request)
        return answer


def fitting(requests: list[Req], asked: dict[str, Any]) -> list[Req]:
    wanted = {key: value for key, value in asked.items() if value is not None}
    return [r for r in requests if all(getattr(r, key) == value for key, value in wanted.items())]


@pytest.fixture
def req() -> type[Req]:
    return Req


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """put("a", text): write the file ``exits/a.py``, the usual import above the text; return its path."""
    folder = tmp_path / "exits"
    folder.mkdir(mode=0o755)

    def write(name: str, text: str, head: str = HEAD) -> Path:
        path = folder / f"{name}.py"
        path.write_text(head + textwrap.dedent(text))
        path.chmod(0o644)
        return path

    return write


@pytest.fixture
def load(tmp_path: Path) -> Callable[[], SiteExits]:
    """Return a function that loads the exits of the folder, all of which must be valid."""

    def loaded() -> SiteExits:
        exits = SiteExits(tmp_path / "exits")
        assert exits.problems == []
        return exits

    return loaded


@pytest.fixture
def exits_of(put: Callable[..., Path], load: Callable[[], SiteExits]) -> Callable[..., SiteExits]:
    """exits_of(text, b=text): return the exits of the file a.py, and of others."""

    def made(text: str, **others: str) -> SiteExits:
        for name, content in {"a": text, **others}.items():
            put(name, content)
        return load()

    return made


@pytest.fixture
def a_pass(site: Site) -> Callable[..., None]:
    """a_pass(exits, a=ExitSettings(...)): begin a pass with these settings of exits."""

    def begin(exits: SiteExits, **known: ExitSettings) -> None:
        site.settings.exits.update(known)
        exits.begin(site)

    return begin
