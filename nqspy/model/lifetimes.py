"""How long requests ran that have ended, by whose they were and what they were called: from that those like
them are expected to run as long. No part of the state: a start fills it from what ended last."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nqspy.model.requests import Ask, EndReason, Request

KEPT = 16
"""Ends that are remembered of those that are alike."""
KINDS = 4_000
"""So many kinds of requests are remembered; of these who ended last stay."""
ENOUGH = 3
"""Of fewer the next wider kind is asked."""

_LIVED: frozenset[EndReason] = frozenset(
    ("exit", "cpu_limit", "wall_limit", "memory_limit", "file_limit", "process_limit")
)
"""Ends that say how long it runs; who was deleted, killed or lost might have run on."""

Kind = tuple[object, ...]


class Lifetime(NamedTuple):
    """One that ended: its wall time (ms), the queue it ran in and what it had asked for."""

    wall: int
    queue: str
    ask: Ask


@dataclass(slots=True)
class Lifetimes:
    """The last ends of each kind: of one owner, name and width; one owner and name; one owner; of all."""

    by_kind: dict[Kind, tuple[Lifetime, ...]] = field(default_factory=dict)

    def note(self, request: Request, reason: EndReason, wall: int) -> None:
        """One has ended after so much wall time, ms."""
        if reason not in _LIVED:
            return
        lifetime = Lifetime(wall, request.queue, request.spec.ask)
        for kind in _kinds(request):
            before = self.by_kind.pop(kind, ())
            self.by_kind[kind] = (*before[-KEPT + 1 :], lifetime)
        while len(self.by_kind) > KINDS:
            del self.by_kind[next(iter(self.by_kind))]

    def like(self, request: Request) -> Sequence[Lifetime]:
        """The last ends of those most like it of which enough are known; none where nobody has ended."""
        found: Sequence[Lifetime] = ()
        for kind in _kinds(request):
            found = self.by_kind.get(kind, ())
            if len(found) >= ENOUGH:
                break
        return found

    def latest(self) -> Sequence[Lifetime]:
        """The last ends of all."""
        return self.by_kind.get((), ())

    def copy(self) -> "Lifetimes":
        """A copy of its own."""
        return Lifetimes(dict(self.by_kind))


def _kinds(request: Request) -> Iterator[Kind]:
    """From the narrowest to all."""
    owner, name = request.spec.owner, request.spec.name
    yield owner, name, request.spec.ask.pes
    yield owner, name
    yield (owner,)
    yield ()
