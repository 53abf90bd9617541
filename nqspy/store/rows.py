"""Site and events as rows: what a commit writes, encoded before its transaction begins; and the site made of
rows, so that a start need not replay the history."""

import dataclasses
import gc
import sqlite3
import typing
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import structs

from nqspy.engine import lifecycle
from nqspy.model import configure, registry
from nqspy.model import events as ev
from nqspy.model.accounts import Account, DomainPast, Entry
from nqspy.model.domains import APPLICATION
from nqspy.model.health import Pressure, ResourceState
from nqspy.model.ids import Instant, Seq
from nqspy.model.lifetimes import Lifetime, Lifetimes, Lived, MeasuredMove
from nqspy.model.machine import ForeignJob, Found
from nqspy.model.requests import STARTED, Request, Spec, State
from nqspy.model.shifts import ShiftState
from nqspy.model.site import RequestCounts, Site
from nqspy.model.specs import Shared
from nqspy.ports import Batch, EndedRow

Row = tuple[Any, ...]

_encode = msgspec.json.Encoder().encode

_Values = Callable[[Any], tuple[Any, ...]]


def _slim(cls: type[msgspec.Struct], *columns: str) -> tuple[Any, _Values]:
    """Return a Struct with the fields of ``cls`` that omits defaults (its JSON has a third of the size), and
    a function that returns the values for it from an object. ``columns``: fields stored elsewhere."""
    fields, hints = [f for f in structs.fields(cls) if f.name not in columns], typing.get_type_hints(cls)
    defaults = [() if f.default is msgspec.NODEFAULT else (f.default,) for f in fields]
    parts: list[Any] = [(f.name, hints[f.name], *given) for f, given in zip(fields, defaults, strict=True)]
    made = msgspec.defstruct(f"_{cls.__name__}Twin", parts, omit_defaults=True)
    return made, attrgetter(*(f.name for f in fields))


_SlimSpec, _values = _slim(Spec)
_Live, _live_values = _slim(Request, "seq", "spec", "queue", "state", "submitted", "slot")


class EndingRow(msgspec.Struct):
    """Column ``ending`` as JSON: kind and instant of a request's end, and the event Ended or Deleted."""

    kind: str
    at: Instant
    event: msgspec.Raw


class SiteRow(msgspec.Struct):
    """Content of the one row of the table ``state``, besides its numbers: fields of the site (`OF_SITE`), and
    ``runs``, ``spent`` and ``domains`` of `Site.past`."""

    shift: ShiftState
    found: Found
    host: str
    zone: str
    files: dict[str, str]
    resources: dict[str, ResourceState] = msgspec.field(default_factory=dict, name="probes")
    pressure: Pressure = Pressure()
    reported: str = ""
    runs: list[int] = []
    spent: float = 0.0
    promises: dict[str, dict[str, Any]] = {}
    domains: dict[str, DomainPast] = {}
    turns: dict[str, str] = {}
    moves: tuple[MeasuredMove, ...] = ()
    former: tuple[str, ...] = ()
    loaded_exits: dict[str, str] | None = None
    foreign: tuple[ForeignJob, ...] = ()


OF_SITE = tuple(name for name in SiteRow.__struct_fields__ if name not in ("runs", "spent", "domains"))
"""Fields of SiteRow that the site has under the same name."""

_live_decoder = msgspec.json.Decoder(_Live)
_spec_decoder = msgspec.json.Decoder(Spec)
_ending_decoder = msgspec.json.Decoder(EndingRow)
rest_decoder = msgspec.json.Decoder(SiteRow)


# ---------------------------------------------------------------- what a commit writes

_EVENT = "INSERT INTO events (n, at, kind, version, body) VALUES (?, ?, ?, ?, ?)"
_BLOB = "INSERT OR IGNORE INTO blobs (digest, body, codec) VALUES (?, ?, ?)"
_KEY = "INSERT OR REPLACE INTO keys (owner, key, digest, seqs) VALUES (?, ?, ?, ?)"
_REQUEST = """INSERT INTO requests (seq, state, queue, owner, grp, name, submitted, ended, spec, live, ending)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (seq) DO UPDATE SET state = excluded.state, queue = excluded.queue, owner = excluded.owner,
grp = excluded.grp, name = excluded.name, ended = excluded.ended, spec = excluded.spec, live = excluded.live,
ending = excluded.ending"""
_ACCOUNT = """INSERT INTO accounts (key, value, at, recent, owed) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = excluded.at, recent = excluded.recent,
owed = excluded.owed"""
_LIFETIME = "INSERT OR REPLACE INTO lifetimes (owner, name, pes, runs, last) VALUES (?, ?, ?, ?, ?)"
_FORGET = "DELETE FROM lifetimes WHERE owner = ? AND name = ? AND pes = ?"
_STATE = "INSERT OR REPLACE INTO state (id, n, at, next_seq, rest) VALUES (1, ?, ?, ?, ?)"


@dataclass(slots=True)
class RowChanges:
    """Rows that one commit writes, ``rows`` by statement. ``settings``: path and JSON, None deletes the row.
    ``order``: for each kind of which an object was deleted, the paths of all objects in the site's order."""

    rows: dict[str, list[Row]]
    settings: list[tuple[str, str | None]] = field(default_factory=list)
    order: dict[str, list[str]] = field(default_factory=dict)


def gather(batch: Batch, site: Site, blobs: Container[str] = (), accounts: int = 0) -> RowChanges:
    """Return all rows to write for ``batch`` and ``site.touched``. Blobs with digests in ``blobs`` are left
    out; of the first ``accounts`` accounts, which have rows already, only touched ones are written. Raises
    ValueError, TypeError or OverflowError for unwritable values."""
    touched, known = site.touched, site.lifetimes.known
    requests = [request_row(site.requests[seq]) for seq in sorted(touched.requests)]
    for each in ended_in(batch.events, site):
        ending = EndingRow(each["ended"].kind, each["at"], msgspec.Raw(ev.encode(each["ended"])))
        requests.append(request_row(each["request"], each["at"], text(ending)))
    lived = [(name, known.get(name)) for name in sorted(touched.lifetimes)]
    # New accounts are the last of the dict: written and loaded in its order, so that sums
    # over them come out equal to the last digit.
    new = list(islice(reversed(site.accounts), max(0, len(site.accounts) - accounts)))[::-1]
    keys = (*new, *sorted(touched.accounts.difference(new)))
    changes = RowChanges({
        _EVENT: [event_row(recorded) for recorded in batch.events],
        _BLOB: [blob_row(digest, body) for digest, body in batch.blobs.items() if digest not in blobs],
        _KEY: [(*name, digest, text(seqs)) for name, (digest, seqs) in keys_in(batch.events).items()],
        _REQUEST: requests,
        _ACCOUNT: [account_row(key, site.accounts[key]) for key in keys],
        _LIFETIME: [(*name, text(each.runs), each.last) for name, each in lived if each is not None],
        _FORGET: [name for name, each in lived if each is None],
        _STATE: [state_row(site)],
    })  # fmt: skip
    if touched.settings:
        _gather_settings(changes, batch, site)
    return changes


def _gather_settings(changes: RowChanges, batch: Batch, site: Site) -> None:
    paths = site.touched.settings
    places: dict[str, int] = {}
    for kind in registry.named():
        if any(path.startswith(f"{kind.head}/") for path in paths):
            order = kind.paths(site.settings)
            places |= {path: place for place, path in enumerate(order) if path in paths}
    for path in sorted(paths, key=lambda path: (places.get(path, -1), path)):
        values = configure.dump_object(site.settings, path)
        changes.settings.append((path, None if values is None else text(values)))
    # Of kinds with a deleted object: an object that was made again is the last one now.
    changed = (each.event.changes for each in batch.events if isinstance(each.event, ev.SettingsChanged))
    deleted = {each.path.partition("/")[0] for each in chain(*changed) if each.op == "delete"}
    for kind in registry.named():
        if kind.head in deleted:
            changes.order[kind.head] = kind.paths(site.settings)


def text(value: Any) -> str:
    """Return a value as text in JSON."""
    return _encode(value).decode()


_fields = dataclasses.fields(Entry)
_types = typing.get_type_hints(Entry)
_owed = attrgetter(*(f.name for f in _fields))
Owed = msgspec.defstruct(
    "Owed", [(f.name, _types[f.name], f.default) for f in _fields], omit_defaults=True, array_like=True
)
"""Fields of an account that shares are owed (`model.accounts.Entry`), in their order; add new ones last."""


_owed_decoder = msgspec.json.Decoder(Owed)


def account_row(key: str, account: Account) -> tuple[Any, ...]:
    """Return the row of ``accounts`` for the account with this key (without its position)."""
    return key, account.value, account.at, text(account.recent), text(Owed(*_owed(account.entry)))


def event_row(recorded: ev.Recorded) -> Row:
    """Return an event as a row of the table ``events``."""
    event = recorded.event
    return recorded.n, recorded.at, event.kind, event.version, ev.encode(event).decode()


def request_row(request: Request, ended: Instant | None = None, ending: str | None = None) -> Row:
    """Return the row of ``requests`` for a request; ``ended``, ``ending``: instant and JSON of its end."""
    spec = request.spec
    return (
        request.seq, request.state.value, request.queue, spec.owner, spec.group, spec.name, request.submitted,
        ended, text(_SlimSpec(*_values(spec))), text(_Live(*_live_values(request))), ending,
    )  # fmt: skip


def ended_in(events: list[ev.Recorded], site: Site) -> list[EndedRow]:
    """Return the records of the requests that these events ended, from ``site.touched.ended``."""
    instants = {id(each.event): each.at for each in events} if site.touched.ended else {}
    ends = site.touched.ended.values()
    return [ended_row(request, event, instants.get(id(event), site.at)) for request, event in ends]


def ended_row(request: Request, event: ev.Ended | ev.Deleted, at: Instant) -> EndedRow:
    """Return the record of a request that this event ended at this instant."""
    return EndedRow(
        seq=request.seq, spec=request.spec, queue=request.queue, submitted=request.submitted, ended=event,
        at=at, request=request,
    )  # fmt: skip


def keys_in(events: list[ev.Recorded]) -> dict[tuple[str, str], tuple[str, list[Seq]]]:
    """Return the keyed submissions among these events: (owner, key) -> (digest, numbers of its requests)."""
    found: dict[tuple[str, str], tuple[str, list[Seq]]] = {}
    for recorded in events:
        event = recorded.event
        if isinstance(event, ev.Submitted) and event.key:
            found.setdefault((event.spec.owner, event.key), (event.digest, []))[1].append(event.seq)
    return found


def state_row(site: Site) -> Row:
    """Return the row of ``state`` (without its id)."""
    past = site.past.get(APPLICATION) or DomainPast()
    others = {domain: each for domain, each in site.past.items() if domain != APPLICATION}
    own = {name: getattr(site, name) for name in OF_SITE}
    rest = SiteRow(**own, runs=past.runs, spent=past.spent, domains=others)
    return site.n, site.at, site.next_seq, text(rest)


WORTH_PACKING = 1024
"""Bytes from which a blob is packed, if that makes it smaller by a tenth at least."""


def blob_row(digest: str, body: bytes) -> Row:
    """Return the row of ``blobs``: digest, body (packed if large) and codec."""
    if len(body) > WORTH_PACKING:
        packed = zlib.compress(body, 1)
        if len(packed) < len(body) * 0.9:
            return digest, packed, "zlib"
    return digest, body, ""


def blob_body(body: bytes, codec: str) -> bytes:
    """Return the unpacked body of a blob's row. Raises zlib.error if it is damaged."""
    return zlib.decompress(body) if codec == "zlib" else bytes(body)


# ---------------------------------------------------------------- what is read back

REQUEST_COLUMNS = "seq, state, queue, submitted, spec, live"

_STATES = {state.value: state for state in State}


class SharedSpecs:
    """Decodes specifications and makes equal parts of them one object, which saves memory."""

    _BOUND = 1000

    def __init__(self) -> None:
        self._shared = Shared()
        self._specs: dict[str, Spec] = {}

    def spec(self, body: str) -> Spec:
        """Return the specification of a row. Raises msgspec.DecodeError."""
        found = self._specs.get(body)
        if found is None:
            found = self._shared.spec(_spec_decoder.decode(body))
            if len(self._specs) >= self._BOUND:
                self._specs.clear()
            self._specs[body] = found
        return found

    def text(self, value: str) -> str:
        """Return one object for all equal texts, which saves memory."""
        return self._shared.one(value)


def request_of(row: Row, shared: SharedSpecs) -> Request:
    """Return the request of a row of REQUEST_COLUMNS. Raises msgspec.DecodeError."""
    seq, state, queue, submitted, spec, body = row
    live = _live_values(_live_decoder.decode(body))
    return Request(seq, shared.spec(spec), shared.text(queue), _STATES[state], submitted, *live)


def ended_of(row: Row, shared: SharedSpecs) -> EndedRow:
    """Return the ended request of a row of REQUEST_COLUMNS followed by ``ending``. Raises
    msgspec.DecodeError."""
    request = request_of(row[:-1], shared)
    ending = _ending_decoder.decode(row[-1])
    event = ev.decode(ending.kind, bytes(ending.event))
    assert isinstance(event, ev.Ended | ev.Deleted)
    return ended_row(request, event, ending.at)


def account_of(value: float, at: int, recent: str, owed: str) -> Account:
    """Return the account of a row; the arguments are its columns. Raises msgspec.DecodeError."""
    entry = Entry(*_owed(_owed_decoder.decode(owed))) if owed else Entry()
    return Account(value, Instant(at), msgspec.json.decode(recent, type=list[int]), entry)


def event_of(row: Row) -> ev.Recorded:
    """Return the event of a row ``n, at, kind, body``. Raises msgspec.DecodeError."""
    n, at, kind, body = row
    return ev.Recorded(n, at, ev.decode(kind, body))


def by_queue(requests: Iterable[Request]) -> Mapping[str, list[Request]]:
    """Return the requests in state ``queued`` by queue, in the given order, without queues that have none."""
    found: dict[str, list[Request]] = {}
    for request in requests:
        if request.state is State.QUEUED:
            found.setdefault(request.queue, []).append(request)
    return found


def in_slices(items: list[Any], size: int) -> Iterator[list[Any]]:
    """Yield the list in slices of at most ``size`` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def decoded(body: str) -> Any:
    """Return the value of a text in JSON. Raises msgspec.DecodeError."""
    return msgspec.json.decode(body)


_LIVE = f"SELECT {REQUEST_COLUMNS} FROM requests WHERE ended IS NULL ORDER BY seq"  # noqa: S608 - our own words

_ACCOUNTS = "SELECT key, value, at, recent, owed FROM accounts ORDER BY position"


def load_site(connection: sqlite3.Connection) -> Site:
    """Return the site as of the last commit. Raises sqlite3.Error, DecodeError, KeyError for bad rows."""
    site = Site()
    connection.execute("BEGIN")
    try:
        with no_collector():
            site.settings = configure.load(setting_rows(connection))
            for key, *row in connection.execute(_ACCOUNTS):
                site.accounts[key] = account_of(*row)
            lived = connection.execute("SELECT owner, name, pes, runs, last FROM lifetimes")
            site.lifetimes = Lifetimes.of(
                {(owner, name, pes): Lifetime(tuple(Lived(*run) for run in decoded(runs)), last)
                 for owner, name, pes, runs, last in lived}
            )  # fmt: skip
            state = connection.execute("SELECT n, at, next_seq, rest FROM state").fetchone()
            if state is not None:
                site.n, site.at, site.next_seq, text = state
                rest = rest_decoder.decode(text)
                for name in OF_SITE:
                    setattr(site, name, getattr(rest, name))
                site.past = {APPLICATION: DomainPast(rest.runs, rest.spent), **rest.domains}
            shared, live = SharedSpecs(), connection.execute(_LIVE)
            while some := live.fetchmany(1000):
                site.requests |= {row[0]: request_of(row, shared) for row in some}
            site.tally = RequestCounts.of(site.requests.values())
            _file(site)
    finally:
        connection.execute("COMMIT")
    return site


@contextmanager
def no_collector() -> Iterator[None]:
    """Switch garbage collection off in a block that makes many objects and no cycles: it would double the
    time of loading 100,000 requests."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def setting_rows(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Return the stored settings (those that differ from their defaults) by the path of their object."""
    found = connection.execute("SELECT path, value FROM settings ORDER BY position")
    return {path: msgspec.json.decode(value) for path, value in found}


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
    for queue, queued in by_queue(site.requests.values()).items():
        site.columns(queue).extend(queued, site.numbers)
