"""Files of a folder are read again when one of them is another, and else not."""

import os

import pytest

from nqspy.daemon.troubles import Glance

LONG_AGO = 1_000_000_000_000_000_000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).write_text("1")
    # Long after the files were written: what was written just now is read again each time.
    monkeypatch.setattr("nqspy.daemon.troubles.time.time_ns", lambda: 4 * LONG_AGO)
    return tmp_path


@pytest.fixture
def look(folder):
    glance, readings = Glance(), []

    def looked():
        def read():
            readings.append(1)
            return sorted(path.name + path.read_text() for path in folder.iterdir())

        said, times = glance.look(folder, read), len(readings)
        readings.clear()
        return said, times

    return looked


def test_what_has_not_changed_is_read_once(look):
    assert [look() for _ in range(3)] == [(["a1", "b1"], 1), (["a1", "b1"], 0), (["a1", "b1"], 0)]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a").write_text("22"),
        lambda folder: (folder / "a").unlink(),
        lambda folder: (folder / "c").write_text("3"),
        lambda folder: (folder / "a").rename(folder / "c"),
        lambda folder: (folder / "new").write_text("5") and (folder / "new").rename(folder / "a"),
        lambda folder: os.chmod(folder / "a", 0o666),
        lambda folder: os.chmod(folder, 0o777),
    ],
    ids=["written", "gone", "new", "renamed", "replaced", "rights", "rights of the folder"],
)
def test_any_change_is_seen(look, folder, change):
    look()
    change(folder)
    said, times = look()
    assert times == 1
    assert said == sorted(path.name + path.read_text() for path in folder.iterdir())


def test_what_was_written_just_now_is_read_again(look, monkeypatch):
    monkeypatch.undo()
    assert [look()[1] for _ in range(3)] == [1, 1, 1]


def test_what_cannot_be_read_is_asked_for_again(folder):
    glance = Glance()
    with pytest.raises(ValueError, match="no"):
        glance.look(folder, lambda: int("no"))
    assert glance.look(folder, lambda: 7) == 7
    assert glance.look(folder / "missing", lambda: 8) == 8
