"""What was written of requests that wait, kept from one list to the next: programs ask for the same list over
and over, and most of those in it have not changed."""

from collections.abc import Hashable
from itertools import count
from typing import NamedTuple

from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import Spec, State
from nqspy.report.pbs_attributes import Subject, asked_for

MOST = 20_000
"""Requests that are remembered of one form; some 700 bytes each."""
_FORMS = 2


class _Known(NamedTuple):
    spec: Spec
    standing: tuple[str, State, Instant, str]
    asked: int
    fields: bytes


class WrittenForm:
    """Fields of requests that wait, as one form writes them, while nothing that they are made of changes.
    ``kept``: by request."""

    def __init__(self) -> None:
        self.kept: dict[Seq, _Known] = {}
        self._asked: dict[Hashable, int] = {}
        self._numbers = count()

    def of(self, subject: Subject) -> tuple[int, bytes] | None:
        """What `keep` answered, and was told of it, if that holds still."""
        known = self.kept.get(subject.request.seq)
        if known is None or known.spec is not subject.request.spec or known.standing != _standing(subject):
            return None
        return known.asked, known.fields

    def keep(self, subject: Subject, fields: bytes | None) -> int:
        """Remembers its fields (None: they cannot be kept); answers a number that requests share which ask
        for the same, and no others ever."""
        if len(self.kept) >= MOST or len(self._asked) >= MOST:
            self.kept.clear()
            self._asked.clear()
        request, asked_for_it = subject.request, asked_for(subject.request.spec)
        asked = self._asked.get(asked_for_it)
        if asked is None:
            asked = self._asked[asked_for_it] = next(self._numbers)
        if fields is not None:
            self.kept[request.seq] = _Known(request.spec, _standing(subject), asked, fields)
        return asked


class Written:
    """What is remembered of the forms that were asked for last."""

    def __init__(self) -> None:
        self._forms: dict[Hashable, WrittenForm] = {}

    def form(self, name: Hashable) -> WrittenForm:
        """Of one form; ``name``: all that the writing depends on besides the requests."""
        if name not in self._forms and len(self._forms) >= _FORMS:
            self._forms.clear()
        return self._forms.setdefault(name, WrittenForm())


def _standing(subject: Subject) -> tuple[str, State, Instant, str]:
    """What fields of a request that waits are made of, besides its spec."""
    request = subject.request
    return request.queue, request.state, request.date_in_queue, subject.comment
