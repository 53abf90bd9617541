"""The log: nothing of it is lost when it grows fast or the disk is full; its times carry the site's zone."""

import gzip
import logging
import os
import re
import threading
from datetime import UTC, datetime

import pytest

from nqspy.daemon import log


@pytest.fixture
def rotating(tmp_path):
    """A log of its own whose files hold a kilobyte."""
    handler = log._Rotating(tmp_path / "nqsd.log", maxBytes=1_000, backupCount=50)
    handler.setFormatter(logging.Formatter("%(message)s"))
    yield handler
    handler.close()


def says(handler, text):
    handler.handle(logging.LogRecord("x", logging.INFO, "", 0, text, (), None))


def told(folder):
    """All that the log's files hold."""
    texts = [path.read_text() for path in folder.iterdir() if not path.name.endswith(".gz")]
    texts += [gzip.decompress(path.read_bytes()).decode() for path in folder.glob("*.gz")]
    return sorted(line for text in texts for line in text.split())


def test_a_log_that_is_put_away_again_and_again_loses_no_line(rotating, tmp_path, monkeypatch):
    slow = log.gzip.open

    def slowly(*more):
        threading.Event().wait(0.02)
        return slow(*more)

    monkeypatch.setattr(log.gzip, "open", slowly)
    lines = sorted(f"{n:0300d}" for n in range(40))
    for line in lines:
        says(rotating, line)
    rotating._work.join()
    assert told(tmp_path) == lines


def test_a_log_that_could_not_be_compressed_is_compressed_with_the_next(rotating, tmp_path):
    lines = sorted(f"{n:0300d}" for n in range(9))
    for line in lines[:3]:
        says(rotating, line)
    (tmp_path / "nqsd.log.1.gz.new").mkdir()  # no file can be written there
    says(rotating, lines[3])
    rotating._work.join()
    assert (tmp_path / "nqsd.log.1").exists(), "it stays as it is"
    os.rmdir(tmp_path / "nqsd.log.1.gz.new")
    for line in lines[4:]:
        says(rotating, line)
    rotating._work.join()
    assert told(tmp_path) == lines


def test_times_carry_the_sites_zone(live):
    stamp = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}([+-]\d\d:\d\d) (?:INFO|WARNING|ERROR) ")
    for zone, offset in (("Asia/Kathmandu", "+05:45"), ("Etc/GMT+9", "-09:00")):
        live.set(f"set timezone {zone}")
        live.restart()
        line = live.log.splitlines()[-1]
        found = stamp.match(line)
        assert found, line
        assert found[1] == offset
        written = datetime.fromisoformat(line.split()[0])
        assert abs((datetime.now(UTC) - written).total_seconds()) < 60
