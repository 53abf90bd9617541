"""Nobody keeps a PE by what happens around his job: the launch and the delivery have deadlines, can be ended,
and do not hold up the PE; holes in output stay holes."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import everybody

from nqspy.executors import deliver, patience
from nqspy.model.actions import Kill
from nqspy.model.observations import ObservedEnded, ObservedExiting, ObservedNotStarted, ObservedRunning
from nqspy.model.requests import Ask, Output

LONG = "head -c 300000 /dev/zero\n"
SPARSE = 15 << 40
HOLES = 1 << 32
"""As long as no disk is short of: a look at the spool at the wrong moment ends nobody."""

as_root = [
    pytest.mark.privileged,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may run requests as another user"),
    pytest.mark.skipif(not shutil.which("useradd"), reason="needs useradd: a real user is made"),
]


class Sip(threading.Thread):
    """Reads a fifo, and takes its time: a byte now and then."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.fd = os.open(path, os.O_RDWR)
        self.done = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.done.wait(0.05):
            os.read(self.fd, 1)

    def close(self) -> None:
        self.done.set()
        self.join()
        os.close(self.fd)


@pytest.fixture
def fifo(bench) -> Iterator[Path]:
    """A fifo whose reader never stops reading and never comes to an end."""
    path = bench.work / "fifo"
    os.mkfifo(path)
    reader = Sip(path)
    yield path
    reader.close()


def test_a_job_whose_output_is_read_slowly_gives_its_pes_back_at_its_end(bench, fifo):
    request = bench.start(LONG, output=Output(stdout=str(fifo)))
    bench.expect(ObservedRunning, request)
    bench.expect(ObservedExiting, request)
    bench.do(Kill(request.seq, 1, "deleted", 0, 9))
    ending = bench.ending(request)
    kept = bench.folder(request) / "stdout"
    assert (ending.reason, ending.status, ending.stdout) == ("exit", 0, str(kept))
    assert ending.text == f"the delivery was ended; the output stays in {kept} (qcat {request.seq} shows it)"
    assert kept.stat().st_size == 300_000
    assert ending.stderr == str(bench.work / "job.e1")


def test_a_delivery_has_a_deadline(make_bench):
    bench = make_bench(patience=(patience.LAUNCH, 0.4))
    os.mkfifo(bench.work / "fifo")
    reader = Sip(bench.work / "fifo")
    request = bench.start(LONG, output=Output(stdout=str(bench.work / "fifo")))
    ending = bench.ending(request)
    reader.close()
    kept = bench.folder(request) / "stdout"
    stays = f"the output stays in {kept} (qcat {request.seq} shows it)"
    assert ending.text == f"the delivery took too long and was ended; {stays}"
    assert (ending.status, ending.stdout) == (0, str(kept))


def writer_of(fifo: Path) -> int | None:
    """The process that has a fifo open, besides this one."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if int(link.parts[2]) != os.getpid() and os.readlink(link) == str(fifo):
                return int(link.parts[2])
    return None


def test_a_delivery_that_somebody_kills_is_made_by_another_child(bench):
    fifo = bench.work / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    request = bench.start(LONG, output=Output(stdout=str(fifo)))
    bench.until(lambda: writer_of(fifo) is not None, "its output is written")
    first = writer_of(fifo)
    os.kill(first, signal.SIGKILL)
    bench.until(lambda: writer_of(fifo) not in (None, first), "it is written again")
    drained = threading.Event()

    def drain() -> None:
        while not drained.wait(0.001):
            with contextlib.suppress(BlockingIOError):
                os.read(reader, 1 << 16)

    thread = threading.Thread(target=drain)
    thread.start()
    ending = bench.ending(request)
    drained.set()
    thread.join()
    os.close(reader)
    assert (ending.text, ending.stdout) == ("", str(fifo))


def test_output_that_is_delivered_at_once_is_not_told_of_twice(bench):
    request = bench.start("echo out\n")
    bench.ending(request)
    assert not [each for each in bench.seen if isinstance(each, ObservedExiting)]


def test_a_daemon_that_comes_back_sees_that_only_the_output_is_on_its_way(make_bench, tmp_path):
    bench = make_bench()
    os.mkfifo(bench.work / "fifo")
    reader = Sip(bench.work / "fifo")
    request = bench.start(LONG, output=Output(stdout=str(bench.work / "fifo")))
    bench.expect(ObservedExiting, request)
    bench.leave()
    later = make_bench()
    later.seq = bench.seq
    [seen] = later.executor.scan({request.seq: 1})
    assert isinstance(seen, ObservedExiting)
    later.do(Kill(request.seq, 1, "deleted", 0, 9))
    assert later.ending(request).status == 0
    reader.close()


# ---------------------------------------------------------------- holes


def test_holes_in_output_stay_holes_on_another_file_system(bench):
    target = Path("/dev/shm") / f"nqspy-test-{os.getpid()}"
    script = (
        f"echo first; head -c 3000000 /dev/zero | tr '\\0' x; truncate -s {HOLES} /proc/self/fd/1; exit 0\n"
    )
    try:
        ending = bench.run(script, output=Output(stdout=str(target)))
        assert (ending.stdout, ending.text) == (str(target), "")
        seen = target.stat()
        assert (seen.st_size, seen.st_blocks * 512 < 8 << 20) == (HOLES, True)
        with open(target, "rb") as file:
            assert file.read(3_000_008) == b"first\n" + b"x" * 3_000_000 + b"\0\0"
    finally:
        target.unlink(missing_ok=True)


def test_regions_are_what_a_file_has(tmp_path):
    path = tmp_path / "holes"
    with open(path, "wb") as file:
        file.write(b"x" * 5000)
        file.seek(1 << 20)
        file.write(b"y" * 100)
        file.truncate(1 << 30)
    with open(path, "rb") as file:
        found = list(deliver.regions(file.fileno()))
    assert found[0][0] == 0
    assert found[0][1] < 1 << 20
    assert found[1][0] == 1 << 20
    assert len(found) == 2
    assert found[1][1] <= (1 << 20) + 65536
    path.write_bytes(b"")
    with open(path, "rb") as file:
        assert list(deliver.regions(file.fileno())) == []


def test_output_longer_than_the_disk_has_room_for_ends_the_request(bench):
    ending = bench.run(f"truncate -s {SPARSE} /proc/self/fd/1; exec sleep 60\n")
    assert ending.reason == "file_limit"
    assert ending.text.startswith(f"its output is {SPARSE} bytes long, the disk of the spool has ")


def test_a_file_limit_counts_lengths(bench):
    bench.queue.per_process.permfile_limit = 4096
    ending = bench.run(f"exec truncate -s {SPARSE} /proc/self/fd/1\n")
    assert (bench.work / "job.o1").stat().st_size == 0
    assert ending.reason == "file_limit" or ending.status == 1


# ---------------------------------------------------------------- a child that its owner stops


class Anne:
    """A real user with nothing but what the tests start, who may stop all that is hers."""

    def __init__(self, name: str) -> None:
        subprocess.run(["useradd", "-M", "-d", "/", "-s", "/bin/sh", name], check=True)
        self.entry = pwd.getpwnam(name)
        self.name = name
        self.fields = {"owner": name, "uid": self.entry.pw_uid, "gid": self.entry.pw_gid}
        self.running: list[subprocess.Popen[bytes]] = []

    def stop_all(self, *, for_ever: bool) -> None:
        """SIGSTOP to all that is hers, once or as fast as she can."""
        code = f"""
import os, signal, time
os.write(1, b"ready")
while True:
    try:
        os.kill(-1, signal.SIGSTOP)
    except ProcessLookupError:
        pass
    if not {for_ever}:
        break
    time.sleep(0.0002)
"""
        words = [everybody.interpreter(), "-S", "-c", code]
        run = everybody.begin(words, self.entry.pw_uid, self.entry.pw_gid, stdout=subprocess.PIPE)
        os.setpriority(os.PRIO_PROCESS, run.pid, -10)
        self.running.append(run)
        assert run.stdout is not None
        run.stdout.read(1)
        if not for_ever:
            assert run.wait() == 0

    def close(self) -> None:
        for run in self.running:
            run.kill()
            run.communicate()
        subprocess.run(["userdel", "-f", self.name], check=False, capture_output=True)


@pytest.fixture
def anne(tmp_path) -> Iterator[Anne]:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != folder.parent and len(folder.parts) > 2:
            folder.chmod(0o755)
    anne = Anne(f"nqs{os.getpid()}")
    yield anne
    anne.close()


def test_a_launch_has_a_deadline(make_bench):
    bench = make_bench(patience=(0.0, patience.DELIVERY))
    for _ in range(100):  # on a busy machine one may have begun before its deadline of 0 s is looked at
        request = bench.start("true\n", ask=Ask(others=(("per_process/corefile_limit", 0),)))
        seen = bench.first(request, ObservedNotStarted, ObservedEnded)
        if isinstance(seen, ObservedNotStarted):
            break
    assert isinstance(seen, ObservedNotStarted)
    assert seen.text == "it did not begin within 0 s: its first process stood still"


class AsRoot:
    pytestmark = as_root


class TestAStoppedChild(AsRoot):
    """Between becoming the owner and exec, and while it delivers."""

    def begin(self, bench, anne, **spec):
        """One whose first process stands still before its exec: on a busy machine one may be quicker than
        who stops it, then the next is tried."""
        os.chown(bench.work, anne.entry.pw_uid, anne.entry.pw_gid)
        anne.stop_all(for_ever=True)
        for _ in range(50):
            request = bench.start("exec sleep 60\n", **anne.fields, **spec)
            bench.until((bench.folder(request) / "pid").exists, "it is listened to")
            if self.stands_still(bench, request):
                return request
            bench.do(Kill(request.seq, 1, "deleted", 0, 9))
            self.end(bench, request)
        pytest.fail("each was quicker than who stops them")

    def stands_still(self, bench, request):
        leader = json.loads((bench.folder(request) / "pid").read_text().splitlines()[-1])["pid"]["leader"]
        try:
            return Path(f"/proc/{leader.split()[1]}/exe").readlink().name.startswith("python")
        except (OSError, IndexError):
            return False

    def end(self, bench, request):
        """What brings its output is stopped as well, if it is not quicker: that holds no PE, and can be ended
        too."""
        first = bench.first(request, ObservedExiting, ObservedEnded)
        if isinstance(first, ObservedEnded):
            return first.ending
        bench.do(Kill(request.seq, 1, "deleted", 0, 9))
        return bench.ending(request)

    def test_does_not_escape_the_wall_limit(self, bench, anne):
        request = self.begin(bench, anne, ask=Ask(wall=700))
        ending = self.end(bench, request)
        assert (ending.reason, ending.signal) == ("wall_limit", signal.SIGKILL)

    def test_can_be_deleted(self, bench, anne):
        request = self.begin(bench, anne)
        bench.do(Kill(request.seq, 1, "deleted", 0, 9))
        ending = self.end(bench, request)
        assert (ending.reason, ending.signal) == ("deleted", signal.SIGKILL)

    def test_while_it_delivers_holds_no_pe_and_can_be_ended(self, bench, anne):
        os.chown(bench.work, anne.entry.pw_uid, anne.entry.pw_gid)
        fifo = bench.work / "fifo"
        os.mkfifo(fifo)
        os.chown(fifo, anne.entry.pw_uid, anne.entry.pw_gid)
        fd = os.open(fifo, os.O_RDWR)
        request = bench.start(LONG, output=Output(stdout=str(fifo)), **anne.fields)
        bench.expect(ObservedExiting, request)
        anne.stop_all(for_ever=False)
        bench.do(Kill(request.seq, 1, "deleted", 0, 9))
        ending = bench.ending(request)
        os.close(fd)
        kept = bench.folder(request) / "stdout"
        assert (ending.status, ending.stdout, kept.stat().st_size) == (0, str(kept), 300_000)
