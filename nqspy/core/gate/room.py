"""The rule of room: the PEs that are free, domain by domain, with the starts of a pass."""

from collections.abc import Iterable

from nqspy.core.gate.rule import Mask, Rule, wider
from nqspy.core.placement.placements import placement_of, size_of
from nqspy.model.board import Board
from nqspy.model.columns import Columns
from nqspy.model.ids import Seq
from nqspy.model.machine import foreign_in_words
from nqspy.model.reasons import Reason, ReasonCode, reason_kinds
from nqspy.model.requests import Request
from nqspy.model.shapes import sizes_in_words
from nqspy.model.site import Site

_ASKS = "{asked:needs 1 PE, |needs * PEs, }"
_FREE = _ASKS + "{free} of {size}{domain: in domain *} {free:is|are} free"
_AWAY = "{away:; 1 is offline|; * are offline}"
_FOREIGN = "{block:, at most * in one block}" + _AWAY + "; foreign jobs have {foreign}"
_NONE_FREE, _SOME_FREE = reason_kinds(
    ReasonCode.NO_PES,
    no_pe_free=_ASKS + "0 of {size}{domain: in domain *} are free" + _AWAY,
    few_pes_free=_FREE + "{block:, at most * in one block}" + _AWAY,
)
(ALL_AWAY,) = reason_kinds(
    ReasonCode.NO_PES,
    "PEs must come online again: set machine offline=(), or bring lost CPUs back",
    pes_offline=_FREE + _AWAY,
)
(FOREIGN,) = reason_kinds(
    ReasonCode.NO_PES,
    "foreign jobs must end; nqspy did not start them and leaves them alone",
    pes_foreign=_FREE + _FOREIGN,
)
(_BESIDE_FOREIGN,) = reason_kinds(ReasonCode.NO_PES, few_pes_beside_foreign=_FREE + _FOREIGN)
(_PES_RESERVED,) = reason_kinds(
    ReasonCode.NO_PES,
    "the request with the reserved PEs must start, or more PEs must become free",
    pes_kept_free=_FREE + ", {kept} {kept:is|are} reserved for {request}" + _AWAY,
)


class Room(Rule):
    """Rule that enough PEs are free. ``started``: starts of the pass, for domains with ``requests=``."""

    shared = holds_forced = True

    def __init__(self, site: Site, started: list[Request] | None = None) -> None:
        self._site = site
        self._started: list[Request] = [] if started is None else started
        self._boards: dict[str, Board] = {}  # by domain
        self._by_queue: dict[str, Board] = {}
        self._reserved_pes: dict[str, tuple[int, Seq]] = {}  # free PEs, and for which request, by domain

    def board(self, queue: str) -> Board:
        """Return the PEs of a queue's domain with their holders, as far as this pass has decided."""
        found = self._by_queue.get(queue)
        if found is None:
            name = self._site.domain_of(queue).name
            if name not in self._boards:
                self._boards[name] = self._site.board(name)
            found = self._by_queue[queue] = self._boards[name]
        return found

    def pes(self, queue: str) -> int:
        """Return the number of PEs that one request of a queue could be given now."""
        board = self.board(queue)
        domain = board.domain
        if domain.is_command and domain.requests is not None:
            queues = (each.queue for each in (*self._site.started.values(), *self._started))
            if sum(self._site.domain_of(each).name == domain.name for each in queues) >= domain.requests:
                return 0  # it has as many requests as it may
        return placement_of(domain).room(board)

    def refuses(self, request: Request) -> Reason | None:
        pes = self.pes(request.queue)
        return self.lack(request.queue, request) if request.spec.ask.pes > pes else None

    def mask(self, queue: str, columns: Columns, *, ever: bool = False) -> Mask | None:
        return wider(columns, size_of(self._site, queue) if ever else self.pes(queue))

    def pick(self, request: Request) -> tuple[int, ...]:
        """Return the PEs that the placement of the domain chooses for a request; `hold` must take them."""
        board = self.board(request.queue)
        return placement_of(board.domain).pick(board, request.spec.ask.pes)

    def hold(self, queue: str, pes: Iterable[int]) -> None:
        """Count one more holder on these PEs of the queue's domain for the rest of the pass."""
        self.board(queue).hold(pes)

    def reserve_pes(self, candidate: Request, pes: Iterable[int]) -> None:
        """Let no request of this pass have these PEs, as ``candidate`` waits for them."""
        board = self.board(candidate.queue)
        name = board.domain.name
        self._boards[name] = board.without(tuple(pes))
        before, _ = self._reserved_pes.get(name, (0, None))
        self._reserved_pes[name] = before + board.free - self._boards[name].free, candidate.seq
        self._by_queue.clear()

    # ------------------------------------------------------------ reasons

    def lack(self, queue: str, request: Request | None = None) -> Reason:
        """Return the reason of a lack of PEs, with the number of free ones, of one request or (None) a
        queue."""
        board, asked = self.board(queue), None if request is None else asked_of(request)
        domain = board.domain.name if self._site.is_divided() else None
        who, away = f"domain {domain}" if domain else "machine", board.away or None
        if request is not None and board.size - board.away < request.spec.ask.pes <= board.size:
            return ALL_AWAY(who, asked, board.free, board.size, domain, board.away)
        room = self.pes(queue)
        block = room if room < board.free else None
        if board.foreign:
            least = 1 if request is None else request.spec.ask.pes
            never = board.size - board.away - board.foreign < least <= board.size
            kind, jobs = FOREIGN if never else _BESIDE_FOREIGN, self._foreign(board)
            return kind(who, asked, board.free, board.size, domain, block, away, jobs)
        if (reserved := self._reserved_pes.get(board.domain.name)) is not None and reserved[0]:
            id = self._site.id_of(reserved[1])
            return _PES_RESERVED(who, asked, board.free, board.size, domain, reserved[0], id, away)
        if not board.free:
            return _NONE_FREE(who, asked, board.size, domain, away)
        return _SOME_FREE(who, asked, board.free, board.size, domain, block, away)

    def _foreign(self, board: Board) -> str:
        """Return in words the foreign jobs on PEs of a board that are not offline."""
        own = set(self._site.pes_of(board.domain).nonzero()[0].tolist()).difference(self._site.offline())
        return foreign_in_words(job for job in self._site.foreign if own.intersection(job.pes))


def asked_of(request: Request) -> int | str:
    """Return how many PEs a request asks for: a number, or the sizes of a moldable request in words."""
    mold = request.spec.mold
    return request.spec.ask.pes if mold is None else sizes_in_words(mold.sizes)


def asking(request: Request, lack: Reason) -> Reason:
    """Return ``lack``, the reason of a whole queue (`Room.lack`), with the PEs for which one request asks."""
    return Reason(lack.kind, lack.who, (asked_of(request), *lack.values[1:]), lack.until, lack.ahead)
