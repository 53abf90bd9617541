"""Who waits for an answer: of the engine, or one that is made in slices."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nqspy.answers.later import Later
from nqspy.rpc import server as rpc


@dataclass(frozen=True, slots=True)
class Pending:
    """Who waits for a reply of the engine, and in which form."""

    handle: rpc.Handle
    form: str | None


@dataclass(slots=True)
class Slow:
    """An answer that is made in slices, so that it never stalls the engine.

    ``key``: what was asked by whom, where it is about no single request: long lists are made one at a time,
    and whoever asks for one that is not begun yet gets the same (``others``).
    """

    asked: rpc.Asked
    slices: Iterator[bytes | Later | None]
    key: tuple[Any, ...] | None = None
    begun: bool = False
    others: list[rpc.Asked] = dataclasses.field(default_factory=list)

    @property
    def lasting(self) -> bool:
        """Whether it is made to its end whoever waits: a script carries something out."""
        return bool(self.asked.message["cmd"] == "qmgr")

    def gone(self) -> bool:
        """Whether nobody waits for it any more."""
        return all(asked.handle.gone for asked in (self.asked, *self.others))
