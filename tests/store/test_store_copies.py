"""Backups: whole, checked, the last few kept, and commits go on meanwhile; restore and what it keeps."""

import os
import sqlite3
from contextlib import suppress
from itertools import count

import pytest

from nqspy.model import events as ev
from nqspy.model.arrays import ArraySpec
from nqspy.model.ids import DAY, Instant, member
from nqspy.store import copies, opening, places, restoring, schema
from nqspy.store.errors import OtherFormat, StoreError
from nqspy.store.journal import SqliteJournal
from nqspy.store.reader import Reader
from nqspy.store.rotation import Rotation

NOON = Instant(1_795_262_400_000)


def load(path):
    with SqliteJournal.open(path) as journal:
        return journal.load()


def test_a_backup_is_one_file_that_says_what_the_database_said(sqlite, path, tell_story, same_site, tmp_path):
    story = tell_story(sqlite)
    story.go_on(200)
    file = copies.back_up(path, NOON, 7)
    assert file == path.parent / "backups" / "nqs-20261121T120000Z.db"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    alone = tmp_path / "alone" / "nqs.db"
    alone.parent.mkdir()
    alone.write_bytes(file.read_bytes())
    same_site(story.site, load(alone))


def test_commits_go_on_while_a_backup_is_made_and_are_not_in_it(sqlite, path, tell_story, monkeypatch):
    monkeypatch.setattr(copies, "PAGES", 4)
    story = tell_story(sqlite)
    story.go_on(300)
    before, steps = story.site.n, []

    def commit_one():
        steps.append(story.submit())
        story.commit()

    file = copies.back_up(path, NOON, 7, go_on=commit_one)
    assert len(steps) > 5
    assert load(file).n == before
    assert sqlite.load().n == before + len(steps)


def test_only_the_newest_are_kept_and_only_after_the_new_one_is_checked(told, path, monkeypatch):
    for day in range(5):
        copies.back_up(path, Instant(NOON + day * DAY), 3)
    assert [copy.at for copy in copies.listed(path)] == [NOON + day * DAY for day in (2, 3, 4)]
    set_back = copies.back_up(path, NOON, 3)
    assert [copy.at for copy in copies.listed(path)] == [NOON, NOON + 3 * DAY, NOON + 4 * DAY]
    assert set_back.exists(), "the newest stays whatever the clock says"
    kept = [copy.path for copy in copies.listed(path)]
    monkeypatch.setattr(copies, "problem", lambda file: "a page is wrong")
    with pytest.raises(OSError, match="does not pass its check: a page is wrong"):
        copies.back_up(path, Instant(NOON + 9 * DAY), 1)
    assert [copy.path for copy in copies.listed(path)] == kept
    assert sorted(file.name for file in kept[0].parent.iterdir()) == sorted(file.name for file in kept)


def test_a_backup_that_is_given_up_leaves_nothing_and_what_a_killed_one_left_goes_with_the_next(told, path):
    def stop():
        raise Killed

    folder = places.backups(path)
    with pytest.raises(Killed):
        copies.back_up(path, NOON, 3, go_on=stop)
    assert list(folder.iterdir()) == []
    (folder / "nqs-20261120T120000Z.db.new").write_bytes(b"half")
    assert copies.listed(path) == []
    file = copies.back_up(path, NOON, 3)
    assert list(folder.iterdir()) == [file]


def test_a_start_gives_back_the_room_of_a_file_that_is_mostly_unused(
    path, tell_story, monkeypatch, same_site
):
    with SqliteJournal.open(path) as journal:
        tell_story(journal, 5).go_on(900)
        before = journal.load()
        Rotation(path, journal.turn, journal.forget_blobs).run(Instant(2**60))
    size = path.stat().st_size
    SqliteJournal.open(path).close()
    assert path.stat().st_size == size, "not worth it"
    monkeypatch.setattr(opening, "GIVEN_BACK", 1)
    same_site(before, load(path))
    assert path.stat().st_size < size / 2


# ---------------------------------------------------------------- restore
def test_a_restored_database_is_the_backup_and_the_replaced_one_is_kept(path, tell_story, same_site):
    with SqliteJournal.open(path) as journal:
        story = tell_story(journal)
        story.go_on(100)
        file = copies.back_up(path, NOON, 7)
        then = journal.load()
        story.go_on(100)
    done = restoring.restore(path, file, "20261121T130000Z")
    assert done.replaced == path.with_name("nqs.db.before-restore-20261121T130000Z")
    assert (done.n, done.lost) == (then.n, story.site.n - then.n)
    same_site(then, load(path))
    same_site(story.site, load(done.replaced))
    note = restoring.rewound(path)
    assert note.next_seq == story.site.next_seq
    restoring.drop_note(path)
    assert restoring.rewound(path) is None


def test_the_note_names_what_was_started_or_ended_since(path, tell_story):
    """Indices are no requests in the backup: their array has them still, and would start them again."""
    with SqliteJournal.open(path) as journal:
        story = tell_story(journal)
        started, ended, untouched, old = (story.submit(held=False, eligible=None) for _ in range(4))
        array = story.submit(held=False, eligible=None, after=(), array=ArraySpec(((1, 9, 1),)))
        story.tell(ev.Starting(old, 1, (3,)))
        story.tell(ev.Starting(member(array, 1), 1, (2,)))
        story.commit()
        file = copies.back_up(path, NOON, 7)
        story.tell(ev.Starting(started, 1, (0,)))
        story.tell(ev.Requeued(started, 1, "rerun"))
        story.tell(ev.Starting(started, 2, (0,)))
        story.tell(ev.Deleted(ended, "anne"))
        story.tell(ev.Starting(member(array, 2), 1, (1,)))
        story.tell(ev.Ended(member(array, 2), 1, "exit", 0))
        story.tell(ev.Starting(member(array, 3), 1, (1,)))
        new = story.submit(held=False, eligible=None)
        story.commit()
    restoring.restore(path, file, "x")
    note = restoring.rewound(path)
    assert note.attempts == {started: 2, ended: 0, member(array, 2): 1, member(array, 3): 1}
    assert untouched not in note.attempts
    assert note.next_seq == new + 1


@pytest.mark.parametrize("log", [False, True], ids=["closed", "with its log"])
def test_a_damaged_database_is_replaced_and_kept_as_it_was(told, path, log):
    file = copies.back_up(path, NOON, 7)
    path.write_bytes(os.urandom(50_000))
    if log:
        places.log(path).write_bytes(b"torn")
    before = path.read_bytes()
    done = restoring.restore(path, file, "x")
    assert done.lost is None
    assert done.replaced.read_bytes() == before
    assert not places.log(path).exists()
    assert load(path).n == told.site.n


@pytest.mark.parametrize("damaged", [False, True])
def test_a_forgotten_database_is_set_aside_with_its_history_and_its_numbers_stay_used(told, path, damaged):
    next_seq = told.site.next_seq
    if damaged:
        path.write_bytes(os.urandom(50_000))
    places.history(path).mkdir(exist_ok=True)
    (places.history(path) / "old").write_text("old")
    before = path.read_bytes()
    moved = restoring.forget(path, "x")
    assert moved.name == "nqs.db.forgotten-x"
    assert (moved.read_bytes(), path.exists()) == (before, False)
    assert (path.parent / "history.forgotten-x" / "old").read_text() == "old"
    note = restoring.rewound(path)
    assert (note.forgotten, note.next_seq, note.attempts) == (True, 1 if damaged else next_seq, {})
    assert restoring.forget(path, "y") is None, "there is none any more"
    assert load(path).n == 0


def _older(file):
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version = {schema.VERSION - 1}")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda file: file.write_bytes(b""), "it is empty"),
        (lambda file: file.write_bytes(file.read_bytes()[:20_000]), "cannot be restored"),
        (lambda file: file.write_bytes(b"no database\n" * 900), "not a database"),
        (lambda file: file.unlink(), "is not a file"),
        (_older, f"has format {schema.VERSION - 1}"),
    ],
    ids=["empty", "torn", "foreign", "missing", "older"],
)
def test_a_file_that_is_no_good_backup_is_refused_and_nothing_changes(told, path, spoil, text):
    file = copies.back_up(path, NOON, 7)
    spoil(file)
    before = {each.name: each.read_bytes() for each in path.parent.iterdir() if each.is_file()}
    with pytest.raises(StoreError, match=text) as refused:
        restoring.restore(path, file, "x")
    assert "\n" not in str(refused.value)
    assert {each.name: each.read_bytes() for each in path.parent.iterdir() if each.is_file()} == before
    assert isinstance(refused.value, OtherFormat) == (spoil is _older)


def test_a_database_that_was_not_closed_is_restored_with_its_log(tmp_path, tell_story, same_site):
    other = tmp_path / "other" / "nqs.db"
    other.parent.mkdir()
    journal = SqliteJournal.open(other)
    story = tell_story(journal)
    story.go_on(50)
    assert places.log_size(other) > 0
    path = tmp_path / "nqs.db"
    done = restoring.restore(path, other, "x")
    assert (done.replaced, done.lost) == (None, None)
    same_site(story.site, load(path))
    journal.close()


class Killed(BaseException):
    pass


def kill_at_rename(monkeypatch, when, path, file):
    """Kill a restore at the first rename for which ``when`` is true."""

    def replace(old, new, real=os.replace):
        if when(old):
            raise Killed
        real(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with suppress(Killed):
            restoring.restore(path, file, "x")


@pytest.mark.parametrize("at", range(6))
def test_a_restore_killed_at_any_rename_loses_nothing_and_is_finished_by_another(
    path, tell_story, same_site, monkeypatch, at
):
    with SqliteJournal.open(path) as journal:
        story = tell_story(journal)
        story.go_on(60)
        file = copies.back_up(path, NOON, 7)
        then = journal.load()
        story.go_on(60)
    calls = count()
    kill_at_rename(monkeypatch, lambda _: next(calls) >= at, path, file)
    if places.restoring(path).exists():
        with pytest.raises(StoreError, match="a restore was started and not finished"):
            load(path)
    else:
        finished = path.with_name("nqs.db.before-restore-x").exists()
        same_site(then if finished else story.site, load(path))
    restoring.restore(path, file, "y")
    same_site(then, load(path))
    assert restoring.rewound(path).next_seq >= then.next_seq
    kept = [load(each).n for each in path.parent.glob("nqs.db.before-restore-?")]
    assert story.site.n in kept


def test_a_restore_killed_before_the_log_was_put_aside_is_finished_beside_the_same_database(
    path, tell_story, same_site, monkeypatch
):
    journal = SqliteJournal.open(path)
    story = tell_story(journal)
    file = copies.back_up(path, NOON, 7)
    then = journal.load()
    story.go_on(20)  # lives in the log
    kill_at_rename(monkeypatch, lambda old: str(old).endswith("nqs.db-wal"), path, file)
    kept = path.with_name("nqs.db.before-restore-x")
    assert restoring.restore(path, file, "y").replaced == kept
    names = {each.name.removesuffix("-shm") for each in path.parent.glob("*before-restore*")}
    assert names == {kept.name, f"{kept.name}-wal"}
    same_site(then, load(path))
    same_site(story.site, load(kept))


def test_a_file_that_is_named_like_a_backup_of_no_day_is_left_alone(told, path):
    copies.back_up(path, NOON, 2)
    strange = places.backups(path) / "nqs-20261399T000000Z.db"
    strange.write_bytes(b"somebody else's")
    for day in (1, 2):
        newest = copies.back_up(path, Instant(NOON + day * DAY), 2)
    assert len(copies.listed(path)) == 2
    assert copies.newest_good(path) == newest
    assert strange.read_bytes() == b"somebody else's"


@pytest.mark.parametrize("whose", ["the site's clock", "the machine's clock"])
def test_after_a_clock_that_was_a_year_ahead_the_newest_are_kept_and_named(told, path, whose):
    year = 400 * DAY
    for day in range(3):
        copies.back_up(path, Instant(NOON + day * DAY), 7)
    for day in range(7):
        file = copies.back_up(path, Instant(NOON + year + day * DAY), 7)
        if whose == "the machine's clock":
            ahead = file.stat().st_mtime + year / 1000 + day
            os.utime(file, (ahead, ahead))
    real = [copies.back_up(path, Instant(NOON + day * DAY), 7) for day in range(3, 10)]
    assert {copy.path for copy in copies.listed(path)} == set(real)
    assert copies.newest_good(path) == real[-1]


def test_settings_are_read_without_the_daemon(sqlite, path, tell_story):
    story = tell_story(sqlite)
    with Reader(path) as reader:
        assert reader.settings("backup").keep == 7
        story.tell(ev.SettingsChanged((ev.Change("set", "backup/keep", 3),), "root"))
        story.commit()
        assert reader.settings("backup").keep == 3


@pytest.mark.parametrize("link", [False, True])
def test_a_backup_handed_out_whose_draft_is_taken_away_says_so(link, tmp_path):
    theirs, source = tmp_path / "theirs", tmp_path / "copy"
    theirs.mkdir()
    source.write_text("the copy")
    outside = places.Outside(theirs / "mine.db")
    [draft] = theirs.iterdir()
    draft.unlink()
    if link:
        draft.symlink_to(source)
    with source.open("rb") as opened, pytest.raises(OSError, match="it was replaced"):
        outside.fill(opened.fileno())
    outside.close()
    assert source.read_text() == "the copy"
