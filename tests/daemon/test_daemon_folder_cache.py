"""Files of a folder are read again when one of them is another, and else not."""

import os

import pytest

from nqspy.daemon.troubles import FolderCache

LONG_AGO = 1_000_000_000_000_000_000
CHANGES = (
    lambda folder: (folder / "a").write_text("22"),
    lambda folder: (folder / "a").unlink(),
    lambda folder: (folder / "c").write_text("3"),
    lambda folder: (folder / "b").rename(folder / "a"),
    lambda folder: (folder / "new").write_text("5") and (folder / "new").rename(folder / "a"),
    lambda folder: os.chmod(folder / "a", 0o666),
    lambda folder: os.chmod(folder, 0o777),
)


def test_any_change_is_seen_and_nothing_else_is_read_again(tmp_path, monkeypatch):
    cache, readings = FolderCache(), []

    def read():
        readings.append(1)
        return sorted(path.name + path.read_text() for path in tmp_path.iterdir())

    for name in ("a", "b"):
        (tmp_path / name).write_text("1")
    assert cache.get(tmp_path, read) == cache.get(tmp_path, read) == ["a1", "b1"]
    assert len(readings) == 2, "what was written just now is read again each time"
    monkeypatch.setattr("nqspy.daemon.troubles.time.time_ns", lambda: 4 * LONG_AGO)
    for change in CHANGES:
        cache.get(tmp_path, read)
        readings.clear()
        cache.get(tmp_path, read)
        assert not readings
        change(tmp_path)
        result = cache.get(tmp_path, read)
        assert (result, len(readings)) == (read(), 1), change
    with pytest.raises(ValueError, match="no"):
        FolderCache().get(tmp_path, lambda: int("no"))
    assert cache.get(tmp_path / "missing", lambda: 8) == 8
