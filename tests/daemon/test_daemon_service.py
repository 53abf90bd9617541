"""The daemon as a service of systemd: unit file, signs of life; and its log, of which nothing is lost."""

import gzip
import logging
import os
import shutil
import signal
import socket
import subprocess
import threading

import pytest
from daemon.live import command, until

from nqspy.daemon import log
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


@pytest.fixture
def rotating(tmp_path):
    """Return a log of its own whose files hold a kilobyte."""
    handler = log._Rotating(tmp_path / "nqsd.log", maxBytes=1_000, backupCount=50)
    handler.setFormatter(logging.Formatter("%(message)s"))
    yield handler
    handler.close()


def says(handler, numbers):
    """Log a line for each of these, until all is put away; return the lines."""
    lines = [f"{n:0300d}" for n in numbers]
    for line in lines:
        handler.handle(logging.LogRecord("x", logging.INFO, "", 0, line, (), None))
    handler._work.join()
    return lines


def told(folder):
    texts = [path.read_text() for path in folder.iterdir() if not path.name.endswith(".gz")]
    texts += [gzip.decompress(path.read_bytes()).decode() for path in folder.glob("*.gz")]
    return sorted(line for text in texts for line in text.split())


def test_a_log_that_is_put_away_again_and_again_loses_no_line(rotating, tmp_path, monkeypatch):
    slow = log.gzip.open

    def slowly(*more):
        threading.Event().wait(0.02)
        return slow(*more)

    monkeypatch.setattr(log.gzip, "open", slowly)
    lines = says(rotating, range(40))
    assert told(tmp_path) == lines


def test_a_log_that_could_not_be_compressed_is_compressed_with_the_next(rotating, tmp_path):
    (tmp_path / "nqsd.log.1.gz.new").mkdir()  # no file can be written there
    lines = says(rotating, range(4))
    assert (tmp_path / "nqsd.log.1").exists(), "it stays as it is"
    os.rmdir(tmp_path / "nqsd.log.1.gz.new")
    lines += says(rotating, range(4, 9))
    assert told(tmp_path) == lines


def test_the_log_is_put_away_compressed_and_only_the_last_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "SIZE", 2_000)
    monkeypatch.setattr(log, "OLD", 5)
    file = tmp_path / "nqsd.log"
    log.set_up(file)
    [handler] = log.LOG.handlers
    try:
        for number in range(300):
            log.LOG.info("line %d %s", number, "x" * 60)
            until(lambda: not list(tmp_path.glob("*.[0-9]")), "compressed")
    finally:
        handler.close()
        log.LOG.handlers[:] = [logging.NullHandler()]
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["nqsd.log", *(f"nqsd.log.{number}.gz" for number in range(1, log.OLD + 1))]
    assert b"line " in gzip.decompress((tmp_path / "nqsd.log.1.gz").read_bytes())
    assert os.path.getsize(file) <= 2_000
