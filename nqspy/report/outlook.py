"""Tomorrow's outlook: what still waits by department, and when it will have run at the night's rate."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nqspy.model.events import Ended
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import State
from nqspy.report.replay import RequestHistory
from nqspy.report.time_text import Zone

_LEAST = 0.05
"""Fraction of the processors below which the rate is too small for estimates."""


@dataclass(slots=True)
class _Rest:
    """Sums over a department's requests that have not ended: numbers that are queued, held, can never start
    (left out of the others); CPU ms ``asked`` for and ``expected``, number without a CPU limit (``unasked``);
    the queues they wait in."""

    queued: int = 0
    held: int = 0
    never: int = 0
    asked: int = 0
    unasked: int = 0
    expected: float = 0.0
    queues: set[str] = field(default_factory=set)


def outlook(
    histories: Iterable[RequestHistory],
    fractions: Mapping[str, float],
    rate: float,
    now: Instant,
    zone: Zone,
    opens: Mapping[str, Instant | None],
    hopeless: Collection[Seq] = (),
) -> list[dict[str, Any]]:
    """Return a row for each department with waiting requests, for JSON.

    A request is expected to use the mean of its department's ended requests, else what it asks for.
    Departments share ``rate`` (CPU time that the processors give in a unit of time, as in the night) by their
    entitlements. ``opens``: when a shift starts each stopped queue, None: unknown; ``not_before``: that
    instant, if later than the estimate. ``drained_at``: when no request is left; null if requests are held,
    can never start (``hopeless``), or nothing is known for an estimate."""
    histories, sums = list(histories), dict[str, tuple[int, int]]()
    for history in histories:
        if isinstance(history.ending, Ended):
            for name in (history.request.group, ""):
                number, cpu = sums.get(name, (0, 0))
                sums[name] = number + 1, cpu + history.ending.used.cpu
    rest = _rest(histories, {name: cpu / number for name, (number, cpu) in sums.items()}, hopeless)
    drained = _drained({name: each.expected for name, each in rest.items() if each.expected > 0}, fractions)
    ready = {name: Instant(now + round(at / max(rate, _LEAST))) for name, at in drained.items()}
    rows = []
    for name, each in rest.items():
        if not (each.queued or each.held or each.never):
            continue
        stopped = [opens[queue] for queue in each.queues if queue in opens]
        opening = max((at for at in stopped if at is not None), default=None)
        drained_at, not_before = ready.get(name), None
        if opening is not None and (drained_at is None or opening > drained_at):
            drained_at, not_before = None, opening
        elif not each.queued or None in stopped:
            drained_at = None
        rows.append({
            "name": name, "queued": each.queued, "held": each.held, "never": each.never,
            "cpu_s": each.asked / 1000, "without_cpu_limit": each.unasked,
            "expected_cpu_s": round(each.expected / 1000, 3), "drained_at": zone.stamp(drained_at),
            "not_before": zone.stamp(not_before),
        })  # fmt: skip
    return rows


def _rest(
    histories: Iterable[RequestHistory], means: Mapping[str, float], hopeless: Collection[Seq]
) -> dict[str, _Rest]:
    """Return the waiting requests by department. ``means``: mean CPU ms of ended ones, by group, "" of
    all."""
    found: dict[str, _Rest] = {}
    for history in histories:
        if history.ending is not None:
            continue
        rest = found.setdefault(history.request.group, _Rest())
        asked = history.request.spec.ask.finite_cpu()
        if not history.waits:
            used = history.attempts[-1].points[-1][1] if history.attempts else 0
            rest.expected += max(0.0, _expected(history, means, asked) - used)
            continue
        many = history.weight
        if history.request.seq in hopeless:
            rest.never += many
            continue
        rest.asked += many * (asked or 0)
        rest.unasked += many * (asked is None)
        if history.request.state is State.QUEUED:
            rest.queued += many
            rest.queues.add(history.request.queue)
            rest.expected += many * _expected(history, means, asked)
        else:
            rest.held += many
    return found


def _expected(history: RequestHistory, means: Mapping[str, float], asked: int | None) -> float:
    mean = means.get(history.request.group)
    if mean is None:
        mean = float(asked) if asked is not None else means.get("", 0.0)
    return mean if asked is None else min(mean, asked)


def _drained(rest: dict[str, float], fractions: Mapping[str, float]) -> dict[str, float]:
    """Return for each department the CPU time (ms) that all departments together have got when it has nothing
    left, if they share by ``fractions``. ``rest``: CPU ms that each still needs."""
    at, found = 0.0, dict[str, float]()
    rest = dict(rest)
    while rest:
        weights = {name: fractions.get(name) or 0.001 for name in rest}
        whole = sum(weights.values())
        first = min(rest, key=lambda name: rest[name] / weights[name])
        spent = rest[first] * whole / weights[first]
        at += spent
        rest = {name: ms - spent * weights[name] / whole for name, ms in rest.items() if name != first}
        found[first] = at
    return found
