"""What only a file can do: survive a kill, be full, be locked."""

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from unittest.mock import Mock

import pytest

from nqspy.model.site_checks import check_site
from nqspy.ports import CommitFailed
from nqspy.store.errors import StoreError
from nqspy.store.journal import SqliteJournal
from nqspy.store.reserve import PIECE, Reserve


def test_everything_is_there_after_it_was_closed(told, path, same_site):
    with SqliteJournal.open(path) as journal:
        same_site(told.site, journal.load())
        told.journal = journal
        told.go_on(50)
        same_site(told.site, journal.load())


def test_the_file_is_the_owners_alone(sqlite, path, tell_story):
    tell_story(sqlite)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {"nqs.db": 0o600, "nqs.db-wal": 0o600, "nqs.db-shm": 0o600, "nqs.db-open": 0o600}


def test_commits_wait_for_the_disk(sqlite):
    for name, value in (("journal_mode", "wal"), ("synchronous", 2)):
        assert sqlite._connection.execute(f"PRAGMA {name}").fetchone()[0] == value


PREAMBLE = """
import os, resource, signal, sys
from pathlib import Path
from nqspy.engine import lifecycle
from nqspy.model import events as ev
from nqspy.model.requests import Spec
from nqspy.ports import Batch, CommitFailed
from nqspy.store.journal import SqliteJournal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
journal = SqliteJournal.open(path)
def commit(*texts):
    site, recorded = journal.load(), []
    for text in texts:
        recorded.append(ev.Recorded(site.n + 1, site.n, ev.Alarm("x", text)))
        lifecycle.apply(site, recorded[-1])
    journal.commit(Batch(recorded), site)
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
def attempt(*texts):
    try:
        commit(*texts)
    except CommitFailed as error:
        print(error, flush=True)
"""


def run(script, *words):
    return subprocess.run([sys.executable, "-c", PREAMBLE + script, *map(str, words)], capture_output=True,
                          text=True, check=False)  # fmt: skip


WRITER = """
site = journal.load()
while True:
    batch = Batch()
    for _ in range(3):
        seq = site.next_seq
        spec = Spec("anne", 1000, f"job{seq}", "night", "s" * 64, "e" * 64, "/home/anne")
        batch.events.append(ev.Recorded(site.n + 1, seq, ev.Submitted(seq, spec, "night", "queued")))
        lifecycle.apply(site, batch.events[-1])
    batch.blobs[f"blob{seq}"] = b"x" * 2000
    journal.commit(batch, site)
    print(seq, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_acknowledged(path):
    seen = 0
    for _ in range(3):
        words = [sys.executable, "-c", PREAMBLE + WRITER, str(path)]
        writer = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        for _ in range(40):
            seen = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate()
        seen = max([seen, *map(int, rest.split("\n")[:-1])])
        with SqliteJournal.open(path) as journal:
            site = journal.load()
            check_site(site)
            assert len(site.requests) >= seen
            assert sorted(site.requests) == list(range(1, site.next_seq))
            assert len(site.requests) % 3 == 0, "a group is there whole or not at all"
            assert [r.n for r in journal.events()] == list(range(1, site.n + 1))
            assert journal.blob(f"blob{seen}") == b"x" * 2000


def test_a_full_database_refuses_the_group_and_works_again_with_room(sqlite, tell_story, same_site):
    story = tell_story(sqlite)
    story.go_on(50)
    connection = sqlite._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    story.keep(os.urandom(200_000))
    story.submit()
    with pytest.raises(CommitFailed, match=r"nothing was written to .*nqs\.db: the disk is full") as failed:
        sqlite.commit(story.batch, story.site)
    assert "\n" not in str(failed.value)
    assert sqlite.load().n == len(story.history)
    connection.execute("PRAGMA max_page_count = 1000000")
    story.commit()
    same_site(story.site, sqlite.load())


FULL_DISK = """
commit("small")
limit(os.path.getsize(f"{path}-wal"))
for _ in range(3):
    attempt(*["x" * 500] * 50)
    print(journal.load().n)
limit(100_000)
attempt("big" * 100_000)
limit(resource.RLIM_INFINITY)
commit("after")
print([recorded.event.text for recorded in journal.events()])
"""


def test_a_write_that_the_system_refuses_leaves_the_journal_usable_and_readable_meanwhile(path):
    """Also while the disk takes nothing at all."""
    *refused, big, kept = run(FULL_DISK, path).stdout.splitlines()
    assert [line.startswith(f"nothing was written to {path}") for line in refused] == [True, False] * 3
    assert refused[1::2] == ["1", "1", "1"]
    assert big.startswith(f"nothing was written to {path}: the disk")
    assert kept == "['small', 'after']"


NO_SYNC = """
from nqspy.daemon.failpoints import refuse_syncs
from nqspy.store.reader import Reader
commit("before")
reader = Reader(path).__enter__() if sys.argv[2] == "read" else None
if reader:
    reader.problems()
refuse_syncs()
for text in ("small", "large" * 30_000, "last"):
    attempt(text)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("others", ["read", "alone"])
def test_what_the_disk_would_not_confirm_is_not_there_after_a_crash_either(path, others):
    done = run(NO_SYNC, path, others)
    assert done.returncode == -signal.SIGKILL, done.stderr
    refused = done.stdout.splitlines()
    assert len(refused) == 3, "each of them was told that nothing was written"
    assert all("an I/O error" in each for each in refused)
    with SqliteJournal.open(path) as journal:
        assert [recorded.event.text for recorded in journal.events()] == ["before"]


def test_a_lock_of_another_program_is_named(sqlite, path, tell_story):
    story = tell_story(sqlite)
    sqlite._connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    story.submit()
    with pytest.raises(CommitFailed, match="another program keeps the database locked"):
        sqlite.commit(story.batch, story.site)
    other.execute("ROLLBACK")
    other.close()
    story.commit()
    assert sqlite.load().n == story.site.n


def test_a_connection_that_broke_is_replaced(sqlite, tell_story, same_site):
    story = tell_story(sqlite)
    sqlite._connection.close()
    story.submit()
    with pytest.raises(CommitFailed, match="nothing was written"):
        sqlite.commit(story.batch, story.site)
    story.commit()
    same_site(story.site, sqlite.load())


@pytest.mark.parametrize(("name", "failpoint", "raised"),
                         [("\udcff", None, CommitFailed),
                          ("job", Mock(side_effect=KeyboardInterrupt), KeyboardInterrupt)])  # fmt: skip
def test_a_bad_text_or_a_crash_before_the_commit_leaves_nothing_of_the_group(
    sqlite, tell_story, name, failpoint, raised
):
    story = tell_story(sqlite)
    sqlite.failpoint = failpoint
    story.submit(name=name)
    with pytest.raises(raised):
        sqlite.commit(story.batch, story.site)
    assert sqlite.load().n == len(story.history)


def test_requests_of_one_list_share_what_is_equal_and_large_scripts_are_packed(sqlite, tell_story):
    story = tell_story(sqlite)
    small, large = story.keep(b"true\n"), story.keep(b"sleep 1\n" * 5000)
    for number in range(3):
        story.submit(name=f"job{number}", owner="anne", workdir="/home/anne/run")
    story.commit()
    specs = [request.spec for request in sqlite.load().requests.values()]
    for name in ("owner", "workdir", "environment"):
        assert len({id(getattr(spec, name)) for spec in specs}) == 1
    kept = dict(sqlite._connection.execute("SELECT digest, length(body) FROM blobs"))
    assert kept[small] == 5
    assert kept[large] < 2000


@pytest.fixture
def reserve(tmp_path):
    kept = Reserve(tmp_path / "reserve", lambda: 0.0)
    kept.fill()
    return kept


def no_room(reserve, left):
    """Return a step that fails for lack of room until only so many bytes are held."""

    def step():
        if reserve.held > left:
            raise OSError(errno.ENOSPC, "No space left on device")
        return "done"

    return step


def test_it_is_given_up_in_small_pieces_until_there_is_room_and_not_for_another_reason(reserve):
    before = reserve.held
    with pytest.raises(PermissionError):
        reserve.let(Mock(side_effect=PermissionError(errno.EACCES, os.strerror(errno.EACCES))))
    assert reserve.held == before
    assert reserve.let(no_room(reserve, before - 3 * PIECE)) == "done"
    assert reserve.held == before - 3 * PIECE


def test_when_all_is_given_up_in_vain_the_disk_is_named(reserve, tmp_path):
    with pytest.raises(StoreError, match=f"the disk that holds {tmp_path} is full; make room and try again"):
        reserve.let(no_room(reserve, -1))
    assert reserve.held == 0
