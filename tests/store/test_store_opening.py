"""Databases that are opened, and those that are refused and kept: one clear line names the way back, and
nothing is lost or made anew."""

import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from nqspy.core import features as features  # declares the features' settings
from nqspy.engine import lifecycle
from nqspy.model.ids import Instant
from nqspy.model.site import Site
from nqspy.report.event_objects import event_object
from nqspy.report.time_text import Zone
from nqspy.store import copies, opening, places, restoring, schema
from nqspy.store.errors import DamagedStore, OtherFormat, StoreError
from nqspy.store.journal import SqliteJournal
from nqspy.store.reader import Reader

DATA = Path(__file__).resolve().parents[1] / "data"


def execute(path, statement):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


def torn(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])


def garbled(path):
    whole = bytearray(path.read_bytes())
    whole[8192:30000] = os.urandom(30000 - 8192)
    path.write_bytes(whole)


SPOILS = {
    "of zero length": lambda path: path.write_bytes(b""),
    "torn": torn,
    "garbled": garbled,
    "a block of zeros": lambda path: path.write_bytes(bytes(4096) + path.read_bytes()[4096:]),
    "no database": lambda path: path.write_bytes(b"this is no database\n" * 500),
    "another program's": lambda path: path.unlink() or execute(path, "CREATE TABLE t (a)"),
    "another application's": lambda path: execute(path, "PRAGMA application_id = 7"),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_a_damaged_file_is_refused_and_kept(told, path, spoil):
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


def test_a_large_database_is_checked_only_after_an_unclean_end_or_at_loading(told, path, monkeypatch):
    monkeypatch.setattr(opening, "CHECKED_ALWAYS", 0)
    size = path.stat().st_size
    garbled(path)
    with pytest.raises(DamagedStore), SqliteJournal.open(path) as journal:
        journal.load()
    assert path.stat().st_size == size
    SqliteJournal.open(path)._db.close()
    with pytest.raises(DamagedStore):
        SqliteJournal.open(path)


def test_a_restore_that_did_not_finish_keeps_every_start_from_going_on(told, path):
    good = copies.back_up(path, Instant(10_000_000), 7)
    places.restoring(path).write_bytes(good.read_bytes())
    for gone in (False, True):
        if gone:
            path.unlink()
        with pytest.raises(StoreError, match=r"restore was started and not .*nqspy restore") as refused:
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


def test_a_damaged_file_keeps_its_log_too(path, tell_story):
    journal = SqliteJournal.open(path)
    tell_story(journal).go_on(100)
    files = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    journal.close()
    for name, body in files.items():
        (path.parent / name).write_bytes(body)
    (path.parent / "nqs.db").write_bytes(os.urandom(len(files["nqs.db"])))
    kept = {name: (path.parent / name).read_bytes() for name in ("nqs.db", "nqs.db-wal")}
    with pytest.raises(DamagedStore):
        SqliteJournal.open(path)
    assert {name: (path.parent / name).read_bytes() for name in kept} == kept


def test_a_missing_file_whose_log_is_there_is_damage_and_without_a_backup_another_way_is_named(path, told):
    path.unlink()
    Path(f"{path}-wal").write_bytes(b"x" * 4096)
    with pytest.raises(DamagedStore, match="missing") as refused:
        SqliteJournal.open(path)
    assert not path.exists()
    assert f"{path.parent}/backups" in str(refused.value)
    assert str(refused.value).endswith(f"nqspy restore FILE --home {path.parent}")


@pytest.mark.parametrize("number", [*range(1, schema.VERSION), schema.VERSION + 1])
def test_a_database_of_another_format_is_refused_and_kept(told, path, number):
    execute(path, f"PRAGMA user_version = {number}")
    before = path.read_bytes()
    with pytest.raises(OtherFormat) as refused:
        SqliteJournal.open(path)
    text = str(refused.value)
    assert f"format {number}," in text
    assert ("e13b55b9" in text) == (number < schema.VERSION)
    assert path.read_bytes() == before


def test_a_database_of_e13b55b9_says_what_it_said(path, same_site):
    path.write_bytes(gzip.decompress((DATA / "format7.db.gz").read_bytes()))
    contents = json.loads((DATA / "format7.json").read_text())
    with SqliteJournal.open(path) as journal, Reader(path) as reader:
        site, events, replayed = journal.load(), list(reader.events()), Site()
        assert (site.n, site.next_seq) == (contents["events"], contents["next_seq"])
        assert sorted(site.requests) == contents["requests"]
        assert list(site.settings.queues) == contents["queues"]
        assert sorted(row["seq"] for row in reader.ended()) == contents["ended"]
        assert [each.event.kind for each in events] == contents["kinds"]
        assert [journal.blob(digest) for digest in contents["blobs"]]
        digest, [seq] = journal.find_key("anne", "the key")
        assert (digest, seq in contents["ended"]) == ("the content", True)
        for each in events:
            assert event_object(each, "ymp", Zone("UTC"))
            lifecycle.apply(replayed, each)
        replayed.touched.clear()
        for seq, request in replayed.requests.items():
            if request.array is not None:  # runs are cut in another way since then
                request.array = replace(request.array, held=site.requests[seq].array.held)
        same_site(site, replayed)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"nowhere/nqs\.db cannot be opened: No such file or directory"):
        SqliteJournal.open(tmp_path / "nowhere" / "nqs.db")


def test_a_file_half_made_by_a_killed_start_is_made_anew(path, same_site):
    path.with_name("nqs.db.new").write_bytes(b"half")
    with SqliteJournal.open(path) as journal:
        same_site(Site(), journal.load())
    assert [file.name for file in path.parent.iterdir()] == ["nqs.db"]
