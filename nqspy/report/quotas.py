"""Accuracy of quotas: what each department was entitled to, got, and could have used.

For a period and each department (a leaf of the share tree, or a group that had requests of its own; groups
below it are counted with it):

- *got* is what is charged (`Usage.charge`) of its requests' use within the period; ``got_part`` its part of
  what all got.
- *could have used* is PE time: the integral over the period of its entitlement x PEs, where at each instant
  the entitlements of departments without work have gone to those with work, as the share tree has it
  (`division.Division`). Work is what runs or is queued, not what is held or waits for its date; none is
  entitled to more PEs than its running and queued requests ask for, nor than its cap allows. The integral is
  bounded by the PE time that its own requests held in the period, plus what was still to be done when it
  ended: of requests that ran or were queued then the PE time they held later, or, while they have not ended,
  what they ask for (else the mean of the group's ended ones) less what they had held. ``could_part``: its
  part of what all could.
- *entitled* and *got*: parts of what all were charged in the period (`quota_accounts`); *deviation*: the
  deviation from entitlement in percentage points (`report.shares.deviations`, the one definition).
- *largest deviation over an hour*: the same of each span of 60 minutes that begins a multiple of 5 minutes
  after the period's beginning and through which the department had work all the time.

What limits and exits keep back counts as work: a quota that could not be kept for that reason shows as a
deviation.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from nqspy.model import events as ev
from nqspy.model import indices
from nqspy.model.domains import APPLICATION
from nqspy.model.errors import BadValue
from nqspy.model.ids import HOUR, MINUTE, Instant, Seq, member
from nqspy.model.indices import Runs
from nqspy.model.people import entitlements, lineage, with_default
from nqspy.model.requests import STARTED, Request, State, Used, finite
from nqspy.model.site import Site
from nqspy.model.texts import folded, grid, percent, points
from nqspy.report.night import NIGHT, night_bounds
from nqspy.report.night_metrics import used_by_group
from nqspy.report.past_site import PastSite
from nqspy.report.quota_accounts import QuotaAccounts
from nqspy.report.replay import HistoryReplay, RequestHistory, by_group
from nqspy.report.shares import TOO_LITTLE, QuotaSums, add_up, charge_words, departments, largest
from nqspy.report.time_text import Zone, short, zone_of
from nqspy.shares import division_of

STEP = 5 * MINUTE
HOURLY = HOUR // STEP
_LATEST = Instant(253_370_764_800_000)
"""The year 9999: no later date exists."""
WORKS = (State.QUEUED, *STARTED)

Amounts = dict[str, float]
"""An amount by group; ``""``: of the whole."""


class Period(Struct, frozen=True):
    """Period of a report; ``shift``: its name if it is one; ``ongoing``: True if the end is the present."""

    begin: Instant
    end: Instant
    shift: str | None
    ongoing: bool


def period_of(
    events: Sequence[ev.Recorded],
    zone: Zone,
    now: Instant,
    begin: Instant | None = None,
    end: Instant | None = None,
    shift: str | None = None,
) -> Period:
    """Return the period from ``begin`` to ``end``, within the time of ``events``; without ``begin``, the
    latest time in which ``shift`` (default: the night) was in force, as `night_bounds` has it. Raises
    BadValue, also if both are given."""
    if begin is not None and shift is not None:
        raise BadValue("give --shift or --from, not both")
    last = Instant(max(0, min(end, now))) if end is not None else now
    if begin is None:
        bounds = night_bounds(events, zone, last, shift=shift or NIGHT)
        if shift is not None and bounds.shift is None:
            raise BadValue(f"shift {shift} was never in force, according to the journal")
        begin, shift = bounds.start, bounds.shift
        last = min(last, bounds.end) if bounds.end is not None else last
    else:
        begin, shift = min(_LATEST, max(begin, events[0].at if events else last)), None
    if begin >= last:
        raise BadValue(f"the time from {short(zone.text(begin))} to {short(zone.text(last))} is empty")
    return Period(begin, last, shift, last == now)


class Presence:
    """Follows events and sums, from the period's beginning to its end, what each group could use (``could``,
    PE ms) and how long it had work (``worked``, ms). ``remaining``: requests that ran or were queued at the
    end, of arrays with the indices that could start."""

    def __init__(self, site: Site, period: Period, then: PastSite) -> None:
        self.span = period.end - period.begin
        self._end = period.end
        self.replay = HistoryReplay(site.requests, watchers=(self,))
        self.could: Amounts = {}
        self.worked: Amounts = {}
        self.remaining: dict[Seq, Runs] = {}
        self._then, self._at, self.over = then, period.begin, False
        self._wanted: dict[str, dict[str, int]] = {}
        self._tune()

    def _tune(self) -> None:
        """Apply changed settings. Work is counted by queue, because a queue may get another domain."""
        site = self._then.site
        self._domain_of = site.domains_by_queue()
        self._divisions = {domain: division_of(site, domain) for domain in site.domains()}

    def add(self, recorded: ev.Recorded) -> None:
        """Add an event, also those before and after the period."""
        self.advance(recorded.at)
        if self._then.add(recorded):
            self._tune()

    def leave(self, request: Request, event: Any, at: Instant) -> None:
        """Subtract a request's PEs from its group's work; call it before its state changes."""
        self._change(request, -1)

    def enter(self, request: Request, at: Instant) -> None:
        """Add a request's PEs to its group's work, if it is in a state of `WORKS`."""
        self._change(request, 1)

    def _change(self, request: Request, sign: int) -> None:
        if request.state in WORKS:
            wanted, pes = self._wanted.setdefault(request.queue, {}), request.spec.ask.pes
            wanted[request.group] = wanted.get(request.group, 0) + sign * request.multiplicity * pes

    def advance(self, to: Instant) -> None:
        """Add up what groups could use until an instant, at most until the period's end."""
        if self.over:
            return
        self.over = to >= self._end
        to = min(to, self._end)
        if self.over:
            every = ((seq, history.request) for seq, history in self.replay.histories.items())
            here = ((seq, request) for seq, request in every if request.state in WORKS)
            self.remaining = {seq: request.array.ready if request.array else () for seq, request in here}
        span = to - self._at
        if span <= 0:
            return
        self._at = to
        working: dict[str, None] = {}
        wanted: dict[str, Counter[str]] = {domain: Counter() for domain in self._divisions}
        for queue, groups in self._wanted.items():
            wanted[self._domain_of.get(queue, APPLICATION)].update(groups)
        for domain, division in self._divisions.items():
            for name, pes in division.of(wanted[domain]).items():
                self.could[name] = self.could.get(name, 0.0) + pes * span
                working[name] = None
        for name in working:
            self.worked[name] = self.worked.get(name, 0.0) + span


def _held(history: RequestHistory, at: int) -> float:
    """Return the PE time (ms) that a request's attempts held up to an instant."""
    return sum(attempt.pes * attempt.held_time(attempt.begin, Instant(at)) for attempt in history.attempts)


def _bounded(presence: Presence, period: Period, site: Site) -> Amounts:
    """Return what each group could have used, bounded by the PE time that its requests held in the period and
    had still to hold at its end: by the mean of the group's ended requests if they have no limit."""
    histories, most = presence.replay.histories, dict[str, float]()
    ran = by_group(each for each in histories.values() if each.ended is not None and each.attempts)
    means = {name: sum(_held(each, each.ended or 0) for each in own) / len(own) for name, own in ran.items()}
    for history in histories.values():
        _add_up(site, most, history.request.group, _held(history, period.end) - _held(history, period.begin))
    for seq, some in presence.remaining.items():
        history = histories[seq]
        parts = [(1, history)]
        if (array := history.request.array) is not None:
            # As often as it has indices that could start, and those that are requests of their own.
            own = (histories.get(member(seq, index)) for index in indices.each(some))
            parts = [(indices.count(indices.both(some, array.left)), history)]
            parts += [(1, each) for each in own if each is not None]
        more = sum(number * _still(each, period.end, means, site) for number, each in parts)
        _add_up(site, most, history.request.group, more)
    whole = presence.could
    found = {name: min(value, most.get(name, 0.0)) for name, value in whole.items() if name}
    groups = {history.request.group for history in histories.values()}
    above = {name for group in groups for name in lineage(site.settings.groups, group)[1:]}
    lost = sum(whole[name] - found[name] for name in found if name in groups - above)
    return found | {"": whole.get("", 0.0) - lost}


def _add_up(site: Site, found: Amounts, group: str, more: float) -> None:
    add_up(found, dict.fromkeys(lineage(site.settings.groups, group) if more else (), more))


def _still(history: RequestHistory, end: int, means: Mapping[str, float], site: Site) -> float:
    before = _held(history, end)
    if history.ended is not None:
        return _held(history, history.ended) - before
    ask, pes = history.request.spec.ask, site.held_by(history.request)
    if not pes:
        return 0.0
    wall, cpu = finite(ask.wall), ask.finite_cpu()
    whole = wall * pes if wall is not None else cpu
    return max(0.0, (means.get(history.request.group, float("inf")) if whole is None else whole) - before)


def quota_report(
    events: Iterable[ev.Recorded],
    site: Site,
    period: Period,
    now: Instant,
    *,
    samples: Mapping[Seq, Used] | None = None,
    clock: str = "",
    before: Site | None = None,
) -> dict[str, Any]:
    """Return the report for JSON. Shares, caps, domains and PEs are those of each instant if ``before`` (the
    site before the first event) is given, else those of ``site``.

    ``events``: from the submission of the oldest request that had not ended when the period began, also those
    after its end; ``samples``: present use of running requests. Parts are fractions, deviations percentage
    points; null if nothing was used, or if no hour was full of work."""
    then, charge = PastSite(site, before), site.settings.usage.charge
    presence = Presence(site, period, then)
    accounts = QuotaAccounts(then, charge, period.begin, period.end, STEP)
    presence.replay.watchers.append(accounts)
    for recorded in events:
        presence.replay.add(recorded)
    presence.advance(period.end)
    presence.replay.sample(samples or {}, now)
    if period.ongoing:
        accounts.sample(samples or {}, now)
    accounts.advance(period.end)
    histories, used = presence.replay.histories.values(), dict[str, float]()
    for group, more in used_by_group(histories, period.begin, period.end, charge).items():
        _add_up(site, used, group, more)
        used[""] = used.get("", 0.0) + more
    could, zone, sums = _bounded(presence, period, site), zone_of(site.timezone), accounts.total()
    own = sorted({history.request.group for history in histories} & (used.keys() | presence.worked.keys()))
    names = list(dict.fromkeys((*departments(site.settings.groups), *own)))
    marks = zip(accounts.marks, accounts.marks[HOURLY:], accounts.sums, accounts.sums[HOURLY:], strict=False)
    every = ((begin, end, now.since(before)) for begin, end, before, now in marks if end - begin >= HOUR)
    hours = [hour for hour in every if not hour[2].little]  # those with enough use
    shares, rows = entitlements(with_default(site.settings.groups)), list[dict[str, Any]]()
    for name in names:
        row: dict[str, Any] = {"name": name, "entitlement": shares.get(name, 0.0)}
        for word, amounts in (("got", used), ("could", could)):
            row[f"{word}_s"] = round(amounts.get(name, 0.0) / 1000, 3)
            row[f"{word}_part"] = amounts.get(name, 0.0) / amounts[""] if amounts.get("") else 0.0
        work = {"work_part": presence.worked.get(name, 0.0) / presence.span}
        rows.append(row | sums.row(name) | work | _hour(name, hours, zone))
    data = {
        "from": zone.text(period.begin),
        "until": zone.text(period.end),
        "shift": period.shift,
        "ongoing": period.ongoing,
        "clock": clock or None,
        "charge": charge,
        "pes": site.pes(),
        "deviation": largest(sums.deviations.values()),
        "little_use": sums.little,
        "hour_deviation": largest(row["hour"]["deviation"] for row in rows if row["hour"]),
        "groups": rows,
    }
    return {"line": quota_line(data), **data}


def _hour(name: str, hours: Iterable[tuple[int, int, QuotaSums]], zone: Zone) -> dict[str, Any]:
    """Return ``hour`` of a group's row: the hour full of work in which it deviated most (of equal ones the
    first); null without such an hour."""
    worst, hour = 0.0, None
    for begin, end, sums in hours:
        deviation = sums.deviations.get(name)
        if deviation is None or sums.worked.get(name, 0.0) < HOUR:
            continue
        if hour is None or abs(deviation) > worst + 1e-9:
            worst = abs(deviation)
            hour = {"deviation": deviation, "from": zone.text(begin), "until": zone.text(end)}
    return {"hour": hour}


def quota_line(data: Mapping[str, Any]) -> str:
    """Return the report ``data`` as one line: the largest deviation over the period, and over any hour."""
    if data["deviation"] is None:
        return f"quotas: {TOO_LITTLE if data['little_use'] else 'nothing was used'}"
    hour = data["hour_deviation"]
    text = f"{hour:.1f} points over an hour" if hour is not None else "no hour had enough work"
    return f"quotas: largest deviation {data['deviation']:.1f} points, {text}"


def quota_text(data: Mapping[str, Any]) -> str:
    """Return the quota report as a table for people."""
    span = f"from {short(data['from'])} to {short(data['until'])}"
    shift = [f"shift {data['shift']}"] if data["shift"] else []
    going = ["not over yet"] if data["ongoing"] else []
    notes = [*shift, *going, f"{data['pes']} PEs", f"got: {charge_words(data['charge'])}"]
    heads = "GROUP", "ENT %", "GOT s", "GOT %", "DUE %", "GOT OF IT %", "POINTS", "WORK %", "HOUR", "FROM"
    where = folded(f"{span} ({', '.join(notes)})")
    rows = []
    for row in data["groups"]:
        got = f"{row['got_s']:.0f}", *(percent(row[key]) for key in ("got_part", "entitled", "got"))
        work, hour = f"{row['work_part'] * 100:.0f}", row["hour"]
        worst = (points(hour["deviation"]), short(hour["from"])[5:16]) if hour else (points(None), "-")
        rows.append((row["name"], percent(row["entitlement"]), *got, points(row["deviation"]), work, *worst))
    return f"{folded(data['line'])}\n{where}\n\n{grid(heads, rows)}"
