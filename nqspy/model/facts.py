"""Stored facts: what a feature must remember between passes, such as a block of PEs that is being cleared. A
pass proposes a fact and an event stores it in the site, so it survives a restart and a replay. Only the
feature that stored a fact reads it. Data that can be computed anew are not stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from nqspy.model.actions import Action
from nqspy.model.events import Promised
from nqspy.model.site import Site

LONGEST = 1 << 18
"""Most bytes of a fact as JSON, with its key."""
MOST = 10_000
"""Most facts of one feature."""


@dataclass(frozen=True, slots=True)
class Promise(Action):
    """Store ``value`` (JSON data) under ``key`` for the feature ``by`` that proposes it; None: delete it."""

    key: str
    value: Any = None


def stored_by(site: Site, feature: str) -> Mapping[str, Any]:
    """Return the facts that a feature has stored, by key."""
    return site.promises.get(feature, {})


def store(site: Site, event: Promised) -> None:
    """Store or delete in the site the fact of an event; `lifecycle` calls this."""
    stored = site.promises.setdefault(event.feature, {})
    if event.value is None:
        stored.pop(event.key, None)
    else:
        stored[event.key] = event.value
    if not stored:
        del site.promises[event.feature]
    site.touched.state = True


def plain(value: Any) -> Any:
    """Return a value as JSON returns it after a restart, with tuples as lists. Raises TypeError."""
    return msgspec.json.decode(msgspec.json.encode(value))


def fits(site: Site, fact: Promise) -> bool:
    """True if a fact may be stored: it has at most `LONGEST` bytes and its feature at most `MOST` facts."""
    stored = stored_by(site, fact.by)
    size = len(msgspec.json.encode((fact.key, fact.value)))
    return size <= LONGEST and (fact.value is None or fact.key in stored or len(stored) < MOST)
