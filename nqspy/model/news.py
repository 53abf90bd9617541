"""What changed: of the requests since somebody last looked, for what is kept from pass to pass and rests on
them; of the rows since the last commit.

Not part of the state: it begins empty, and who comes too late looks at everything anew.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from nqspy.model.ids import Seq
from nqspy.model.lifetimes import Key
from nqspy.model.requests import Request

KEPT = 4_096
"""So many changes are kept at least for who looks next."""

Stir = tuple[Seq, str, str, str, str]
"""A request that changed: its number, queue, owner, group and name as they were then."""


@dataclass(slots=True)
class News:
    """``count`` changes of requests in all, the last of them in ``latest``; ``general`` counts what changed
    otherwise (settings, shifts, the machine)."""

    count: int = 0
    general: int = 0
    latest: deque[Stir] = field(default_factory=lambda: deque(maxlen=KEPT))

    def note(self, stir: Stir) -> None:
        """A request came, went or changed."""
        self.count += 1
        self.latest.append(stir)

    def since(self, count: int) -> list[Stir] | None:
        """The changes after the first ``count``; None where they are not all known any more."""
        missed = self.count - count
        if not 0 <= missed <= len(self.latest):
            return None
        return list(islice(reversed(self.latest), missed))[::-1]


@dataclass(slots=True)
class Touched:
    """What changed since the last commit: the rows that the store has to write."""

    requests: set[Seq] = field(default_factory=set)
    ended: dict[Seq, tuple[Request, Any]] = field(default_factory=dict)
    settings: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    lifetimes: set[Key] = field(default_factory=set)
    state: bool = False

    def clear(self) -> None:
        """Forgets it, after the commit."""
        self.requests.clear()
        self.ended.clear()
        self.settings.clear()
        self.accounts.clear()
        self.lifetimes.clear()
        self.state = False
