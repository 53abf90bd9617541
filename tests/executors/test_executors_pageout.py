"""What a request holds in memory is measured, and leaves when it gives way where there is swap."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nqspy.executors import pageout
from nqspy.executors.pageout import Residents
from nqspy.model.actions import Resume, Suspend
from nqspy.model.cause import cause_of

MB = 1 << 20
HOG = f"""exec {sys.executable} -c '
import os, time
held = bytearray(b"x") * (80 << 20)
open("holds", "w").write(str(os.getpid()))
while not os.path.exists("go"):
    time.sleep(0.02)
open("sum", "w").write(str(held.count(b"x")))
time.sleep(60)
'
"""


def swaps() -> list[str]:
    return Path("/proc/swaps").read_text().splitlines()[1:]


@pytest.fixture
def swap_file(tmp_path):
    """A swap file for the time of a test."""
    path = tmp_path / "swapfile"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 256 * MB)
    path.chmod(0o600)
    if os.geteuid() or not shutil.which("mkswap"):
        pytest.skip("needs root and mkswap: only root may add swap")
    subprocess.run(["mkswap", path], check=True, capture_output=True)
    if subprocess.run(["swapon", path], check=False, capture_output=True).returncode:
        pytest.skip("this kernel takes no swap file here")
    yield path
    subprocess.run(["swapoff", path], check=True)


@pytest.fixture(params=["cgroup2", "cgroup1", "none"])
def hog(request, make_bench):
    """A running request that holds 80 MB, in each make of cage."""
    bench = make_bench(cage=request.param)
    job = bench.running(HOG)
    bench.text("holds")
    yield bench, job
    bench.kill(job, 0)


def held(bench, job) -> int:
    return bench.executor.resident({job.seq: 1}).get(job.seq, 0)


def test_what_a_request_holds_is_seen_from_the_daemon(hog):
    bench, job = hog
    assert 80 * MB < held(bench, job) < 120 * MB
    assert bench.executor.resident({job.seq + 1: 1}) == {}, "there is no such attempt"


def test_processes_that_share_memory_are_counted_once(make_bench):
    bench = make_bench()
    job = bench.running(HOG.replace('open("holds"', 'os.fork()\nopen("holds"'))
    bench.text("holds")
    bench.until(lambda: held(bench, job) > 80 * MB, "80 MB")
    assert held(bench, job) < 130 * MB, "two processes with the same 80 MB"
    bench.kill(job, 0)
    assert bench.executor.resident({job.seq: 1}) == {}


def gives_way(bench, job, caplog) -> tuple[int, int]:
    """How many MB left the memory, and of how many, as a request gave way."""
    with caplog.at_level("INFO", "nqspy.executor"):
        bench.do(Suspend(job.seq, 1, cause_of("swap"), page_out=True))
        told = bench.until(lambda: re.search(r"(\d+) of (\d+) MB left the memory", caplog.text), "a line")
    return int(told[1]), int(told[2])


@pytest.mark.privileged
def test_its_pages_really_leave_and_come_back_unchanged(hog, swap_file, caplog):
    bench, job = hog
    left, whole = gives_way(bench, job, caplog)
    # What it made has left; the pages of the programs, which others have too, the kernel may keep.
    assert held(bench, job) < 40 * MB
    assert left > 60
    assert 80 <= whole < 120
    bench.do(Resume(job.seq, 1))
    bench.go()
    assert bench.text("sum") == str(80 * MB)


@pytest.mark.skipif(not pageout.may(), reason="needs CAP_SYS_NICE: only then the kernel tries")
def test_without_swap_it_is_told_that_nothing_left(make_bench, caplog):
    if swaps():
        pytest.skip("this machine has swap: nothing to show of one without")
    bench = make_bench()
    job = bench.running(HOG)
    bench.text("holds")
    left, _ = gives_way(bench, job, caplog)
    stays, with_swap = held(bench, job), swaps()
    bench.kill(job, 0)
    if with_swap:
        pytest.skip("somebody has switched swap on meanwhile")
    assert left < 20, f"its code and files may leave, what it made stays: {caplog.text}"
    assert stays > 75 * MB


def test_a_request_that_is_told_to_go_on_at_once_is_not_paged_out_to_the_end(hog):
    bench, job = hog
    for _ in range(5):
        bench.do(Suspend(job.seq, 1, cause_of("swap"), page_out=True))
        bench.do(Resume(job.seq, 1))
    bench.go()
    assert bench.text("sum") == str(80 * MB)


def test_who_may_not_page_out_is_told_so():
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv: to give rights up")
    code = """
import os, subprocess, sys
from nqspy.executors import pageout
child = subprocess.Popen(["sleep", "60"])
out = pageout.PageOut([child.pid])
while out.step():
    pass
print(pageout.may(), out.refused)
child.kill()
child.wait()
"""
    weak = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    run = subprocess.run([*weak, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["False", "True"], run.stderr


def test_that_paging_out_is_refused_is_logged_once(bench, caplog):
    assert [bench.executor._watch._paged_out(1, 5, 5, 1) for _ in range(2)] == [0, 0]
    assert caplog.text.count("CAP_SYS_NICE") == 1


def test_processes_that_have_ended_are_passed_over():
    child = subprocess.Popen(["true"])
    child.wait()
    out = pageout.PageOut([child.pid])
    started = time.monotonic()
    while out.step():
        assert time.monotonic() < started + 5
    assert (out.before, out.after, out.refused) == (0, 0, False)
    assert Residents().of("/nowhere/17.1") is None
