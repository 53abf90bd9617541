"""qmgr's ``show``, ``snap``, ``help`` and ``plan``: settings, and facts that only the daemon knows."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import Any

import msgspec

from nqspy.answers import queues
from nqspy.answers.nights import Past
from nqspy.answers.serving import Serving
from nqspy.core import consumables, domains
from nqspy.core.resource_health import PROBES, tried_by
from nqspy.decider.client import MAX_WAIT
from nqspy.engine import calendar
from nqspy.engine.handlers.settings import try_changes
from nqspy.model import commands as cm
from nqspy.model import registry
from nqspy.model.accounts import Entry
from nqspy.model.configure import Trial, copy_of, dump
from nqspy.model.domains import APPLICATION
from nqspy.model.errors import Refusal
from nqspy.model.events import Recorded, ShiftChanged
from nqspy.model.ids import DAY, Instant, Seq, full_id
from nqspy.model.people import entitlements, walk, with_default
from nqspy.model.requests import Used
from nqspy.model.site import Site
from nqspy.model.tree import items
from nqspy.qmgr import show as qmgr_show
from nqspy.qmgr import show_shifts
from nqspy.qmgr.grammar import FARTHEST
from nqspy.qmgr.printer import print_settings
from nqspy.qmgr.values import write
from nqspy.report import counters
from nqspy.report.quota_accounts import quotas_since
from nqspy.report.shares import QuotaSums
from nqspy.report.time_text import Zone, short
from nqspy.shares import ALL, FairShare
from nqspy.userexit.hooks import shadows


def show(serving: Serving, asked: cm.ShowObject, in_json: bool) -> str:
    """Return the text (or JSON) of a ``show``, except counters and `show_shares`. Raises Refusal."""
    site, shown = serving.engine.site, registry.shown_as(asked.what)
    there = shown.names(site.settings) if shown is not None else asked.names
    for name in asked.names:
        if name not in there:
            head = asked.what.removesuffix("s") if shown is None else shown.head
            raise Refusal("unknown_object", what=head, name=name)
    for kind, _ in registry.switched():
        if kind.head == asked.what:
            status = kind.status(site, Zone(site.timezone).stamp)
            if in_json:
                return as_json({"settings": msgspec.to_builtins(kind.one(site.settings)), **status.data})
            return qmgr_show.show_feature(site.settings, kind, status.rows)
    if asked.what in _MADE:
        data, text_of = _MADE[asked.what]
        found = data(serving, asked)
        return as_json(found) if in_json else text_of(serving, asked, found)
    if in_json:
        return as_json(_settings(serving, asked))
    if asked.what in _TEXTS:
        return _TEXTS[asked.what](serving, asked)
    return qmgr_show.show_settings(asked.what, site.settings, asked.names)


def snapshot(site: Site) -> Site:
    """Return a copy of the present site for reports, which the engine does not change."""
    requests = {seq: copy(request) for seq, request in site.requests.items()}
    return Site(
        settings=copy_of(site.settings), found=site.found, host=site.host, zone=site.zone, requests=requests,
        started={seq: requests[seq] for seq in site.started},
        accounts={key: account.copy() for key, account in site.accounts.items()},
        past={domain: past.copy() for domain, past in site.past.items()}, shift=replace(site.shift),
        reported=site.reported, next_seq=site.next_seq, n=site.n, at=site.at,
    )  # fmt: skip


def as_json(data: Any) -> str:
    """Return data as a line of JSON."""
    return msgspec.json.encode(data).decode() + "\n"


def _settings(serving: Serving, asked: cm.ShowObject) -> Any:
    rows, kind = dump(serving.engine.site.settings), registry.shown_as(asked.what)
    if kind is None:
        return rows.get(asked.what, rows)
    found = {path.partition("/")[2]: row for path, row in rows.items() if path.startswith(f"{kind.head}/")}
    return {name: row for name, row in found.items() if not asked.names or name in asked.names}


# ---------------------------------------------------------------- rows of what is not a setting


def show_shares(serving: Serving, in_json: bool) -> Callable[[], str]:
    """Return a function that makes ``show shares``; call that outside the engine's thread, because it reads
    the events of a shift."""
    serving.commit()
    rows, site, now = _shares(serving), snapshot(serving.engine.site), serving.clock.now()
    samples, reader = dict(serving.engine.samples), serving.readers.reports
    begin = site.shift.since or Instant(0)

    def work() -> str:
        first = reader.oldest(begin)
        since = begin if first is None else min(first, begin)
        events = takewhile(lambda each: each.n <= site.n, reader.events(since=since))
        before = Past(reader).before(since)
        domains = quotas_since(begin, now, events, site, before, samples)
        sums, found = QuotaSums.together(domains.values()), []
        for row in rows:  # of all domains together, and of each
            each = [{**one, **_quota(domains[one["domain"]], row["group"])} for one in row.get("domains", ())]
            found.append({**row, **_quota(sums, row["group"]), **({"domains": each} if each else {})})
        return as_json(found) if in_json else qmgr_show.show_shares(found)

    return work


def _quota(sums: QuotaSums, group: str) -> dict[str, Any]:
    """Return fractions ``entitled got deviation`` of a group (None: too little use), and ``little_use``."""
    row = sums.row(group)
    deviation = None if row["deviation"] is None else row["deviation"] / 100
    return {**row, "deviation": deviation, "little_use": sums.little}


def _shares(serving: Serving) -> list[dict[str, Any]]:
    """Return the share tree's rows: entitlement, decayed use, over all domains, parents before children."""
    site, now = serving.engine.site, serving.clock.now()
    samples, entitled = serving.engine.samples, entitlements(with_default(site.settings.groups))
    ledger = FairShare(site, now, samples)
    ledgers = {APPLICATION: ledger}
    if len(shared := site.shared()) > 1:
        ledgers = {domain: FairShare(site, now, samples, domain=domain) for domain in shared}
    half = site.settings.usage.half_life
    return [
        {
            "group": group.name, "depth": depth, "share": group.share,
            "entitlement": entitled[group.name], "entitled_now": ledger.share(group=group.name),
            "usage": ledger.usage(group=group.name),
            "used_s": sum(each.at_time(now, half) for each in site.own_accounts(group.name, None)) / 1000,
            "charge": site.settings.usage.charge, "limit": group.limit,
            "members": list(group.members), **_owed(site, ledgers, group.name),
        }
        for group, depth in walk(with_default(site.settings.groups))
    ]  # fmt: skip


def _owed(site: Site, ledgers: Mapping[str, FairShare], group: str) -> dict[str, Any]:
    """Return a group's accounts and rule; ``target`` and ``stock`` (share term) are those of domain
    ``application``, the others are sums over domains. If there are several, ``domains`` has each."""
    each: dict[str, dict[str, Any]] = {}
    for domain, ledger in ledgers.items():
        standing, accounts = ledger.stocks.rule(ALL).standing, site.own_accounts(group, domain)
        former = accounts[0].entry if accounts else Entry()
        entry = ledger.stocks.accounts(ALL).members().get(group) or former
        each[domain] = {
            "works": group in standing.parts, "target": standing.targets.get(group),
            "stock": ledger.stock(None, group), "past_s": entry.past / 1000,
            "present_s": entry.present / 1000,
        }  # fmt: skip
    own = each[APPLICATION]
    present = {name: sum(one[name] for one in each.values()) for name in ("past_s", "present_s")}
    text = {
        "rule": site.settings.global_.share_rule,
        "works": any(one["works"] for one in each.values()), "target": own["target"],
        "stock": own["stock"], **present,
        "since": Zone(site.timezone).text(site.shift.since) if site.shift.since else None,
    }  # fmt: skip
    if len(each) > 1:
        text["domains"] = [{"domain": domain, **one} for domain, one in each.items()]
    return text


_MOST = 10_000
"""Most switches of shifts that are shown."""


def _span(asked: cm.ShowObject, usual: int) -> int:
    """Return the time ahead that is asked for, else ``usual`` (ms). Raises Refusal for more than FARTHEST."""
    span = (asked.options or {}).get("next", usual)
    if isinstance(span, bool) or not isinstance(span, int) or not 0 < span <= FARTHEST:
        raise Refusal("bad_next")
    return span


def _holidays(serving: Serving, asked: cm.ShowObject, span: int = DAY) -> list[dict[str, str]]:
    """Return the coming days that count as Sundays; ``span``: time ahead (ms) if none is asked for."""
    site, now = serving.engine.site, serving.clock.now()
    until = Instant(now + _span(asked, span))
    found = calendar.sundays(site.settings, site.timezone, now, until)
    return [{"date": day.isoformat(), "name": name} for day, name in found]


def _shifts_data(serving: Serving, asked: cm.ShowObject) -> dict[str, Any]:
    state, site, now = serving.engine.site.shift, serving.engine.site, serving.clock.now()
    firings = calendar.coming(site.settings, site.timezone, now, Instant(now + _span(asked, DAY)), _MOST + 1)
    if len(firings) > _MOST:
        raise Refusal("many_switches", most=_MOST)
    zone = Zone(site.timezone)
    return {
        "current": state.current, "manual": state.manual,
        "coming": [{"at": zone.text(each.at), "shift": each.shift} for each in firings],
        "holidays": _holidays(serving, asked), "shifts": _settings(serving, asked),
    }  # fmt: skip


def _shifts_text(serving: Serving, asked: cm.ShowObject, data: Any) -> str:
    site = serving.engine.site
    until = Zone(site.timezone).stamp(site.shift.until)
    return show_shifts.show_shifts(
        site.settings, data["current"], data["coming"], data["manual"], until, data["holidays"]
    )


def probes(serving: Serving, asked: cm.ShowObject) -> list[dict[str, Any]]:
    """Return a row for each probe, or unit of a consumable: what it tries and found, and its last try."""
    site, rows = serving.engine.site, list[dict[str, Any]]()
    stamp = Zone(site.timezone).stamp
    for own, probe in PROBES.all(site.settings).items():
        for name, each in tried_by(site, probe).items():
            if asked.names and own not in asked.names and name not in asked.names:
                continue
            last, known = serving.last_try(name), site.resources.get(name)
            rows.append({
                "name": name, "state": known.state if known is not None else "untried",
                "since": stamp(known.since) if known is not None else None,
                "text": last.text if last is not None else known.text if known is not None else "",
                "tried": stamp(last.at) if last is not None else None,
                **{path: value for path, _, value in items(each)},
            })  # fmt: skip
    return rows


def _probes_text(serving: Serving, asked: cm.ShowObject, rows: list[dict[str, Any]]) -> str:
    site = serving.engine.site
    by_name = {row["name"]: row for row in rows}
    found = {}
    for own, probe in PROBES.all(site.settings).items():
        text = [by_name[name] for name in tried_by(site, probe) if name in by_name]
        if probe.units is not None:
            each = "\n  ".join(f"{row['name']} {_state(row)}, {_last(row)}" for row in text)
            found[own] = f"[units of {probe.units}]", each
        elif text:
            found[own] = _state(text[0]), _last(text[0])
    return qmgr_show.show_listed(site.settings, PROBES, asked.names, found)


def _state(row: Mapping[str, Any]) -> str:
    return f"[{row['state']}]" + (f" since {short(row['since'])}" if row["since"] else "")


def _last(row: Mapping[str, Any]) -> str:
    tried = short(row["tried"]) if row["tried"] else "never"
    return f"tried last {tried}: {row['text'] or '-'}"


def count(
    events: Iterable[Recorded], site: Site, now: Instant, samples: Mapping[Seq, Used]
) -> dict[str, Any]:
    """Return the figures of ``show counters``, by departments, from the events of the last days; their period
    begins at the last switch of shifts among these."""
    listed = list(events)
    entered = [each.at for each in listed if isinstance(each.event, ShiftChanged)]
    return counters.counters(listed, site, now, entered[-1] if entered else None, samples)


def counting(serving: Serving) -> Callable[[], dict[str, Any]]:
    """Return a function that computes the counters once; call it in another thread: it reads 8 days."""
    site, now, samples = snapshot(serving.engine.site), serving.clock.now(), dict(serving.engine.samples)
    reader = serving.readers.live
    return cache(lambda: count(reader.events(since=Instant(now - 8 * DAY)), site, now, samples))


def plan(serving: Serving, parsed: list[Any]) -> Callable[[], str]:
    """Return a function that makes the text of ``plan``, for any thread: settings that the script would
    change, and waiting requests that would then start earlier or later."""
    site, now = serving.engine.site, serving.clock.now()
    changes = tuple(c for one in parsed if isinstance(one.command, cm.Configure) for c in one.command.changes)
    if not changes:
        return lambda: "it changes no setting\n"
    tx = serving.engine.transaction(now)
    after = try_changes(tx, Trial(site.settings), changes).settings
    lines = _difference(dump(site.settings), dump(after)) or ["it changes no setting"]
    starts = serving.decider.starts(now, serving.engine.between, changes)
    host, zone = site.name, Zone(site.timezone)

    def work() -> str:
        try:
            moves = _moves(host, zone, *starts(MAX_WAIT))
        except Refusal as refusal:
            moves = [str(refusal)]
        return "".join(f"{line}\n" for line in [*lines, *moves])

    return work


_FEW = 1_000
"""Starts less than this apart (ms) count as the same."""


def _moves(host: str, zone: Zone, before: Mapping[Seq, Instant], then: Mapping[Seq, Instant]) -> list[str]:
    """Return lines on waiting requests that would start earlier or later, within the simulated time."""
    lines = []
    for seq in sorted(before.keys() | then.keys()):
        old, new = before.get(seq), then.get(seq)
        if old is None or new is None:
            word = "earlier" if old is None else "later"
        elif abs(new - old) >= _FEW:
            word = "earlier" if new < old else "later"
        else:
            continue
        text = " -> ".join(short(zone.text(at)) if at is not None else "not in sight" for at in (old, new))
        lines.append(f"{full_id(seq, host)} would start {word}: {text}")
    return lines


def _difference(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    lines = []
    for path in dict.fromkeys((*before, *after)):
        kind, name, _ = registry.split(path)
        always: dict[str, Any] | None = (
            {} if kind is not None and kind.standing and name == kind.standing else None
        )
        old, new = before.get(path, always), after.get(path, always)
        if old is None or new is None:
            lines.append(f"{'new' if old is None else 'gone'}: {path.replace('/', ' ')}")
            continue
        old, new = (row | row.get("values", {}) for row in (old, new))  # an exit's settings stand in values
        for key in dict.fromkeys((*old, *new)):
            if old.get(key) != new.get(key) and key not in ("values", "commands", "counts"):
                place = f"{path}/{key}"
                text = f"{_shown(place, old, key)} -> {_shown(place, new, key)}"
                lines.append(f"{place.replace('/', ' ')}: {text}")
    return lines


def _shown(path: str, row: Mapping[str, Any], key: str) -> Any:
    """Return a setting of an object's row as the command language writes it."""
    info = registry.declared_at(path)
    if info is None:
        return row.get(key, "default")
    return write(info, row.get(key, info.default))


_MADE: dict[
    str, tuple[Callable[[Serving, cm.ShowObject], Any], Callable[[Serving, cm.ShowObject, Any], str]]
] = {
    "shifts": (_shifts_data, _shifts_text),
    "calendar": (
        lambda serving, asked: {
            **dump(serving.engine.site.settings)["calendar"],
            "coming": _holidays(serving, asked, 366 * DAY),
        },
        lambda serving, asked, data: show_shifts.show_calendar(serving.engine.site.settings, data["coming"]),
    ),
    "exits": (
        lambda serving, asked: serving.exits.listing(),
        lambda serving, asked, rows: "\n".join([qmgr_show.show_exits(rows), *shadows(rows)]),
    ),
    "probes": (probes, _probes_text),
    "consumables": (
        lambda serving, asked: consumables.rows(serving.engine.site, asked.names),
        lambda serving, asked, rows: consumables.text(serving.engine.site, asked.names),
    ),
    "domain": (
        lambda serving, asked: [
            row for row in domains.rows(serving.engine.site) if not asked.names or row["name"] in asked.names
        ],
        lambda serving, asked, rows: domains.text(serving.engine.site, asked.names),
    ),
}
"""Displays with more than settings: the functions that make their data, and their text."""
_TEXTS: dict[str, Callable[[Serving, cm.ShowObject], str]] = {
    "queue": lambda serving, asked: qmgr_show.show_queue(
        serving.engine.site.settings,
        asked.names,
        bool((asked.options or {}).get("long")),
        queues.counts(serving),
        serving.engine.site.name,
    ),
    "machine": lambda serving, asked: qmgr_show.show_machine(
        serving.engine.site.settings, serving.engine.site.found
    ),
    "snap": lambda serving, asked: print_settings(serving.engine.site.settings),
}
"""Settings whose text has more than their values."""
