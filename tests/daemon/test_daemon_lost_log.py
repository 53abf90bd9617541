"""What a start finds missing is told: events of a log that was damaged or removed after a crash, of which no
number is given out again, and settings that nothing declares any more."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest
from daemon.inner import Inner

from nqspy.daemon.home import Home
from nqspy.daemon.tools import _database
from nqspy.store import open_mark


def _garbage(begin):
    def spoil(log):
        with log.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(begin)
            file.write(os.urandom(size - begin))

    return spoil


def _frame_header(log):
    with log.open("r+b") as file:
        file.seek(32 + 8)
        file.write(os.urandom(16))


SPOILS = {
    "empty": lambda log: log.write_bytes(b""), "missing": lambda log: log.unlink(), "garbage": _garbage(0),
    "garbage from the first frame on": _garbage(32), "a garbled first frame": _frame_header,
    "cut": lambda log: os.truncate(log, 32),
}  # fmt: skip


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """Return a home as a kill leaves it, with three requests in its log, and the last one's number."""
    folder = tmp_path_factory.mktemp("left")
    inner = Inner(folder / "home")
    while inner.daemon.upkeep.due is None:  # its first round moves the log into the database
        inner.daemon.turn(inner.daemon.inbox.drain(0.01))
    ids = inner.submit("owner", held=True, count=3)
    shutil.copytree(folder / "home", folder / "killed", ignore=shutil.ignore_patterns("*.sock", "cgroups.*"))
    inner.close()
    return folder / "killed", int(ids[-1].partition(".")[0])


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_what_the_log_has_lost_is_told_and_no_number_is_given_out_again(left, tmp_path, spoil):
    home = tmp_path / "home"
    shutil.copytree(left[0], home)
    spoil(home / "nqs.db-wal")
    assert [kind for kind, _ in _database(Home(home))] == ["ok", "bad"]
    inner = Inner(home)
    try:
        assert "nqs.db-wal" in inner.daemon.alarms()[0]
        assert any(
            each.event.kind == "alarm" and each.event.who == "restore"
            for each in inner.daemon.journal.events()
        )
        [id] = inner.submit("owner", held=True)
        assert int(id.partition(".")[0]) == left[1] + 1
    finally:
        inner.close()
    assert open_mark.reached(home / "nqs.db") is None


def test_a_crash_with_a_whole_log_is_no_alarm(left, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(left[0], home)
    with (home / "nqs.db-wal").open("ab") as file:
        file.write(bytes(100_000))  # behind its end
    (home / "nqs.db-shm").unlink(missing_ok=True)
    assert open_mark.missing(home / "nqs.db") == 0
    inner = Inner(home)
    assert inner.daemon.journal.lost is None
    assert not inner.daemon.alarms()
    assert len(inner.daemon.engine.site.requests) == 3
    inner.close()


@pytest.mark.parametrize("mark", [b"", b"9" * 20 + b" " + b"9" * 20, b"-1 -1", b"0 99999999999999999999"])
def test_a_mark_without_sound_numbers_says_nothing(left, tmp_path, mark):
    home = tmp_path / "home"
    shutil.copytree(left[0], home)
    (home / "nqs.db-open").write_bytes(mark)
    (home / "nqs.db-wal").unlink()
    assert open_mark.reached(home / "nqs.db") is None
    assert open_mark.missing(home / "nqs.db") == 0


def test_a_setting_that_nothing_declares_any_more_is_an_alarm(tmp_path):
    home = tmp_path / "home"
    Inner(home).close()
    with closing(sqlite3.connect(home / "nqs.db")) as db, db:
        changed = (
            "UPDATE settings SET value = json_set(value, '$.order', 'widest', '$.colour', 3) WHERE path = ?"
        )
        assert db.execute(changed, ("queue/spare",)).rowcount == 1
    inner = Inner(home)
    try:
        first, second = inner.daemon.alarms()
        assert "queue/spare order=widest " in first
        assert "queue/spare colour=3 " in second
        inner.daemon.commit()
        told = [each.event.text for each in inner.daemon.journal.events() if each.event.kind == "alarm"]
        assert told == [first, second]
        assert inner.daemon.engine.site.settings.queues["spare"].order == "priority"
    finally:
        inner.close()
