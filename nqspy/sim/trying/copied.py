"""A copy of a live site: its rows, its loaded exits, and the state of its engine, asked in one message."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from nqspy.core.views import SHOWN_SCRIPT
from nqspy.engine.inputs import Between
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant, Seq
from nqspy.model.requests import STARTED, Request
from nqspy.model.site import Site
from nqspy.rpc.client import Client
from nqspy.rpc.home import resolve_home
from nqspy.store.reader import Reader
from nqspy.store.rows import no_collector
from nqspy.userexit.loader import Source

DATABASE = "nqs.db"
_TOGETHER = 500
"""Scripts that are read by one query."""


class NotTried(NqspyError):
    """Raised if exits cannot be tried here; the text says why."""


class SiteCopy(Struct, frozen=True):
    """A copy of a live site. ``now``: its instant; ``between``: the engine's state; ``loaded``: files of the
    exits in force; ``scripts``: heads of waiting requests' scripts, by digest."""

    site: Site
    now: Instant
    between: Between
    loaded: tuple[Source, ...]
    scripts: Mapping[str, bytes]

    def waiting(self) -> list[Request]:
        """Return the requests that have not started, in the order of their numbers."""
        return _waiting(self.site)

    def id_of(self, seq: Seq | None) -> str | None:
        """Return a request's full identifier."""
        return None if seq is None else self.site.id_of(seq)


def _waiting(site: Site) -> list[Request]:
    return [request for request in site.requests.values() if request.state not in STARTED]


def home_of(home: str | None) -> Path:
    """Return the folder of a home (None: the usual one). Raises NotTried."""
    try:
        return Path(resolve_home(home))
    except OSError as error:
        raise NotTried(str(error)) from None


def copied(home: str | None, candidate: Source) -> SiteCopy:
    """Return a copy of a home's site, with its loaded exits, to try ``candidate`` on. Raises NqspyError."""
    folder = home_of(home)
    state, loaded = _daemon_state(folder)
    database = folder / DATABASE
    if not os.access(database, os.R_OK):
        raise NotTried(f"you may not read {database}; only its owner and root can try exits")
    with Reader(database) as reader, no_collector():
        site, scripts = reader.site(), dict[str, bytes]()
        if any(b"def submit" in each.text for each in (*loaded, candidate)):
            digests = sorted({each.spec.script for each in _waiting(site)})
            for first in range(0, len(digests), _TOGETHER):
                some = reader.blobs(digests[first : first + _TOGETHER])
                scripts |= {digest: body[:SHOWN_SCRIPT] for digest, body in some.items()}
        now, between = Instant(max(state["now"], site.at)), msgspec.convert(state["between"], Between)
        return SiteCopy(site, now, between, loaded, scripts)


def loaded_exits(home: Path) -> tuple[Source, ...]:
    """Return the files of the exits in force at a home, as its daemon loaded them. Raises NqspyError."""
    return _daemon_state(home)[1]


def _daemon_state(home: Path) -> tuple[dict[str, Any], tuple[Source, ...]]:
    with Client(home, timeout=60) as client:
        state: dict[str, Any] = client.call("exits_loaded")
    exits = state["exits"]
    return state, tuple(Source(Path(each["path"]), each["code"].encode("latin-1")) for each in exits)
