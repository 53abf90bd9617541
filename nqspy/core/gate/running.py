"""Limits on what runs at a time in a queue, a complex or the whole site: how many requests, of one user, of
one group, how much memory, how many PEs.

Counted is what requests *ask for*, from their start to their end (nqs.md 4.1).
"""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from nqspy.core.gate.rule import IN_A_SHIFT, INFINITE, LESS, Claim, CountLimit, path_of
from nqspy.core.runtime import memory_counted
from nqspy.model.columns import Columns, Floats
from nqspy.model.reasons import Reason, ReasonCode, ReasonKind, reason_kinds
from nqspy.model.requests import Ask, Request
from nqspy.model.shifts import values_by_shifts

_NO_MEMORY, _NO_PES = reason_kinds(
    ReasonCode.LIMIT,
    memory_short="{word} limit {most:size}{of: of *} has {left:size} left, it needs {asked:size}",
    pes_short="{word} limit {most}{of: of *} has {left} left, it needs {asked}",
)
_LARGE = "{word} limit {most:size}{of: of *} is too low, it needs {asked:size}"
_WIDE = "{word} limit {most}{of: of *} is too low, it needs {asked}"
_TOO_LARGE, _TOO_WIDE = reason_kinds(ReasonCode.NEVER, LESS, too_large=_LARGE, too_wide=_WIDE)
_LARGE_NOW, _WIDE_NOW = reason_kinds(ReasonCode.LIMIT, IN_A_SHIFT, too_large_now=_LARGE, too_wide_now=_WIDE)
_NOTHING = Ask()


class RunLimit(CountLimit):
    """Limit of running requests in a queue, a complex or the whole site."""

    word, setting, whole_queue = "run", "run_limit", True


class UserLimit(CountLimit):
    """Limit of running requests of one user."""

    word, setting, per = "user", "user_limit", "owner"


class GroupLimit(CountLimit):
    """Limit of running requests of one group."""

    word, setting, per = "group", "group_limit", "group"


class _AmountLimit(CountLimit):
    """Limit of an amount that running requests share. One request may ask for more than the limit."""

    shared = True
    shortage: ClassVar[ReasonKind]
    never: ClassVar[ReasonKind]
    not_now: ClassVar[ReasonKind]

    def reason(self, asked: int, remaining: int, name: str) -> Reason:
        if asked <= self._most:
            return self._say(self.shortage, max(0, remaining), asked)
        raised = values_by_shifts(self._site.settings.shifts.values(), path_of(self._who, self.setting))
        later = any(most is None or asked <= most for most in raised)
        return self._say(self.not_now if later else self.never, asked)

    def claims(self, request: Request) -> Iterable[Claim]:
        return (((self.word, self._who), self.asked(request), self._most),)


class MemoryLimit(_AmountLimit):
    """Limit of memory (bytes). A request that asks for none counts with its queue's limit."""

    word, setting, counts_suspended = "memory", "memory_limit", True
    shortage, never, not_now = _NO_MEMORY, _TOO_LARGE, _LARGE_NOW

    def asked(self, request: Request) -> int:
        return memory_counted(self._site.settings, request.queue, request.spec.ask)

    def column(self, queue: str, columns: Columns) -> Floats:
        if columns.most("memory") < INFINITE:
            known: Floats = columns.memory
            return known
        default = memory_counted(self._site.settings, queue, _NOTHING)
        return np.where(columns.memory == INFINITE, default, columns.memory)


class PeLimit(_AmountLimit):
    """Limit of the PEs for which running requests have asked."""

    word, setting, holds_forced = "PE", "pe_limit", True
    shortage, never, not_now = _NO_PES, _TOO_WIDE, _WIDE_NOW

    def asked(self, request: Request) -> int:
        return request.spec.ask.pes

    def column(self, queue: str, columns: Columns) -> Floats:
        found: Floats = columns.pes
        return found


LIMITS = (RunLimit, UserLimit, GroupLimit, MemoryLimit, PeLimit)
