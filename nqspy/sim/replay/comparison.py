"""Differences that a change would have made: a comparison of two runs of a night."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nqspy.engine.replay.recording import CALENDAR
from nqspy.engine.replay.what_if import REPLAY
from nqspy.model import events as ev
from nqspy.model.events import Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request
from nqspy.report.run_figures import figures
from nqspy.sim.replay.what_if import Replayed

SHOWN = 3
"""Most requests named among those that a request lets pass."""
SECOND = 1_000
"""Starts less than this apart (ms of the site's clock) count as the same."""

_NOT_COMPARED = (
    ev.Decided, ev.Alarm, ev.Reported, ev.DaemonStarted, ev.MachineFound, ev.FilesApplied, ev.LoadedExits,
)  # fmt: skip
"""Events without influence on requests: what a pass saw, what was reported to people."""


class MovedStart(Struct, frozen=True):
    """A request started at another time: ``was`` and ``would`` (None: not at all); ``reason``: why not at the
    time of the other run; ``passed``: requests that it lets pass."""

    request: Request
    was: Instant | None
    would: Instant | None
    reason: Reason | None
    passed: Sequence[Seq] = ()

    @property
    def by(self) -> int | None:
        """Return by how many ms it starts later (below 0: earlier); None if it starts in one run only."""
        return None if self.was is None or self.would is None else self.would - self.was


class NightComparison:
    """Both runs of ``found``: their figures, and the requests that ``moved``, largest move first. Without a
    change both are the same run. ``base``: events of the run without the change; ``diverged``: instant of the
    first difference, None: none; ``differences``: number of events that only one run has; ``wrong``: number
    of requests that the base run does not start within a second of the journal's first start; without a
    change the number of events that differ."""

    def __init__(self, found: Replayed) -> None:
        self.found = found
        events, before = found.recording.events, found.before
        self.begin = Instant(min((event.at for event in events), default=before.at))
        self.end = Instant(max((event.at for event in events), default=before.at) + 1)
        charge = found.site.settings.usage.charge  # as the reports of this time have it
        self.base = events if found.base is None else found.base.made
        self.was = self.would = figures(before, self.base, self.begin, self.end, charge)
        self.diverged: Instant | None = None
        self.differences = self.wrong = sum(each.events for each in found.was.differences)
        if found.would is not None:
            then = {e.event.seq: e.at for e in reversed(events) if isinstance(e.event, ev.Starting)}
            now = {seq: at for seq, at in self.was.starts.items() if at < self.end}
            self.wrong = sum(_kind(then.get(seq), now.get(seq)) != "same" for seq in {*then, *now})
            self.differences, self.diverged = _unlike(self.base, found.would.made, self.end)
        if found.would is not None and self.diverged is not None:
            self.would = figures(before, found.would.made, self.begin, self.end, charge)
        starts = (*self.was.starts.items(), *self.would.starts.items())
        self.seqs = sorted({seq for seq, at in starts if at < self.end})
        self.moved = sorted(
            self._moved(), key=lambda each: (each.by is not None, -abs(each.by or 0), each.request.seq)
        )

    def counts(self, seqs: Iterable[Seq] | None = None) -> dict[str, int]:
        """Return the number of requests (None: all) that start earlier, later, at the same time (within 1 s)
        with the change; ``never``, ``new``: only without it, only with it."""
        found = dict.fromkeys(("earlier", "later", "same", "never", "new"), 0)
        for seq in self.seqs if seqs is None else seqs:
            kind = _kind(self.was.starts.get(seq), self.would.starts.get(seq))
            if kind is not None:
                found[kind] += 1
        return found

    def by(self, which: str) -> dict[str, list[Seq]]:
        """Return the requests started in either run, by their ``group`` or ``owner`` (``which``)."""
        found: dict[str, list[Seq]] = {}
        for seq in self.seqs:
            found.setdefault(str(getattr(self.request(seq), which)), []).append(seq)
        return dict(sorted(found.items()))

    def refused(self) -> dict[Seq, str]:
        """Return the changed run's reasons for refused submissions, by request, except those of both runs."""
        was, would = ({} if each is None else each.refused for each in (self.found.base, self.found.would))
        return {seq: text for seq, text in would.items() if was.get(seq) != text}

    def guessed(self) -> list[Seq]:
        """Return the requests of unknown run time, except those that the same limits ended in both runs."""
        was, would = (
            {} if one is None else one.executor.unknown for one in (self.found.base, self.found.would)
        )
        return sorted(seq for seq, limits in would.items() if limits is None or was.get(seq) != limits)

    def request(self, seq: Seq) -> Request:
        """Return the request with this number, from either run."""
        return (self.was.histories.get(seq) or self.would.histories[seq]).request

    def _moved(self) -> Iterator[MovedStart]:
        reasons, then, before = self.found.wait_reasons, self.would.starts, self.was.starts
        order = sorted(then, key=lambda seq: (then[seq], seq))
        for seq in self.seqs:
            was, would = self.was.starts.get(seq), self.would.starts.get(seq)
            kind = _kind(was, would)
            if kind in (None, "same"):
                continue
            later = kind in ("later", "never")
            reason = (reasons.would if later else reasons.was).get(seq)
            run, begun = (self.found.would, was) if later else (self.found.base, would)
            refusal = None if run is None else run.refusals.get(seq)
            if refusal is not None and begun is not None and refusal[0] >= begun:
                reason = refusal[1]  # an exit refused it in one run after the other run had started it
            ahead = order[: bisect_left(order, would, key=then.__getitem__)] if would is not None else order
            # The first that it lets pass: they now start before it, not later.
            passed = (other for other in ahead if later and before.get(other, before[seq]) > before[seq])
            yield MovedStart(self.request(seq), was, would, reason, tuple(islice(passed, SHOWN)))


def _kind(was: Instant | None, would: Instant | None) -> str | None:
    if was is None or would is None:
        return None if was is would else "new" if was is None else "never"
    if abs(would - was) < SECOND:
        return "same"
    return "earlier" if would < was else "later"


def _unlike(base: Sequence[Recorded], made: Sequence[Recorded], end: Instant) -> tuple[int, Instant | None]:
    """Return the number of events that only one of the lists has, and the instant of the first."""
    was, would = (
        [
            each
            for each in all
            if each.at < end
            and not isinstance(each.event, _NOT_COMPARED)
            and not (isinstance(each.event, ev.SettingsChanged) and each.event.source == REPLAY)
        ]
        for all in (base, made)
    )
    alike = 0
    for one, other in zip(was, would, strict=False):
        if one.at != other.at or (one.event != other.event and _key(one) != _key(other)):
            break
        alike += 1
    left, right = (Counter(_key(each) for each in all[alike:]) for all in (was, would))
    unlike = (left - right) + (right - left)
    return unlike.total(), min((at for at, *_ in unlike), default=None)


def _key(recorded: Recorded) -> tuple[Instant, str, str]:
    event: ev.Event = recorded.event
    if isinstance(event, ev.Reserved):
        event = replace(event, as_of=0)
    elif isinstance(event, ev.SettingsChanged) and event.who == CALENDAR:
        event = replace(event, changes=())  # other settings are no difference: only their effects are
    return recorded.at, event.kind, repr(event)


def data_of(comparison: NightComparison) -> dict[str, Any]:
    """Return a comparison as the data of ``nqspy replay --json``."""
    found, zone = comparison.found, comparison.found.zone
    site = found.site
    return {
        "since": zone.text(comparison.begin),
        "until": zone.text(comparison.end - 1),
        "events": len(found.recording.events),
        "differences": comparison.differences,
        "as_it_was": comparison.wrong,
        "exits": exits_object(comparison),
        "left": None if comparison.diverged is None else zone.text(comparison.diverged),
        "starts": comparison.counts(),
        "busy": {"was": comparison.was.used, "would": comparison.would.used},
        "deviation": {"was": comparison.was.deviation, "would": comparison.would.deviation},
        "little_use": {"was": comparison.was.sums.little, "would": comparison.would.sums.little},
        "groups": {name: _row(comparison, seqs, name) for name, seqs in comparison.by("group").items()},
        "users": {name: _row(comparison, seqs, None) for name, seqs in comparison.by("owner").items()},
        "moved": [_moved_object(each, site.id_of, zone.stamp) for each in comparison.moved],
        "guessed": [site.id_of(seq) for seq in comparison.guessed()],
        "refused": {site.id_of(seq): text for seq, text in comparison.refused().items()},
    }


def exits_object(comparison: NightComparison) -> dict[str, Any]:
    """Return, for JSON, versions of exits without a stored copy, and until when versions are unknown."""
    versions, zone = comparison.found.versions, comparison.found.zone
    missing = versions.missing()
    return {
        "unknown_until": zone.stamp(versions.unknown_until),
        "missing": [{"exit": name, "digest": text, "since": zone.stamp(at)} for name, text, at in missing],
    }


def _row(comparison: NightComparison, seqs: Sequence[Seq], group: str | None) -> dict[str, Any]:
    courses = {"was": comparison.was, "would": comparison.would}
    row: dict[str, Any] = comparison.counts(seqs)
    row["wait_s"] = {name: each.wait(seqs) for name, each in courses.items()}
    if group is not None:
        row["deviation"] = {name: each.sums.deviations.get(group) for name, each in courses.items()}
    return row


def reason_object(reason: Reason) -> dict[str, str]:
    """Return a reason as an object for JSON: its code, its source, its text."""
    return {"code": reason.code.value, "who": reason.who, "text": reason.text}


def _moved_object(moved: MovedStart, named: Any, written: Any) -> dict[str, Any]:
    request, reason, by = moved.request, moved.reason, moved.by
    return {
        "id": named(request.seq),
        "name": request.name,
        "owner": request.owner,
        "group": request.group,
        "queue": request.queue,
        "was": written(moved.was),
        "would": written(moved.would),
        "later_s": None if by is None else by / 1000,
        "reason": None if reason is None else reason_object(reason),
        "lets_pass": [named(seq) for seq in moved.passed],
    }
