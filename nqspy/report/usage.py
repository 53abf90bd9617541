"""Shares and use of groups and users: entitlement, decayed use, and how far the two agree."""

from collections.abc import Iterable, Mapping
from typing import Any

from nqspy.model.ids import Instant
from nqspy.model.people import entitled_now, entitlements, with_default
from nqspy.model.site import Site
from nqspy.model.texts import grid, percent
from nqspy.model.units import format_time
from nqspy.report.shares import charge_words
from nqspy.report.time_text import short, zone_of


def usage(site: Site, now: Instant) -> dict[str, Any]:
    """Return shares and use for JSON: ``groups`` has a row for each group, in the order of the share tree,
    with its users.

    ``use_s``: decayed use in seconds (of CPU, or of PE time, as `Usage.charge` says), with that of groups
    below; ``fraction``: its part of all use; ``ratio``: entitlement / fraction, null if nothing was used;
    ``entitled_now``: present entitlement, as some groups have no work. Use that running requests have not
    been charged for yet is not included."""
    half_life = site.settings.usage.half_life
    values: dict[str, float] = {}
    for key, account in site.accounts_in(None):
        values[key] = values.get(key, 0.0) + account.at_time(now, half_life)
    own = {key[2:]: value for key, value in values.items() if key.startswith("g:")}
    # The group `default` exists with share 1 even where it is not set up: scheduling counts it.
    groups = with_default(site.settings.groups)
    total, shares = sum(own.values()), entitlements(groups)
    now_shares = entitled_now(groups, {group for group, _ in site.busy()})

    # Groups depth first, then those that have use and are not in the tree.
    tree = site.settings.groups
    outside = [(name, 0) for name in own if name not in tree]

    def below(parent: str | None, depth: int) -> Iterable[tuple[str, int]]:
        for name, group in tree.items():
            if (group.parent if group.parent in tree else None) == parent:
                yield name, depth
                yield from below(name, depth + 1)

    def row(name: str, depth: int) -> dict[str, Any]:
        group, use, users = tree.get(name), _with_below(site, name, own), f"u:{name}:"
        entitled, fraction = shares.get(name, 0.0), use / total if total else 0.0
        return {
            "name": name, "parent": None if group is None else group.parent, "depth": depth,
            "share": None if group is None else group.share, "limit": None if group is None else group.limit,
            "entitled_now": now_shares.get(name, 0.0), "entitlement": entitled, "use_s": use / 1000,
            "fraction": fraction, "ratio": entitled / fraction if fraction else None,
            "users": [
                {"name": key[len(users) :], "use_s": ms / 1000, "fraction": ms / total if total else 0.0}
                for key, ms in sorted(values.items()) if key.startswith(users)
            ],
        }  # fmt: skip

    return {
        "at": zone_of(site.timezone).text(now),
        "half_life_s": half_life / 1000,
        "charge": site.settings.usage.charge,
        "groups": [row(name, depth) for name, depth in (*below(None, 0), *outside)],
    }


def _with_below(site: Site, name: str, own: Mapping[str, float]) -> float:
    children = (child for child, group in site.settings.groups.items() if group.parent == name)
    return own.get(name, 0.0) + sum(_with_below(site, child, own) for child in children)


def usage_text(data: Mapping[str, Any]) -> str:
    """Return shares and use of groups and users as a table for people."""
    rows: list[tuple[str, ...]] = []
    for group in data["groups"]:
        indent = "  " * group["depth"]
        ratio = "-" if group["ratio"] is None else f"{group['ratio']:.2f}"
        share = "-" if group["share"] is None else str(group["share"])
        entitled = (percent(group["entitlement"]), percent(group["entitled_now"]))
        limit = "-" if group["limit"] is None else f"{group['limit']:g}%"
        rows.append((indent + group["name"], share, limit, *entitled, *_use(group), ratio))
        rows += [(f"{indent}  - {user['name']}", "", "", "", "", *_use(user), "") for user in group["users"]]
    half_life = format_time(round(data["half_life_s"] * 1000))
    head = f"use at {short(data['at'])}: {charge_words(data['charge'])}, half-life {half_life}\n\n"
    return head + grid(("GROUP", "SHARE", "LIMIT", "ENTITLED %", "NOW %", "USE s", "USE %", "E/U"), rows)


def _use(row: Mapping[str, Any]) -> tuple[str, str]:
    return f"{row['use_s']:.1f}", percent(row["fraction"])
