"""A copy of a site, for simulations and for trying settings."""

from collections.abc import Collection
from copy import copy
from dataclasses import replace
from typing import Any

from nqspy.model.columns import Columns
from nqspy.model.configure import copy_of
from nqspy.model.ids import Seq
from nqspy.model.site import RequestCounts, Site, Touched

_FLAT = ("holders", "turns", "resources", "upcoming_stops", "closings")
_NESTED = ("units", "away", "dependants", "members", "promises")
"""Fields of a site that are dictionaries of plain values (`_FLAT`), and of dictionaries (`_NESTED`)."""


def copy_site(site: Site, without: Collection[Seq] = ()) -> Site:
    """Return an independent copy without the queued requests ``without``. Its indexes of output files and of
    rows to store are empty, because a copy is never stored."""
    requests = {seq: copy(request) for seq, request in site.requests.items() if seq not in without}
    copied: dict[str, Any] = {name: dict(getattr(site, name)) for name in _FLAT}
    for name in _NESTED:
        copied[name] = {key: copy(each) for key, each in getattr(site, name).items()}
    waiting = {} if without else {name: each.copy(requests) for name, each in site.waiting.items()}
    for name, columns in site.waiting.items() if without else ():
        remaining = (requests[each.seq] for each in columns.requests() if each.seq in requests)
        waiting[name] = Columns()
        waiting[name].extend(list(remaining), site.numbers)
    return replace(
        site,
        **copied,
        settings=copy_of(site.settings),
        requests=requests,
        waiting=waiting,
        started={seq: requests[seq] for seq in site.started},
        paused={seq: requests[seq] for seq in site.paused},
        limited={seq: None for seq in site.limited if seq in requests},
        reserved={seq: None for seq in site.reserved if seq in requests},
        past={domain: past.copy() for domain, past in site.past.items()},
        accounts={key: account.copy() for key, account in site.accounts.items()},
        dates=list(site.dates),
        shift=replace(site.shift),
        numbers=site.numbers.copy(),
        tally=RequestCounts.of(requests.values()) if without else site.tally.copy(),
        lifetimes=site.lifetimes.copy(closed=True),
        writers={}, files={}, memos={}, balances={}, touched=Touched(), changed=0, misfits=0, misfit="",
        _boards={},
    )  # fmt: skip


def beyond(site: Site, most: int) -> set[Seq]:
    """Return the queued requests to leave out of a copy so that about ``most`` remain: of each queue the same
    part stays, the first by date, and in addition all with a reservation."""
    whole = sum(map(len, site.waiting.values()))
    found: set[Seq] = set()
    if whole > most:
        for columns in site.waiting.values():
            found |= columns.later(max(1, most * len(columns) // whole))
    return {seq for seq in found if seq not in site.reserved}
