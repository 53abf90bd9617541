"""The database that b4ee003 left after a night with incidents: nothing of it is lost or changed by what later
versions make of it."""

import dataclasses
import json
import sqlite3
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
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.store import migrations
from nqspy.store.journal import SqliteJournal
from nqspy.store.reader import Reader

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
    site, replayed = journal.load(), Site()
    for each in events:
        lifecycle.apply(replayed, each)
    replayed.touched.clear()
    # What is charged and owed is kept in rows since then, and counted in another way.
    assert replayed.accounts.keys() >= site.accounts.keys()
    replayed.accounts, replayed.past = site.accounts, site.past
    for request in (*replayed.requests.values(), *site.requests.values()):
        if request.attempt is not None:
            request.attempt = structs.replace(request.attempt, rate=0, charged_at=None, charged=0)
    same_site(site, replayed)
