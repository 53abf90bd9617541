"""The night report: results of its requests, how busy the machine was, how well quotas and order were
kept."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from nqspy.model import events as ev
from nqspy.model.ids import DAY, HOUR, Instant, Seq
from nqspy.model.requests import STARTED, Used
from nqspy.model.site import Site
from nqspy.report import departments, night_metrics
from nqspy.report.event_objects import event_object
from nqspy.report.incidents import IncidentLog, is_new_home
from nqspy.report.labels import RequestLabels, Why
from nqspy.report.night_metrics import night_line
from nqspy.report.outlook import outlook
from nqspy.report.past_site import PastSite
from nqspy.report.quota_accounts import QuotaAccounts
from nqspy.report.replay import HistoryReplay, RequestHistory
from nqspy.report.shares import QuotaSums, department_shares, largest
from nqspy.report.time_text import Zone, zone_of
from nqspy.report.utilisation_svg import division_of, quarters, step_of

NIGHT = "night"
"""Name of the shift that is the night."""


class Bounds(Struct, frozen=True):
    """Begin and end of a night. ``day``: date of its evening; ``end`` None: it is not over; ``shift``: name
    of the shift that was in force, None: from noon to noon."""

    day: date
    start: Instant
    end: Instant | None
    shift: str | None


def night_bounds(
    changes: Iterable[ev.Recorded], zone: Zone, now: Instant, day: date | None = None, shift: str = NIGHT
) -> Bounds:
    """Return the latest night, or that of ``day`` (the date of its evening, or one within it): from entering
    to leaving the shift. ``changes``: the journal's `ShiftChanged` events; others are skipped.

    An unfinished night is not that of a day to come. A night that was interrupted by hand counts as one.
    Without such a shift it is noon to noon of that day; the latest is the last with a past 21:00."""
    nights = [night for night in _nights(changes, zone, shift) if night.start <= now]
    if day is None:
        return nights[-1] if nights else _noon_to_noon(None, zone, now)
    noon, next_noon = zone.at(day, 12), zone.at(day + timedelta(days=1), 12)
    for night in reversed(nights):
        if night.start < next_noon and (now if night.end is None else night.end) > noon:
            return night
    return _noon_to_noon(day, zone, now)


def _nights(changes: Iterable[ev.Recorded], zone: Zone, shift: str) -> list[Bounds]:
    found: list[Bounds] = []
    inside = False
    for change in changes:
        if not isinstance(change.event, ev.ShiftChanged) or (change.event.shift == shift) == inside:
            continue
        inside = not inside
        if not inside:
            found[-1] = replace(found[-1], end=change.at)
            continue
        day = zone.local(change.at - 12 * HOUR).date()
        if found and found[-1].day == day:
            found[-1] = replace(found[-1], end=None)
        else:
            found.append(Bounds(day, change.at, None, shift))
    return found


def _noon_to_noon(day: date | None, zone: Zone, now: Instant) -> Bounds:
    if day is None:
        day = zone.local(now - 21 * HOUR).date()
        return Bounds(day, zone.at(day, 12), None, None)
    end = zone.at(day + timedelta(days=1), 12)
    return Bounds(day, zone.at(day, 12), end if end <= now else None, None)


class Night:
    """Gets a night's events in order, and stores what the report needs: histories, incidents, switches of
    shifts, requests ``overtaken`` (instant, started request, earlier request), last ``reasons`` of waits.

    The events begin with the submission of the oldest request that had not ended when the night began. They
    may go on after its end: the night lasts until its last request that runs (or waits only for a PE) has
    ended, a day longer at most."""

    def __init__(self, site: Site, bounds: Bounds) -> None:
        self.bounds, self._settings = bounds, site.settings
        self.replay = HistoryReplay(site.requests, bounds.end)
        self.log = IncidentLog(self.replay)
        self.shifts: list[tuple[Instant, str | None]] = []
        self.short = night_metrics.ShortMoments()
        self.moves = night_metrics.NightMoves()
        self.first: Instant | None = None
        self.overtaken: list[tuple[Instant, Seq, Seq]] = []
        self.incidents: list[ev.Recorded] = []
        self.reasons: dict[Seq, tuple[str, str, str]] = {}
        self._decided: ev.Decided | None = None
        self._last = bounds.start
        self._former: set[Seq] | None = None  # requests that had ended when the night began

    def add_all(self, events: Iterable[ev.Recorded]) -> None:
        """Add events in order; stop at the first one behind the night's end. After ``bounds.end`` the night
        of a shift goes on while a request runs or waits only for a PE, a day longer at most."""
        end = self.bounds.end
        for recorded in events:
            at = recorded.at
            if end is not None and at >= end:
                late = end + (DAY if self.bounds.shift is not None else 0)
                # Decisions of a pass come with it, at the same instant: no night ends between the two.
                going = self.replay.running or self.short.now or at == self.replay.last
                if at >= late or not going:
                    if isinstance(recorded.event, ev.ShiftChanged) and at == end:
                        self.shifts.append((at, recorded.event.shift))
                    break
            self.add(recorded)

    def end(self, now: Instant) -> Instant:
        """Return the instant at which the night ended: its bound, or the later end of its last request. If it
        is not over: ``now``, or the latest event's instant if that is later (the clock was set back)."""
        if self.bounds.end is None or now < self.bounds.end:
            return max(now, self.replay.latest)
        return now if self.replay.running and self.bounds.shift else max(self.bounds.end, self._last)

    def add(self, recorded: ev.Recorded) -> None:
        """Add one event to the night's history, incidents and measures."""
        event: Any = recorded.event
        at, kind = recorded.at, type(event)
        if self._former is None and at >= self.bounds.start:
            every = self.replay.histories.items()
            self._former = {seq for seq, history in every if history.ended is not None}
        if kind is ev.Starting and at >= self.bounds.start:
            if self.bounds.end is None or at < self.bounds.end:
                for seq in night_metrics.overtaken(self.replay, event, self._decided):
                    if night_metrics.keeps_order(self._settings, self.replay, event.seq, seq):
                        self.overtaken.append((at, event.seq, seq))
        elif kind is ev.Decided:
            self._decided = event
            if event.wait:
                self.reasons.update({seq: (code, who, text) for seq, code, who, text in event.wait})
        elif at < self.bounds.start:
            pass
        elif kind in _INCIDENTS and not is_new_home(recorded):
            self.incidents.append(recorded)
        elif kind is ev.ShiftChanged:
            self.shifts.append((at, event.shift))
        self.log.add(recorded)
        if at >= self.bounds.start:
            self.moves.add(event, self.replay)
        self.replay.add(recorded)
        self.short.add(recorded, self.replay.queued)
        if self.first is None and kind in (ev.Starting, ev.Started) and at >= self.bounds.start:
            self.first = at
        if kind is ev.Ended and at > self._last:
            history = self.replay.histories.get(event.seq)
            self._last = at if history is not None and history.counts else self._last

    def begun(self) -> Instant | None:
        """Return the instant at which the first attempt of the night began, as reported by the executor; None
        if none was started."""
        starts = (a.begin for history in self.replay.histories.values() for a in history.attempts)
        return min((begin for begin in starts if begin >= self.bounds.start), default=self.first)

    def histories(self) -> list[RequestHistory]:
        """Return the night's requests: submitted before its end, not ended before it began; arrays until all
        indices have begun."""
        every, former = self.replay.histories.items(), self._former
        ended = former if former is not None else self.replay.histories  # nothing happened in the night
        return [one for seq, one in every if one.counts and one.weight and not (one.ended and seq in ended)]


_INCIDENTS = {
    ev.Alarm, ev.ShiftFailed, ev.ExitOff, ev.MachineFound, ev.DaemonStarted, ev.Requeued, ev.PressureChanged,
    ev.ResourceChanged,
}  # fmt: skip
"""Kinds of events that are journaled incidents; `IncidentLog` pairs and groups them."""


class Facts(Struct, frozen=True):
    """Facts of a night besides its events. ``why``: present reasons of waiting requests; ``samples``: present
    use of running ones; ``clock``: a note on an accelerated clock; ``coming``: the next switches of shifts
    (``at``, ``shift``) and ``holidays``; ``opens``: the stopped queues, with the instant at which a shift
    starts each; ``made``: when this is written, if not now; ``before``: the site before the first event: its
    settings are followed to the present."""

    why: Why = lambda seq, queue: None
    samples: Mapping[Seq, Used] | None = None
    clock: str = ""
    coming: Sequence[Mapping[str, Any]] = ()
    holidays: Sequence[str] = ()
    opens: Mapping[str, Instant | None] = field(default_factory=dict)
    made: Instant | None = None
    before: Site | None = None


_ALONE = Facts()


def night_report(
    events: Iterable[ev.Recorded], site: Site, bounds: Bounds, now: Instant, facts: Facts = _ALONE
) -> dict[str, Any]:
    """Return the night report for JSON. Shares and PEs shown are those of ``site``; entitlements follow the
    settings of each instant if `Facts.before` is given.

    ``events``: see `Night`. Shares, parts and busy shares are fractions, deviations percentage points."""
    zone, night = zone_of(site.timezone), Night(site, bounds)
    then, last = PastSite(site, facts.before), now if bounds.end is None else min(now, bounds.end)
    charge, step = site.settings.usage.charge, step_of(last - bounds.start)
    accounts = QuotaAccounts(then, charge, bounds.start, last, step)
    night.replay.watchers.append(accounts)
    night.add_all(events)
    if facts.samples and night.end(now) >= now:
        night.replay.sample(facts.samples, now)
        accounts.sample(facts.samples, now)
    accounts.advance(now)
    end, histories = night.end(now), night.histories()
    fractions = department_shares(site.settings.groups) if site.settings.groups else {}
    every = night.replay.histories.values()
    sums = accounts.total() if fractions else QuotaSums()
    busy = night_metrics.busy_share(every, night.begun(), night.short.until(end), then.pes, then.cpus)
    used = night_metrics.used_by_group(every, bounds.start, end)
    step, bars = quarters(every, (bounds.start, end), then.pes, then.cpus, zone)
    labels = RequestLabels(site, zone)
    waits = [each for each in histories if each.waits]
    waiting = {each.request.seq: labels.waiting(each, night.reasons, facts.why) for each in waits}
    hopeless = {seq for seq, row in waiting.items() if row["never"]}
    # CPU time used in a unit of time, as in the night; all of the CPUs' if that is unknown.
    rate = then.cpus.latest * (busy.used if busy is not None else 1.0)
    rows = outlook(histories, fractions, rate, now, zone, facts.opens, hopeless)
    groups = departments.rows(histories, used, sums, fractions, (bounds.start, end))
    data = {
        **_heading(night, busy, sums, now, facts, zone),
        "parts": division_of(accounts, [name for name in fractions if name in sums.worked], zone),
        "charge": charge,
        "order_kept": not night.overtaken,
        "overtaken": [
            {"at": zone.text(at), "started": site.id_of(seq), "before": site.id_of(before)}
            | {"group": night.replay.histories[seq].request.group}
            for at, seq, before in night.overtaken
        ],
        "groups": groups,
        **night_metrics.outcome(groups),
        "moves": night.moves.data(),
        "failed": [labels.ended(history) for history in histories if night_metrics.is_failed(history)],
        "waiting": list(waiting.values()),
        "running": [labels.running(history) for history in histories if history.request.state in STARTED],
        "never": sum(each["never"] for each in rows),
        "incidents": [event_object(incident, site.name, zone) for incident in night.incidents],
        "step_s": step // 1000,
        "quarters": bars,
        "shifts": [{"at": zone.text(at), "shift": shift} for at, shift in night.shifts],
        "story": night.log.objects(bounds.start, site.name, zone),
        "exits": night.log.exit_objects(bounds.start, site.name, zone),
        "outlook": {"departments": rows, "coming": list(facts.coming), "holidays": list(facts.holidays)},
    }
    return {"line": night_line(data), **data}


def _heading(
    night: Night, busy: night_metrics.Busy | None, sums: QuotaSums, now: Instant, facts: Facts, zone: Zone
) -> dict[str, Any]:
    bounds, made = night.bounds, now if facts.made is None else facts.made
    ongoing = bounds.end is None or now < bounds.end or bool(night.replay.running)
    return {
        "date": bounds.day.isoformat(), "from": zone.text(bounds.start), "until": zone.text(night.end(now)),
        "as_of": zone.text(now), "made": zone.text(made), "ongoing": ongoing, "shift": bounds.shift,
        "clock": facts.clock or None, "requests": sum(history.weight for history in night.histories()),
        "busy": busy and busy.allocated, "cpu_busy": busy and busy.used,
        "busy_from": busy and zone.text(busy.begin), "busy_until": busy and zone.text(busy.end),
        "deviation": largest(sums.deviations.values()), "little_use": sums.little,
    }  # fmt: skip
