"""Databases of every earlier format: opened, loaded, read, kept as a backup before they are changed."""

import gzip
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from nqspy.engine import lifecycle
from nqspy.model.events import Ended
from nqspy.model.site import Site
from nqspy.model.site_checks import check_site
from nqspy.report.event_objects import event_object
from nqspy.report.time_text import Zone
from nqspy.store import copies, migrations
from nqspy.store.journal import SqliteJournal
from nqspy.store.reader import Reader

DATA = Path(__file__).resolve().parents[1] / "data"
FORMATS = sorted(file.name.removesuffix(".db.gz") for file in DATA.glob("format*.db.gz"))


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
        replayed = Site()
        for each in events:
            lifecycle.apply(replayed, each)
        replayed.touched.clear()
        # Rows tell these since they are kept, and use is charged evenly since then: they were written before.
        assert replayed.accounts.keys() >= site.accounts.keys()
        replayed.accounts, replayed.past = site.accounts, site.past
        replayed.lifetimes = site.lifetimes
        replayed.shift = replace(replayed.shift, failed_text=site.shift.failed_text)
        for request in (*replayed.requests.values(), *site.requests.values()):
            request.redated = None
            if request.attempt is not None:
                request.attempt = structs.replace(
                    request.attempt, rate=0, charged_at=None, charged=0, suspended_time=0
                )
        same_site(site, replayed)


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
