"""Databases of every earlier format, and the home that b4ee003 left after a night with incidents: nothing is
lost or changed by what later versions make of them, also where a migration is killed half way."""

import dataclasses
import gzip
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from store.former_home import unpack

from nqspy.core import features as features  # declares the features' settings
from nqspy.engine import lifecycle
from nqspy.model import configure
from nqspy.model.events import Ended, Recorded
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.report.event_objects import event_object
from nqspy.report.time_text import Zone
from nqspy.store import copies, migrations, schema
from nqspy.store.journal import SqliteJournal
from nqspy.store.reader import Reader

DATA = Path(__file__).resolve().parents[1] / "data"
FORMATS = sorted(file.name.removesuffix(".db.gz") for file in DATA.glob("format*.db.gz"))


def replayed(events: list[Recorded], site: Site) -> Site:
    """Follow the events again. What rows tell only since later formats, and use that is charged in another
    way since then, is taken from the site."""
    made = Site()
    for each in events:
        lifecycle.apply(made, each)
    made.touched.clear()
    assert made.accounts.keys() >= site.accounts.keys()
    made.accounts, made.past, made.lifetimes = site.accounts, site.past, site.lifetimes
    made.shift = dataclasses.replace(made.shift, failed_text=site.shift.failed_text)
    for request in (*made.requests.values(), *site.requests.values()):
        request.redated = None
        if request.attempt is not None:
            request.attempt = structs.replace(
                request.attempt, rate=0, charged_at=None, charged=0, suspended_time=0
            )
    return made


@pytest.fixture(params=FORMATS)
def kept(request, path):
    """What an old database said; the database lies at ``path``."""
    path.write_bytes(gzip.decompress((DATA / f"{request.param}.db.gz").read_bytes()))
    return json.loads((DATA / f"{request.param}.json").read_text())


def test_there_is_a_database_of_every_format_before_this_one():
    assert {f"format{number}" for number in range(1, migrations.VERSION)} <= set(FORMATS)


def test_an_old_database_says_what_it_said(kept, path, same_site):
    with SqliteJournal.open(path) as journal, Reader(path) as reader:
        site = journal.load()
        check_site(site)
        assert (site.n, site.next_seq) == (kept["events"], kept["next_seq"])
        assert sorted(site.requests) == kept["requests"]
        assert list(site.settings.queues) == kept["queues"]
        assert sorted(row["seq"] for row in reader.ended()) == kept["ended"]
        events = list(reader.events())
        assert [each.event.kind for each in events] == kept["kinds"]
        assert all(event_object(each, "ymp", Zone("UTC")) for each in events)
        assert [journal.blob(digest) for digest in kept["blobs"]]
        assert journal.find_key("anne", "the key") == ("the content", (kept["ended"][-1],))
        assert isinstance(events[-1].event, Ended)
        same_site(site, replayed(events, site))


def test_an_old_database_is_kept_as_a_backup_before_its_format_changes(kept, path):
    before = sqlite3.connect(path).execute("PRAGMA user_version").fetchone()[0]
    SqliteJournal.open(path).close()
    [copy] = copies.listed(path)
    assert copy.path.name.endswith(f"-format{before}.db")
    assert copies.problem(copy.path) is None
    connection = sqlite3.connect(copy.path)
    assert connection.execute("PRAGMA user_version").fetchone() == (before,)
    connection.close()
    SqliteJournal.open(path).close()
    assert len(copies.listed(path)) == 1, "only before a change"


def test_an_old_database_is_not_changed_when_no_backup_can_be_made(kept, path):
    (path.parent / "backups").write_text("in the way")
    before = path.read_bytes()
    with pytest.raises(Exception, match="could not be brought from format"):
        SqliteJournal.open(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] < migrations.VERSION
    connection.close()
    assert len(path.read_bytes()) == len(before)


# ---------------------------------------------------------------- a home of b4ee003

TABLES = ("requests", "settings", "accounts", "state", "keys", "blobs", "events")


def rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of a database, by table."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return {
            table: [dict(row) for row in connection.execute(f"SELECT * FROM {table}")] for table in TABLES
        }


@pytest.fixture(scope="module")
def former(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[dict[str, Any], SqliteJournal, Reader]]:
    """What the rows said, and the database as it is opened now."""
    path = unpack(tmp_path_factory.mktemp("former")).home / "nqs.db"
    said = rows(path)
    with SqliteJournal.open(path) as journal, Reader(path) as reader:
        yield said, journal, reader


def plain(value: Any) -> Any:
    """Return the value as JSON has it, with its defaults."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return json.loads(msgspec.json.encode(value))


def lacking(before: Any, now: Any) -> list[str]:
    """What of JSON of before is missing or other now; what was added since does not count."""
    if isinstance(before, dict):
        return [f"{key}: {each}" for key, value in before.items() for each in lacking(value, now.get(key))]
    return [] if before == now else [f"{before!r} is {now!r}"]


def test_the_home_is_of_an_earlier_format_and_was_not_closed(tmp_path):
    former = unpack(tmp_path)
    assert (former.home / "nqs.db-wal").stat().st_size, "the power failed"
    with closing(sqlite3.connect(former.backup)) as connection:
        [format] = connection.execute("PRAGMA user_version").fetchone()
    assert format == 2 < migrations.VERSION


def test_requests_ask_for_what_they_asked_for_and_stand_where_they_stood(former):
    said, journal, reader = former
    site = journal.load()
    check_site(site)
    live = {row["seq"]: row for row in said["requests"] if row["ended"] is None}
    assert sorted(site.requests) == sorted(live)
    for seq, row in live.items():
        request, stood = site.requests[seq], json.loads(row["live"])
        assert (request.state.value, request.queue) == (row["state"], row["queue"])
        assert not lacking(json.loads(row["spec"]), plain(request.spec)), seq
        now = plain(request)
        own = ("date_in_queue", "holds", "rank", "never", "unmet")
        run = ("pes", "started", "used", "charged")
        assert not lacking({name: stood[name] for name in own if name in stood}, now), seq
        assert not lacking({name: stood[name] for name in run if name in stood}, now["attempt"] or {}), seq
        assert request.attempts == stood.get("attempt", 0)
        if "suspended_by" in stood:
            pause = request.attempt.pause
            assert pause.text == stood.get("hold_text", "")
            assert pause.pes_released is stood.get("parked", False)
            assert (pause.cause.name, pause.at) == (stood["suspended_by"].split()[-1], stood["suspended"])
    assert sorted(row["seq"] for row in reader.ended()) == sorted(
        row["seq"] for row in said["requests"] if row["ended"] is not None
    )


def test_settings_accounts_keys_and_scripts_are_the_same(former):
    said, journal, _ = former
    site = journal.load()
    for row in said["settings"]:
        now = configure.dump_object(site.settings, row["path"])
        said_of = json.loads(row["value"])
        head, _, name = row["path"].partition("/")
        if head == "queue":
            assert said_of.pop("kind") == site.settings.queues[name].kind
        assert not lacking(said_of, now), row["path"]
    assert [(key, account.value, account.at, account.recent) for key, account in site.accounts.items()] == [
        (row["key"], row["value"], row["at"], json.loads(row["recent"])) for row in said["accounts"]
    ]
    for row in said["keys"]:
        assert journal.find_key(row["owner"], row["key"]) == (row["digest"], tuple(json.loads(row["seqs"])))
    assert all(journal.blob(row["digest"]) for row in said["blobs"])
    [state] = said["state"]
    assert (site.n, site.next_seq) == (state["n"], state["next_seq"])
    rest = json.loads(state["rest"])
    assert (site.shift.current, site.files, site.reported) == ("day", rest["files"], rest["reported"])
    assert site.resources["licence"].state == rest["probes"]["licence"]["state"] == "broken"


def test_the_journal_followed_again_gives_the_same_site(former, same_site):
    said, journal, reader = former
    events = list(reader.events())
    assert [(each.n, each.at, each.event.kind) for each in events] == [
        (row["n"], row["at"], row["kind"]) for row in said["events"]
    ]
    site = journal.load()
    same_site(site, replayed(events, site))


# ---------------------------------------------------------------- killed half way

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
