"""The log: nothing of it is lost when it grows fast or the disk is full."""

import gzip
import logging
import os
import threading

import pytest
from daemon.live import until

from nqspy.daemon import log


@pytest.fixture
def rotating(tmp_path):
    """Return a log of its own whose files hold a kilobyte."""
    handler = log._Rotating(tmp_path / "nqsd.log", maxBytes=1_000, backupCount=50)
    handler.setFormatter(logging.Formatter("%(message)s"))
    yield handler
    handler.close()


def says(handler, numbers):
    """Log a line for each of these, until all is put away; return the lines."""
    lines = [f"{n:0300d}" for n in numbers]
    for line in lines:
        handler.handle(logging.LogRecord("x", logging.INFO, "", 0, line, (), None))
    handler._work.join()
    return lines


def told(folder):
    texts = [path.read_text() for path in folder.iterdir() if not path.name.endswith(".gz")]
    texts += [gzip.decompress(path.read_bytes()).decode() for path in folder.glob("*.gz")]
    return sorted(line for text in texts for line in text.split())


def test_a_log_that_is_put_away_again_and_again_loses_no_line(rotating, tmp_path, monkeypatch):
    slow = log.gzip.open

    def slowly(*more):
        threading.Event().wait(0.02)
        return slow(*more)

    monkeypatch.setattr(log.gzip, "open", slowly)
    lines = says(rotating, range(40))
    assert told(tmp_path) == lines


def test_a_log_that_could_not_be_compressed_is_compressed_with_the_next(rotating, tmp_path):
    (tmp_path / "nqsd.log.1.gz.new").mkdir()  # no file can be written there
    lines = says(rotating, range(4))
    assert (tmp_path / "nqsd.log.1").exists(), "it stays as it is"
    os.rmdir(tmp_path / "nqsd.log.1.gz.new")
    lines += says(rotating, range(4, 9))
    assert told(tmp_path) == lines


def test_the_log_is_put_away_compressed_and_the_last_five_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "SIZE", 2_000)
    file = tmp_path / "nqsd.log"
    log.set_up(file)
    [handler] = log.LOG.handlers
    try:
        for number in range(300):
            log.LOG.info("line %d %s", number, "x" * 60)
            until(lambda: not list(tmp_path.glob("*.[0-9]")), "compressed")
    finally:
        handler.close()
        log.LOG.handlers[:] = [logging.NullHandler()]
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["nqsd.log", *(f"nqsd.log.{number}.gz" for number in range(1, 6))]
    assert b"line " in gzip.decompress((tmp_path / "nqsd.log.1.gz").read_bytes())
    assert os.path.getsize(file) <= 2_000
