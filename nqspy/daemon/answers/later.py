"""Answers that take long: made by a thread of their own from the journal and a still picture of the site."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from nqspy.model.site import Account, Site


@dataclass(frozen=True, slots=True)
class Later:
    """An answer whose ``work`` must not run in the engine's thread; it may read nothing that the engine
    writes."""

    work: Callable[[], Any]


def still(site: Site) -> Site:
    """A copy of the site as it is now that the engine does not change: what reports read."""
    return Site(
        settings=deepcopy(site.settings),
        found=site.found,
        host=site.host,
        zone=site.zone,
        requests={seq: replace(request) for seq, request in site.requests.items()},
        started={seq: replace(request) for seq, request in site.started.items()},
        accounts={key: Account(a.value, a.at, list(a.recent)) for key, a in site.accounts.items()},
        shift=replace(site.shift),
        next_seq=site.next_seq,
        n=site.n,
        at=site.at,
    )
