"""The daemon dies, its requests do not: adoption, exact ends, nothing twice, nothing lost unsaid."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from executors.conftest import WAIT
from msgspec import structs

from nqspy.executors import proc, records, scan
from nqspy.model.actions import Kill, Start
from nqspy.model.observations import (
    ObservedEnded,
    ObservedExiting,
    ObservedLost,
    ObservedNotStarted,
    ObservedRunning,
    ObservedVoid,
)
from nqspy.model.requests import Output

DAEMON = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("conftest", sys.argv[1])
conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conftest)
from pathlib import Path
bench = conftest.Bench(Path(sys.argv[2]), cage=sys.argv[3])
bench.executor.start()
for script in sys.argv[4:]:
    bench.running(script)
print("running", flush=True)
bench.told.get()
"""


@pytest.fixture
def killed_daemon(tmp_path) -> Iterator:
    """Starts requests from a process that is then killed -9."""

    def start_and_kill(*scripts: str, cage: str = "") -> None:
        conftest = Path(__file__).with_name("conftest.py")
        command = [sys.executable, "-c", DAEMON, str(conftest), str(tmp_path), cage, *scripts]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=os.getcwd()) as daemon:
            try:
                assert daemon.stdout is not None
                assert daemon.stdout.readline() == "running\n"
            finally:
                daemon.kill()

    return start_and_kill


def test_running_requests_are_adopted_and_end_exactly(make_bench, tmp_path, killed_daemon):
    killed_daemon(f"{WAIT}exit 41\n", f"{WAIT}kill -TERM $$\n", "exec sleep 60\n")
    bench = make_bench()
    found = bench.executor.scan({1: 1, 2: 1, 3: 1})
    assert [type(s) for s in found] == [ObservedRunning] * 3
    bench.do(Kill(3, 1, "deleted", 5000))
    bench.go()
    ends = {}
    while len(ends) < 3:
        observation = bench.told.get(timeout=120)
        assert isinstance(observation, ObservedEnded)
        ending = observation.ending
        ends[observation.seq] = (ending.reason, ending.status, ending.signal)
    term = signal.SIGTERM
    assert ends == {1: ("exit", 41, None), 2: ("signal", None, term), 3: ("deleted", None, term)}


def test_an_end_while_no_daemon_was_there_is_found(make_bench, tmp_path, killed_daemon):
    killed_daemon(f"{WAIT}echo late; exit 5\n")
    folder = tmp_path / "spool" / "1.1"
    shepherd = proc.Identity.parse(records.holder(str(folder))).pid
    (tmp_path / "work" / "go").touch()
    proc.await_ends([shepherd], 20)
    bench = make_bench()
    (ended,) = bench.executor.scan({1: 1})
    assert isinstance(ended, ObservedEnded)
    assert (ended.ending.status, ended.ending.reason) == (5, "exit")
    assert bench.text("job.o1") == "late\n"


def test_what_was_never_begun_is_void_and_never_begins(bench):
    (void,) = bench.executor.scan({1: 1})
    assert void == ObservedVoid(1, 1)
    request = bench.request("touch ran\n")
    assert request.seq == 1
    bench.do(Start(1, 1, (0,)), request)
    bench.expect(ObservedVoid, request)
    assert bench.run("exit 0\n").status == 0
    assert not (bench.work / "ran").exists()


def test_a_pid_that_was_given_to_another_is_not_taken_for_the_shepherd(bench):
    folder = bench.home / "spool" / "1.1"
    folder.mkdir()
    mine = bench.executor._watch.identifier.of(os.getpid())
    other = proc.Identity(mine.boot, mine.pid, mine.start + 1, mine.inode)
    records.claim(str(folder), other.text())
    assert isinstance(bench.executor.scan({1: 1})[0], ObservedLost)


def test_sweeping_a_lost_attempt_leaves_the_next_one_alone(bench, tmp_path):
    request = bench.running(f"{WAIT}exit 5\n")
    hidden = shutil.ignore_patterns("control")  # a socket
    kept = shutil.copytree(bench.folder(request), tmp_path / "kept" / "1.1", ignore=hidden)
    bench.lose(request)
    again = structs.replace(request, attempt=2)
    bench.do(Start(request.seq, 2, (0,)), again)
    bench.expect(ObservedRunning, again)
    scan.end_remains(str(kept), str(bench.home), bench.executor._watch.identifier)
    bench.go()
    assert bench.ending(again).status == 5


def test_a_session_that_has_the_number_of_a_lost_one_is_left_alone(bench):
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        seen = bench.executor._watch.identifier.of(other.pid)
        leader = proc.Identity(seen.boot, seen.pid, seen.start - 1, seen.inode - 1)
        folder = bench.home / "spool" / "1.1"
        folder.mkdir()
        records.claim(str(folder), leader.text())
        records.add(str(folder), "pid", {"leader": leader.text(), "cage": ["none", ""]})
        assert isinstance(bench.executor.scan({1: 1})[0], ObservedLost)
        assert other.poll() is None
        other.kill()


def test_a_delivery_that_was_cut_off_is_finished(bench):
    request = bench.start("echo precious\nexit 3\n", output=Output(stdout="/nowhere/out"))
    bench.ending(request)
    folder = bench.folder(request)
    # As a shepherd leaves it that is killed between record and delivery.
    (folder / "done").unlink()
    target = bench.work / "rescued"
    text = (folder / "claim").read_text().replace("/nowhere/out", str(target))
    (folder / "claim").write_text("\n".join(line for line in text.split("\n") if '{"done"' not in line))
    (found,) = bench.executor.scan({1: 1})
    assert isinstance(found, ObservedExiting)
    ending = bench.ending(request)
    assert (ending.status, ending.stdout) == (3, str(target))
    assert target.read_text() == "precious\n"


def test_a_starter_that_is_killed_is_replaced_and_nothing_is_lost(bench):
    request = bench.running(f"{WAIT}exit 8\n")
    os.kill(bench.starter, signal.SIGKILL)
    others = [bench.start("exit 4\n") for _ in range(3)]
    assert [bench.ending(other).status for other in others] == [4, 4, 4]
    bench.go()
    assert bench.ending(request).status == 8


def test_orders_in_the_socket_of_a_dead_starter_are_given_again(bench):
    os.kill(bench.starter, signal.SIGSTOP)
    requests = [bench.start(f"echo {n} >> log\n") for n in range(3)]
    os.kill(bench.starter, signal.SIGKILL)
    for request in requests:
        assert bench.ending(request).status == 0
    assert sorted(bench.text("log").split()) == ["0", "1", "2"]


def test_a_second_daemon_takes_nothing_from_the_first(make_bench, monkeypatch):
    monkeypatch.setattr("nqspy.executors.link._LOCK_TRIES", 2)
    first = make_bench()
    second = first.__class__(first.home)
    with pytest.raises(OSError, match="another daemon's starter still holds"):
        second.executor.start()
    second.executor.close()
    assert first.run("exit 6\n").status == 6


def test_what_the_daemon_had_no_time_to_forget_is_swept(make_bench):
    bench = make_bench()
    done = bench.start("exit 0\n")
    bench.ending(done)
    kept = bench.start("echo x\n", output=Output(stdout="/nowhere/out"))
    bench.ending(kept)
    bench.executor.scan({})
    assert not bench.folder(done).exists()
    assert (bench.folder(kept) / "stdout").read_text() == "x\n"


def test_one_that_did_not_start_is_told_by_a_scan_too(bench):
    request = bench.start("exit 0\n", workdir="/nowhere")
    bench.expect(ObservedNotStarted, request)
    (found,) = bench.executor.scan({1: 1})
    assert isinstance(found, ObservedNotStarted)


def test_a_claim_is_given_once(tmp_path):
    assert records.claim(str(tmp_path), "first")
    assert not records.claim(str(tmp_path), "second")
    assert records.holder(str(tmp_path)) == "first"
    assert not scan.claim_void(str(tmp_path))


def test_half_a_record_is_no_record(tmp_path):
    records.claim(str(tmp_path), "me")
    with (tmp_path / "claim").open("a") as file:
        file.write('\n{"exit": {"ending"')
    assert records.read(str(tmp_path), "exit") is None
    records.add(str(tmp_path), "exit", {"ending": 1}, durable=True)
    assert records.read(str(tmp_path), "exit") == {"ending": 1}
    assert records.holder(str(tmp_path)) == "me"


def test_nothing_polls_while_idle(bench):
    """Neither the watcher nor the starter wakes up when nothing happens: they sleep without a timeout."""
    bench.run("exit 0\n")
    starter = bench.starter
    for pid, task in [(starter, starter), *((os.getpid(), t.native_id) for t in _watchers())]:
        syscall = Path(f"/proc/{pid}/task/{task}/syscall")
        number, *arguments = bench.until(lambda s=syscall: _sleeping(s), "asleep")
        if task != starter:
            assert int(arguments[3], 16) & 0xFFFFFFFF == 0xFFFFFFFF, f"epoll_wait with a timeout: {number}"


def _watchers():
    return [thread for thread in threading.enumerate() if thread.name == "executor"]


def _sleeping(syscall: Path) -> list[str] | None:
    words = syscall.read_text().split()
    return None if words[0] == "running" else words


# ---------------------------------------------------------------- shepherds that have claimed and not begun


@pytest.fixture
def about_to_begin(bench):
    """An attempt 1.1 that was claimed by a living shepherd which does not listen yet, found by a scan."""
    folder = bench.home / "spool" / "1.1"
    folder.mkdir()
    (bench.home / "spool" / "scripts").mkdir()
    (bench.home / "spool" / "scripts" / "its-own").write_text("exit 0\n")
    with subprocess.Popen(["sleep", "60"]) as shepherd:
        who = bench.executor._watch.identifier.of(shepherd.pid)
        records.claim(str(folder), who.text(), records.PROTOCOL)
        (found,) = bench.executor.scan({1: 1})
        assert isinstance(found, ObservedRunning)
        yield bench
        shepherd.kill()


def test_what_is_told_to_an_adopted_shepherd_before_it_listens_is_kept_for_it(about_to_begin):
    bench = about_to_begin
    bench.do(Kill(1, 1, "deleted", 1000))
    spool = os.open(bench.home / "spool", os.O_RDONLY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control:
        control.settimeout(120)
        control.bind(f"/proc/self/fd/{spool}/1.1/control")
        report = json.dumps({"k": "run", "s": 1, "a": 1, "u": [0, 0, 0]}).encode()
        control.sendto(report, f"/proc/self/fd/{spool}/reports.sock")
        assert json.loads(control.recv(4096))["reason"] == "deleted"
    os.close(spool)


def test_scripts_of_an_earlier_nqspy_stay_while_an_attempt_may_read_them(about_to_begin):
    bench = about_to_begin
    script = bench.home / "spool" / "scripts" / "its-own"
    assert script.exists()
    shutil.rmtree(bench.home / "spool" / "1.1")
    bench.executor.scan({})
    assert not script.exists()
