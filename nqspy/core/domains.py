"""Domains: their settings, the checks of their PEs, and their display."""

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import combinations
from typing import Any

from nqspy.core.asked import rules
from nqspy.model.board import pes_of
from nqspy.model.domains import APPLICATION, GREATEST, Domain, home_of, names, numbers, spans
from nqspy.model.errors import BadValue, Refusal
from nqspy.model.events import Change
from nqspy.model.machine import base_of, torus_of
from nqspy.model.registry import ALL, SettingsObject, Words, brought, declare, split
from nqspy.model.settings import Settings
from nqspy.model.site import Site
from nqspy.model.slots import table_of
from nqspy.model.units import format_exact

_SHOWN = 32
"""Most holders of a domain in the display for people."""


def _check(settings: Settings, touched: Collection[str] | None) -> Iterable[str]:
    """Yield a line for each error: a removed domain that a queue names, wrong sizes or PEs, shared PEs."""
    changed = {name for kind, name, _ in map(split, touched or ()) if kind is DOMAINS}
    if touched is not None and not changed and "machine" not in touched:
        return
    removed = changed - settings.domains.keys() - {APPLICATION}
    for queue in settings.queues.values() if removed else ():
        if queue.domain in removed:
            yield f"queue {queue.name} names domain {queue.domain}; give it another first: set queue domain="
    for domain in settings.domains.values():
        if domain.largest is not None and domain.smallest > domain.largest:
            yield f"domain {domain.name}: smallest={domain.smallest} is above largest={domain.largest}"
    others = [each for each in settings.domains.values() if each.name != APPLICATION]
    for domain in others:
        try:
            last = max(numbers(domain.pes), default=0)
        except BadValue as error:
            yield f"domain {domain.name}: {error}"
            return
        if not domain.pes and not domain.is_command:
            yield f"domain {domain.name} needs PEs: pes=16-255"
        if last >= ((pes := settings.machine.pes) or GREATEST):
            yield f"domain {domain.name} has PE {last}, but the machine has {pes} PEs; set its pes first"
    for one, other in combinations(others, 2):
        if both := {*numbers(one.pes)} & {*numbers(other.pes)}:
            yield f"PE {min(both)} is in domain {one.name} and in domain {other.name}"


def _vet(site: Site, settings: Settings, change: Change) -> None:
    """Raise BadValue for PEs that the machine does not have, and for new PEs of ``application``."""
    _, name, _ = split(change.path)
    given = brought(change)
    if name.lower() in (APPLICATION, "*") and (change.op in ("create", "delete") or "pes" in given):
        text = "domain application is always there and has every PE that no other domain has"
        raise BadValue(f"{text}; set domain application placement=, depth= or kind=")
    pes = given.get("pes")
    pes = (pes,) if isinstance(pes, str) else pes
    if change.op == "delete" or not isinstance(pes, list | tuple) or {*map(type, pes)} - {str}:
        return
    total = settings.machine.pes if settings.machine.pes is not None else len(site.found.cpus)
    beyond = [pe for pe in numbers(tuple(pes)) if pe >= total]
    if beyond and change.op != "remove":
        text = f"domain {name}: there is no PE {beyond[0]}"
        raise BadValue(f"{text}; the machine has {total}, numbered from 0")


_WORDS = Words(
    "Domains",
    "PEs (idle ones come from application or go back to it), placement and depth of a domain,"
    " what it takes, which features act on its requests",
    "domains: their PEs, how many are free, held and offline, depth, placement, what they take",
    create="a domain of PEs that are idle and in domain application",
    usage="NAME pes=16-255|(0-3, 8) [kind=application|command] "
    "[placement=lowest] [depth=1] [requests=N] [smallest=N] [largest=N] "
    "[users=(a, b)] [groups=(a, b)] [accounts=(a, b)] [takes=all|batch|interactive] "
    "[features=all|(a, b)]",
    delete="a domain that no queue names; its PEs, which must be idle, are application's then",
)
DOMAINS = declare(
    SettingsObject(
        "domain",
        Domain,
        "domains",
        named=True,
        many="domain",
        joined=ALL,
        standing=APPLICATION,
        words=_WORDS,
        check=_check,
        vet=_vet,
    )
)


def check_moves(site: Site, after: Settings, touched: Collection[str]) -> None:
    """Raise Refusal if new settings would change the domain of a held PE or of a queue with requests on PEs,
    or give a PE more holders than its new depth. ``touched``: paths of the changed objects."""
    before, moved = site.settings, _moved_queues(site, after, touched)
    if before.domains == after.domains and not moved:
        return
    for pe, holders in sorted(site.holders.items()):
        old, new = home_of(before.domains, pe), home_of(after.domains, pe)
        if old != new:
            raise Refusal("pe_is_held", pe=pe, domain=old, holder=site.id_of(holders[0]))
        most = after.domains[new].depth if new in after.domains else 1
        if len(holders) > most:
            raise Refusal("pe_has_holders", domain=new, pe=pe, count=len(holders), depth=most)
    for queue, count in sorted(moved.items()):
        held = f"{count} request{'s' if count > 1 else ''} of queue {queue} {'have' if count > 1 else 'has'}"
        raise Refusal("queue_holds_pes", held=held, domain=before.queues[queue].domain)


def _moved_queues(site: Site, after: Settings, touched: Collection[str]) -> dict[str, int]:
    """Return the queues that change domain or kind of domain, with how many of their requests hold PEs."""
    settings, before = site.settings, site.settings.queues
    changed = {name for kind, name, _ in map(split, touched) if kind is not None and kind.head == "queue"}
    names = changed & before.keys() & after.queues.keys()
    moved = {name for name in names if before[name].domain != after.queues[name].domain}
    domains = {queue.domain for queue in before.values()}
    other_kind = {name for name in domains if _is_command(settings, name) != _is_command(after, name)}
    moved |= {name for name, queue in before.items() if queue.domain in other_kind}
    holding = (each for each in site.started.values() if not each.pes_released)
    return Counter(each.queue for each in holding if each.queue in moved) if moved else {}


def unused(settings: Settings, pes: int) -> list[str]:
    """Return a line for each batch queue in a domain without PEs, or with too few for any request."""
    if not settings.domains:
        return []
    wrong: dict[str, str] = {}
    for name in names(settings.domains):
        if _is_command(settings, name):
            continue
        size = int(pes_of(settings.domains, name, pes).sum())
        least = settings.domains[name].smallest if name in settings.domains else 1
        if not size:
            wrong[name] = f"domain {name} has no PE"
        elif size < least:
            wrong[name] = f"domain {name} takes requests of {least} PEs and more, and has {size}"
    batch = (queue for queue in settings.queues.values() if queue.kind == "batch") if wrong else ()
    return [f"queue {queue.name}: {wrong[queue.domain]}" for queue in batch if queue.domain in wrong]


def _is_command(settings: Settings, name: str) -> bool:
    return name in settings.domains and settings.domains[name].is_command


def rows(site: Site) -> list[dict[str, Any]]:
    """Return all domains as JSON objects: PEs, settings and holders."""
    lines = []
    for name in names(site.settings.domains):
        board, domain = site.board(name), site.domain(name)
        pes = site.pes_of(domain).nonzero()[0].tolist()
        offline = sorted(set(site.offline()) & set(pes))
        held = int((board.held[pes] > 0).sum())
        lines.append(
            {
                "name": name, "kind": domain.kind, "pes": pes, "free": board.free, "held": held,
                "offline": len(offline), "depth": domain.depth, "placement": domain.placement,
                "requests": domain.requests, "smallest": domain.smallest, "largest": domain.largest,
                "users": list(domain.users), "groups": list(domain.groups),
                "accounts": list(domain.accounts), "takes": domain.takes,
                "features": None if domain.features is None else list(domain.features),
                "heartbeat_s": _seconds(domain.heartbeat), "partial": domain.partial,
                "variation": domain.variation, "balance_heartbeat_s": _seconds(domain.balance_heartbeat),
                "balance_rest_s": _seconds(domain.balance_rest), "slots": _slots(site, name),
                "holders": _holders(site, pes), "foreign": _foreign(site, pes),
            }
        )  # fmt: skip
    return lines


def _slots(site: Site, domain: str) -> list[dict[str, Any]]:
    """Return the slots of a domain in turn, each with its length and requests; empty: it has none."""
    table = table_of(site, domain)
    if table is None:
        return []
    slots = zip(table.lengths, table.slots, strict=True)
    return [{"length_s": length / 1000, "ids": list(map(site.id_of, seqs))} for length, seqs in slots]


def _seconds(time: int | None) -> float | None:
    return None if time is None else time / 1000


def _holders(site: Site, pes: Iterable[int]) -> list[dict[str, Any]]:
    """Return the requests that hold some of these PEs, by lowest PE (on a torus with its coordinate)."""
    held: dict[int, list[int]] = {}
    for pe in pes:
        for seq in site.holders.get(pe, ()):
            held.setdefault(seq, []).append(pe)
    torus = torus_of(site.settings.machine)
    return [
        {"id": site.id_of(seq), "pes": own, "base": own[0]}
        | ({} if torus is None else {"coordinate": list(torus.at(own[0]))})
        for seq, own in held.items()
    ]


def _foreign(site: Site, pes: Collection[int]) -> list[dict[str, Any]]:
    """Return the foreign jobs that use some of these PEs, with these, by pid."""
    there = [(job, [pe for pe in job.pes if pe in pes]) for job in site.foreign]
    return [
        {"class": "foreign", "pid": job.pid, "user": job.user, "command": job.command, "pes": own}
        for job, own in there
        if own
    ]


def ranges(pes: Iterable[int]) -> str:
    """Return PE numbers in ascending order as people write them: ``0-3, 8``."""
    return ", ".join(spans(pes)) or "none"


def text(site: Site, chosen: Collection[str] = ()) -> str:
    """Return the domains named in ``chosen`` (empty: all) as text for people."""
    lines, torus = [], torus_of(site.settings.machine)
    for row in rows(site):
        if chosen and row["name"] not in chosen:
            continue
        offline = [pe for pe in site.offline() if pe in row["pes"]]
        away = f", {len(offline)} offline ({ranges(offline)})" if offline else ""
        bound = "" if row["requests"] is None else f" requests={row['requests']}"
        listed = [] if row["features"] is None else [f"  features=({', '.join(row['features'])})"]
        if (beat := row["balance_heartbeat_s"]) is not None:
            listed.append(f"  balance_heartbeat={beat:g} balance_rest={row['balance_rest_s']:g}")
        lines += [
            f"{row['name']} [{row['kind']}]",
            f"  PEs {ranges(row['pes'])}: {len(row['pes'])}, {row['free']} free, {row['held']} held{away}",
            f"  placement={row['placement']} depth={row['depth']}{bound}",
            f"  takes {rules(site.domain(row['name']))}",
            *listed,
        ]
        for holder in row["holders"][:_SHOWN]:
            base = base_of(holder["pes"], torus)
            base_text = "" if base is None else f", base {base}"
            lines.append(f"  PEs {ranges(holder['pes'])} held by {holder['id']}{base_text}")
        if more := row["holders"][_SHOWN:]:
            lines.append(f"  and {len(more)} holders more: qmgr --json")
        for number, slot in enumerate(row["slots"][:_SHOWN]):
            length = format_exact(round(1000 * slot["length_s"]))
            lines.append(f"  slot {number}, {length}: {' '.join(slot['ids'])}")
        names = {job.pid: job.name for job in site.foreign}
        for job in row["foreign"][:_SHOWN]:
            lines.append(f"  PEs {ranges(job['pes'])} held by a foreign job ({names[job['pid']]})")
    return "\n".join(lines)
