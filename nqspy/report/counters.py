"""The departments' counters, after figure 1 of seed 003: what each has used of its share in this period, what
finished and runs today, what finished this week. They count what is charged (`Usage.charge`)."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from nqspy.model import events as ev
from nqspy.model.ids import HOUR, MINUTE, Instant, Seq, is_array
from nqspy.model.requests import Used
from nqspy.model.site import Site
from nqspy.report.night_metrics import used_by_group
from nqspy.report.replay import HistoryReplay
from nqspy.report.shares import add_up, department_shares, departments
from nqspy.report.time_text import hours, zone_of
from nqspy.shares import amount


class Since(NamedTuple):
    """Instants at which the present planning period, day and week began."""

    period: Instant
    day: Instant
    week: Instant


def since(site: Site, now: Instant, entered: Instant | None = None) -> Since:
    """Return the instants at which the present day, week (from Monday) and planning period began. Periods of
    `Usage.period` follow each other from ``entered`` on; from midnight if that is None or after ``now``."""
    zone, period = zone_of(site.timezone), site.settings.usage.period
    today = zone.local(now).date()
    day, monday = zone.at(today), zone.at(today - timedelta(days=today.weekday()))
    anchor = entered if entered is not None and entered <= now else day
    return Since(Instant(anchor + (now - anchor) // period * period), day, monday)


def counters(
    events: Iterable[ev.Recorded],
    site: Site,
    now: Instant,
    entered: Instant | None = None,
    samples: Mapping[Seq, Used] | None = None,
) -> dict[str, Any]:
    """Return the counters by group, for JSON. ``events``: from the earliest instant of `since` on (earlier
    ones do no harm); ``entered``: see `since`; ``samples``: present use of running requests, used where it
    is more than the site's.

    ``used_s``: what was charged in this period (``charge``: CPU time, or PEs x wall time), running requests
    included; ``remain_s`` = share x PEs x period - used, at least 0; ``finished`` counts the whole use of
    requests when they end. Rows add up: a group with groups below it has a row for its own requests only;
    its share is in the rows of the groups below."""
    begun = since(site, now, entered)
    replay, day, week = _followed(events, site, begun)
    samples, charge = samples or {}, site.settings.usage.charge
    replay.sample(samples, now)
    used = used_by_group(replay.histories.values(), begun.period, now, charge)
    running: dict[str, int] = {}
    unseen: dict[str, float] = {}
    for seq, request in site.started.items():
        known = (request.used, samples.get(seq, request.used))
        more = max(amount(each, charge, request, site.held_by) for each in known)
        running[request.group] = running.get(request.group, 0) + more
        history = replay.histories.get(seq)
        if request.started is not None and (history is None or not history.attempts):
            # Use of a request that the events do not show is spread evenly over its time.
            part = min(1.0, max(0, now - begun.period) / max(1, now - request.started))
            whole = amount(request.used, charge, request, site.held_by)
            unseen[request.group] = unseen.get(request.group, 0.0) + part * whole
    add_up(used, unseen)
    leaves, shares = departments(site.settings.groups), department_shares(site.settings.groups)
    names = dict.fromkeys((*leaves, *week, *running, *(name for name, ms in used.items() if ms)))
    whole = site.pes() * site.settings.usage.period
    rows = [
        {
            "name": name,
            "share": shares.get(name, 0.0),
            "used_s": used.get(name, 0.0) / 1000,
            "remain_s": max(0.0, shares.get(name, 0.0) * whole - used.get(name, 0.0)) / 1000,
            "daily_finished_s": day.get(name, 0) / 1000,
            "daily_running_s": running.get(name, 0) / 1000,
            "weekly_finished_s": week.get(name, 0) / 1000,
            "weekly_part": week.get(name, 0) / total if (total := sum(week.values())) else 0.0,
        }
        for name in names
    ]
    zone, usage = zone_of(site.timezone), site.settings.usage
    return {
        "date": zone.text(now), "planning": zone.text(begun.period), "period_s": usage.period / 1000,
        "day": zone.text(begun.day), "week": zone.text(begun.week), "shift": site.shift.current,
        "pes": site.pes(), "charge": usage.charge, "groups": rows,
    }  # fmt: skip


def _followed(
    events: Iterable[ev.Recorded], site: Site, begun: Since
) -> tuple[HistoryReplay, dict[str, int], dict[str, int]]:
    """Return the requests' histories, and two sums by group: the use (ms charged) of requests that ended
    today, and of those that ended this week."""
    replay, charge = HistoryReplay(site.requests), site.settings.usage.charge
    day: dict[str, int] = {}
    week: dict[str, int] = {}
    for recorded in events:
        replay.add(recorded)
        event = recorded.event
        if isinstance(event, ev.Ended) and event.seq in replay.histories and not is_array(event.seq):
            history = replay.histories[event.seq]
            group, more = history.request.group, amount(event.used, charge, history.request, site.held_by)
            for start, sums in ((begun.day, day), (begun.week, week)):
                if recorded.at >= start:
                    sums[group] = sums.get(group, 0) + more
    return replay, day, week


def counters_text(data: Mapping[str, Any]) -> str:
    """Return the result of `counters` as the table of figure 1 in seed 003, for people: times as ``hh:mm``,
    parts in percent; a line says so if PEs x wall time is charged."""
    by_cpu = data["charge"] == "cpu"
    width = max([len(row["name"]) for row in data["groups"]] + [2])
    date, planning = (f"{t[8:10]}/{t[5:7]}/{t[2:4]} {t[11:19]}" for t in (data["date"], data["planning"]))
    ms = round(data["period_s"] * 1000)
    period = f"{ms // HOUR}h" if ms % HOUR == 0 else f"{ms // MINUTE}min"
    lines = [
        f"date      : {date}",
        f"planning  : {planning} ({period} period)",
        *(() if by_cpu else ("charged   : PEs x wall time",)),
        "",
        f"{'dep. %':<{width + 8}}{'cpu/period' if by_cpu else 'PE/period '}       daily           weekly",
        f"{'':<{width + 8}}used   remain   finis.  run.    finished",
    ]
    for row in data["groups"]:
        keys = ("used_s", "remain_s", "daily_finished_s", "daily_running_s")
        used, remain, finished, running = (hours(row[key] * 1000) for key in keys)
        head = f"{row['name']:<{width}} ({row['share'] * 100:02.0f})"
        weekly = f"{hours(row['weekly_finished_s'] * 1000, 3)} ({row['weekly_part'] * 100:02.0f})"
        lines.append(f"{head:<{width + 6}}  {used:<6} {remain:<8} {finished:<7} {running:<7} {weekly}")
    return "".join(f"{line.rstrip()}\n" for line in lines)
