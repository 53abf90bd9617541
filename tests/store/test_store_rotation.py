"""Rotation: what is old moves into files, once, and everybody finds it there."""

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
from unittest.mock import Mock

import pytest

from nqspy.model import events as ev
from nqspy.model.ids import Instant
from nqspy.store import archive, history, places, rotation, schema
from nqspy.store.errors import StoreError
from nqspy.store.journal import SqliteJournal
from nqspy.store.reader import Reader
from nqspy.store.rotation import Rotation

NEVER = Instant(2**60)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make files small, so that a short history has several."""
    for name, size in (("EVENTS", 70), ("REQUESTS", 9), ("BLOBS", 2), ("BATCH", 8)):
        monkeypatch.setattr(rotation, name, size)
    monkeypatch.setattr(rotation, "_OLD_REQUESTS", rotation._OLD_REQUESTS.replace("LIMIT 2000", "LIMIT 9"))


def rotate(journal, before, **more):
    return Rotation(journal.path, journal.turn, journal.forget_blobs, **more).run(before)


def counts(path):
    db = schema.readonly(path)
    connection = schema.connection(db)
    found = {
        table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("events", "requests", "keys", "blobs")
    }
    db.close()
    return found


def lines_of(files):
    return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def everything(reader):
    """Return all that can be read of the history."""
    return list(reader.events()), list(reader.ended()), {r["seq"]: r for r in reader.ended()}


@pytest.fixture
def moved(sqlite, tell_story):
    """Return a story whose events and ended requests have all moved into files."""
    story = tell_story(sqlite, 3)
    story.go_on(200)
    rotate(sqlite, NEVER)
    return story


@pytest.mark.parametrize("part", [0.0, 0.4, 1.1])
def test_a_reader_sees_no_difference(sqlite, path, tell_story, reader, same_site, part):
    story = tell_story(sqlite, 3)
    story.go_on(500)
    before = everything(reader)
    middle = Instant(int(story.history[0].at + part * (story.site.at - story.history[0].at)))
    done = rotate(sqlite, middle)
    assert everything(reader) == before
    assert (done.events > 0) == (part > 0)
    old = [each for each in story.history if each.at < middle]
    if part == 0.4:
        assert done.events <= len(old)
        assert counts(path)["events"] == len(story.history) - done.events
        assert done.requests == sum(at < middle for _, at in story.ended.values())
    for after, since in ((0, middle), (30, None), (70, None), (71, middle), (10**6, None)):
        expected = [e for e in story.history if e.n > after and (since is None or e.at >= since)]
        assert list(reader.events(after=after, since=since)) == expected
        assert list(reader.events(after=after, since=since, limit=75)) == expected[:75]
    asked = [*reversed(story.ended), 10**9, *story.site.requests]
    assert [row["seq"] for row in reader.ended(seqs=asked)] == list(reversed(story.ended))
    assert [row["seq"] for row in sqlite.ended(asked)] == list(reversed(story.ended))
    for narrow in ({"owner": "anne"}, {"queue": "night"}, {"since": middle}):
        expected = [
            row
            for row in before[1]
            if narrow.get("owner", row["spec"].owner) == row["spec"].owner
            and narrow.get("queue", row["queue"]) == row["queue"]
            and row["at"] >= narrow.get("since", 0)
        ]
        assert list(reader.ended(**narrow)) == expected
    assert list(reader.newest()) == before[1][::-1]
    assert list(reader.newest("anne", middle)) == [
        row for row in before[1][::-1] if row["spec"].owner == "anne" and row["at"] >= middle
    ]
    same_site(story.site, sqlite.load())
    story.go_on(50)
    assert list(reader.events()) == story.history


def test_a_database_that_is_too_large_keeps_the_latest_part_of_it(sqlite, path, tell_story, reader):
    story = tell_story(sqlite, 3)
    story.go_on(500)
    sqlite.load()
    rotation = Rotation(path, sqlite.turn, sqlite.forget_blobs)
    assert rotation.beyond(1 << 40) == 0
    size = sqlite._connection.execute("PRAGMA page_count").fetchone()[0] * 4096
    middle = rotation.beyond(size // 2)
    older = [each for each in story.history if each.at < middle]
    assert 0.4 < len(older) / len(story.history) < 0.6
    before = everything(reader)
    assert rotate(sqlite, middle).events
    assert everything(reader) == before


def test_what_is_no_longer_named_goes_and_comes_back(sqlite, path, tell_story, reader):
    story = tell_story(sqlite)
    body = b"only once\n" * 300
    old = story.spec(owner="anne", script=story.keep(body), held=False, eligible=None, after=())
    kept = story.spec(owner="anne", script=story.keep(b"still named\n"), held=False, eligible=None, after=())
    for number, (spec, key) in enumerate(((old, "old"), (kept, "kept")), 1):
        story.tell(ev.Submitted(number, spec, "night", "queued", key=key, digest="d"))
    story.tell(ev.Starting(1, 1, (0,)))
    story.tell(ev.Started(1, 1, (0,)))
    story.tell(ev.Ended(1, 1, "exit", exit_status=0))
    story.commit()
    done = rotate(sqlite, NEVER)
    assert (done.requests, done.keys) == (1, 1)
    assert sqlite.find_key("anne", "old") is None
    assert sqlite.find_key("anne", "kept") == ("d", (2,))
    assert counts(path)["blobs"] == 1, "the one that is still named"
    assert reader.blob(old.script) == body
    assert sqlite.blob(old.script) == body
    with pytest.raises(KeyError):
        reader.blob("f" * 64)
    # Submitted again: the journal has not kept in mind that it is there.
    story.keep(body)
    story.submit(owner="anne", script=old.script)
    story.commit()
    rotate(sqlite, Instant(0))
    (places.history(path)).rename(path.parent / "away")
    assert sqlite.blob(old.script) == body


def test_copies_of_exits_stay_as_long_as_an_event_names_them_or_they_are_loaded(sqlite, path, tell_story):
    story = tell_story(sqlite)
    first, second, third = (story.keep(b"version %d" % number) for number in (1, 2, 3))
    story.tell(ev.LoadedExits((("quiet", first),)))
    story.tell(ev.LoadedExits((("quiet", second),)))
    story.tell(ev.LoadedExits((("quiet", third),)))
    story.commit()
    rotate(sqlite, story.history[-2].at)
    with Reader(path) as reader:
        assert counts(path)["blobs"] == 2 + (story.history[-3].at == story.history[-2].at)
        rotate(sqlite, NEVER)
        assert counts(path)["blobs"] == 1, "the one that is loaded"
        assert [reader.blob(each) for each in (first, third)] == [b"version 1", b"version 3"]


def test_files_are_the_owners_alone_and_say_what_they_hold(moved, path, reader):
    folder = places.history(path)
    assert folder.stat().st_mode & 0o777 == 0o700
    files = sorted(folder.iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert sorted(one.name for one in reader.archives()) == [file.name for file in files]
    events = [file for file in files if file.name.startswith("events-")]
    assert events[0].name == "events-000000001-000000070.jsonl.gz"
    lines = lines_of(events)
    assert [line["n"] for line in lines if "n" in line] == [each.n for each in moved.history]
    assert all("sha256" in line for line in lines if "n" not in line)
    assert reader.damaged_archives() == []
    assert counts(path)["events"] == counts(path)["keys"] == 0


@pytest.mark.parametrize("spoil", ["torn", "flipped", "missing"])
def test_a_damaged_file_is_named_and_spoils_nothing_else(moved, path, reader, spoil):
    file = places.history(path) / "events-000000071-000000140.jsonl.gz"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 255
    file.write_bytes(file.read_bytes()[:-30] if spoil == "torn" else data)
    if spoil == "missing":
        file.unlink()
    with pytest.raises(StoreError, match="events-000000071-000000140") as error:
        list(reader.events())
    assert "\n" not in str(error.value)
    assert [text for text in reader.damaged_archives() if file.name in text]
    assert list(reader.events(after=140)) == moved.history[140:]
    assert list(reader.ended())


# ---------------------------------------------------------------- killed anywhere
class Killed(BaseException):
    """The process ends here."""


def test_killed_at_any_step_nothing_is_lost_and_nothing_moves_twice(tmp_path, tell_story):
    steps = []
    with SqliteJournal.open(tmp_path / "trial.db") as journal:
        tell_story(journal, 4).go_on(90)
        rotate(journal, NEVER, failpoint=steps.append)
    assert set(steps) == {"written", "named", "deleted", "cleared"}
    for number in (*range(10), *range(10, len(steps), 6)):
        home = tmp_path / str(number)
        home.mkdir()
        path = home / "nqs.db"
        with SqliteJournal.open(path) as journal, Reader(path) as reader:
            story = tell_story(journal, 4)
            story.go_on(90)
            before, left = everything(reader), [number]

            def step(name, left=left):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed

            with pytest.raises(Killed):
                rotate(journal, NEVER, failpoint=step)
            assert everything(reader) == before, "in between"
            rotate(journal, NEVER)
            assert everything(reader) == before, "afterwards"
            assert counts(path)["events"] == 0
            files = [places.history(path) / one.name for one in reader.archives()]
            lines = lines_of(file for file in files if file.name.startswith("events-"))
            assert sorted(line["n"] for line in lines if "n" in line) == [each.n for each in story.history]
            seqs = [row["seq"] for row in reader.ended()]
            assert sorted(seqs) == sorted(story.ended)
            assert not list(places.history(path).glob("*.gz.*")), "nothing is left over"


KILL = """
import os, signal, sys
from pathlib import Path
from nqspy.model.ids import Instant
from nqspy.store import rotation
from nqspy.store.journal import SqliteJournal
rotation.EVENTS, rotation.BATCH = 70, 8
left = int(sys.argv[2])
def step(name):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
journal = SqliteJournal.open(Path(sys.argv[1]))
rotation.Rotation(journal.path, journal.turn, journal.forget_blobs, failpoint=step).run(Instant(2**60))
"""


@pytest.mark.parametrize("number", [0, 5, 25])
def test_kill_9_in_the_middle(told, path, number):
    with Reader(path) as reader:
        before = everything(reader)
    run = subprocess.run([sys.executable, "-c", KILL, str(path), str(number)], check=False)
    assert run.returncode == -signal.SIGKILL
    with SqliteJournal.open(path) as journal, Reader(path) as reader:
        assert everything(reader) == before
        rotate(journal, NEVER)
        assert everything(reader) == before
        assert counts(path)["events"] == 0


def test_readers_and_writers_go_on_while_rows_move(sqlite, path, tell_story, reader):
    """Rotation on a thread of its own: every look at the history meanwhile is whole."""
    story = tell_story(sqlite, 6)
    story.go_on(600)
    before = everything(reader)
    gate = threading.Semaphore(0)
    done = threading.Event()

    def work():
        rotate(sqlite, NEVER, failpoint=lambda step: gate.acquire(timeout=5))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    listing, events = reader.ended(), reader.events()
    seen, heard = [], []
    while not done.is_set():
        gate.release()
        gate.release()
        seen += [row for _, row in zip(range(3), listing, strict=False)]
        heard += [each for _, each in zip(range(9), events, strict=False)]
        assert [row["seq"] for row in reader.ended(seqs=list(before[2]))] == list(before[2])
        story.submit(held=False, eligible=None)
        story.commit()
    thread.join()
    seen += listing
    heard += events
    assert [row["seq"] for row in seen] == [row["seq"] for row in before[1]]
    assert len(heard) >= len(before[0])
    assert heard == story.history[: len(heard)]


def test_a_file_of_a_time_that_was_restored_away_is_set_aside(told, path):
    copy = path.read_bytes()
    with SqliteJournal.open(path) as journal:
        rotate(journal, NEVER)
        lost = {file.name for file in places.history(path).iterdir()}
    path.write_bytes(copy)
    name = "events-000000001-000000070.jsonl.gz"
    (places.history(path) / name).write_bytes(b"of another time")
    with SqliteJournal.open(path) as journal, Reader(path) as reader:
        assert reader.archives() == []
        before = everything(reader)
        rotate(journal, NEVER)
        assert everything(reader) == before
    assert (places.history(path) / f"{name}.1").read_bytes() == b"of another time"
    assert {file.name for file in places.history(path).iterdir()} == lost | {f"{name}.1"}


def test_a_full_disk_stops_a_round_in_one_line_and_the_next_one_finishes_it(
    sqlite, tell_story, reader, monkeypatch
):
    story = tell_story(sqlite)
    story.go_on(200)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
        with pytest.raises(StoreError, match="rotation stopped: No space left on device"):
            rotate(sqlite, NEVER)
    assert list(reader.events()) == story.history
    assert rotate(sqlite, NEVER).events == len(story.history)


def test_requests_by_their_numbers_are_found_with_one_look_into_each_file(moved, reader, monkeypatch):
    known = [row["seq"] for row in reader.ended()]
    asked = [*known[::2][::-1], 2**63, 10**30, *known[1::2]]
    looks = []
    monkeypatch.setattr(history, "SLICE", 5)
    monkeypatch.setattr(
        history.archive, "read", lambda file, real=archive.read: (looks.append(file), real(file))[1]
    )
    assert [row["seq"] for row in reader.ended(seqs=asked)] == [seq for seq in asked if seq < 2**63]
    assert len(looks) == len(set(looks)) > 1
