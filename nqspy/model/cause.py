"""Cause of an event, with its type: a name alone could mean a person or a feature."""

from typing import Any, Literal

from msgspec import Struct

Kind = Literal["operator", "owner", "shift", "probe", "feature", "exit", "system"]

_NAMED = ("shift", "probe")
"""Kinds that are written before the name, for people."""


class Cause(Struct, frozen=True):
    """Person or part that caused an event. ``kind`` tells what ``name`` names: a person (``operator``,
    ``owner``), a shift, a probe, a feature of the scheduler, a user exit, or a part of nqspy (``system``)."""

    kind: Kind
    name: str

    @property
    def is_person(self) -> bool:
        """True if a person caused it with a command."""
        return self.kind in ("operator", "owner")

    @property
    def is_feature(self) -> bool:
        """True if a scheduling feature decided it."""
        return self.kind == "feature"

    @property
    def code(self) -> str:
        """`ReasonCode` of a request that this cause has suspended, as text."""
        return _CODES.get(self.kind, "SUSPENDED")

    def __str__(self) -> str:
        """Return the cause as people read it: ``shift day``, ``probe nfs``, else the name."""
        return f"{self.kind} {self.name}" if self.kind in _NAMED else self.name


_CODES = {"shift": "SHIFT", "probe": "RESOURCE"}

SCHEDULER = Cause("system", "scheduler")
"""Cause of what a pass decides by its own rules."""
EXECUTOR = Cause("system", "hands")
"""Cause of what the executor, which runs the processes, does."""

_KNOWN = {str(each): each for each in (SCHEDULER, EXECUTOR, Cause("system", "system"))}


def declare_feature(name: str) -> Cause:
    """Return the cause for decisions of a scheduling feature, and register its name for `cause_of`."""
    cause = _KNOWN[name] = Cause("feature", name)
    return cause


def cause_of(text: str) -> Cause:
    """Return the cause that an old event's text names: a shift, probe, part or feature, else an operator."""
    kind, _, name = text.partition(" ")
    for each in _NAMED:
        if name and kind == each:
            return Cause(each, name)  # type: ignore[arg-type]
    return _KNOWN.get(text) or Cause("operator", text)


class Caused(Struct, frozen=True, kw_only=True):
    """Base of events that have a cause. Events of old journals have no ``cause``, but its name as text."""

    cause: Cause | None = None

    def because(self) -> Cause:
        """Return the cause of the event; in an old event, the cause that ``by`` or ``who`` names."""
        event: Any = self
        return self.cause or cause_of(event.by if hasattr(event, "by") else event.who)
