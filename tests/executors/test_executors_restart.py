"""The daemon dies, its requests do not: adoption, exact ends, nothing twice, nothing lost unsaid."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from executors.conftest import WAIT, begin_daemon

from nqspy.executors import proc, records, scan
from nqspy.model.actions import Kill
from nqspy.model.observations import ObservedEnded, ObservedExiting, ObservedNotStarted, ObservedVoid
from nqspy.model.observations import ObservedRunning as Running
from nqspy.model.requests import Output

THEN = """
for script in sys.argv[3:]:
    bench.running(script)
print("running", flush=True)
bench.observations.get()
"""


def start_and_kill(home: Path, *scripts: str) -> None:
    """Start requests from a process that is then killed -9."""
    with begin_daemon(home, *scripts, then=THEN) as daemon:
        try:
            assert daemon.stdout.readline() == "running\n"
        finally:
            daemon.kill()


def test_running_requests_are_adopted_and_end_exactly(make_bench, tmp_path):
    start_and_kill(tmp_path, f"{WAIT}exit 41\n", f"{WAIT}kill -TERM $$\n", "exec sleep 60\n")
    bench = make_bench()
    assert [type(s) for s in bench.scan(3)] == [Running] * 3
    bench.do(Kill(3, 1, "deleted", 5000))
    bench.go()
    ends = {}
    while len(ends) < 3:
        observation = bench.observations.get(timeout=120)
        assert isinstance(observation, ObservedEnded)
        ending = observation.ending
        ends[observation.seq] = (ending.reason, ending.status, ending.signal)
    term = signal.SIGTERM
    assert ends == {1: ("exit", 41, None), 2: ("signal", None, term), 3: ("deleted", None, term)}


def test_an_end_while_no_daemon_was_there_is_found(make_bench, tmp_path):
    start_and_kill(tmp_path, f"{WAIT}echo late; exit 5\n")
    shepherd = proc.Identity.parse(records.holder(str(tmp_path / "spool" / "1.1"))).pid
    (tmp_path / "work" / "go").touch()
    proc.await_ends([shepherd], 20)
    bench = make_bench()
    (ended,) = bench.scan()
    assert isinstance(ended, ObservedEnded)
    assert (ended.ending.status, ended.ending.reason) == (5, "exit")
    assert bench.text("job.o1") == "late\n"


def test_what_was_never_begun_is_void_and_never_begins(bench):
    assert bench.scan() == [ObservedVoid(1, 1)]
    request = bench.start("touch ran\n")
    assert request.seq == 1
    bench.expect(ObservedVoid, request)
    assert bench.run("exit 0\n").status == 0
    assert not (bench.work / "ran").exists()


def test_a_delivery_that_was_cut_off_is_finished(bench):
    request = bench.start("echo precious\nexit 3\n", output=Output(stdout="/nowhere/out"))
    bench.ending(request)
    folder = bench.folder(request)
    # As a shepherd leaves it that is killed between record and delivery.
    (folder / "done").unlink()
    target = bench.work / "rescued"
    text = (folder / "claim").read_text().replace("/nowhere/out", str(target))
    (folder / "claim").write_text("\n".join(line for line in text.split("\n") if '{"done"' not in line))
    (found,) = bench.scan()
    assert isinstance(found, ObservedExiting)
    ending = bench.ending(request)
    assert (ending.status, ending.stdout) == (3, str(target))
    assert target.read_text() == "precious\n"


def test_a_spawner_that_is_killed_is_replaced_and_nothing_is_lost(bench):
    request = bench.running(f"{WAIT}exit 8\n")
    os.kill(bench.spawner, signal.SIGKILL)
    others = [bench.start("exit 4\n") for _ in range(3)]
    assert [bench.ending(other).status for other in others] == [4, 4, 4]
    bench.go()
    assert bench.ending(request).status == 8


def test_orders_in_the_socket_of_a_dead_spawner_are_given_again(bench):
    os.kill(bench.spawner, signal.SIGSTOP)
    requests = [bench.start(f"echo {n} >> log\n") for n in range(3)]
    os.kill(bench.spawner, signal.SIGKILL)
    assert [bench.ending(request).status for request in requests] == [0, 0, 0]
    assert sorted(bench.text("log").split()) == ["0", "1", "2"]


def test_a_second_daemon_takes_nothing_from_the_first(make_bench, monkeypatch):
    monkeypatch.setattr("nqspy.executors.link._LOCK_TRIES", 2)
    first = make_bench()
    second = first.__class__(first.home)
    with pytest.raises(OSError, match=r"starter\.lock"):
        second.executor.start()
    second.executor.close()
    assert first.run("exit 6\n").status == 6


def test_what_the_daemon_had_no_time_to_forget_is_swept(bench):
    kept = bench.start("echo x\n", output=Output(stdout="/nowhere/out"))
    bench.ending(kept)
    void = bench.start("exit 0\n", workdir="/nowhere")
    bench.expect(ObservedNotStarted, void)
    assert isinstance(bench.scan(first=void.seq)[0], ObservedNotStarted)
    bench.executor.scan({})
    assert not bench.folder(void).exists()
    assert (bench.folder(kept) / "stdout").read_text() == "x\n"


def test_a_claim_is_given_once_and_half_a_record_is_no_record(tmp_path):
    folder = str(tmp_path)
    assert records.claim(folder, "first")
    assert not records.claim(folder, "second")
    assert not scan.claim_void(folder)
    with (tmp_path / "claim").open("a") as file:
        file.write('\n{"exit": {"ending"')
    assert records.read(folder, "exit") is None
    records.add(folder, "exit", {"ending": 1}, durable=True)
    assert records.read(folder, "exit") == {"ending": 1}
    assert records.holder(folder) == "first"


def test_nothing_polls_while_idle(bench):
    """Neither the watcher nor the spawner wakes up if nothing happens: they wait without a timeout."""
    bench.run("exit 0\n")
    spawner = bench.spawner
    watchers = [thread for thread in threading.enumerate() if thread.name == "executor"]

    def asleep(syscall: Path) -> list[str] | None:
        words = syscall.read_text().split()
        return None if words[0] == "running" else words

    for pid, task in [(spawner, spawner), *((os.getpid(), t.native_id) for t in watchers)]:
        syscall = Path(f"/proc/{pid}/task/{task}/syscall")
        number, *arguments = bench.until(lambda s=syscall: asleep(s), "asleep")
        if task != spawner:
            assert int(arguments[3], 16) & 0xFFFFFFFF == 0xFFFFFFFF, f"epoll_wait with a timeout: {number}"


def test_an_adopted_shepherd_that_does_not_listen_yet_is_told_later_and_keeps_its_script(bench):
    """An attempt 1.1 that was claimed by a living shepherd, found by a scan."""
    spool = bench.home / "spool"
    (spool / "1.1").mkdir()
    (spool / "scripts").mkdir()
    script = spool / "scripts" / "its-own"
    script.write_text("exit 0\n")
    with subprocess.Popen(["sleep", "60"]) as shepherd:
        records.claim(str(spool / "1.1"), bench.identifier.of(shepherd.pid).text(), records.PROTOCOL)
        assert [type(s) for s in bench.scan()] == [Running]
        bench.do(Kill(1, 1, "deleted", 1000))
        fd = os.open(spool, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control:
            control.settimeout(120)
            control.bind(f"/proc/self/fd/{fd}/1.1/control")
            report = json.dumps({"k": "run", "s": 1, "a": 1, "u": [0, 0, 0]}).encode()
            control.sendto(report, f"/proc/self/fd/{fd}/reports.sock")
            assert json.loads(control.recv(4096))["reason"] == "deleted"
        os.close(fd)
        assert script.exists()
        shutil.rmtree(spool / "1.1")
        bench.executor.scan({})
        assert not script.exists()
        shepherd.kill()
