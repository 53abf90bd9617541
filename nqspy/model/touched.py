"""What changed since the last commit: not part of the state."""

from dataclasses import dataclass, field
from typing import Any

from nqspy.model.ids import Seq
from nqspy.model.lifetimes import Key
from nqspy.model.requests import Request


@dataclass(slots=True)
class Touched:
    """The rows that the store has to write at the next commit."""

    requests: set[Seq] = field(default_factory=set)
    ended: dict[Seq, tuple[Request, Any]] = field(default_factory=dict)
    settings: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    lifetimes: set[Key] = field(default_factory=set)
    state: bool = False

    def clear(self) -> None:
        """Forget them, after the commit."""
        self.requests.clear()
        self.ended.clear()
        self.settings.clear()
        self.accounts.clear()
        self.lifetimes.clear()
        self.state = False
