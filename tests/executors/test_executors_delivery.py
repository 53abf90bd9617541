"""Launch and delivery have deadlines, can be ended, and do not occupy PEs; holes in output stay holes."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import everybody
from daemon.everybody import open_way
from executors.conftest import AS_ROOT, IN_CGROUP, User

from nqspy.executors import deadline, deliver
from nqspy.model.actions import Kill
from nqspy.model.observations import ObservedEnded, ObservedExiting, ObservedNotStarted
from nqspy.model.requests import Ask, Output

LONG = "head -c 300000 /dev/zero\n"
SPARSE = 15 << 40
HOLES = 1 << 32
"""Seconds for which no disk is full: a check of the spool at the wrong moment ends nothing."""


class Sip(threading.Thread):
    """Reads a fifo without end, so many bytes each time; slowly by default."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        os.mkfifo(path)
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self.done, self.pause, self.size = threading.Event(), 0.05, 1

    def run(self) -> None:
        while not self.done.wait(self.pause):
            with contextlib.suppress(BlockingIOError):
                os.read(self.fd, self.size)

    def close(self) -> None:
        self.done.set()
        self.join()
        os.close(self.fd)


@pytest.fixture
def sip(tmp_path) -> Iterator[Sip]:
    (tmp_path / "work").mkdir(exist_ok=True)
    reader = Sip(tmp_path / "work" / "fifo")
    yield reader
    reader.close()


def long(bench):
    """A request whose output goes to the fifo."""
    return bench.start(LONG, output=Output(stdout=str(bench.work / "fifo")))


def test_a_job_whose_output_is_read_slowly_gives_its_pes_back_at_its_end(bench, sip):
    sip.start()
    request = long(bench)
    bench.expect(ObservedExiting, request)
    ending = bench.kill(request, 0, number=9)
    kept = bench.folder(request) / "stdout"
    assert (ending.reason, ending.status, ending.stdout) == ("exit", 0, str(kept))
    assert f"stays in {kept} (qcat {request.seq} " in ending.text
    assert kept.stat().st_size == 300_000
    assert ending.stderr == str(bench.work / "job.e1")


def test_a_delivery_has_a_deadline(make_bench, sip):
    bench = make_bench(deadlines=(deadline.LAUNCH, 0.4))
    sip.start()
    request = long(bench)
    ending = bench.ending(request)
    kept = bench.folder(request) / "stdout"
    assert "too long" in ending.text
    assert (ending.status, ending.stdout) == (0, str(kept))


def writer_of(fifo: Path) -> int | None:
    """Return the process that has a fifo open, besides this one."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if int(link.parts[2]) != os.getpid() and os.readlink(link) == str(fifo):
                return int(link.parts[2])
    return None


def test_a_delivery_that_somebody_kills_is_made_by_another_child(bench, sip):
    fifo = bench.work / "fifo"
    request = long(bench)
    first = bench.until(lambda: writer_of(fifo), "its output is written")
    os.kill(first, signal.SIGKILL)
    bench.until(lambda: writer_of(fifo) not in (None, first), "it is written again")
    sip.pause, sip.size = 0.001, 1 << 16
    sip.start()
    ending = bench.ending(request)
    assert (ending.text, ending.stdout) == ("", str(fifo))
    quick = bench.start("echo out\n")
    bench.ending(quick)
    exiting = [each for each in bench.seen if isinstance(each, ObservedExiting)]
    assert quick.seq not in [each.seq for each in exiting], "what is delivered at once is not told of twice"


def test_a_daemon_that_comes_back_sees_that_only_the_output_is_on_its_way(make_bench, sip):
    bench = make_bench()
    sip.start()
    request = long(bench)
    bench.expect(ObservedExiting, request)
    bench.leave()
    later = make_bench()
    [seen] = later.scan()
    assert isinstance(seen, ObservedExiting)
    assert later.kill(request, 0, number=9).status == 0


def test_a_launch_has_a_deadline(make_bench):
    bench = make_bench(deadlines=(0.0, deadline.DELIVERY))
    for _ in range(100):  # on a busy machine one may have begun before its deadline of 0 s is looked at
        seen = bench.first(bench.start("true\n", ask=IN_CGROUP), ObservedNotStarted, ObservedEnded)
        if isinstance(seen, ObservedNotStarted):
            break
    assert isinstance(seen, ObservedNotStarted)
    assert "within 0 s" in seen.text


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
    with open(path, "w+b") as file:
        assert list(deliver.regions(file.fileno())) == []
        for at, data in ((0, b"x" * 5000), (1 << 20, b"y" * 100)):
            file.seek(at)
            file.write(data)
        file.truncate(1 << 30)
        (begin, end), (again, last) = deliver.regions(file.fileno())
    assert (begin, again) == (0, 1 << 20)
    assert end < 1 << 20 < last <= (1 << 20) + 65536


def test_output_longer_than_the_disk_has_room_for_ends_the_request(bench):
    ending = bench.run(f"truncate -s {SPARSE} /proc/self/fd/1; exec sleep 60\n")
    assert ending.reason == "file_limit"
    assert f"{SPARSE >> 40}.0 TiB" in ending.text
    bench.queue.per_process.permfile_limit = 4096  # it counts lengths
    ending = bench.run(f"exec truncate -s {SPARSE} /proc/self/fd/1\n")
    assert (bench.work / "job.o2").stat().st_size == 0
    assert ending.reason == "file_limit" or ending.status == 1


# ---------------------------------------------------------------- a child that its owner stops
STOPS = """
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


class Anne(User):
    """A real user with only the processes that the tests start, who may stop all of them."""

    running: "subprocess.Popen[bytes] | None" = None

    def stop_all(self, *, for_ever: bool) -> None:
        """Send SIGSTOP to all her processes, once or as often as possible."""
        words = [everybody.interpreter(), "-S", "-c", STOPS.format(for_ever=for_ever)]
        run = everybody.begin(words, self.entry.pw_uid, self.entry.pw_gid, stdout=subprocess.PIPE)
        os.setpriority(os.PRIO_PROCESS, run.pid, -10)
        self.running = run
        run.stdout.read(1)
        if not for_ever:
            assert run.wait() == 0

    def close(self) -> None:
        if self.running is not None:
            self.running.kill()
            self.running.communicate()
        self.go()


@pytest.fixture
def anne(bench, tmp_path) -> Iterator[Anne]:
    open_way(tmp_path)
    anne = Anne(f"nqs{os.getpid()}")
    os.chown(bench.work, anne.entry.pw_uid, anne.entry.pw_gid)
    yield anne
    anne.close()


WITH_USER = [*AS_ROOT, pytest.mark.skipif(not shutil.which("useradd"), reason="needs useradd")]


class TestAStoppedChild:
    """A child stopped between becoming the owner and exec, and during the delivery."""

    pytestmark = WITH_USER

    def begin(self, bench, anne, **spec):
        """Return a request whose first process is stopped before its exec; if that is quicker than the
        signal, try another."""
        anne.stop_all(for_ever=True)
        for _ in range(50):
            request = bench.start("exec sleep 60\n", **anne.fields, **spec)
            leader = bench.record(request)["leader"]
            with contextlib.suppress(OSError, IndexError):
                if Path(f"/proc/{leader.split()[1]}/exe").readlink().name.startswith("python"):
                    return request
            bench.do(Kill(request.seq, 1, "deleted", 0, 9))
            self.end(bench, request)
        pytest.fail("each was quicker than who stops them")

    def end(self, bench, request):
        """Stop the process that delivers its output too, if possible: that occupies no PE, and can be
        ended."""
        first = bench.first(request, ObservedExiting, ObservedEnded)
        return first.ending if isinstance(first, ObservedEnded) else bench.kill(request, 0, number=9)

    @pytest.mark.parametrize("reason", ["wall_limit", "deleted"])
    def test_does_not_escape_its_end(self, bench, anne, reason):
        request = self.begin(bench, anne, ask=Ask(wall=700) if reason == "wall_limit" else Ask())
        if reason == "deleted":
            bench.do(Kill(request.seq, 1, "deleted", 0, 9))
        ending = self.end(bench, request)
        assert (ending.reason, ending.signal) == (reason, signal.SIGKILL)

    def test_while_it_delivers_holds_no_pe_and_can_be_ended(self, bench, anne):
        fifo = bench.work / "fifo"
        os.mkfifo(fifo)
        os.chown(fifo, anne.entry.pw_uid, anne.entry.pw_gid)
        fd = os.open(fifo, os.O_RDWR)
        request = bench.start(LONG, output=Output(stdout=str(fifo)), **anne.fields)
        bench.expect(ObservedExiting, request)
        anne.stop_all(for_ever=False)
        ending = bench.kill(request, 0, number=9)
        os.close(fd)
        kept = bench.folder(request) / "stdout"
        assert (ending.status, ending.stdout, kept.stat().st_size) == (0, str(kept), 300_000)
