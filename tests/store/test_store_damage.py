"""Whatever happens to the file: one clear line that names the way back, and nothing is lost or made anew."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nqspy.model.ids import Instant
from nqspy.store import copies, opening, places, restoring
from nqspy.store.errors import DamagedStore, StoreError
from nqspy.store.journal import SqliteJournal


def foreign(path):
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.close()


def torn(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])


def garbled(path):
    whole = bytearray(path.read_bytes())
    whole[8192:30000] = os.urandom(30000 - 8192)
    path.write_bytes(whole)


def other_application(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 7")
    connection.close()


SPOILS = {
    "of zero length": lambda path: path.write_bytes(b""),
    "torn": torn,
    "garbled": garbled,
    "a block of zeros": lambda path: path.write_bytes(bytes(4096) + path.read_bytes()[4096:]),
    "no database": lambda path: path.write_bytes(b"this is no database\n" * 500),
    "another program's": foreign,
    "another application's": other_application,
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_a_spoilt_database_is_refused_in_one_line_that_names_the_newest_good_backup(told, path, spoil):
    good = copies.back_up(path, Instant(10_000_000), 7)
    bad = copies.back_up(path, Instant(20_000_000), 7)
    torn(bad)
    spoil(path)
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(DamagedStore) as refused:
        SqliteJournal.open(path)
    text = str(refused.value)
    assert "\n" not in text
    assert text.startswith(f"{path} is damaged (")
    assert text.endswith(f"nqspy restore {good} --home {path.parent}")
    assert (path.read_bytes() if path.exists() else None) == before


def test_a_flipped_bit_is_found_after_an_unclean_end_by_the_check_that_compares_indexes(told, path):
    """An index that disagrees with its table passes ``quick_check``."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    sql = "CREATE INDEX eventrow_at ON events (n)"
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'eventrow_at'", (sql,))
    connection.commit()
    connection.close()
    SqliteJournal.open(path).close()
    places.mark(path).touch()
    with pytest.raises(DamagedStore, match="eventrow_at"):
        SqliteJournal.open(path)


def test_the_mark_tells_whether_the_last_end_was_clean(path, monkeypatch):
    checks = []
    check = opening._check_pages

    def noted(path, connection, how):
        checks.append(how)
        check(path, connection, how)

    monkeypatch.setattr(opening, "_check_pages", noted)
    journal = SqliteJournal.open(path)
    assert places.mark(path).exists()
    journal._db.close()  # as a kill does: nobody takes the mark away
    SqliteJournal.open(path).close()
    assert not places.mark(path).exists()
    SqliteJournal.open(path).close()
    assert checks == ["quick_check", "integrity_check", "quick_check"]


def test_a_large_database_is_checked_only_after_an_unclean_end(told, path, monkeypatch):
    monkeypatch.setattr(opening, "CHECKED_ALWAYS", 0)
    garbled(path)
    SqliteJournal.open(path)._db.close()
    with pytest.raises(DamagedStore):
        SqliteJournal.open(path)


def test_a_restore_that_did_not_finish_keeps_every_start_from_going_on(told, path):
    good = copies.back_up(path, Instant(10_000_000), 7)
    places.restoring(path).write_bytes(good.read_bytes())
    for gone in (False, True):
        if gone:
            path.unlink()
        with pytest.raises(
            StoreError, match=r"a restore was begun and not finished.*nqspy restore"
        ) as refused:
            SqliteJournal.open(path)
        assert "\n" not in str(refused.value)
    restoring.restore(path, good, "now")
    with SqliteJournal.open(path) as journal:
        assert journal.load().n == told.site.n


READ_ONLY = """
import os, sys
from pathlib import Path
from nqspy.store.errors import StoreError
from nqspy.store.journal import SqliteJournal
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    SqliteJournal.open(Path(sys.argv[1]))
except StoreError as error:
    print(error)
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_database_that_may_not_be_written_is_named(told, path, what):
    """As an ordinary user: rights mean nothing to root."""
    with tempfile.TemporaryDirectory() as name:
        folder, database = Path(name), Path(name) / "nqs.db"
        shutil.copyfile(path, database)
        if os.geteuid() == 0:
            os.chown(folder, 65534, 65534)
            os.chown(database, 65534, 65534)
        database.chmod(0o400 if what == "file" else 0o600)
        folder.chmod(0o500 if what == "folder" else 0o700)
        run = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(database)], capture_output=True, text=True, check=False
        )
        folder.chmod(0o700)
        assert run.returncode == 0, run.stderr
        assert len(run.stdout.splitlines()) == 1, run.stdout
        assert str(database) in run.stdout
        assert database.read_bytes() == path.read_bytes()
