"""What a user may keep on the home's disk, and a disk that is full: what makes room still works, and the
daemon starts."""

import os
import sqlite3
import string
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, until
from small_disk import fill, small_disk

from nqspy.daemon import disks
from nqspy.daemon.disks import open_leftovers
from nqspy.daemon.home import Home
from nqspy.model.errors import Refusal

LETTERS = (f"!#$%&()*+-;<=>?@^_{{|}}~{string.digits}{string.ascii_letters}".encode() * 4)[:256]
"""Table for `bytes.translate`: for each byte one of 84 letters."""
SMALL = 160 << 20
TINY = 96 << 20
GREEDY = """
import sys, time
part = 1 << 16
with open(sys.argv[1], "ab", buffering=0) as file:
    while True:
        try:
            file.write(bytes(part))
            part = 1 << 16
        except OSError:
            time.sleep(0.0005 if part == 512 else 0)
            part = max(512, part // 2)
"""
"""Program that takes every byte of a disk that becomes free."""


def script(size):
    """Return a comment that packing makes smaller by a fifth only."""
    return f"# {os.urandom(size).translate(LETTERS).decode()}\nexit 3"


def blobs(live):
    """Return the bytes of scripts and environments in the database, and how many there are."""
    with closing(sqlite3.connect(f"file:{live.home}/nqs.db?mode=ro", uri=True)) as connection:
        found: tuple[int, int] = connection.execute(
            "SELECT coalesce(sum(length(body)), 0), count(*) FROM blobs"
        ).fetchone()
        return found


def test_a_script_has_a_limit_that_the_site_sets(live):
    live.submit(script(3 << 20), held=True)
    with pytest.raises(Refusal, match=r"the script is larger than 4mb \(set server script_limit\)"):
        live.submit(script(5 << 20))
    live.set("set server script_limit=10kb")
    live.write("job.sh", script(11_000))
    live.run("qsub", "job.sh").refused("larger than 10kb")
    live.set("set server script_limit=unlimited")
    live.submit(script(5 << 20), held=True)
    assert "script_limit=unlimited" in live.qmgr("snap").ok().out


def test_a_user_keeps_so_many_bytes_and_those_of_requests_that_never_ran_go_with_them(live):
    live.set("set server user_spool=150kb")
    first, second, third = script(70_000), script(70_000), script(70_000)
    kept = live.submit(first, held=True)
    before = blobs(live)
    gone = live.submit(second, held=True)
    assert blobs(live)[1] == before[1] + 1
    with pytest.raises(Refusal, match=r"has \d+ KiB of scripts, environments.*user_spool=150kb"):
        live.submit(third, held=True)
    again = live.submit(first, held=True)
    live.client.delete(gone)
    assert blobs(live) == before
    ran = live.submit(third)
    assert live.ended(ran)["exit_status"] == 3
    live.client.delete(kept)
    with pytest.raises(Refusal, match="user_spool"):
        live.submit(second)
    live.restart()
    with pytest.raises(Refusal, match="user_spool"):
        live.submit(second)
    live.client.delete(again)
    assert live.ended(live.submit(second))["exit_status"] == 3
    assert blobs(live)[1] >= 2, "of those that ran they stay"
    for wrong in ("200%", "much"):
        assert "user_spool" in live.qmgr(f"set server user_spool={wrong}").err
    live.set("set server user_spool=unlimited")
    live.submit(first)


# ---------------------------------------------------------------- a full disk
@contextmanager
def disk_of(live, size):
    """Put the home on a disk of its own, of so many bytes."""
    with small_disk(live.home, f"size={size}"):
        live.accepts_trouble = True
        yield live.site(ONE_QUEUE + "set server user_spool=unlimited\n")
        live.close()


@pytest.fixture
def small(make_live):
    with disk_of(make_live(), SMALL) as live:
        with open(live.home / "ballast", "wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, 100 << 20)
        yield live


@pytest.fixture
def tiny(make_live):
    with disk_of(make_live(), TINY) as live:
        yield live


FULL = r"disk .*is full"


def submit_on_and_on(live):
    for _ in range(100):
        live.submit(script(3 << 20), held=True)


def reserve_after_a_submission(live):
    live.submit("true")
    return (live.home / "spool" / "reserve").stat().st_blocks * 512


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_on_a_full_disk_requests_are_deleted_and_held_and_the_daemon_starts(small):
    small.start()
    small.set("stop queue batch")
    waiting = [small.submit(script(200_000)) for _ in range(8)]
    with pytest.raises(Refusal, match=FULL):
        submit_on_and_on(small)
    fill(small.home / "ballast")
    with pytest.raises(Refusal, match=FULL):
        small.submit("true")
    small.run("qdel", waiting[0]).ok()
    small.qmgr(f"delete request {waiting[1]}").ok()
    small.qmgr(f"hold request {waiting[2]}").ok()
    fill(small.home / "ballast")
    small.kill()
    small.start()
    assert small.job(waiting[2])["state"] == "held"
    fill(small.home / "ballast")
    small.qmgr(*(f"delete request {id}" for id in waiting[3:5])).ok()
    small.stop()
    fill(small.home / "ballast")
    small.start()
    small.run("qdel", *waiting[2:3], *waiting[5:]).ok()
    for each in small.client.requests():
        small.client.delete(each.id)
    assert not small.client.requests()
    (small.home / "ballast").unlink()
    small.set("start queue batch")
    until(lambda: small.run("qsub", small.write("job", "exit 3").name).status == 0, "room for a submission")
    until(lambda: reserve_after_a_submission(small) >= SMALL // 20, "the reserve")


@contextmanager
def greedy(live):
    """Fill the disk by another process, again and again."""
    with subprocess.Popen([sys.executable, "-c", GREEDY, str(live.home / "ballast")]) as writer:
        try:
            until(lambda: (live.home / "ballast").exists() and _free(live) < 4096, "a full disk")
            yield
        finally:
            writer.kill()


def _free(live):
    disk = os.statvfs(live.home)
    return disk.f_bfree * disk.f_frsize


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_who_goes_on_filling_the_disk_takes_nothing_of_what_deletes_and_holds_need(tiny):
    tiny.start()
    tiny.set("stop queue batch")
    waiting = [tiny.submit("true") for _ in range(20)]
    with greedy(tiny):
        tiny.kill()
        tiny.start()
        with pytest.raises(Refusal, match=FULL):
            tiny.submit("true")
        for id in waiting[:5]:
            tiny.run("qhold", id).ok()
        tiny.qmgr(*(f"hold request {id}" for id in waiting[5:10])).ok()
        tiny.kill()
        tiny.start()
        assert [tiny.job(id)["state"] for id in waiting[:10]] == ["held"] * 10
        tiny.run("qdel", *waiting[:10]).ok()
        tiny.qmgr(*(f"delete request {id}" for id in waiting[10:])).ok()
        tiny.stop()
        tiny.start()
        assert not tiny.client.requests()


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
