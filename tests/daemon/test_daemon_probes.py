"""Probes against real commands, sockets, web servers and files, and what becomes of real processes."""

import os
import socket
import socketserver
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from daemon.live import ONE_QUEUE, alive, until
from daemon.test_daemon_idle import switches
from stillness import stands_still

from nqspy.daemon.probes import Probes, attempt
from nqspy.model.health import Probe
from nqspy.model.ids import Instant
from nqspy.system.run_with_timeout import CommandRunner

NIGHT = """
create batch_queue night priority=20 workdir=submit
enable queue night
start queue night
"""
STATES = ("ok", "broken", "ok")
QUICK = "every=100ms timeout=5 fails=2 recovers=2"


@pytest.fixture
def site(make_live):
    """Return a daemon whose queue ``night`` needs nfs, which is well while the file ``nfs`` says ok."""
    live = make_live()
    (live.work / "nfs").write_text("ok\n")
    check = f'create probe nfs command="grep ok {live.work}/nfs" {QUICK} running=suspend\n'
    return live.site(ONE_QUEUE + check + NIGHT + "set queue night needs=(nfs)\n").start()


def shown(live, name):
    [row] = live.shown(f"show probes {name}")
    return row


def is_found(live, state, name="nfs"):
    return until(lambda: (row := shown(live, name))["state"] == state and row, f"{name} should be {state}")


def gated(live, name, queue):
    gate = live.work / f"{name}.gate"
    script = f"echo $$ > {name}.pid; while [ ! -e {gate} ]; do :; sleep 0.02; done; echo on >> {name}.on"
    id = live.submit(script, name=name, queue=queue)
    live.running(id)
    return id, gate, int(live.text(f"{name}.pid"))


# ---------------------------------------------------------------- what becomes of requests
def test_a_command_that_fails_suspends_real_processes_and_lets_them_go_on_again(site):
    is_found(site, "ok")
    id, gate, pid = gated(site, "one", "night")
    (site.work / "nfs").write_text("stale file handle\n")
    site.until(id, lambda job: job["state"] == "suspended", "be suspended")
    until(lambda: stands_still(pid), "the process stops")
    waiting = site.submit("echo hello", queue="night")
    why = site.why(waiting)
    assert (why["reason"]["code"], why["reason"]["who"]) == ("RESOURCE", "probe nfs")
    suspended = site.why(id)["reason"]
    assert (suspended["code"], suspended["who"]) == ("RESOURCE", "probe nfs")
    assert suspended["text"] in " ".join(site.run("qstat", "--why", id).ok().out.split())
    [alarm] = site.client.call("status")["alarms"]
    assert f"ALARM {alarm}" in site.run("nqsd", "status").ok().out
    doctor = site.run("nqspy", "doctor")
    assert (doctor.status, alarm in doctor.out) == (1, True)
    (site.work / "nfs").write_text("ok\n")
    site.until(id, lambda job: job["state"] == "running", "go on")
    until(lambda: not stands_still(pid), "the process goes on")
    gate.touch()
    assert site.ended(id)["exit_status"] == 0
    assert site.ended(waiting)["exit_status"] == 0
    assert [(e["name"], e["state"]) for e in site.events("probe")] == [("nfs", each) for each in STATES]
    assert len([e for e in site.events("alarm") if e["who"] == "probe nfs"]) == 1


@pytest.mark.parametrize("way", ["drain", "kill"])
def test_what_was_known_stands_over_a_restart_until_there_are_new_results(site, way):
    is_found(site, "ok")
    id, gate, pid = gated(site, "three", "night")
    (site.work / "nfs").write_text("gone\n")
    site.until(id, lambda job: job["state"] == "suspended", "be suspended")
    since = is_found(site, "broken")["since"]
    site.set("set probe nfs every=1:00:00")
    if way == "drain":
        site.stop("--drain")  # which does not wait for what is parked
    else:
        site.kill()
    site.start()
    waiting = site.submit("true", queue="night")
    assert site.job(waiting)["state"] == "queued"
    assert (site.job(id)["state"], stands_still(pid)) == ("suspended", True)
    assert (shown(site, "nfs")["state"], shown(site, "nfs")["since"]) == ("broken", since)
    (site.work / "nfs").write_text("ok\n")
    site.set("set probe nfs every=100ms")
    gate.touch()
    assert site.ended(id)["exit_status"] == 0
    assert site.ended(waiting)["exit_status"] == 0


# ---------------------------------------------------------------- tries
@pytest.fixture
def plain(office):
    """Return one daemon for all tries; remove its probes after each."""
    yield office
    for row in office.shown("show probes"):
        office.set(f"delete probe {row['name']}")


def tried(timeout=5_000, **what):
    return attempt(Probe("one", timeout=timeout, **what), CommandRunner())


def test_a_port_is_tried():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert tried(tcp=f"127.0.0.1:{port}") == (True, "it accepts a connection")
    good, text = tried(tcp=f"127.0.0.1:{port}")
    assert (good, "refused" in text) == (False, True)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/drips":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                time.sleep(0.05)
                self.wfile.write(b"X")
        self.send_response(int(self.path[1:4]))
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_web_server_is_well_by_its_status_and_cut_off_at_the_timeout():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        at = f"http://127.0.0.1:{server.server_address[1]}"
        assert tried(http=f"{at}/200?x=1") == (True, "status 200 OK")
        assert tried(http=f"{at}/503")[0] is False
        assert tried(http=f"{at}/302")[0] is True
        assert tried(http=f"{at}/drips", timeout=300) == (False, "no answer within 0.3 s")
        server.shutdown()


def test_a_file_is_tried_and_one_that_hangs_hangs_nobody(tmp_path):
    (tmp_path / "disk").touch()
    assert tried(file=str(tmp_path / "disk"))[0] is True
    good, text = tried(file=str(tmp_path / "gone"))
    assert (good, "No such file" in text) == (False, True)
    os.mkfifo(tmp_path / "pipe")
    assert tried(file=str(tmp_path / "pipe"), timeout=200) == (False, "no answer within 0.2 s")


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_command_that_hangs_ends_with_the_daemon(live, way):
    pids = live.work / "hang.pids"
    live.set(f'create probe nfs command="echo $$ > {pids}; exec sleep 1000" every=1 timeout=1:00:00')
    pid = int(live.text("hang.pids"))
    getattr(live, way)()
    until(lambda: not alive(pid), "it is killed")


def test_a_command_that_hangs_is_killed_with_all_it_started(plain):
    pids = plain.work / "hang.pids"
    script = plain.write("hang.sh", f"trap '' TERM\nsleep 1000 &\necho $$ $! >> {pids}\nwait\n")
    plain.set(f'create probe nfs command="sh {script}" every=100ms timeout=200ms fails=2 recovers=1')
    assert is_found(plain, "broken")["text"] == "no answer within 0.2 s"
    plain.set("set probe nfs command=true")
    is_found(plain, "ok")
    for pid in map(int, pids.read_text().split()):
        until(lambda pid=pid: not alive(pid), "all are killed")


def test_a_command_has_a_clean_environment_and_its_last_line_is_the_text(plain):
    seen = plain.work / "seen"
    script = plain.write(
        "env.sh", f'env > {seen}.new; mv {seen}.new {seen}; cat; pwd; printf "bad \\033 end\\n\\n"; exit 1'
    )
    plain.set(f'create probe nfs command="sh {script}" every=100ms fails=1')
    assert is_found(plain, "broken")["text"] == "bad ? end"
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert {"PATH", "HOME", "LOGNAME", "NQSPY_PROBE"} <= names
    assert not {"NQSPY_HOME", "PYTHONPATH", "NOTIFY_SOCKET"} & names
    text = plain.run("qmgr", "-c", "show probes").ok().out
    assert "nfs [broken] since " in text
    assert "tried last " in text
    assert "bad ? end" in text


def test_a_probe_that_is_deleted_or_changed_is_so_at_once(plain):
    tries = plain.work / "tries"
    plain.set(f'create probe a command="echo a >> {tries}" every=1:00:00')
    until(lambda: tries.exists(), "the first try")
    plain.set(f'set probe a command="echo b >> {tries}" ')
    until(lambda: tries.read_text().split() == ["a", "b"], "the new command is tried at once")
    plain.set("set probe a every=100ms")
    until(lambda: len(tries.read_text().split()) > 5, "it is tried often")
    plain.set("delete probe a")
    assert plain.run("qmgr", "-c", "show probes").ok().out == "no probes\n"
    count = len(tries.read_text().split())
    plain.set(f'create probe b command="sleep 0.5; echo done > {plain.work}/b"')
    plain.text("b")
    assert len(tries.read_text().split()) <= count + 1, "at most the try that was under way"


@pytest.mark.slow
def test_without_probes_there_is_no_thread_and_with_slow_ones_hardly_a_wake_up(live):
    plain = live

    def names():
        return [p.read_text().strip() for p in Path(f"/proc/{plain.pid}/task").glob("*/comm")]

    before = len(names())
    plain.set("create probe a command=true every=1:00:00", "create probe b command=true every=1:00:00")
    is_found(plain, "ok", "a")
    is_found(plain, "ok", "b")
    assert len(names()) == before + 2
    plain.hang_up()
    threading.Event().wait(1.0)
    counted = switches(plain.pid)
    threading.Event().wait(3.0)
    assert sum(switches(plain.pid).values()) - sum(counted.values()) < 5


def test_a_probe_whose_result_cannot_be_told_is_tried_again():
    seen, told = [], threading.Event()

    def put(observation):
        seen.append(observation)
        if len(seen) == 1:
            raise RuntimeError("nobody thought of this")
        told.set()

    probe = Probe("nfs", command="test -e /no/such", every=20, fails=1, recovers=1, timeout=5_000)
    probes = Probes(put, lambda: Instant(1))
    try:
        probes.follow({"nfs": probe}, {})
        until(lambda: probes.last("nfs") is not None and seen, "the first try")
        probes.follow({"nfs": replace(probe, command="true")}, {})
        assert told.wait(20), "its thread has gone on"
    finally:
        probes.close()
