"""What is opened, what is refused and kept, what is brought up to date."""

import os
import sqlite3
from pathlib import Path

import pytest

from nqspy.model.site import Site
from nqspy.store import migrations, opening, schema
from nqspy.store.errors import DamagedStore, NewerStore, StoreError
from nqspy.store.journal import SqliteJournal


def damage(path: Path) -> bytes:
    whole = bytearray(path.read_bytes())
    whole[8192:30000] = os.urandom(30000 - 8192)
    path.write_bytes(whole)
    return bytes(whole)


@pytest.mark.parametrize(
    "spoil",
    [
        damage,
        lambda path: path.write_bytes(path.read_bytes()[:20_000]),
        lambda path: path.write_bytes(b"this is no database\n" * 500),
        lambda path: path.write_bytes(b""),
        lambda path: (path.unlink(), sqlite3.connect(path).execute("CREATE TABLE t (a)").connection.close()),
    ],
    ids=["garbled", "cut short", "another file", "empty", "another program's"],
)
def test_a_damaged_file_is_refused_and_kept(told, path, spoil):
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(DamagedStore) as refused:
        SqliteJournal.open(path)
    text = str(refused.value)
    assert text.startswith(f"{path} is damaged (")
    assert f"There is no good backup in {path.parent}/backups" in text
    assert text.endswith(f"nqspy restore FILE --home {path.parent}")
    assert "\n" not in text
    assert path.read_bytes() == before


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


def test_a_missing_file_whose_log_is_there_is_damage(path, told):
    path.unlink()
    Path(f"{path}-wal").write_bytes(b"x" * 4096)
    with pytest.raises(DamagedStore, match="missing"):
        SqliteJournal.open(path)
    assert not path.exists()


def test_a_page_spoilt_while_it_ran_is_named_at_loading(told, path, monkeypatch):
    monkeypatch.setattr(opening, "CHECKED_ALWAYS", 0)
    before = damage(path)
    with pytest.raises(DamagedStore), SqliteJournal.open(path) as journal:
        journal.load()
    assert len(path.read_bytes()) == len(before)


def test_a_newer_database_is_refused(told, path):
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.VERSION + 1}")
    connection.close()
    with pytest.raises(
        NewerStore, match=f"has format {migrations.VERSION + 1}, this nqspy knows formats up to"
    ):
        SqliteJournal.open(path)


def test_an_older_database_is_brought_up_to_date_or_left_alone(told, path):
    def broken(connection):
        connection.execute("ALTER TABLE events ADD COLUMN note TEXT")
        connection.execute("SELECT nothing FROM nowhere")

    with pytest.raises(
        StoreError, match=f"could not be brought from format {migrations.VERSION} to {migrations.VERSION + 1}"
    ):
        opening.open_database(path, (*migrations.STEPS, broken))
    SqliteJournal.open(path).close()

    def step(connection):
        connection.execute("ALTER TABLE events ADD COLUMN note TEXT")

    db = opening.open_database(path, (*migrations.STEPS, step))
    connection = schema.connection(db)
    assert migrations.version(connection) == migrations.VERSION + 1
    assert connection.execute("SELECT count(note), count(*) FROM events").fetchone() == (0, told.site.n)
    db.close()


def test_the_models_describe_the_tables_that_migrations_make(path):
    opened = opening.open_database(path)
    for model in (schema.EventRow, schema.RequestRow, schema.SettingsRow, schema.BlobRow, schema.ArchiveRow):
        meta = model._meta
        columns = schema.connection(opened).execute(f"PRAGMA table_info({meta.table_name})").fetchall()
        nullable = {field.column_name: field.null for field in meta.sorted_fields}
        assert {name: not required for _, name, _, required, *_ in columns} == nullable
    opened.close()


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"nowhere/nqs\.db cannot be opened: No such file or directory"):
        SqliteJournal.open(tmp_path / "nowhere" / "nqs.db")


def test_a_file_half_made_by_a_killed_start_is_made_anew(path, same_site):
    path.with_name("nqs.db.new").write_bytes(b"half")
    with SqliteJournal.open(path) as journal:
        same_site(Site(), journal.load())
    assert [file.name for file in path.parent.iterdir()] == ["nqs.db"]
