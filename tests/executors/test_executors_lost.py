"""A shepherd was killed: what is left of its job ends, strangers do not, and what it wrote is kept."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from executors.conftest import CAGED, gone, makes

from nqspy.executors import cage, proc, records
from nqspy.executors.scratch import clear as clear_scratch
from nqspy.model.actions import Forget, Suspend
from nqspy.model.observations import ObservedLost


def test_a_session_whose_leader_is_gone_may_be_anothers_by_now(bench):
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; read gone"],
        start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as leader:  # fmt: skip
        member = int(leader.stdout.readline())
        who = bench.executor._watch.identifier.of(leader.pid)
        leader.stdin.close()
        leader.wait(20)
        folder = bench.home / "spool" / "1.1"
        folder.mkdir()
        records.claim(str(folder), who.text())
        records.add(str(folder), "pid", {"leader": who.text(), "cage": ["none", ""]})
        assert isinstance(bench.executor.scan({1: 1})[0], ObservedLost)
        assert not gone(member)
        os.kill(member, signal.SIGKILL)


def test_a_lost_request_that_was_suspended_ends_in_a_frozen_cage_too(make_bench):
    if not makes("cgroup1"):
        pytest.skip("needs a freezer of cgroup version 1 that may be written: root, as a rule")
    bench = make_bench(cage="cgroup1")
    request = bench.running("sleep 60 & sleep 60; true\n", ask=CAGED)
    record = bench.until(lambda: records.read(str(bench.folder(request)), "pid"), "its record")
    _, folder = record["cage"]
    bench.do(Suspend(request.seq, 1))
    bench.until(lambda: "FROZEN" in Path(folder, "freezer.state").read_text(), "it is suspended")
    pids = cage.members(folder)
    bench.lose(request)
    assert pids
    assert all(gone(pid) for pid in pids)


def test_many_who_do_not_end_are_waited_for_together():
    many = [subprocess.Popen(["sleep", "60"]) for _ in range(12)]
    begun = time.monotonic()
    proc.await_ends([each.pid for each in many], 1.0)
    assert time.monotonic() - begun < 12 * 1.0
    for each in many:
        each.kill()
        each.wait()


def test_what_a_lost_request_wrote_stays_when_it_does_not_run_again(bench):
    request = bench.running("echo precious\nexec sleep 60\n")
    spooled = bench.folder(request) / "stdout"
    bench.until(spooled.read_text, "its output")
    bench.lose(request)
    bench.do(Forget(request.seq, 1))
    silent = bench.running("exec sleep 60\n")
    bench.lose(silent)
    bench.do(Forget(silent.seq, 1))
    bench.until(lambda: not bench.folder(silent).exists(), "the broom has been there")
    assert spooled.read_text() == "precious\n"
    bench.executor.scan({})
    assert spooled.read_text() == "precious\n"


@pytest.mark.parametrize("forgotten", [True, False])
def test_what_a_lost_request_wrote_stays_when_it_runs_again(bench, forgotten):
    """Also where the daemon was killed before it had the attempt forgotten."""
    request = bench.running("echo first try\nexec sleep 60\n")
    spooled = bench.folder(request) / "stdout"
    bench.until(spooled.read_text, "its output")
    loss = bench.lose(request)
    assert loss.stdout == str(spooled)
    if forgotten:
        bench.do(Forget(request.seq, 1), request)
    bench.executor.scan({request.seq: 2})
    assert spooled.read_text() == "first try\n"


def scratch_of(bench, request) -> Path:
    path, uid = records.claimed_with(str(bench.folder(request)))["scratch"]
    assert os.lstat(path).st_uid == uid
    return Path(path)


LEAVES = """cd $TMPDIR; mkdir -p deep/er; echo x > deep/er/file; ln -s {kept} link; chmod 0 deep
echo there; exec sleep 60
"""


def test_the_scratch_folder_of_a_lost_request_goes_when_it_is_over_and_no_link_is_followed(bench, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("his")
    request = bench.running(LEAVES.format(kept=kept))
    bench.until((bench.folder(request) / "stdout").read_text, "its output")
    scratch = scratch_of(bench, request)
    bench.lose(request)
    assert (scratch / "tmp" / "link").is_symlink()
    bench.do(Forget(request.seq, 1), request)
    bench.until(lambda: not scratch.exists(), "the broom has been there")
    assert (kept / "file").read_text() == "his"


def test_the_scratch_folder_goes_too_where_the_output_stays_and_after_a_restart(bench):
    request = bench.running("echo precious\nexec sleep 60\n")
    bench.until((bench.folder(request) / "stdout").read_text, "its output")
    scratch = scratch_of(bench, request)
    bench.lose(request)
    assert scratch.is_dir()
    bench.executor.scan({})
    assert not scratch.exists()


def test_what_is_no_folder_of_the_owner_s_is_left_alone(tmp_path):
    folder, link = tmp_path / "nqspy.1.x", tmp_path / "nqspy.2.x"
    folder.mkdir()
    link.symlink_to(folder)
    other = tmp_path / "mine"
    other.mkdir()
    clear_scratch(str(folder), os.geteuid() + 1)
    clear_scratch(str(link), os.geteuid())
    clear_scratch(str(other), os.geteuid())
    clear_scratch(str(tmp_path / "nqspy.3.x"), os.geteuid())
    assert folder.is_dir()
    assert link.is_symlink()
    assert other.is_dir()
    clear_scratch(str(folder), os.geteuid())
    assert not folder.exists()
