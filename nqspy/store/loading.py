"""The site from the rows: what a start reads instead of the history."""

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from nqspy.engine import lifecycle
from nqspy.model import configure
from nqspy.model.accounts import DomainPast
from nqspy.model.domains import APPLICATION
from nqspy.model.lifetimes import Lifetime, Lifetimes, Lived
from nqspy.model.requests import STARTED, Request, State
from nqspy.model.site import RequestCounts, Site
from nqspy.store import rows

_LIVE = f"SELECT {rows.REQUEST_COLUMNS} FROM requests WHERE ended IS NULL ORDER BY seq"  # noqa: S608 - our own words

_ACCOUNTS = "SELECT key, value, at, recent, owed FROM accounts ORDER BY position"


def load_site(connection: sqlite3.Connection) -> Site:
    """The site as of the last commit. Raises sqlite3.Error, DecodeError, KeyError for unreadable rows."""
    site = Site()
    connection.execute("BEGIN")
    try:
        with no_collector():
            site.settings = configure.load(setting_rows(connection))
            for key, *row in connection.execute(_ACCOUNTS):
                site.accounts[key] = rows.account_of(*row)
            lived = connection.execute("SELECT owner, name, pes, runs, last FROM lifetimes")
            site.lifetimes = Lifetimes.of(
                {(owner, name, pes): Lifetime(tuple(Lived(*run) for run in rows.decoded(runs)), last)
                 for owner, name, pes, runs, last in lived}
            )  # fmt: skip
            _load_state(site, connection)
            shared, live = rows.SharedSpecs(), connection.execute(_LIVE)
            while some := live.fetchmany(1000):
                site.requests |= {row[0]: rows.request_of(row, shared) for row in some}
            site.tally = RequestCounts.of(site.requests.values())
            _file(site)
    finally:
        connection.execute("COMMIT")
    return site


@contextmanager
def no_collector() -> Iterator[None]:
    """For what makes many objects and no garbage: looking for it again and again doubles the time of loading
    100,000 requests, and takes a twentieth of a report's."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def setting_rows(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Return the settings that differ from their defaults, by the path of their object."""
    found = connection.execute("SELECT path, value FROM settings ORDER BY position")
    return {path: msgspec.json.decode(value) for path, value in found}


def _load_state(site: Site, connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT n, at, next_seq, rest FROM state").fetchone()
    if row is None:
        return
    site.n, site.at, site.next_seq, text = row
    rest = rows.rest_decoder.decode(text)
    for name in rows.OF_SITE:
        setattr(site, name, getattr(rest, name))
    site.past = {APPLICATION: DomainPast(rest.runs, rest.spent), **rest.domains}


def _file(site: Site) -> None:
    started: list[Request] = []
    for request in site.requests.values():
        if request.state is State.WAITING or request.unmet:
            lifecycle.place(site, request)
        elif request.state in STARTED:
            started.append(request)
        else:
            site.watch_for(request)
    for request in sorted(started, key=lambda request: (request.started or 0, request.seq)):
        lifecycle.place(site, request)
    site.note_away()
    promised = [(r.reservation.turn, r.seq) for r in site.requests.values() if r.reservation is not None]
    site.reserved = dict.fromkeys(seq for _, seq in sorted(promised))
    for queue, queued in rows.by_queue(site.requests.values()).items():
        site.columns(queue).extend(queued, site.numbers)
