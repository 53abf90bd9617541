"""A night in which everything goes wrong, in real time under an accelerated clock: a probe breaks, an exit
loops, the disk is full for ten minutes, the daemon is killed. In the morning everything that could run has
run, nothing is lost, and the report names each incident with its times."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from daemon.live import Live, until

from nqspy.errors import NqspyError

EVENING = datetime.fromisoformat("2026-03-02T20:50:00+01:00")
SPEED = 600
SITE = """\
set machine pes=2
set timezone Europe/Paris
set server script_limit=64mb user_spool=unlimited
create batch_queue night priority=10 workdir=submit
create batch_queue licensed priority=20 workdir=submit run_limit=1
enable queue night, licensed
start queue licensed
create group d1 share=60
create group d2 share=40
create probe licence file={flag} every=0.2 timeout=5 fails=2 recovers=2 running=suspend
set queue licensed needs=(licence)
define shift evening when=("0 17 * * *")
  stop queue night, licensed
end
define shift night when=("0 21 * * *")
  start queue night, licensed
  set sched_factor share 20 time 1
end
define shift report when=("0 6 * * *")
  start queue night, licensed
end
"""
LOOPING = '''\
"""Looping: asked about a poisonous request it never answers."""

from nqspy.userexit import userexit


@userexit
def jobselect(request):
    while request.name == "poison":
        pass
'''


def moment(text: str) -> datetime:
    """``23:00`` of that night."""
    day = EVENING.date() if text > "12" else EVENING.date() + timedelta(days=1)
    return datetime.fromisoformat(f"{day}T{text}:00+01:00")


class Night:
    """The live site, with words for what happens in the night."""

    def __init__(self, live: Live, disk: Path) -> None:
        self.live, self.disk = live, disk
        self.spans: dict[str, tuple[datetime, datetime]] = {}

    @contextlib.contextmanager
    def act(self, name: str) -> Iterator[None]:
        """Remembers from when to when by the daemon's clock something was done and noticed: on a busy machine
        that takes its time."""
        before = self.now()
        yield
        self.spans[name] = (before, self.now())

    def was_during(self, name: str, incident: dict) -> bool:
        before, after = self.spans[name]
        return before <= datetime.fromisoformat(incident["at"]) <= after

    def now(self) -> datetime:
        return datetime.fromisoformat(self.live.client.call("status")["clock"])

    def wait_for(self, text: str) -> None:
        until(lambda: self.now() >= moment(text), f"the clock reaches {text}", patience=600)

    def fill(self) -> None:
        """Every block of the home's disk is taken."""
        with open(self.disk / "ballast", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass

    def clear(self) -> None:
        (self.disk / "ballast").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "home"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def night(disk: Path, make_live, tmp_path) -> Night:
    live = make_live("home")
    live.accepts_trouble = True  # the exit's own traceback; shepherds that could not write their claim
    flag = tmp_path / "licence"
    flag.write_text("here\n")
    live.site(SITE.format(flag=flag), {"looping": LOOPING})
    live.start("--clock", f"{EVENING.isoformat()} x{SPEED}")
    return Night(live, disk)


def hand_in(live: Live) -> dict[str, list[str]]:
    """The evening's work: lists of two departments, requests that need the licence, a poisonous one."""
    work = "echo run >> ran.$QSUB_REQNAME; sleep {}"
    found: dict[str, list[str]] = {
        name: [
            live.submit(work.format(0.9), name=f"{name}-{n}", queue="night", account=name)
            for n in range(count)
        ]
        for name, count in (("d1", 24), ("d2", 16))
    }
    found["licensed"] = [
        live.submit(work.format(1.5), name=f"licensed-{n}", queue="licensed", account="d1") for n in range(16)
    ]
    found["poison"] = [live.submit(work.format(0.1), name="poison", queue="night", account="d2")]
    return found


def probes(live: Live) -> list[str]:
    """What the probe found, one after the other."""
    return [each["state"] for each in live.events("probe")]


def try_to_submit(live: Live) -> str:
    """What somebody is told who submits now a script that the database has no room for."""
    script = f"true\n: {os.urandom(8_000_000).hex()}\n"
    try:
        return live.client.submit(script, shell="/bin/sh", workdir=live.work, queue="night", key="full").id
    except NqspyError as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_night_of_incidents_loses_nothing_and_tells_all_in_the_morning(
    night: Night, tmp_path: Path
) -> None:
    live = night.live
    requests = hand_in(live)
    everything = [id for ids in requests.values() for id in ids]

    night.wait_for("23:00")
    with night.act("broken"):
        (tmp_path / "licence").unlink()
        until(lambda: probes(live) == ["ok", "broken"], "the probe notices")
    until(
        lambda: live.run("qstat", "--why", requests["licensed"][-1]).out.find("licence") >= 0, "why names it"
    )
    stopped = [each["request"] for each in live.events("suspended")]
    night.wait_for("01:00")
    with night.act("well"):
        (tmp_path / "licence").write_text("here again\n")
        until(lambda: probes(live) == ["ok", "broken", "ok"], "the probe notices that it is well")
    [broken, well] = [each["at"] for each in live.events("probe")][1:]
    started = [e for e in live.events("starting") if broken < e["at"] < well]
    assert started, "what needs no licence goes on"
    assert not {e["request"] for e in started} & set(requests["licensed"])

    night.wait_for("02:00")
    with night.act("full"):
        night.fill()
        told = try_to_submit(live)
        full = night.now()
        until(lambda: night.now() >= full + timedelta(minutes=10), "ten minutes pass")
        night.clear()
    assert "nothing was changed" in told, told
    later = live.submit("echo run >> ran.$QSUB_REQNAME", name="later", queue="night", account="d2")

    night.wait_for("03:00")
    with night.act("killed"):
        live.kill()
        live.start()
    night.wait_for("06:05")

    for id in [*everything, later]:
        if id not in requests["poison"]:
            ended = live.ended(id)
            assert (ended["exit_status"], ended["end_reason"]) == (0, "exit"), ended
            assert (live.work / f"ran.{ended['name']}").read_text() == "run\n", "it ran once"
    [poison] = live.client.requests()
    assert poison.id == requests["poison"][0]
    assert poison.data["reason"]["code"] == "EXIT"

    page = live.home / "reports" / EVENING.date().isoformat()
    until(lambda: (page / "night.json").exists(), "the report was made by itself")
    report = json.loads((page / "night.json").read_text())
    tells(night, report, stopped)
    begun = {
        e["request"] for e in live.events("starting") if datetime.fromisoformat(e["at"]) < moment("06:00")
    }
    assert {each["id"] for each in report["waiting"]} == {
        id for id in [*everything, later] if id not in begun
    }
    assert live.run("nqspy", "report", "night", "--json").ok().data["incidents"] == report["incidents"]


def tells(night: Night, report: dict, stopped: list[str]) -> None:
    """The report names each incident with its times."""
    text = json.dumps(report)
    [broken, well] = [each for each in report["incidents"] if each["kind"] == "probe"]
    assert [broken["state"], well["state"]] == ["broken", "ok"]
    assert night.was_during("broken", broken)
    assert night.was_during("well", well)
    assert stopped, "a licensed request ran at 23:00"
    for id in stopped:
        assert id in text
    assert any("looping" in json.dumps(each) for each in report["incidents"]), "the exit"
    [restart] = [each for each in report["incidents"] if each["kind"] == "daemon_started"]
    assert not restart["clean"]
    assert night.was_during("killed", restart)
    full = [
        e for e in report["incidents"] if "nothing was changed" in json.dumps(e) or "disk" in json.dumps(e)
    ]
    assert any(night.was_during("full", each) for each in full), "the disk"
    assert not report["failed"]
