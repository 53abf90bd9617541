"""A shepherd was killed: the rest of its job ends, other processes do not, and its output stays. Unexpected
content of the spool: strays, another boot, a later version, removed folders."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from executors.conftest import BOTH, IN_CGROUP, WAIT, cgroups_here, gone

from nqspy.executors import cgroups, proc, records, scan
from nqspy.executors.scratch import clear as clear_scratch
from nqspy.model.actions import Forget, SetAside, Suspend
from nqspy.model.observations import ObservedEnded, ObservedLost, ObservedRunning, ObservedStray, ObservedVoid
from nqspy.model.requests import Output

PID_AND_WAIT = f"echo $$ > pid\n{WAIT}"
PRECIOUS = "echo precious\nexec sleep 60\n"


def claimed(bench, who: str) -> Path:
    folder = bench.home / "spool" / "1.1"
    folder.mkdir()
    records.claim(str(folder), who)
    return folder


@pytest.mark.parametrize("leads", [True, False], ids=["its leader is gone", "another has its number"])
def test_a_session_that_may_be_anothers_by_now_is_left_alone(bench, leads):
    script = "sleep 60 & echo $!; read gone" if leads else "echo $$; read gone"
    with subprocess.Popen(
        ["sh", "-c", script], start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as leader:
        member = int(leader.stdout.readline())
        who = bench.identifier.of(leader.pid)
        if leads:
            leader.stdin.close()
            leader.wait(20)
        else:
            who = who._replace(start=who.start - 1, inode=who.inode - 1)
        folder = claimed(bench, who.text())
        pid = {"leader": who.text(), "cage": ["none", ""], "controls": []}
        records.add(str(folder), "pid", pid)
        assert isinstance(bench.scan()[0], ObservedLost)
        assert not gone(member)
        os.kill(member, signal.SIGKILL)


def test_a_pid_that_was_given_to_another_is_not_taken_for_the_shepherd(bench):
    mine = bench.identifier.of(os.getpid())
    claimed(bench, mine._replace(start=mine.start + 1).text())
    assert isinstance(bench.scan()[0], ObservedLost)


@pytest.mark.parametrize(("program", "ends"), [("spawner", True), ("starter", True), ("editor", False)])
def test_a_shepherd_in_the_folder_is_known_by_its_spawner_of_this_version_or_an_earlier_one(
    bench, tmp_path, program, ends
):
    folder, script = claimed(bench, bench.identifier.of(os.getpid()).text()), tmp_path / f"{program}.py"
    script.write_text("import time\nprint(flush=True)\ntime.sleep(600)\n")
    with subprocess.Popen([sys.executable, script], cwd=folder, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        scan.kill_remaining(str(folder), str(bench.home), bench.identifier)
        with proc.Descriptor(os.pidfd_open(process.pid)) as fd:
            assert proc.readable(fd, 5 if ends else 0) == ends
        process.kill()


def test_sweeping_a_lost_attempt_leaves_the_next_one_alone(bench, tmp_path):
    request = bench.running(f"{WAIT}exit 5\n")
    hidden = shutil.ignore_patterns("control")  # a socket
    kept = shutil.copytree(bench.folder(request), tmp_path / "kept" / "1.1", ignore=hidden)
    bench.lose(request)
    again = bench.again(request)
    bench.expect(ObservedRunning, again)
    scan.kill_remaining(str(kept), str(bench.home), bench.identifier)
    bench.go()
    assert bench.ending(again).status == 5


def test_a_lost_request_that_was_suspended_ends_in_a_frozen_cgroup_too(make_bench):
    if cgroups_here("cgroup1").kind != "cgroup1":
        pytest.skip("needs a freezer of cgroup version 1 that may be written: root, as a rule")
    bench = make_bench(cgroup="cgroup1")
    request = bench.running("sleep 60 & sleep 60; true\n", ask=IN_CGROUP)
    _, folder = bench.record(request)["cage"]
    bench.do(Suspend(request.seq, 1))
    bench.until(lambda: "FROZEN" in Path(folder, "freezer.state").read_text(), "it is suspended")
    pids = cgroups.members(folder)
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


# ---------------------------------------------------------------- what it wrote
@pytest.mark.parametrize("forgotten", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_what_a_lost_request_wrote_stays_whether_it_runs_again_or_not(bench, forgotten, again):
    """Also if the daemon was killed before it removed the attempt."""
    request = bench.running(PRECIOUS)
    spooled = bench.spooled(request)
    bench.until(spooled.read_text, "its output")
    assert bench.lose(request).stdout == str(spooled)
    if forgotten:
        bench.do(Forget(request.seq, 1), request if again else None)
        silent = bench.running("exec sleep 60\n")
        bench.lose(silent)
        bench.do(Forget(silent.seq, 1))
        bench.until(lambda: not bench.folder(silent).exists(), "the folder is cleared")
        assert spooled.read_text() == "precious\n"
    bench.executor.scan({request.seq: 2} if again else {})
    assert spooled.read_text() == "precious\n"


LEAVES = """cd $TMPDIR; mkdir -p deep/er; echo x > deep/er/file; ln -s {kept} link; chmod 0 deep
echo there; exec sleep 60
"""


@pytest.mark.parametrize("restarted", [False, True])
def test_the_scratch_folder_of_a_lost_request_goes_and_no_link_is_followed(bench, tmp_path, restarted):
    """Also if its output stays."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("his")
    request = bench.running(LEAVES.format(kept=kept))
    bench.until(bench.spooled(request).read_text, "its output")
    path, uid = records.claimed_with(str(bench.folder(request)))["scratch"]
    assert os.lstat(path).st_uid == uid
    bench.lose(request)
    assert Path(path, "tmp", "link").is_symlink()
    if restarted:
        bench.executor.scan({})
    else:
        bench.do(Forget(request.seq, 1), request)
        bench.until(lambda: not os.path.exists(path), "the folder is cleared")
    assert not os.path.exists(path)
    assert (kept / "file").read_text() == "his"


def test_what_is_no_folder_of_the_owner_s_is_left_alone(tmp_path):
    folder, link, other = (tmp_path / name for name in ("nqspy.1.x", "nqspy.2.x", "mine"))
    folder.mkdir()
    link.symlink_to(folder)
    other.mkdir()
    clear_scratch(str(folder), os.geteuid() + 1)
    for path in (link, other, tmp_path / "nqspy.3.x"):
        clear_scratch(str(path), os.geteuid())
    assert (folder.is_dir(), link.is_symlink(), other.is_dir()) == (True, True, True)
    clear_scratch(str(folder), os.geteuid())
    assert not folder.exists()


# ---------------------------------------------------------------- strays
def test_an_attempt_that_nobody_expects_is_told_with_its_fate(bench):
    done = bench.start("exit 0\n")
    bench.ending(done)
    running = bench.running(PID_AND_WAIT)
    found = bench.executor.scan({})
    assert set(found) == {ObservedStray(done.seq, 1, "done"), ObservedStray(running.seq, 1, "alive")}
    bench.kill(running)


def test_a_stray_that_is_set_aside_ends_its_number_is_free_and_output_that_had_to_stay_is_kept(make_bench):
    first = make_bench()
    first.running(PID_AND_WAIT)
    pid = first.number("pid")
    first.leave()
    again = make_bench()
    again.executor.scan({})
    again.do(SetAside(1, 1))
    assert not again.folder(again.request("exit 0\n")).exists()
    again.seq = 0
    assert again.run("exit 6\n").status == 6  # the same request and attempt
    again.until(lambda: gone(pid), "the stray has ended")
    aside = again.home / "spool" / "stray-1.1"
    again.until(lambda: records.read(str(aside), "done"), "its end is written down")
    assert records.read(str(aside), "done")["reason"] == "void"
    again.executor.scan({})
    assert not aside.exists()
    kept = again.start("echo precious\n", output=Output(stdout="/nowhere/out"))
    again.ending(kept)
    again.do(SetAside(kept.seq, 1))
    again.executor.scan({})
    assert (again.home / "spool" / f"stray-{kept.seq}.1" / "stdout").read_text() == "precious\n"


def test_what_a_stray_left_running_is_ended(bench):
    request = bench.running(PID_AND_WAIT)
    pid = bench.number("pid")
    bench.executor._watch._attempts.clear()  # nobody waits for it any more
    os.kill(bench.shepherd(request), 9)
    bench.until(lambda: scan.examine(str(bench.folder(request)), bench.identifier).fate == "lost", "")
    assert bench.executor.scan({}) == [ObservedStray(request.seq, 1, "lost")]
    bench.until(lambda: gone(pid), "its job has ended")


@pytest.mark.parametrize("written", [False, True])
def test_an_attempt_of_a_former_boot_is_lost_and_says_so_unless_its_end_was_written(bench, written):
    request = bench.start("exit 12\n")
    bench.ending(request)
    claim, mine = bench.folder(request) / "claim", bench.identifier.boot
    text = claim.read_text().replace(mine, "0" * len(mine))
    if not written:
        for name in ("exit", "done", "pid"):
            (bench.folder(request) / name).unlink(missing_ok=True)
        text = "\n".join(line for line in text.split("\n") if '{"exit"' not in line)
    claim.write_text(text)
    (found,) = bench.scan()
    if written:
        assert isinstance(found, ObservedEnded)
        assert found.ending.status == 12
    else:
        assert isinstance(found, ObservedLost)
        assert "restarted" in found.text


def test_a_shepherd_of_a_later_version_is_told_and_left_alone(make_bench):
    first = make_bench()
    request = first.running(PID_AND_WAIT)
    pid = first.number("pid")
    assert records.protocol(str(first.folder(request))) == records.PROTOCOL
    first.leave()
    claim = first.folder(request) / "claim"
    lines = claim.read_text().split("\n")
    lines[1] = json.dumps({"protocol": records.PROTOCOL + 1})
    claim.write_text("\n".join(lines))
    bench = make_bench()
    found = bench.scan()
    assert [type(s) for s in found] == [ObservedRunning, ObservedStray]
    assert found[1] == ObservedStray(request.seq, 1, "later")
    assert bench.executor.scan({}) == [ObservedStray(request.seq, 1, "later")]
    assert not gone(pid)
    assert bench.folder(request).is_dir()
    bench.go()
    bench.until(lambda: gone(pid), "it ends by itself")


# ---------------------------------------------------------------- claims
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace: it sees what is synced, and when")
@BOTH
def test_before_the_first_instruction_claim_folder_and_its_name_are_on_the_disk(bench, tmp_path, ask):
    trace, spawner = tmp_path / "trace", bench.spawner
    calls = "trace=fsync,fdatasync,link,linkat,execve"
    with subprocess.Popen(
        ["strace", "-f", "-y", "-s", "256", "-e", calls, "-o", trace, "-p", str(spawner)]
    ) as tracer:
        try:
            status = Path(f"/proc/{spawner}/status")
            bench.until(lambda: f"TracerPid:\t{tracer.pid}\n" in status.read_text(), "strace is there")
            request = bench.start("exit 0\n", ask=ask)
            bench.ending(request)
        finally:
            tracer.terminate()
    lines = trace.read_text().splitlines()

    def first(pattern: str) -> int:
        return next(n for n, line in enumerate(lines) if re.search(pattern, line))

    begun, claimed = first(r'execve\("/bin/sh"'), first(r'link(at)?\(.*/claim"')
    folder = bench.folder(request)
    for path in (folder / "claim", folder, bench.home / "spool"):
        assert claimed < first(rf"fsync\(\d+<{re.escape(str(path))}>") < begun, path


def test_an_end_whose_name_was_not_on_the_disk_is_read_all_the_same(bench):
    request = bench.start("exit 3\n")
    bench.ending(request)
    folder = bench.folder(request)
    bench.until(lambda: gone(bench.shepherd(request)), "its shepherd leaves")
    # As a power cut leaves it between the record and its name.
    for name in ("exit", "done"):
        (folder / name).unlink()
    claim = folder / "claim"
    claim.write_text("".join(line for line in claim.read_text().splitlines(True) if '{"done"' not in line))
    finding = scan.examine(str(folder), bench.identifier)
    assert (finding.fate, finding.record["status"]) == ("undelivered", 3)


def test_who_runs_without_a_folder_at_a_restart_ends_with_his_shepherd(make_bench):
    bench = make_bench()
    request = bench.running(f"echo $$ > pid\nsetsid sleep 60 &\n{WAIT}")
    pids = [bench.number("pid"), bench.shepherd(request)]
    bench.leave()
    shutil.rmtree(bench.folder(request))
    assert isinstance(make_bench().scan()[0], ObservedVoid)
    bench.until(lambda: all(gone(pid) for pid in pids), "all of it ends")
    os.truncate(bench.home / "spool" / "starter.log", 0)  # perhaps its shepherd was quicker, and said so


def test_a_request_whose_folder_is_taken_away_gives_its_processor_back_at_its_end(bench):
    request = bench.running(WAIT)
    shepherd = bench.shepherd(request)
    shutil.rmtree(bench.folder(request))
    bench.go()
    bench.expect(ObservedVoid, request)
    assert gone(shepherd)
    log = bench.home / "spool" / "starter.log"
    assert f" {request.seq}.1 " in log.read_text()
    os.truncate(log, 0)
