"""A copy of a live site: its rows, its loaded exits, and where its engine is. The daemon is asked one short
question and goes on; the rows are read beside it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from nqspy.core.sight import SEEN_SCRIPT
from nqspy.engine.inputs import Between
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant
from nqspy.model.requests import STARTED, Request
from nqspy.model.site import Site
from nqspy.rpc.client import Client
from nqspy.rpc.home import resolve_home
from nqspy.store.loading import no_collector
from nqspy.store.reader import Reader
from nqspy.userexit.loader import Source

DATABASE = "nqs.db"
_TOGETHER = 500
"""Scripts that are read by one query."""


class NotTried(NqspyError):
    """There is nothing that exits could be tried on."""


class SiteCopy(Struct, frozen=True):
    """``loaded``: the files of the exits in force, as they were loaded; ``scripts``: of those that wait, the
    part of each that exits see, by content hash (none where no exit asks)."""

    site: Site
    now: Instant
    between: Between
    loaded: tuple[Source, ...]
    scripts: Mapping[str, bytes] = field(default_factory=dict)

    def waiting(self) -> list[Request]:
        """Return the requests that have not started, in the order of their numbers."""
        return [each for each in self.site.requests.values() if each.state not in STARTED]


def copied(home: str | None, candidate: Source) -> SiteCopy:
    """The copy, for trying that file. Raises NqspyError."""
    try:
        folder = Path(resolve_home(home))
    except OSError as error:
        raise NotTried(str(error)) from None
    told = _told(folder)
    loaded = _sources(told)
    database = folder / DATABASE
    if not os.access(database, os.R_OK):
        raise NotTried(f"{database} is not yours to read; whoever may put exits there, or root, may try them")
    with Reader(database) as reader, no_collector():
        site = reader.site()
        now, between = Instant(max(told["now"], site.at)), msgspec.convert(told["between"], Between)
        copy = SiteCopy(site, now, between, loaded)
        asks = any(b"def submit" in each.text for each in (*loaded, candidate))
        return SiteCopy(site, now, between, loaded, _scripts(reader, copy.waiting())) if asks else copy


def loaded_exits(home: Path) -> tuple[Source, ...]:
    """The files of the exits in force, as they were loaded. Raises NqspyError."""
    return _sources(_told(home))


def _told(home: Path) -> dict[str, Any]:
    with Client(home, timeout=60) as client:
        told: dict[str, Any] = client.call("exits_loaded")
    return told


def _sources(told: Mapping[str, Any]) -> tuple[Source, ...]:
    return tuple(Source(Path(each["path"]), each["code"].encode("latin-1")) for each in told["exits"])


def _scripts(reader: Reader, requests: list[Request]) -> dict[str, bytes]:
    digests = sorted({each.spec.script for each in requests})
    found: dict[str, bytes] = {}
    for first in range(0, len(digests), _TOGETHER):
        some = reader.blobs(digests[first : first + _TOGETHER])
        found |= {digest: body[:SEEN_SCRIPT] for digest, body in some.items()}
    return found
