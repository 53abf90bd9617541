"""The daemon as a service of systemd: unit file, signs of life, one line a message in its log."""

import os
import shutil
import signal
import socket
import subprocess

import pytest
from daemon.live import command

from nqspy.daemon.systemd import Watchdog, unit
from nqspy.model.errors import BadValue


class Manager:
    """What systemd does for a service of Type=notify: a socket, and the service's process."""

    def __init__(self, live, **environment):
        self.path = live.home.parent / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.settimeout(180)
        told = {"NOTIFY_SOCKET": str(self.path), **environment}
        self.process = subprocess.Popen(
            [*command("nqsd"), "run"], env=live.environment | told, stderr=subprocess.PIPE, text=True
        )

    def hears(self, word):
        while (state := self.socket.recv(100).decode()) != word:
            assert state in ("READY=1", "WATCHDOG=1"), state

    def silence(self):
        """Read the messages so far, then wait a second for more."""
        self.socket.settimeout(1)
        while True:
            try:
                self.socket.recv(100)
            except TimeoutError:
                return True

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.hears("STOPPING=1")
        _, log = self.process.communicate(timeout=180)
        assert self.process.returncode == 0, log
        self.socket.close()
        return log.splitlines()


def test_systemd_is_told_when_it_serves_that_it_lives_and_when_it_stops(make_live):
    live = make_live().site()
    manager = Manager(live, WATCHDOG_USEC="900000")
    manager.hears("READY=1")
    assert live.run("nqsd", "status").ok()
    for _ in range(3):
        manager.hears("WATCHDOG=1")
    manager.process.send_signal(signal.SIGSTOP)
    assert manager.silence(), "a daemon that hangs gives no sign of life"
    manager.process.send_signal(signal.SIGCONT)
    manager.socket.settimeout(180)
    manager.hears("WATCHDOG=1")
    manager.stop()


def test_signs_of_life_are_for_the_process_that_is_watched():
    assert Watchdog({"WATCHDOG_USEC": "3000000"}).period == 1.0
    assert Watchdog({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}).period == 1.0
    assert Watchdog({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}).period is None
    for nothing in ({}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "soon"}):
        watchdog = Watchdog(nothing)
        assert (watchdog.period, watchdog.timeout()) == (None, None)


@pytest.mark.parametrize("journal", [False, True], ids=["stderr", "journal"])
def test_in_the_foreground_the_log_has_one_line_a_message(make_live, journal):
    live = make_live().site(exits={"broken": "raise RuntimeError('two\\nlines')\n"})
    live.accepts_trouble = True
    manager = Manager(live, **({"JOURNAL_STREAM": "8:1234"} if journal else {}))
    manager.hears("READY=1")
    lines = manager.stop()
    assert any("nqsd serves" in line for line in lines)
    assert lines[-1].endswith('text="stopped"')
    assert not live.log
    for line in lines:
        level = line.partition(" ")[0] if journal else line.split()[1]
        assert level.startswith(("<6>level=", "<3>level=") if journal else "level="), line
        assert ' text="' in line, line


def test_the_log_tells_more_or_less_while_it_runs(live):
    live.set("set log_level error")
    live.restart()
    live.set("set log_level info")
    live.stop()
    assert live.log.count("nqsd serves") == 2, "what is told while it comes up is told at level info"
    assert live.log.count("stopping (leave)") == 1, "while only errors were told, it was not"


def test_the_unit_file_names_command_and_home_and_leaves_requests_alone(make_live):
    live = make_live()
    text = live.run("nqsd", "unit").ok().out
    assert f"run --home {live.home}\n" in text
    for line in ("Type=notify", "KillMode=process", "Delegate=yes", "WatchdogSec=120"):
        assert line in text.splitlines()
    assert "CapabilityBoundingSet" in text
    mine = live.run("nqsd", "unit", "--user").ok().out
    assert "CapabilityBoundingSet" not in mine
    assert "WantedBy=default.target" in mine
    live.run("nqsd", "unit", "--home", "/tmp/a b").refused("cannot stand in a unit file")


@pytest.mark.parametrize("folder", ["my tools", "50%", "it's"])
def test_a_program_whose_path_no_unit_file_can_hold_is_told(monkeypatch, folder):
    monkeypatch.setattr("sys.executable", f"/usr/lib/{folder}/bin/python")
    with pytest.raises(BadValue, match=r"bin/nqsd.* cannot stand in a unit file"):
        unit("/var/spool/nqspy")


def test_systemd_takes_the_unit_and_finds_it_less_exposed_than_a_bare_one(tmp_path):
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed here")
    ours, bare = tmp_path / "nqsd.service", tmp_path / "bare.service"
    ours.write_text(unit("/var/spool/nqspy").replace("ExecStart=", "ExecStart=-"))
    bare.write_text("[Service]\nExecStart=/bin/true\n")
    scores = [exposure(tool, file) for file in (ours, bare)]
    assert scores[0] < scores[1] - 1, scores


def exposure(tool, file):
    """Return systemd's exposure level of a unit: 0 hardened, 10 bare."""
    run = subprocess.run(
        [tool, "security", "--offline=true", "--no-pager", str(file)], capture_output=True, text=True
    )
    if "exposure level" not in run.stdout:
        pytest.skip(f"systemd-analyze cannot judge a file here: {run.stderr.strip()[:200]}")
    assert "Unknown key" not in run.stderr, run.stderr
    return float(run.stdout.split("exposure level for")[1].split(":")[1].split()[0])
