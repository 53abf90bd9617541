"""The scratch folder of an attempt is removed, and nothing else, whatever has its name by then."""

import os
import stat
import subprocess
import sys

import pytest

from nqspy.executors import scratch


@pytest.fixture
def victim(tmp_path):
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    return folder


@pytest.mark.parametrize("remove", [scratch.removed, scratch.remove])
def test_a_link_in_its_place_leads_nowhere_and_another_users_stays(tmp_path, victim, remove):
    tmp_path.chmod(0o755)
    (tmp_path / "scratch").symlink_to(victim)
    remove(str(tmp_path / "scratch"))
    assert (victim / "precious").read_text() == "precious"
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    if os.geteuid() == 0:  # a folder is another user's
        os.chown(victim, 65534, 65534)
        remove(str(victim))
        assert (victim / "precious").exists()


def test_what_the_job_has_left_there_is_removed_and_nothing_above(tmp_path, monkeypatch):
    held, rmdir = tmp_path / "scratch", os.rmdir
    (held / "tmp" / "more").mkdir(parents=True)
    (held / "closed").mkdir(mode=0)
    scratch.remove(str(held))
    assert not held.exists()
    (held / "more" / "tmp").mkdir(parents=True)
    tmp_path.chmod(0o755)

    def busy(path, **options):
        if os.fspath(path) == str(held):
            raise OSError(16, "busy, as a folder that something is mounted in")
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", busy)
    scratch.remove(str(held))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


_MOUNTED = """
import os, subprocess, sys
from pathlib import Path
from nqspy.executors import scratch

top = Path(sys.argv[1])

def mount(at, *words):
    subprocess.run(["mount", *words, at], check=True)

def bind(what, at):
    at.mkdir(parents=True, exist_ok=True)
    mount(at, "--bind", what)

def tmpfs(what, at):
    at.mkdir(parents=True)
    mount(at, "-t", "tmpfs", "none")
    (at / "precious").touch()

remove = eval(sys.argv[2])
for number, (make, where) in enumerate(
    [(tmpfs, "tmp/m"), (bind, "tmp/m"), (bind, "tmp/a \\\\040b\\n"), (bind, "tmp"), (bind, ".")]
):
    held, mounted = top / f"nqspy.{number}.a b", top / f"mounted {number}"
    (mounted / "tmp").mkdir(parents=True)
    (mounted / "precious").touch()
    make(mounted, held / where)
    remove(str(held))
    assert (held / where / "precious").exists(), (make, where)
    assert make is tmpfs or (mounted / "tmp").is_dir(), where
    plain = Path(f"{held}c")
    (plain / "tmp").mkdir(parents=True)
    remove(str(plain))
    assert not plain.exists()
"""


@pytest.mark.parametrize(
    "remove", ["scratch.removed", "scratch.remove", "lambda path: scratch.clear(path, os.geteuid())"]
)
def test_what_is_mounted_in_it_is_never_removed(tmp_path, remove):
    apart = ["unshare", "-m", "--propagation", "private", *([] if os.geteuid() == 0 else ["-r"])]
    may = subprocess.run([*apart, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    if may.returncode:
        pytest.skip("needs the right to mount")
    words = [*apart, sys.executable, "-c", _MOUNTED, str(tmp_path), remove]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
