"""What can go wrong, as typed exceptions: each carries one clear line for a person."""

from collections.abc import Iterable, Mapping
from typing import Any

from nqspy.model.refusals import REFUSALS


class NqspyError(Exception):
    """Base of all errors of ours; its text is one line that says what is wrong and what would be right."""


class Refusal(NqspyError):
    """A command that is well formed but may not be done (no such queue, no right, above a limit).

    ``kind`` is its name in the catalogue (`refusals`), the values are those that its sentence names; the
    sentence is made when it is asked for. ``code`` is a stable word for programs; ``status`` the exit status
    of the command line: the kind's, or those of the refusal that ``said`` is.
    """

    def __init__(self, kind: str, **values: Any) -> None:
        super().__init__(kind)
        self.kind, self.values = kind, values
        said = values.get("said")
        origin = said if isinstance(said, Refusal) else REFUSALS[kind]
        self.code: str = origin.code
        self.status: int = origin.status

    def __str__(self) -> str:
        return REFUSALS[self.kind].sentence.format_map(self.values)

    def as_told(self) -> dict[str, Any]:
        """What programs are told of it."""
        return {"text": str(self), "code": self.code, "status": self.status}

    @classmethod
    def told(cls, data: Mapping[str, Any]) -> "Refusal":
        """One that a daemon told: its text, code and status; of what kind it was is not known here."""
        refusal = cls("refused", said=data["text"])
        refusal.code, refusal.status = data["code"], data["status"]
        return refusal


def listed(names: Iterable[str]) -> str:
    """What there is, as a sentence lists it: ``a, b, c``, or ``none``."""
    return ", ".join(names) or "none"


def as_refusal(error: NqspyError) -> Refusal:
    """What whoever asked is told of an error: itself, or that the command was not done."""
    return error if isinstance(error, Refusal) else Refusal("not_done", said=error)


class BadValue(NqspyError):
    """A value that cannot be read (size, time, count, name); the text names the value and what is
    expected."""


class Unreachable(NqspyError):
    """No daemon answers in that home, or the connection broke before the answer came."""


class BrokenSite(NqspyError):
    """An invariant of the site does not hold: a bug of ours, never a user's fault."""
