"""Files of the history: lines of JSON, compressed; the last line has their number and digest.
``events-FIRST-LAST.jsonl.gz`` holds events by number, ``requests-FIRST-LAST-SINCE.jsonl.gz`` ended requests
by number and instant of their ends, ``blobs-…`` scripts and environments that no record names any more. A
file is complete on the disk before the table ``archives`` names it; only then its rows are deleted."""

import base64
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.store.errors import StoreError
from nqspy.store.rows import Row, blob_body

_LEVEL = 6
_TOGETHER = 100


class Archive(Struct, frozen=True):
    """Row of the table ``archives``: one file of the history; fields as of `schema.ArchiveRow`."""

    name: str
    kind: str
    first: int
    last: int
    since: int
    until: int
    rows: int
    digest: str
    cleared: int = 0


class _Event(msgspec.Struct):
    n: int
    at: Instant
    kind: str
    body: msgspec.Raw


_event = msgspec.json.Decoder(_Event)


def event_line(row: Row) -> str:
    """Return the line of JSON for an event's row ``n, at, kind, version, body``."""
    n, at, kind, version, body = row
    return f'{{"n":{n},"at":{at},"kind":"{kind}","version":{version},"body":{body}}}'


def event_of(line: bytes) -> ev.Recorded:
    """Return the event that a line of a file holds. Raises msgspec.DecodeError."""
    found = _event.decode(line)
    return ev.Recorded(found.n, found.at, ev.decode(found.kind, bytes(found.body)))


REQUEST = ("seq", "ended", "state", "queue", "owner", "grp", "name", "submitted", "spec", "live", "ending")
"""Columns of an ended request, in the order in which its line has them."""


def request_line(row: Row) -> str:
    """Return the line of JSON for a request's row of the columns REQUEST."""
    named = dict(zip(REQUEST, row, strict=True))
    return json.dumps(named, ensure_ascii=False, separators=(",", ":"))


def request_of(line: bytes) -> dict[str, Any]:
    """Return the values of a request's line, by column. Raises msgspec.DecodeError."""
    found: dict[str, Any] = msgspec.json.decode(line)
    return found


def blob_line(row: Row) -> str:
    """Return the line of JSON for a blob's row ``digest, body, codec``."""
    digest, body, codec = row
    return json.dumps({"digest": digest, "codec": codec, "body": base64.b64encode(body).decode()})


def blob_of(line: bytes) -> bytes:
    """Return the script, environment or exit file (unpacked bytes) that a line of a file holds."""
    found = json.loads(line)
    return blob_body(base64.b64decode(found["body"]), found["codec"])


def write(path: Path, lines: Iterable[str]) -> tuple[int, str]:
    """Write lines, given without breaks, into a new file; return their number and digest. Raises OSError."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    digest, count = hashlib.sha256(), 0
    with open(handle, "wb") as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as file:
        rest = iter(lines)
        while some := list(islice(rest, _TOGETHER)):
            data = "".join(f"{line}\n" for line in some).encode()
            digest.update(data)
            file.write(data)
            count += len(some)
        file.write(json.dumps({"end": count, "sha256": digest.hexdigest()}).encode() + b"\n")
    return count, digest.hexdigest()


def read(path: Path) -> list[bytes]:
    """Return the lines of a file with their line breaks, without its last line. Raises StoreError if it is
    missing, cut off, or damaged by gzip's checksum; only `check` compares the digest."""
    try:
        with gzip.open(path, "rb") as file:
            lines = file.read().splitlines(keepends=True)
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not lines or not lines[-1].startswith(b'{"end":'):
        raise StoreError(f"{path} is damaged: its last line is missing")
    return lines[:-1]


def check(path: Path, archive: Archive) -> str | None:
    """Compare a file with its row in ``archives``; return what is wrong in one line, None if nothing is."""
    digest, count = hashlib.sha256(), 0
    try:
        for line in read(path):
            digest.update(line)
            count += 1
    except StoreError as error:
        return str(error)
    if (count, digest.hexdigest()) != (archive.rows, archive.digest):
        return f"{path} is damaged: it has {count} lines that are not the {archive.rows} written"
    return None
