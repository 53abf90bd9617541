"""What would have been different: two courses of a night laid side by side."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from nqspy.engine.replay.course import OURS
from nqspy.engine.replay.recording import CALENDAR
from nqspy.model import codec
from nqspy.model import events as ev
from nqspy.model.event import Event, Recorded
from nqspy.model.ids import Instant, Seq
from nqspy.model.reasons import Reason
from nqspy.model.requests import Request
from nqspy.report.course import figures
from nqspy.sim.replay.what_if import Replayed

SHOWN = 3
"""Requests that are named as those that one lets pass."""
SECOND = 1_000
"""Starts closer together than this (ms of the site's clock) count as the same."""

_NOT_COMPARED = (
    ev.Decided, ev.Alarm, ev.Reported, ev.DaemonStarted, ev.MachineFound, ev.FilesApplied, ev.LoadedExits,
)  # fmt: skip
"""Kinds of events that say nothing of the night's course: what a pass saw, what people were told."""


class MovedStart(Struct, frozen=True):
    """A request that was started at another time: ``was`` and ``would`` (None: not at all); ``reason``: why
    not when it is in the other course; ``passed``: those that it lets pass."""

    request: Request
    was: Instant | None
    would: Instant | None
    reason: Reason | None
    passed: Sequence[Seq] = ()

    @property
    def by(self) -> int | None:
        """ms that it is later; None where it is started in one course only."""
        return None if self.was is None or self.would is None else self.would - self.was


class NightComparison:
    """Both courses of ``found``: the figures of each, and the requests that ``moved``, those that moved most
    first. With nothing changed they are one. ``base``: the events that the change is compared with: those of
    the journal, or of a replay without the change where the journal cannot be repeated to the event."""

    def __init__(self, found: Replayed) -> None:
        self.found = found
        events, before = found.recording.events, found.before
        self.begin = Instant(min((each.at for each in events), default=before.at))
        self.end = Instant(max((each.at for each in events), default=before.at) + 1)
        charge = found.was.site.settings.usage.charge  # as the reports of this time have it
        self.base = events if found.off is None or found.off.left is None else found.off.made
        self.was = figures(before, self.base, self.begin, self.end, charge)
        would, self.would = found.would, self.was
        if would is not None and would.left is not None:
            self.would = figures(before, would.made, self.begin, self.end, charge)
        self.moved = sorted(self._moved(), key=_most)

    @property
    def events(self) -> int:
        """How many events of the journal were gone through."""
        return len(self.found.recording.events)

    @property
    def differences(self) -> int:
        """How many events of the journal would not have happened so, or happen besides; of a replay with
        nothing changed how many events differ."""
        would = self.found.would
        if would is None:
            return sum(each.events for each in self.found.was.differences)
        return 0 if would.left is None else _unlike(self.base, would.made, self.end)

    @property
    def wrong(self) -> int:
        """How many events differ where nothing is changed: what the replay cannot do again."""
        return sum(each.events for each in self.found.was.differences)

    # ------------------------------------------------------------ starts

    def counts(self, seqs: Iterable[Seq] | None = None) -> dict[str, int]:
        """How many of these (None: all) start earlier, later, at the same time; ``never``: not any more
        within the time that was looked at, ``new``: only now."""
        found = dict.fromkeys(("earlier", "later", "same", "never", "new"), 0)
        for seq in {*self.was.starts, *self.would.starts} if seqs is None else seqs:
            kind = _kind(self.was.starts.get(seq), self.would.starts.get(seq))
            if kind is not None:
                found[kind] += 1
        return found

    def by(self, which: str) -> dict[str, list[Seq]]:
        """The requests that were started in either course by ``group`` or ``owner``."""
        found: dict[str, list[Seq]] = {}
        for seq in sorted({*self.was.starts, *self.would.starts}):
            found.setdefault(str(getattr(self.request(seq), which)), []).append(seq)
        return dict(sorted(found.items()))

    def request(self, seq: Seq) -> Request:
        """A request of either course."""
        history = self.was.histories.get(seq) or self.would.histories[seq]
        return history.request

    def _moved(self) -> Iterator[MovedStart]:
        moves, passing = self.found.moves, _Passing(self.was.starts, self.would.starts)
        for seq in sorted({*self.was.starts, *self.would.starts}):
            was, would = self.was.starts.get(seq), self.would.starts.get(seq)
            kind = _kind(was, would)
            if kind in (None, "same"):
                continue
            later = kind in ("later", "never")
            reason = self._refusal(seq, was, would) or (moves.kept if later else moves.kept_then).get(seq)
            passed = passing.of(seq) if later else ()
            yield MovedStart(self.request(seq), was, would, reason, passed)

    def _refusal(self, seq: Seq, was: Instant | None, would: Instant | None) -> Reason | None:
        """Return what an exit said of a request in the one course when the other had started it."""
        later = would is None or (was is not None and was < would)
        course, begun = (self.found.would, was) if later else (self.found.was, would)
        refusal = None if course is None else course.refusals.get(seq)
        return refusal[1] if refusal is not None and begun is not None and refusal[0] >= begun else None


def _most(moved: MovedStart) -> tuple[bool, int, Seq]:
    return moved.by is not None, -abs(moved.by or 0), moved.request.seq


def _kind(was: Instant | None, would: Instant | None) -> str | None:
    if was is None or would is None:
        return None if was is would else "new" if was is None else "never"
    if abs(would - was) < SECOND:
        return "same"
    return "earlier" if would < was else "later"


class _Passing:
    """Who is started before whom it was started behind."""

    def __init__(self, was: Mapping[Seq, Instant], would: Mapping[Seq, Instant]) -> None:
        self._was, self._would = was, would
        self._order = sorted(would, key=lambda seq: (would[seq], seq))

    def of(self, seq: Seq) -> tuple[Seq, ...]:
        """The first of those that this one lets pass."""
        found: list[Seq] = []
        was, would = self._was[seq], self._would.get(seq)
        for other in self._order:
            if would is not None and self._would[other] >= would:
                break
            if self._was.get(other, was) > was:
                found.append(other)
                if len(found) == SHOWN:
                    break
        return tuple(found)


# ---------------------------------------------------------------- events


def _unlike(base: Sequence[Recorded], made: Sequence[Recorded], end: Instant) -> int:
    """How many events one of them has and the other has not."""
    was, would = (Counter(_key(each) for each in all if _is_compared(each, end)) for all in (base, made))
    return sum(((was - would) + (would - was)).values())


def _is_compared(recorded: Recorded, end: Instant) -> bool:
    event = recorded.event
    ours = isinstance(event, ev.SettingsChanged) and event.source == OURS
    return recorded.at < end and not ours and not isinstance(event, _NOT_COMPARED)


def _key(recorded: Recorded) -> tuple[Instant, str, str]:
    event: Event = recorded.event
    if isinstance(event, ev.Reserved):
        event = replace(event, as_of=0)
    elif isinstance(event, ev.SettingsChanged) and event.who == CALENDAR:
        event = replace(event, changes=())  # what is set besides is no difference: what follows from it is
    return recorded.at, event.kind, repr(codec.decode(event.kind, codec.encode(event)))


def data_of(comparison: NightComparison) -> dict[str, Any]:
    """For programs."""
    found, zone = comparison.found, comparison.found.zone
    site, would = found.was.site, found.would
    return {
        "since": zone.text(comparison.begin),
        "until": zone.text(comparison.end - 1),
        "events": comparison.events,
        "differences": comparison.differences,
        "as_it_was": comparison.wrong,
        "exits": exits_object(comparison),
        "left": None if would is None or would.left is None else zone.text(would.left),
        "starts": comparison.counts(),
        "busy": {"was": comparison.was.used, "would": comparison.would.used},
        "deviation": {"was": comparison.was.deviation, "would": comparison.would.deviation},
        "little_use": {"was": comparison.was.sums.little, "would": comparison.would.sums.little},
        "groups": {name: _row(comparison, seqs, name) for name, seqs in comparison.by("group").items()},
        "users": {name: _row(comparison, seqs, None) for name, seqs in comparison.by("owner").items()},
        "moved": [_moved_object(each, site.id_of, zone.stamp) for each in comparison.moved],
        "guessed": [site.id_of(seq) for seq in sorted(would.hands.guessed)] if would is not None else [],
        "refused": {site.id_of(seq): text for seq, text in would.refused.items()}
        if would is not None
        else {},
    }


def exits_object(comparison: NightComparison) -> dict[str, Any]:
    """Which versions of user exits could not be asked: ``unknown_until``: the journal does not say
    what was loaded before."""
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
        "reason": None
        if reason is None
        else {"code": reason.code.value, "who": reason.who, "text": reason.text},
        "lets_pass": [named(seq) for seq in moved.passed],
    }
