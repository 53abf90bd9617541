"""Promises: what a feature must not forget between passes, such as a reservation or the end of a rest. They
are facts: a pass proposes one, an event changes it, it lies in the site's row, and so it survives a restart
and a replay. Only the feature that made a promise reads it. What can be reckoned anew is no promise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from nqspy.model.actions import Action
from nqspy.model.events import Promised
from nqspy.model.site import Site

LONGEST = 4096
"""Bytes of a promise as JSON at most, its key counted."""
MOST = 10_000
"""Promises of one feature at most."""


@dataclass(frozen=True, slots=True)
class Promise(Action):
    """A feature promises ``value`` (what JSON can hold) under ``key``, or takes it back (None)."""

    key: str
    value: Any = None


def made(site: Site, feature: str) -> Mapping[str, Any]:
    """Return what a feature has promised, by key."""
    return site.promises.get(feature, {})


def store(site: Site, event: Promised) -> None:
    """Carries a promise out: `lifecycle` calls it."""
    stored = site.promises.setdefault(event.feature, {})
    if event.value is None:
        stored.pop(event.key, None)
    else:
        stored[event.key] = event.value
    if not stored:
        del site.promises[event.feature]
    site.touched.state = True


def plain(value: Any) -> Any:
    """A value as JSON gives it back, so that it is the same after a restart. Raises TypeError."""
    return msgspec.json.decode(msgspec.json.encode(value))


def fits(site: Site, promise: Promise) -> bool:
    """True if there is room for it."""
    stored = made(site, promise.by)
    size = len(msgspec.json.encode((promise.key, promise.value)))
    return size <= LONGEST and (promise.value is None or promise.key in stored or len(stored) < MOST)
