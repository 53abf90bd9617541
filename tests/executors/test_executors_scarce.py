"""Descriptors, processes or the disk run out, or orders cannot be sent: no request is lost, blamed or started
unasked."""

import contextlib
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest
from executors.conftest import BOTH, begin_daemon
from msgspec.structs import replace
from small_disk import fill, small_disk

from nqspy.executors import proc, records, scan
from nqspy.model.actions import Start
from nqspy.model.observations import ObservedNotStarted, ObservedVoid


@contextlib.contextmanager
def no_descriptors(left: int = 0):
    """Let this process open at most ``left`` more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.dup(0))
        for _ in range(left):
            os.close(held.pop())
        yield
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---------------------------------------------------------------- descriptors
@pytest.mark.parametrize("left", [0, 1, 2])
def test_without_descriptors_nobody_is_taken_for_lost(tmp_path, left):
    identifier = proc.Identifier()
    with subprocess.Popen(["sleep", "60"]) as shepherd:
        records.claim(str(tmp_path), identifier.of(shepherd.pid).text(), records.PROTOCOL)
        with no_descriptors(left):
            fate = "not known"
            with contextlib.suppress(OSError):
                found = scan.examine(str(tmp_path), identifier)
                fate = found.fate
                found.close()
        assert fate == ("alive" if left == 2 else "not known")
        shepherd.kill()


def test_an_end_that_comes_while_there_are_no_descriptors_is_told_later(bench):
    bench.run("exit 5\n")
    request = bench.request("exit 5\n")
    with no_descriptors():
        bench.do(Start(request.seq, 1, (0,)), request)
        bench.until((bench.folder(request) / "done").exists, "it has ended")
    assert bench.ending(request).status == 5


FIRST = "resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))"
THEN = """
for ask in (conftest.Ask(), conftest.IN_CGROUP):
    bench.run("ulimit -n >> limits\\n", ask=ask)
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
bench.leave()
"""


def test_the_daemon_opens_all_the_files_it_may_and_its_requests_as_many_as_before(tmp_path):
    with begin_daemon(tmp_path, first=FIRST, then=THEN) as daemon:
        soft, hard = daemon.communicate()[0].split()
    assert soft == hard
    assert (tmp_path / "work" / "limits").read_text().split() == ["256", "256"]


# ---------------------------------------------------------------- orders
def test_an_order_that_could_not_be_given_is_not_given_later_and_names_that_are_no_text_are_refused(bench):
    script = "echo run >> ran\n"
    bench.run(script)
    request = bench.request(script, env=b"X=" + b"y" * 100_000)
    with no_descriptors(), pytest.raises(OSError, match="Too many open files"):
        bench.do(Start(request.seq, 1, (0,)), request)
    with pytest.raises(UnicodeEncodeError):  # it cannot be written down
        bench.start("exit 0\n", name="\udcff")
    bench.site.settings.server.shell_strategy = "free"
    odd = bench.request("", shell=None)
    odd = replace(odd, spec=replace(odd.spec, script=bench.keep(b"#!/bin/s\xffh\n")))
    bench.do(Start(odd.seq, 1, (0,)), odd)
    assert "cannot run /bin/s" in bench.expect(ObservedNotStarted, odd).text
    os.kill(bench.spawner, signal.SIGKILL)
    assert bench.run("exit 4\n").status == 4
    assert bench.text("ran") == "run\n"
    bench.do(Start(request.seq, 1, (0,)), request)
    assert bench.ending(request).status == 0


# ---------------------------------------------------------------- processes
@pytest.fixture
def crowded(bench):
    """Return a bench whose spawner may have one more process: a shepherd, which then has no job."""
    folder = Path(f"/sys/fs/cgroup/pids/nqspy-test-{os.getpid()}")
    try:
        folder.mkdir()
        (folder / "cgroup.procs").write_text(str(bench.spawner))
    except OSError:
        pytest.skip("needs a pids cgroup of version 1 that may be written: root, as a rule")
    (folder / "pids.max").write_text("2")
    bench.crowd = folder / "pids.max"
    yield bench
    bench.leave()

    def removed() -> bool:
        with contextlib.suppress(OSError):
            folder.rmdir()
        return not folder.exists()

    bench.until(removed, "nobody is left in it")


@BOTH
def test_where_no_process_can_be_forked_a_request_is_tried_again_later(crowded, ask):
    request = crowded.start("exit 3\n", ask=ask)
    assert "Resource temporarily unavailable" in crowded.expect(ObservedVoid, request).text
    crowded.crowd.write_text("max")
    assert crowded.ending(crowded.again(request)).status == 3


# ---------------------------------------------------------------- a full disk
@pytest.fixture
def small(make_bench, tmp_path):
    """Return a bench with its home on a disk of half a megabyte."""
    with small_disk(tmp_path / "small", "size=512k"):
        yield make_bench(home=tmp_path / "small")


@pytest.mark.privileged
@pytest.mark.parametrize("idle", [False, True])
def test_on_a_full_disk_nothing_of_an_attempt_runs_and_nobody_is_blamed(small, idle):
    script = "echo run >> ran\nexit 4\n"
    if idle:
        assert small.run(script).status == 4
    fill(small.home / "ballast")
    request = small.start(script)
    small.expect(ObservedVoid, request)
    assert not any(isinstance(each, ObservedNotStarted) for each in small.seen)
    assert ObservedVoid(7, 1) in small.scan(first=7), "it was never begun"
    (small.home / "ballast").unlink()
    assert small.ending(small.again(request)).status == 4
    assert small.text("ran") == "run\n" * (1 + idle)
