"""What attempts are charged, and what they count as having used until it is told: the one definition of the
scheduler's accounts (`books`) and of the reports that follow these again."""

from collections.abc import Callable

from msgspec import structs

from nqspy.model.ids import Instant
from nqspy.model.owed import PE
from nqspy.model.requests import Attempt, Request, State, Used

_RUNNING = State.RUNNING  # asked of each sample: to look up a member costs as much as the rest

MEASURABLE = 1_000
"""Over so long a time (ms) the rate at which an attempt uses CPU time is measured."""


def amount(used: Used, charge: str, request: Request, held_by: Callable[[Request], int]) -> int:
    """What is charged for that use by a request (`Usage.charge`), ms of CPU or of PE time; ``held_by`` knows
    how many PEs it holds."""
    return used.cpu if charge == "cpu" else used.wall * held_by(request)


def uncharged(attempt: Attempt, at: Instant) -> int:
    """How long ago (ms) an attempt was last charged; 0 for one that never was."""
    last = attempt.charged_at
    return at - last if last is not None and last < at else 0


def counted(request: Request, at: Instant, span: int | None = None) -> float:
    """What a running attempt counts as having used (ms) since it was last charged, a ``span`` (`uncharged`,
    if that is known) ago."""
    run = request.attempt
    if run is None or request.state is not _RUNNING:
        return 0.0
    return run.rate * (uncharged(run, at) if span is None else span) / PE


def begun(request: Request, pes: int, at: Instant) -> Attempt:
    """Its attempt, which begins or goes on: it is charged from now on, until more is known as if it kept the
    ``pes`` that it holds busy."""
    run = request.run
    return structs.replace(run, rate=run.rate or pes * PE, charged_at=at)


def charged(request: Request, used: Used, more: int, at: Instant, span: int, charge: str) -> Attempt:
    """Its attempt, which has ``used`` so much, now that ``more`` (ms) is charged, a ``span`` (`uncharged`)
    after it was last; where CPU time is charged, at the rate measured by that."""
    former = request.attempt
    assert former is not None
    rate = former.rate
    if span >= MEASURABLE and charge == "cpu" and request.state is _RUNNING:
        rate = round(more * PE / span) if more > 0 else 0
    last = at if span or former.charged_at is None else former.charged_at
    return structs.replace(former, used=used, charged=former.charged + more, charged_at=last, rate=rate)
