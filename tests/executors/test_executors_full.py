"""A full disk is nobody's fault: what cannot be begun on it is begun later."""

import os
import subprocess

import pytest

from nqspy.model.actions import Start
from nqspy.model.observations import ObservedNotStarted, ObservedVoid

pytestmark = [
    pytest.mark.privileged,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root"),
]


@pytest.fixture
def small(make_bench, tmp_path):
    """Hands in a home on a disk of half a megabyte."""
    home = tmp_path / "small"
    home.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(home)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield make_bench(home=home)
    subprocess.run(["umount", "-l", str(home)], check=True)


def fill(bench):
    """Until nothing more fits."""
    with open(bench.home / "ballast", "wb") as file:
        size, part = 0, 1 << 16
        while part >= 512:
            try:
                os.posix_fallocate(file.fileno(), size, part)
                size += part
            except OSError:
                part //= 2


def room(bench):
    (bench.home / "ballast").unlink()


def again(bench, request):
    bench.do(Start(request.seq, 2, (0,)), request)
    return bench.ending(request).status


def test_an_attempt_that_finds_no_room_is_tried_again_later_and_nobody_is_blamed(small):
    fill(small)
    request = small.start("exit 3\n")
    small.expect(ObservedVoid, request)
    assert not any(isinstance(each, ObservedNotStarted) for each in small.seen)
    room(small)
    assert again(small, request) == 3


def test_an_attempt_that_cannot_be_claimed_is_void_and_nothing_of_it_has_run(small):
    script = "echo run >> ran\nexit 4\n"
    assert small.run(script).status == 4
    fill(small)
    request = small.start(script)
    small.expect(ObservedVoid, request)
    room(small)
    assert again(small, request) == 4
    assert small.text("ran") == "run\nrun\n"


def test_what_was_never_begun_is_void_on_a_full_disk_too(small):
    fill(small)
    assert small.executor.scan({1: 1}) == [ObservedVoid(1, 1)]
