"""Restoring a backup: it is checked, put in place by one rename, and the replaced database stays next to it.
The backup lacks what happened after it was made. So that no identifier is used twice and nothing runs twice,
a note (`Rewound`) tells the next start what is known of that time from the replaced database, if readable."""

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
    """Note of a restore for the next start. ``text``: sentence that names the restored file; ``next_seq``:
    the first request number never used; ``attempts``: number of the last attempt of each request that was
    started or had ended after the backup; ``forgotten``: the state was set aside
    (`forget`)."""

    text: str
    next_seq: Seq = 1
    attempts: dict[Seq, int] = {}
    forgotten: bool = False


class RestoredBackup(msgspec.Struct):
    """Result of a restore: path of the replaced database (None: there was none), instant and number of the
    backup's last event, and how many later events the replaced database had (None: it could not be read)."""

    replaced: Path | None
    at: Instant
    n: int
    lost: int | None


def note_of(path: Path) -> Path:
    """Return the path of the note (`Rewound`) that a restore leaves for the next start."""
    return path.with_name(path.name + ".restored")


def rewound(path: Path) -> Rewound | None:
    """Return the note of a restore that no start has used yet; None: there is none. Raises StoreError."""
    try:
        return msgspec.json.decode(note_of(path).read_bytes(), type=Rewound)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(f"{note_of(path)} cannot be read: {plain(error)}") from error


def drop_note(path: Path) -> None:
    """Remove the note of a restore, once the start has committed the changes that follow from it."""
    note_of(path).unlink(missing_ok=True)


def restore(path: Path, file: Path, date: str) -> RestoredBackup:
    """Put a copy of the backup ``file`` in place of the database at ``path``, which must not be open; the
    replaced one becomes ``nqs.db.before-restore-DATE``. Raises StoreError if the file is damaged (then
    nothing has changed) or the disk fails: then no daemon starts until the restore is repeated."""
    if not file.is_file():
        raise StoreError(f"{file} is not a file; give a backup, for example one of HOME/backups")
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


def forget(path: Path, date: str) -> Path | None:
    """Set aside the database at ``path``, which must not be open, as ``nqs.db.forgotten-DATE``, and its
    history as ``history.forgotten-DATE``; return the database's new path (None: there was none). A note keeps
    the next start from giving out a number again. Raises StoreError."""
    if not path.exists() and not places.log(path).exists():
        return None
    with as_store_error(f"{path} could not be set aside", OSError, sqlite3.Error):
        next_seq = 1
        with contextlib.suppress(*copies.SPOILT), schema.reading(path) as old:
            next_seq = old.execute(_NEXT).fetchone()[0]
        _write_note(path, Rewound("nqsd started without the former state", next_seq, forgotten=True))
        moved, history = _move_away(path, date, "forgotten"), places.history(path)
        if moved is not None and history.is_dir():
            os.replace(history, history.with_name(history.name + moved.name.removeprefix(path.name)))
        places.sync(path.parent)
        return moved


def _write_note(path: Path, note: Rewound) -> None:
    """Write the note, merged with that of an earlier restore that no start has used yet."""
    former = rewound(path)
    if former is not None:
        note.next_seq = max(note.next_seq, former.next_seq)
        note.attempts = former.attempts | note.attempts
    new = note_of(path).with_suffix(".new")
    new.write_bytes(msgspec.json.encode(note))
    places.put_in_place(new, note_of(path))


def _move_away(path: Path, date: str, word: str = "before-restore") -> Path | None:
    """Rename the database with its log, and return its new path (None: there was none). ``word``: why, in the
    new name. The waiting copy of a restore keeps a daemon from making a new database meanwhile."""
    moved = path.with_name(f"{path.name}.{word}-{date}")
    number = 1
    while moved.exists():
        number += 1
        moved = path.with_name(f"{path.name}.{word}-{date}-{number}")
    earlier = None if path.exists() else _without_its_log(path, word)
    moved, existed = earlier or moved, earlier is not None or path.exists()
    for tail in ("", "-wal", "-shm"):
        part = Path(f"{path}{tail}")
        if part.exists():
            os.replace(part, f"{moved}{tail}")
    places.mark(path).unlink(missing_ok=True)
    return moved if existed else None


def _without_its_log(path: Path, word: str) -> Path | None:
    """Return the database that a killed call had renamed, if its log still lies here; else None."""
    if not places.log(path).exists():
        return None
    moved = [
        file
        for file in path.parent.glob(f"{path.name}.{word}-*")
        if not file.name.endswith(("-wal", "-shm")) and not places.log(file).exists()
    ]
    return max(moved, key=lambda file: file.stat().st_ctime_ns, default=None)


_NEXT = "SELECT coalesce(max(next_seq), 1) FROM state"
_ATTEMPTS = "coalesce(json_extract(live, '$.attempts'), json_extract(live, '$.attempt'), 0)"
"""Query of each request's number of attempts, for databases of older formats too."""
_LIVE = f"SELECT seq, {_ATTEMPTS} FROM requests WHERE ended IS NULL"  # noqa: S608 - our own words
_BEGUN = f"SELECT {_ATTEMPTS}, ended FROM requests WHERE seq = ?"  # noqa: S608
_INDICES = f"SELECT seq, {_ATTEMPTS} FROM requests WHERE seq > ? AND seq < ?"  # noqa: S608


def _last(connection: sqlite3.Connection) -> tuple[int, Instant]:
    row = connection.execute("SELECT n, at FROM state").fetchone()
    return (row[0], Instant(row[1])) if row is not None else (0, Instant(0))


def _since(path: Path, copy: sqlite3.Connection) -> tuple[Seq, dict[Seq, int], int] | None:
    """Return the first number never used, the attempts begun since the copy was made, by request, and the
    last event's number of the replaced database; None if it cannot be read."""
    with contextlib.suppress(*copies.SPOILT), schema.reading(path) as old:
        next_seq = old.execute(_NEXT).fetchone()[0]
        # Indices of the copy's arrays that became requests of their own after it was made.
        known = {row[0] for row in copy.execute("SELECT seq FROM requests WHERE seq > ?", (PLAIN,))}
        own = old.execute(_INDICES, (PLAIN, ARRAYS)) if any(map(is_array, known)) else ()
        begun = {seq: attempts for seq, attempts in own if array_of(seq) in known and seq not in known}
        for seq, attempts in copy.execute(_LIVE):
            found, ended = old.execute(_BEGUN, (seq,)).fetchone() or (0, None)
            if found > attempts or ended is not None:
                begun[seq] = found
        return next_seq, begun, _last(old)[0]
    return None
