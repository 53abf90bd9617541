"""Restoring a backup: checked first, put in place by one rename, what was there kept beside it. What happened
after the backup was made is not in it. So that no identifier is given out twice and nothing that ran since
runs again, what is known of that time (by the database that is replaced, if it can be read) is left in a
note, `Rewound`, for the next start."""

import contextlib
import os
import sqlite3
from pathlib import Path

import msgspec

from nqspy.model.ids import Instant, Seq, array_of, is_array
from nqspy.model.keys import ARRAYS, PLAIN
from nqspy.store import copies, places, schema
from nqspy.store.errors import OtherFormat, StoreError, as_store_error, plain


class Rewound(msgspec.Struct):
    """Note of a restore for the next start: what was restored, the first number never given out, and the last
    attempt of requests that were started or had ended after the backup."""

    text: str
    next_seq: Seq = 1
    attempts: dict[Seq, int] = {}


class RestoredBackup(msgspec.Struct):
    """Result of a restore: where the replaced database lies, instant and number of the last event of the
    backup, and how many of the replaced database's came after it (None: it could not be read)."""

    kept: Path | None
    at: Instant
    n: int
    lost: int | None


def note_of(path: Path) -> Path:
    """Return where the note for the next start lies."""
    return path.with_name(path.name + ".restored")


def rewound(path: Path) -> Rewound | None:
    """The note of a restore that no start has taken yet. Raises StoreError."""
    try:
        return msgspec.json.decode(note_of(path).read_bytes(), type=Rewound)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(f"{note_of(path)} cannot be read: {plain(error)}") from error


def drop_note(path: Path) -> None:
    """Remove the note: its changes are committed."""
    note_of(path).unlink(missing_ok=True)


def restore(path: Path, file: Path, date: str) -> RestoredBackup:
    """Puts a copy of ``file`` in the place of the database at ``path``, which must not be open; the one that
    was there becomes ``nqs.db.before-restore-DATE``. Raises StoreError when the file is not good (then
    nothing has changed) or the disk fails; an unfinished restore stops a daemon's start until given again."""
    if not file.is_file():
        raise StoreError(f"{file} is no file; give a backup, for example one of HOME/backups")
    wrong = copies.problem(file)
    if wrong is not None:
        raise StoreError(f"{file} cannot be restored: {wrong}; nothing was changed")
    with schema.reading(file) as connection:
        found = schema.version(connection)
    if found != schema.VERSION:
        raise OtherFormat(file, found, schema.VERSION)
    with as_store_error(f"{file} could not be restored", OSError, sqlite3.Error):
        draft = path.with_name(path.name + ".restore")
        copies.copy_to(file, draft)
        with schema.reading(draft) as copy:
            n, at = _last(copy)
            known = _since(path, copy) if path.exists() else None
        text = f"{file.name} was restored; its last event is number {n}"
        places.give(draft, path.parent)
        places.put_in_place(draft, places.restoring(path))
        _write_note(path, Rewound(text, known[0], known[1]) if known else Rewound(text))
        moved = _move_away(path, date)
        os.replace(places.restoring(path), path)
        places.sync(path.parent)
        return RestoredBackup(moved, at, n, known[2] - n if known else None)


def _write_note(path: Path, note: Rewound) -> None:
    """Adds to the note of an earlier restore that no start has taken."""
    former = rewound(path)
    if former is not None:
        note.next_seq = max(note.next_seq, former.next_seq)
        note.attempts = former.attempts | note.attempts
    new = note_of(path).with_suffix(".new")
    new.write_bytes(msgspec.json.encode(note))
    places.put_in_place(new, note_of(path))


def _move_away(path: Path, date: str) -> Path | None:
    """Renames the database with its log; the copy in waiting keeps a start from missing it."""
    moved = path.with_name(f"{path.name}.before-restore-{date}")
    number = 1
    while moved.exists():
        number += 1
        moved = path.with_name(f"{path.name}.before-restore-{date}-{number}")
    earlier = None if path.exists() else _without_its_log(path)
    moved, existed = earlier or moved, earlier is not None or path.exists()
    for tail in ("", "-wal", "-shm"):
        part = Path(f"{path}{tail}")
        if part.exists():
            os.replace(part, f"{moved}{tail}")
    places.mark(path).unlink(missing_ok=True)
    return moved if existed else None


def _without_its_log(path: Path) -> Path | None:
    """The database that a restore before had put aside when it was killed: its log still lies here."""
    if not places.log(path).exists():
        return None
    moved = [
        file
        for file in path.parent.glob(f"{path.name}.before-restore-*")
        if not file.name.endswith(("-wal", "-shm")) and not places.log(file).exists()
    ]
    return max(moved, key=lambda file: file.stat().st_ctime_ns, default=None)


_ATTEMPTS = "coalesce(json_extract(live, '$.attempts'), json_extract(live, '$.attempt'), 0)"
"""Attempts of a request, in databases of older formats too."""
_LIVE = f"SELECT seq, {_ATTEMPTS} FROM requests WHERE ended IS NULL"  # noqa: S608 - our own words
_BEGUN = f"SELECT {_ATTEMPTS}, ended FROM requests WHERE seq = ?"  # noqa: S608
_INDICES = f"SELECT seq, {_ATTEMPTS} FROM requests WHERE seq > ? AND seq < ?"  # noqa: S608


def _last(connection: sqlite3.Connection) -> tuple[int, Instant]:
    row = connection.execute("SELECT n, at FROM state").fetchone()
    return (row[0], Instant(row[1])) if row is not None else (0, Instant(0))


def _since(path: Path, copy: sqlite3.Connection) -> tuple[Seq, dict[Seq, int], int] | None:
    """First number never given out, attempts begun since the copy, last event; None: it cannot be read."""
    with contextlib.suppress(*copies.SPOILT), schema.reading(path) as old:
        next_seq = old.execute("SELECT coalesce(max(next_seq), 1) FROM state").fetchone()[0]
        # Indices of the copy's arrays that became requests of their own since.
        known = {row[0] for row in copy.execute("SELECT seq FROM requests WHERE seq > ?", (PLAIN,))}
        own = old.execute(_INDICES, (PLAIN, ARRAYS)) if any(map(is_array, known)) else ()
        begun = {seq: attempts for seq, attempts in own if array_of(seq) in known and seq not in known}
        for seq, attempts in copy.execute(_LIVE):
            found, ended = old.execute(_BEGUN, (seq,)).fetchone() or (0, None)
            if found > attempts or ended is not None:
                begun[seq] = found
        return next_seq, begun, _last(old)[0]
    return None
