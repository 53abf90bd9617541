"""Measures of a night: busy share, deviation from the quotas, order of the lists (semantics.md 1)."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nqspy.core import GroupLimit, RunLimit
from nqspy.model import events as ev
from nqspy.model.endings import End
from nqspy.model.events import Decided, Event, MovedOut, Starting, Suspended
from nqspy.model.ids import HOUR, Instant, Seq, array_of
from nqspy.model.reasons import ReasonCode
from nqspy.model.requests import Request
from nqspy.model.settings import Settings, planned_wall
from nqspy.model.texts import counted
from nqspy.model.units import UNLIMITED
from nqspy.report.over_time import CapacityOverTime, held_by_step
from nqspy.report.replay import HistoryReplay, ListPlace, RequestHistory, place_of
from nqspy.report.shares import TOO_LITTLE, add_up

NEVER_SHORT = "no request waited only for PEs"


class Busy(NamedTuple):
    """Fractions of the PE time allocated and of the CPU time used, from instant ``begin`` to ``end``."""

    begin: Instant
    end: Instant
    allocated: float
    used: float


def busy_share(
    histories: Iterable[RequestHistory],
    begin: Instant | None,
    end: Instant | None,
    pes: CapacityOverTime,
    cpus: CapacityOverTime,
) -> Busy | None:
    """Return allocated PE time as a fraction of the PE time from ``begin`` to ``end``, and used CPU time as a
    fraction of the CPU time; None if an instant is None or no time lies between them."""
    whole = 0 if begin is None or end is None or end <= begin else pes.whole(begin, end)
    if begin is None or end is None or whole <= 0:
        return None
    histories = tuple(histories)
    [held] = held_by_step((a for history in histories for a in history.attempts), (begin, end), pes)
    used = sum(history.used_between(begin, end) for history in histories)
    return Busy(begin, end, held / whole, used / (cpus.whole(begin, end) or whole))


class NightMoves:
    """Counts how often requests gave way to a higher class, and the PE time that this cost."""

    def __init__(self) -> None:
        self._sums = dict.fromkeys(("gave_way", "moved", "pe_hours", "paged_bytes"), 0)

    def add(self, event: Event, replay: HistoryReplay) -> None:
        """Count an event; call it before ``replay`` gets the event."""
        if isinstance(event, Suspended):
            self._sums["gave_way"] += event.leaving and event.because().is_feature
        elif isinstance(event, MovedOut) and event.seq in replay.histories:
            attempts = replay.histories[event.seq].attempts
            self._sums["moved"] += 1
            self._sums["pe_hours"] += event.took * attempts[-1].pes if attempts else 0
            self._sums["paged_bytes"] += event.paged

    def data(self) -> dict[str, Any]:
        """Return the sums: ``gave_way`` and ``moved`` (how often), ``pe_hours`` spent on moving out,
        ``paged_bytes``."""
        return self._sums | {"pe_hours": self._sums["pe_hours"] / HOUR}


def used_by_group(
    histories: Iterable[RequestHistory], begin: int, end: int, charge: str = "cpu"
) -> dict[str, float]:
    """Return the charge (ms) for each group's requests between two instants."""
    used: dict[str, float] = {}
    for history in histories:
        add_up(used, {history.request.group: history.used_between(begin, end, charge)})
    return used


def overtaken(replay: HistoryReplay, event: Starting, decided: Decided | None) -> list[Seq]:
    """Return earlier requests of the same list (group and queue) that this start shows could have been
    started instead; call it before the replay gets the event.

    The list's order is the scheduler's: date in queue, then number. Excused are requests that are not queued,
    that the pass could not have seen yet (all, if it saw the started one elsewhere), that a person let
    another one pass (``schedule request``), that stand behind a later one of their owner's (``qsub -p``), and
    for which the pass journaled why they were blocked."""
    began = replay.histories.get(event.seq) or replay.histories.get(array_of(event.seq) or 0)
    if began is None or began.request.rank > 0 or (decided is not None and began.since > decided.as_of):
        return []
    started = began.request
    line, end = replay.lists.get((started.group, started.queue), ()), place_of(started)
    if not line or line[0] >= end:
        return []
    reasons = {seq: (code, text) for seq, code, _, text in decided.wait} if decided is not None else {}
    found, owner = [], started.spec.owner
    for place in line:
        if place >= end:
            break
        seq = place[-1]
        history = replay.histories[seq]
        earlier = history.request
        if earlier.spec.owner == owner and _own(earlier) < _own(started):
            continue  # its owner wanted that (qsub -p)
        unseen = decided is not None and history.since > decided.as_of
        excused = seq in reasons and _excuses(*reasons[seq], earlier, started, event.forced)
        if not unseen and not excused:
            found.append(seq)
    return _not_behind_own(replay, line, end, found) if found else found


def keeps_order(settings: Settings, replay: HistoryReplay, seq: Seq, before: Seq) -> bool:
    """True if a start of ``seq`` before the earlier request ``before`` breaks their queue's order. False if a
    rule of the queue allows it: order by length or class, or backfill of the shorter past reservations."""
    later = replay.histories.get(seq) or replay.histories[array_of(seq) or 0]
    mine, other = later.request, replay.histories[before].request
    queue = settings.queues.get(mine.queue)
    if queue is None or queue.order in ("sjf", "class") or queue.backfill_order == "shortest":
        return queue is None
    if queue.reserve == 0:
        return True
    walls = [planned_wall(settings, queue.name, each.spec.ask) for each in (mine, other)]
    return walls[0] is None or (walls[1] is not None and walls[1] <= walls[0])


def _not_behind_own(
    replay: HistoryReplay, line: Sequence[ListPlace], end: ListPlace, found: list[Seq]
) -> list[Seq]:
    """Return ``found`` without requests of owners that gave a higher ``qsub -p`` to another one behind
    ``end`` in the list ``line``."""
    highest: dict[str, int] = {}
    for *_, seq in line[bisect_right(line, end) :]:
        request = replay.histories[seq].request
        if request.rank == 0:
            highest[request.owner] = max(_own(request), highest.get(request.owner, _own(request)))
    requests = (replay.histories[seq].request for seq in found)
    return [each.seq for each in requests if highest.get(each.owner, _own(each)) <= _own(each)]


def _own(request: Request) -> int:
    return request.spec.priority or 0


_OF_THE_LIST = tuple(f"{rule.word} limit" for rule in (RunLimit, GroupLimit))
"""Limits that count all of a list alike, by their names in journaled reasons."""
_NO_PES, _LIMIT, _LATER = ReasonCode.NO_PES, ReasonCode.LIMIT, ReasonCode.LATER


def _excuses(code: str, text: str, earlier: Request, started: Request, forced: bool) -> bool:
    """True if a journaled reason shows that the earlier request could not have been started instead. Lack of
    PEs, and limits that count both alike, do not: the later one now uses what the earlier one lacks."""
    if code == _NO_PES:
        return earlier.spec.ask.pes > started.spec.ask.pes
    if code == _LIMIT and not forced:
        shared = any(words in text for words in _OF_THE_LIST)
        mine, other = earlier.spec.ask, started.spec.ask
        more = mine.pes > other.pes or _amount(mine.memory_wanted()) > _amount(other.memory_wanted())
        return not shared and (earlier.owner != started.owner or more)
    return code != _LATER


def _amount(size: int | None) -> float:
    return float("inf") if size is None or size == UNLIMITED else size


class ShortMoments:
    """Moments in which a request waited only for a PE. ``last``: end of the last one; ``now``: True if one is
    under way. A pass reports it (`Decided.short_of_pes`); a moment ends with the next pass that reports
    otherwise, when nothing is queued any more, or with a restart."""

    def __init__(self) -> None:
        self.now = False
        self.last: Instant | None = None

    def add(self, recorded: ev.Recorded, queued: int) -> None:
        """Note if an event begins or ends such a moment; call it after the replay has got the event.
        ``queued``: number of queued requests."""
        event = recorded.event
        if isinstance(event, Decided):
            if self.now or event.short_of_pes:
                self.last = recorded.at
            self.now = event.short_of_pes
        if self.now and (not queued or isinstance(event, ev.MachineFound | ev.DaemonStarted)):
            self.now, self.last = False, recorded.at

    def until(self, end: Instant) -> Instant | None:
        """Return the instant at which the last such moment ended; ``end`` if one is under way, None if there
        was none."""
        return end if self.now else self.last


def is_ok(history: RequestHistory) -> bool:
    """True if the request ended by itself with status 0."""
    return history.ending is not None and End.of(history.ending).ok


def is_failed(history: RequestHistory) -> bool:
    """True if the request ended, but not with status 0, and not because its owner deleted it."""
    return history.ending is not None and not is_ok(history) and not history.withdrawn


def state_of(history: RequestHistory) -> str:
    """Return a request's end reason (``deleted`` if it was deleted before it ran), else its state."""
    if history.ending is not None:
        return str(getattr(history.ending, "end_reason", "deleted"))
    return history.request.state.value


def outcome(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums over departments' ``rows``: numbers of requests ``ended_ok`` and ``withdrawn``, and
    ``counts`` of failed, waiting and running ones."""
    sums = Counter[str]()
    for row in rows:
        sums.update({key: row[key] for key in ("ended_ok", "withdrawn", *_COUNTS)})
    return {
        "ended_ok": sums["ended_ok"],
        "counts": {key: sums[key] for key in _COUNTS},
        "withdrawn": sums["withdrawn"],
    }


_COUNTS = ("failed", "waiting", "running")


def night_line(data: Mapping[str, Any]) -> str:
    """Return the night report ``data`` as one line: number of requests (withdrawn ones left out) and of each
    kind of end, busy share, largest quota deviation, and if the order was kept."""
    busy, more, withdrawn = data["busy"], data["counts"], data["withdrawn"]
    running = f", {more['running']} running" if more["running"] else ""
    head = (
        f"night: {counted(data['requests'] - withdrawn, 'request')}: {data['ended_ok']} ended well, "
        f"{more['failed']} failed, {more['waiting']} waiting{running}"
    )
    quotas = f"quotas: {TOO_LITTLE}" if data["little_use"] else "no quotas set"
    if data["deviation"] is not None:
        quotas = f"largest quota deviation {data['deviation']:.1f} points"
    figures = (
        f"busy {busy * 100:.1f} %" if busy is not None else NEVER_SHORT,
        quotas,
        "order kept" if data["order_kept"] else "order changed",
    )
    return f"{head}{f'; {withdrawn} withdrawn' if withdrawn else ''}; {', '.join(figures)}"
