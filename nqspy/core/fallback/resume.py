"""Resume: suspended requests without PEs come before all that wait, in the order of their starts. Each
resumes on the PEs that it had if they are free, else on others. While there are too few, the free ones are
held for the first of them, so that it cannot starve."""

from collections.abc import Collection, Iterator, Sequence

from nqspy.core.draft import Draft
from nqspy.core.fallback.policy import Skip
from nqspy.core.feature import Feature
from nqspy.core.gate.gate import Gate
from nqspy.core.order.candidates import Candidates
from nqspy.core.placement.placements import placement_of
from nqspy.model.actions import Action, Resume
from nqspy.model.board import Board
from nqspy.model.cause import SCHEDULER
from nqspy.model.machine import set_offline
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.site import Site

NAME = "resume"
"""The feature that proposes what is not a start: plans have this name."""
(_SHORT,) = reason_kinds(
    ReasonCode.NO_PES,
    pes_to_go_on="it goes on when {wanted:a PE is|* PEs are} free"
    "{kept:; * of them is kept for it|; * of them are kept for it}",
)
(_WIDE,) = reason_kinds(
    ReasonCode.NEVER,
    "the domain must get PEs again, or the request be run again or deleted",
    too_wide_to_go_on="{asked} PEs are more than the {size} that {who} has now",
)


class HoldPEs(Skip):
    """All requests that wait to resume. A candidate that lacks PEs holds those that are free."""

    asks_exits = explained = False

    def __init__(self, draft: Draft, gate: Gate, candidates: Candidates) -> None:
        super().__init__(candidates.queue, gate)
        self._draft, self._site = draft, gate.site
        self._lost: dict[str, set[int]] = {}

    def next_rows(self, candidates: Candidates) -> Iterator[int]:
        """Yield no row: all are urgent."""
        yield from ()

    def variants(self, candidate: Request) -> Sequence[Request]:
        return (candidate,)

    def refuses(self, ask: Request, forced: bool) -> Reason | None:
        """Return that there are too few PEs: limits count a suspended request that resumes in any case."""
        found, wanted = self.place(ask), len(ask.pes)
        if len(found) == wanted:
            return None
        domain = self._site.domain_of(ask.queue)
        who = f"domain {domain.name}" if self._site.is_divided() else "machine"
        size = int(self._site.pes_of(domain).sum())
        return _WIDE(who, wanted, size) if wanted > size else _SHORT(who, wanted, len(found) or None)

    def place(self, ask: Request) -> tuple[int, ...]:
        board = self.gate.room.board(ask.queue)
        name = board.domain.name
        if name not in self._lost:
            self._lost[name] = _gone(self._site, self._site.board(name))
        return places(ask, board, self._lost[name])

    def resume(self, candidate: Request, pes: tuple[int, ...]) -> None:
        self._draft.resume(candidate, SCHEDULER, pes, by=NAME)
        self._lost[self._site.domain_of(candidate.queue).name].difference_update(pes)

    def blocked(self, candidates: Candidates, candidate: Request, reason: Reason) -> None:
        """Hold the free PEs for a candidate, unless it can never resume."""
        self._draft.keep_suspended(candidate, reason)
        if reason.code is not ReasonCode.NEVER:
            self.gate.room.take(candidate.queue, self.place(candidate))

    def reopen(self, eligible: list[Request]) -> None:
        """Return None: each is examined once."""


def places(request: Request, board: Board, gone: Collection[int]) -> tuple[int, ...]:
    """Return PEs on which a suspended request can resume, at most as many as it had: those very PEs in their
    old order if they are free, else what the placement of the domain gives it, in ascending order; last its
    own PEs that are ``gone``: their CPUs do not come back."""
    there = set(board.open().tolist())
    own = [pe for pe in request.pes if pe in there]
    given = placement_of(board.domain).again(board, len(request.pes), own)
    lost = [pe for pe in request.pes if pe in gone and pe not in own]
    found = [*given, *lost][: len(request.pes)]
    return request.pes if set(found) == set(request.pes) else tuple(sorted(found))


def free_for(site: Site, request: Request) -> tuple[int, ...]:
    """Return the PEs on which a suspended request can resume at once, if need be fewer than it had."""
    board = site.board(site.domain_of(request.queue).name)
    return places(request, board, _gone(site, board))


def _gone(site: Site, board: Board) -> set[int]:
    """Return PEs without a CPU, but for PEs that an operator has set offline: nothing resumes there."""
    return board.gone() - {*set_offline(site.settings.machine, site.pes())}


def stands(site: Site, action: Action) -> bool:
    """True if a request that is to resume has released its PEs."""
    return isinstance(action, Resume) and site.started[action.seq].pes_released


FEATURE = Feature(NAME, stands=stands)
