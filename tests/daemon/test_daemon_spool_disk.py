"""The disk of the spool: another one than the database's, and who keeps deleted files of it open."""

import os
from pathlib import Path

import pytest

from nqspy.daemon import disks
from nqspy.daemon.disks import open_leftovers
from nqspy.daemon.home import Home

OTHER = Path("/dev/shm")


def test_deleted_files_of_the_spool_that_are_open_are_named_where_a_disk_is_full(tmp_path, monkeypatch):
    home = Home(tmp_path)
    home.spool.mkdir()
    path = home.spool / "stdout"
    with path.open("wb") as file:
        file.write(b"x" * 2_000_000)
        file.flush()
        assert open_leftovers(str(home.spool)) == []
        path.unlink()
        [left] = open_leftovers(str(home.spool))
        assert (left.pid, left.uid) == (os.getpid(), os.geteuid())
        assert left.size >= 2_000_000
        assert not list(disks.full_disks(home))
        monkeypatch.setattr(disks, "LEAST", 1 << 62)
        monkeypatch.setattr(disks, "PART", 1)
        _, who = disks.full_disks(home)
        assert f"pid {os.getpid()} of " in who
    assert open_leftovers(str(home.spool)) == []


@pytest.mark.skipif(not os.access(OTHER, os.W_OK), reason="there is no second file system")
def test_the_spool_may_lie_on_another_file_system(make_live, tmp_path):
    with_spool = OTHER / f"nqspy-test-{os.getpid()}"
    with_spool.mkdir(mode=0o700)
    try:
        live = make_live().site()
        (live.home / "spool").symlink_to(with_spool)
        if os.stat(with_spool).st_dev == os.stat(tmp_path).st_dev:
            pytest.skip("there is no second file system")
        live.start()
        id = live.qsub("echo there; sleep 0.2\n", "-o", "out")
        assert live.ended(id)["exit_status"] == 0
        assert live.text("out") == "there\n"
        assert any(with_spool.iterdir())
        assert Home(live.home).reserve.parent == live.home
        live.stop()
    finally:
        for path in sorted(with_spool.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        with_spool.rmdir()
