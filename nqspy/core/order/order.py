"""An order: a score for each row of a queue, higher first. Equal scores go by date in queue."""

from abc import ABC, abstractmethod
from typing import ClassVar

from nqspy.core.draft import Draft
from nqspy.model.columns import Columns, Floats
from nqspy.model.queues import Queue


class CandidateOrder(ABC):
    """The order of one queue in one pass.

    ``word``: its word in the settings, and what it ``means``. ``step``: two scores differ by less than half
    of it. ``shared``: share values are added to the scores, times this weight.
    """

    word: ClassVar[str]
    means: ClassVar[str]
    step: float = 4.0
    shared: int = 0

    def __init__(self, draft: Draft, queue: Queue, columns: Columns) -> None:
        self._draft, self._queue, self._columns = draft, queue, columns

    @abstractmethod
    def score(self) -> Floats:
        """Return the score of every row, in an array that the caller may change."""
