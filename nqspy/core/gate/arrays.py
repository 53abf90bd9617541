"""Limit of running indices of an array (``-J 1-100%5``); its owner may change it later."""

from collections.abc import Iterable, Iterator

import numpy as np

from nqspy.core.gate.rule import INFINITE, Claim, Mask, Rule
from nqspy.model.columns import Columns
from nqspy.model.ids import Seq, array_of
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.site import Site

(_REACHED,) = reason_kinds(
    ReasonCode.LIMIT, array_limit_reached="{most:1 index runs|* indices run}, the most of {who} at a time"
)


class ArrayLimit(Rule):
    """Rule that limits the running indices of each array (``%K``), and counts those that run."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._runs: dict[Seq, int] = {}

    @property
    def bound(self) -> bool:
        """True if any array has a limit of running indices."""
        return bool(self._site.limited)

    def add(self, request: Request) -> None:
        """Count an index as running from now on."""
        array = array_of(request.seq)
        if array in self._site.limited and array is not None:
            self._runs[array] = self._runs.get(array, 0) + 1

    def room(self, request: Request) -> float:
        """Return how many more indices may start under the limit of a request's array; infinite: no limit."""
        array, limit = self._limit(request)
        return INFINITE if limit is None else limit - self._runs.get(array, 0)

    def _limit(self, request: Request) -> tuple[Seq, int | None]:
        """Return the array of a request and its limit (None: no limit), as the array has it now: an index
        that is a request of its own keeps the specification with which it left the array."""
        seq = request.seq if request.array is not None else array_of(request.seq)
        if seq is None or seq not in self._site.limited:
            return request.seq, None
        spec = self._site.requests[seq].spec.array
        return seq, None if spec is None else spec.limit

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        """Return the rows of arrays that have reached their limit, and of their indices that wait as requests
        of their own; None: no row."""
        full = [seq for seq in self._runs if self.room(self._site.requests[seq]) < 1]
        if ever or not full:
            return None
        blocked = np.zeros(len(columns), dtype=bool)
        blocked[list(_rows(self._site, full, columns))] = True
        return blocked

    def rows(self, columns: Columns) -> set[int]:
        """Return the rows of a queue that are arrays with a limit of running indices, or their indices."""
        return set(_rows(self._site, self._site.limited, columns)) if self._site.limited else set()

    def claims(self, request: Request) -> Iterable[Claim]:
        array, limit = self._limit(request)
        return () if limit is None else ((("array", array), 1, limit),)

    def refuses(self, request: Request) -> Reason | None:
        """Return a reason if the array of a request has reached its limit; None: one more index may start."""
        if self.room(request) >= 1:
            return None
        array, _ = self._limit(request)
        return _REACHED(self._site.id_of(array), self._runs.get(array, 0))


def _rows(site: Site, arrays: Iterable[Seq], columns: Columns) -> Iterator[int]:
    for array in arrays:
        for seq in (array, *site.members.get(array, ())):
            request = site.requests.get(seq)
            slot = -1 if request is None else request.slot
            if 0 <= slot < len(columns) and columns.request(slot) is request:
                yield slot
