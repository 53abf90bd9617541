"""Reading beside the writer, and copies of the whole."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.store.errors import StoreError
from nqspy.store.journal import SqliteJournal
from nqspy.store.reader import SLICE, Reader


def test_a_reader_answers_questions_about_ended_requests(sqlite, reader, tell_story):
    story = tell_story(sqlite, 7)
    story.go_on(400)
    found = list(reader.ended())
    assert [row["seq"] for row in found] == [
        seq for seq, (_, at) in sorted(story.ended.items(), key=lambda item: (item[1][1], item[0]))
    ]
    both = [row for row in found if (row["spec"].owner, row["queue"]) == ("anne", "night")]
    assert list(reader.ended(owner="anne", queue="night")) == both != []


def test_long_answers_come_in_slices_without_a_gap(sqlite, reader, tell_story):
    story = tell_story(sqlite)
    seqs = [story.submit() for _ in range(2 * SLICE + 3)]
    instant = story._at
    for seq in seqs:
        story._at = instant
        story.tell(ev.Deleted(seq, "anne"))
    story.commit()
    assert [row["seq"] for row in reader.ended()] == sorted(seqs, key=lambda seq: (story.ended[seq][1], seq))
    assert [row["seq"] for row in reader.ended(seqs=list(reversed(seqs)))] == list(reversed(seqs))
    assert list(reader.events()) == story.history
    assert [r.n for r in reader.events(after=2, limit=SLICE + 1)] == list(range(3, SLICE + 4))


def test_blobs_are_read_together_and_those_that_are_not_there_left_out(sqlite, reader, tell_story):
    story = tell_story(sqlite)
    kept = {story.keep(body): body for body in (b"", b"A=1", b"x" * 100_000)}
    story.commit()
    assert reader.blobs({*kept, "0" * 64}) == kept
    assert reader.blobs(()) == {}


def test_a_clock_that_was_set_back_hides_no_event(sqlite, reader, tell_story):
    story = tell_story(sqlite)
    for at in (5_000_000, 9_000_000, 6_000_000, 7_000_000):
        story._at = at
        story.submit()
    story.commit()
    found = [recorded.at // 1_000_000 for recorded in reader.events(since=Instant(6_000_000))]
    assert found == [9, 6, 7]


def test_a_reader_sees_each_commit_from_another_thread(sqlite, reader, tell_story):
    story = tell_story(sqlite)
    with ThreadPoolExecutor() as pool:
        for _ in range(2):
            story.submit()
            story.commit()
            [*_, last] = pool.submit(lambda: list(reader.events())).result()
            assert last.n == story.site.n


def test_a_slow_reader_does_not_keep_the_log_growing(sqlite, reader, tell_story):
    story = tell_story(sqlite)
    story.go_on(30)
    slow = reader.events()
    next(slow)
    busy, _, _ = sqlite._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0
    assert len(list(slow)) == len(story.history) - 1


def test_the_questions_are_answered_from_indexes(sqlite):
    def plan(sql):
        return " ".join(row[3] for row in sqlite._connection.execute(f"EXPLAIN QUERY PLAN {sql}"))

    assert "INDEX requests_live" in plan("SELECT * FROM requests WHERE ended IS NULL ORDER BY seq")
    ended = "SELECT * FROM requests WHERE ended IS NOT NULL AND owner = 'a' ORDER BY ended, seq LIMIT 9"
    assert "INDEX requests_ended" in plan(ended)
    assert "TEMP" not in plan(ended)


def test_a_reader_of_no_database_says_so(tmp_path):
    with pytest.raises(StoreError, match=r"none\.db cannot be read"):
        Reader(tmp_path / "none.db")


@pytest.mark.parametrize("of", ["journal", "reader"])
def test_a_backup_is_a_database_of_the_moment(sqlite, reader, path, tell_story, same_site, of):
    story = tell_story(sqlite)
    story.go_on(100)
    copy = path.with_name("nqs.db.bak")
    (sqlite if of == "journal" else reader).backup(copy)
    before = sqlite.load()
    story.go_on(20)
    assert copy.stat().st_mode & 0o777 == 0o600
    with SqliteJournal.open(copy) as restored:
        same_site(before, restored.load())
    with pytest.raises(StoreError, match="could not be written"):
        sqlite.backup(path.parent / "nowhere" / "nqs.db.bak")


def test_events_of_some_kinds_are_found_among_all(sqlite, reader, tell_story):
    story = tell_story(sqlite, 3)
    story.go_on(4 * SLICE)
    kinds = ("settings_changed", "reported", "submitted")
    found = [each for each in story.history if each.event.kind in kinds]
    assert len(found) > SLICE
    assert list(reader.kinds(kinds)) == found
    middle = found[len(found) // 2].n
    assert list(reader.kinds(kinds, upto=middle)) == [each for each in found if each.n <= middle]
    assert list(reader.kinds(kinds, after=middle)) == [each for each in found if each.n > middle]
    assert list(reader.kinds(("nothing",))) == []


def test_the_oldest_request_of_a_time_is_found(sqlite, reader, tell_story):
    story = tell_story(sqlite, 5)
    story.go_on(300)
    submitted = {e.event.seq: e.at for e in story.history if isinstance(e.event, ev.Submitted)}
    for since in (0, story._at // 2, story._at):
        gone = {seq for seq, (_, at) in story.ended.items() if at < since}
        assert reader.oldest(Instant(since)) == min(at for seq, at in submitted.items() if seq not in gone)
