"""A migration that is killed half way, and begun again: nothing of the home is lost."""

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from store.former_home import unpack
from store.test_store_former_home import rows

from nqspy.model.site import Site
from nqspy.store import migrations, schema
from nqspy.store.journal import SqliteJournal

KILL = """
import os, signal, sys
from pathlib import Path
from nqspy.core import features
from nqspy.store import copies, opening
from nqspy.store.journal import SqliteJournal
left = int(sys.argv[3])
def step(*_):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
upgrade, back_up = opening.upgrade, copies.copy_to
def watched(connection, steps):
    connection.set_trace_callback(step)
    upgrade(connection, steps)
def copied(path, target, go_on):
    back_up(path, target, step)
if sys.argv[2] == "backup":
    copies.copy_to = copied
else:
    opening.upgrade = watched
SqliteJournal.open(Path(sys.argv[1])).close()
"""


def killed(path: Path, part: str, number: int) -> None:
    """An nqspy that opens the database is killed at that step of a part of it."""
    done = subprocess.run([sys.executable, "-c", KILL, str(path), part, str(number)], check=False)
    assert done.returncode == -signal.SIGKILL


def format_of(path: Path) -> int:
    """Of the database, as it is read by anybody."""
    db = schema.readonly(path)
    with closing(schema.connection(db)) as connection:
        return migrations.version(connection)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site of the former home, opened by one that nobody killed."""
    with SqliteJournal.open(unpack(tmp_path_factory.mktemp("whole")).home / "nqs.db") as journal:
        return journal.load()


@pytest.mark.parametrize(("part", "number"), [("backup", 0), ("steps", 0), ("steps", 2), ("steps", 9)])
def test_a_migration_killed_half_way_is_begun_again_and_nothing_is_lost(
    tmp_path, whole, part, number, same_site
):
    path = unpack(tmp_path).home / "nqs.db"
    before, old = rows(path), format_of(path)
    killed(path, part, number)
    assert format_of(path) == old
    assert rows(path) == before
    with SqliteJournal.open(path) as journal:
        same_site(journal.load(), whole)
    assert format_of(path) == migrations.VERSION
    [backup] = (path.parent / "backups").glob("*.db")
    assert format_of(backup) == old
    assert not list((path.parent / "backups").glob("*.new"))
