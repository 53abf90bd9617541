"""The night report: what a night's requests did, how busy it was, how well quotas and order were kept."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from nqspy.model import events as ev
from nqspy.model.ids import DAY, HOUR, Instant, Seq
from nqspy.model.people import entitlements
from nqspy.model.reasons import Reason, ReasonCode
from nqspy.model.requests import State, Used
from nqspy.model.site import Site
from nqspy.report import measures
from nqspy.report.history import event_object, requested, used_object
from nqspy.report.moments import Zone, zone_of
from nqspy.report.shares import departments
from nqspy.report.tracks import Follower, Track

NIGHT = "night"
"""Name of the shift whose time is the night."""

Why = Callable[[Seq], Reason | None]
"""Why a request waits now, as the last pass said it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A night: ``day`` is the date of its evening, ``end`` None while it lasts; ``shift`` None where no
    shift of that name was in force and it is counted from noon to noon."""

    day: date
    start: Instant
    end: Instant | None
    shift: str | None


def night_bounds(
    changes: Iterable[ev.Recorded], zone: Zone, now: Instant, day: date | None = None, shift: str = NIGHT
) -> Bounds:
    """The latest night, or that of ``day`` (the date of its evening, or one within it): from the entering of
    the shift to its leaving; ``changes`` are the journal's `ShiftChanged` events, others are passed over.

    A night that was interrupted by hand counts as one. Without such a shift: noon to noon of that day; the
    latest then is the one whose 21:00 has come, up to now.
    """
    nights = [night for night in _nights(changes, zone, shift) if night.start <= now]
    if day is None:
        return nights[-1] if nights else _noon_to_noon(None, zone, now)
    noon, next_noon = zone.at(day, 12), zone.at(day + timedelta(days=1), 12)
    for night in reversed(nights):
        if night.start < next_noon and (night.end is None or night.end > noon):
            return night
    return _noon_to_noon(day, zone, now)


def _nights(changes: Iterable[ev.Recorded], zone: Zone, shift: str) -> list[Bounds]:
    found: list[Bounds] = []
    inside = False
    for each in changes:
        if not isinstance(each.event, ev.ShiftChanged) or (each.event.shift == shift) == inside:
            continue
        inside = not inside
        if not inside:
            found[-1] = replace(found[-1], end=each.at)
            continue
        day = zone.local(each.at - 12 * HOUR).date()
        if found and found[-1].day == day:
            found[-1] = replace(found[-1], end=None)
        else:
            found.append(Bounds(day, each.at, None, shift))
    return found


def _noon_to_noon(day: date | None, zone: Zone, now: Instant) -> Bounds:
    if day is None:
        day = zone.local(now - 21 * HOUR).date()
        return Bounds(day, zone.at(day, 12), None, None)
    end = zone.at(day + timedelta(days=1), 12)
    return Bounds(day, zone.at(day, 12), end if end <= now else None, None)


class Night:
    """Takes a night's events in their order and keeps what the report needs.

    The events begin with the submission of the oldest request that had not ended when the night began; they
    may go on after its end: the night lasts until its last request that runs (or waits only for a PE) has
    ended, a day longer at most.
    """

    def __init__(self, site: Site, bounds: Bounds) -> None:
        self.bounds = bounds
        self.follower = Follower(site.requests, bounds.end)
        self.short = measures.ShortMoments()
        self.first: Instant | None = None
        self.overtaken: list[tuple[Instant, Seq, Seq]] = []
        self.incidents: list[ev.Recorded] = []
        self.reasons: dict[Seq, tuple[str, str, str]] = {}
        self._decided: ev.Decided | None = None
        self._last = bounds.start

    def take_all(self, events: Iterable[ev.Recorded]) -> None:
        """Takes events until the night is over."""
        for recorded in events:
            if self._over(recorded.at):
                break
            self.take(recorded)

    def _over(self, at: Instant) -> bool:
        end = self.bounds.end
        if end is None or at < end:
            return False
        late = end + DAY if self.bounds.shift is not None else end
        # What a pass decides comes with it, at the same instant: the night is not over between the two.
        same = at == self.follower.last
        return at >= late or not (self.follower.running or self.short.now or same)

    def end(self, now: Instant) -> Instant:
        """When the night ended, ``now`` while it lasts."""
        if self.bounds.end is None or now < self.bounds.end:
            return now
        return now if self.follower.running and self.bounds.shift else max(self.bounds.end, self._last)

    def take(self, recorded: ev.Recorded) -> None:
        """Takes one event."""
        event, at = recorded.event, recorded.at
        inside = at >= self.bounds.start
        if isinstance(event, ev.Starting):
            self._order(event, at)
        elif isinstance(event, ev.Decided):
            self._decided = event
            self.short.decided(event.short_of_pes, at)
            self.reasons.update({seq: (code, who, text) for seq, code, who, text in event.wait})
        elif isinstance(event, _INCIDENTS) and inside:
            self.incidents.append(recorded)
        self.follower.take(recorded)
        if inside and self.first is None and isinstance(event, ev.Starting | ev.Started):
            self.first = at
        if isinstance(event, ev.MachineFound) or not self.follower.queued:
            self.short.over(at)
        if isinstance(event, ev.Ended) and at > self._last:
            track = self.follower.tracks.get(event.seq)
            self._last = at if track is not None and track.counts else self._last

    def _order(self, event: ev.Starting, at: Instant) -> None:
        if at >= self.bounds.start and (self.bounds.end is None or at < self.bounds.end):
            for seq in measures.overtaken(self.follower, event, self._decided):
                self.overtaken.append((at, event.seq, seq))

    def begun(self) -> Instant | None:
        """The first start of the night, as the hands reported it."""
        starts = (a.begin for track in self.follower.tracks.values() for a in track.attempts)
        return min((begin for begin in starts if begin >= self.bounds.start), default=self.first)

    def tracks(self) -> list[Track]:
        """The night's requests: submitted before its end, not ended before its start."""
        start = self.bounds.start
        return [
            t for t in self.follower.tracks.values() if t.counts and (t.ended is None or t.ended >= start)
        ]


_INCIDENTS = (ev.Alarm, ev.ShiftFailed, ev.ExitOff, ev.MachineFound, ev.Requeued)


def night_report(
    events: Iterable[ev.Recorded],
    site: Site,
    bounds: Bounds,
    now: Instant,
    *,
    why: Why = lambda seq: None,
    samples: Mapping[Seq, Used] | None = None,
    clock: str = "",
) -> dict[str, Any]:
    """The report as JSON-able data; shares and the number of PEs are those of ``site`` as it is now.

    ``events``: see `Night`; ``why``: the live reasons of what still waits; ``samples``: what running requests
    have used by now; ``clock``: a note on an accelerated clock. Shares, parts and busy shares are fractions,
    deviations percentage points.
    """
    zone, night = zone_of(site.timezone), Night(site, bounds)
    night.take_all(events)
    if samples and night.end(now) == now:
        night.follower.sample(samples, now)
    end, tracks = night.end(now), night.tracks()
    fractions = _fractions(site)
    compared = measures.quotas(night.follower, fractions, bounds.start, end)
    until = night.short.until(end)
    busy = measures.busy_share(
        night.follower.tracks.values(), night.begun(), until, site.pes(), len(site.found.cpus)
    )
    names = _Names(site, zone)
    data = {
        "date": bounds.day.isoformat(),
        "from": zone.text(bounds.start),
        "until": zone.text(end),
        "ongoing": bounds.end is None or now < bounds.end or bool(night.follower.running),
        "shift": bounds.shift,
        "clock": clock or None,
        "requests": len(tracks),
        "ended_ok": measures.ended_ok(tracks),
        **_busy(busy, zone),
        "deviation": compared.deviation if compared is not None else None,
        "compared_at": zone.text(compared.at) if compared is not None else None,
        "order_kept": not night.overtaken,
        "overtaken": [names.overtaken(*each) for each in night.overtaken],
        "groups": _groups(night, tracks, compared, fractions, end),
        "failed": [names.ended(t) for t in tracks if t.ending is not None and not measures.is_ok(t)],
        "waiting": [names.waiting(t, night, why) for t in tracks if measures.waits_at_end(t)],
        "running": [names.head(t) for t in tracks if t.state is State.RUNNING],
        "incidents": [event_object(each, site.name, zone) for each in night.incidents],
    }
    return {"line": night_line(data), **data}


def night_line(data: Mapping[str, Any]) -> str:
    """The one line: requests, ended 0, busy, deviation, order."""
    busy, deviation = data["busy"], data["deviation"]
    return ", ".join(
        (
            f"night: {data['requests']} requests",
            f"{data['ended_ok']} ended 0",
            f"busy {busy * 100:.1f} %" if busy is not None else "never short of PEs",
            f"largest quota deviation {deviation:.1f} points"
            if deviation is not None
            else "no quotas to keep",
            "order kept" if data["order_kept"] else "order changed",
        )
    )


def _fractions(site: Site) -> dict[str, float]:
    """Entitlements of the departments: the leaves of the share tree."""
    groups = site.settings.groups
    whole = entitlements(groups)
    leaves = departments(groups)
    return {name: whole[name] for name in leaves}


def _busy(busy: measures.Busy | None, zone: Zone) -> dict[str, Any]:
    if busy is None:
        return {"busy": None, "cpu_busy": None, "busy_from": None, "busy_until": None}
    return {
        "busy": busy.allocated,
        "cpu_busy": busy.used,
        "busy_from": zone.text(busy.begin),
        "busy_until": zone.text(busy.end),
    }


def _groups(
    night: Night,
    tracks: list[Track],
    compared: measures.Quotas | None,
    fractions: Mapping[str, float],
    end: Instant,
) -> list[dict[str, Any]]:
    used = measures.used_by_group(night.follower.tracks.values(), night.bounds.start, end)
    by_group: dict[str, list[Track]] = {}
    for track in tracks:
        by_group.setdefault(track.group, []).append(track)
    names = dict.fromkeys((*(name for name in fractions if name in by_group), *by_group))
    total = sum(used.values())
    return [
        {
            "name": name,
            **_quota(name, compared),
            "cpu_s": round(used.get(name, 0.0) / 1000, 3),
            "cpu_part": used.get(name, 0.0) / total if total else 0.0,
            **_counts(by_group[name]),
        }
        for name in names
    ]


def _quota(name: str, compared: measures.Quotas | None) -> dict[str, float | None]:
    if compared is None or name not in compared.shares:
        return {"share": None, "part": None, "deviation": None}
    share, part = compared.shares[name], compared.parts[name]
    return {"share": share, "part": part, "deviation": (part - share) * 100}


def _counts(tracks: list[Track]) -> dict[str, int]:
    ok = measures.ended_ok(tracks)
    return {
        "requests": len(tracks),
        "ended_ok": ok,
        "failed": sum(1 for t in tracks if t.ending is not None) - ok,
        "waiting": sum(1 for t in tracks if measures.waits_at_end(t)),
        "running": sum(1 for t in tracks if t.state is State.RUNNING),
    }


class _Names:
    """Requests as objects of the report: identifier and name first."""

    def __init__(self, site: Site, zone: Zone) -> None:
        self._site = site
        self._zone = zone

    def head(self, track: Track) -> dict[str, Any]:
        spec = track.spec
        return {
            "id": self._site.id_of(track.seq),
            "name": spec.name,
            "owner": spec.owner,
            "group": spec.group,
            "queue": track.queue,
            "state": track.state.value,
            "submitted": self._zone.text(track.submitted),
            "requested": requested(spec),
        }

    def ended(self, track: Track) -> dict[str, Any]:
        ending = track.ending
        found = self.head(track) | {
            "ended": self._zone.stamp(track.ended),
            "end_reason": measures.state_of(track),
        }
        if isinstance(ending, ev.Ended):
            return found | {
                "exit_status": ending.exit_status,
                "exit_signal": ending.exit_signal,
                "used": used_object(ending.used),
                "text": ending.text,
                "output": ending.stdout,
                "error": ending.stderr,
            }
        text = "" if ending is None else ending.text or f"deleted by {ending.who}"
        nothing = dict.fromkeys(("exit_status", "exit_signal", "used"))
        return found | nothing | {"text": text, "output": None, "error": None}

    def waiting(self, track: Track, night: Night, why: Why) -> dict[str, Any]:
        live = why(track.seq)
        code, who, text = night.reasons.get(track.seq, ("LATER", "pass", "not reached yet"))
        if track.state is State.HELD:
            code, who, text = ReasonCode.HELD.value, "", track.hold_text or "it is held"
            if track.unmet and not track.holds:
                code, who, text = _dependent(live)
        elif live is not None:
            code, who, text = live.code.value, live.who, live.text
        elif track.state is State.WAITING:
            code, who, text = ReasonCode.DATE.value, "owner", "it is not to start before its date"
        return self.head(track) | {"reason": {"code": code, "who": who, "text": text}}

    def overtaken(self, at: Instant, started: Seq, before: Seq) -> dict[str, Any]:
        return {
            "at": self._zone.text(at),
            "started": self._site.id_of(started),
            "before": self._site.id_of(before),
        }


def _dependent(live: Reason | None) -> tuple[str, str, str]:
    """The reason of a request that waited for others: by now another one may hold, or none."""
    if live is not None and live.code is ReasonCode.DEPENDENCY:
        return live.code.value, live.who, live.text
    return ReasonCode.DEPENDENCY.value, "dependency", "it waited for other requests"
