"""Two ordinary users on one daemon of root: whatever one tries, the other's requests, scripts and output stay
as they are. Each attack is tried for real; its name stands in the manual's page "security"."""

import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import everybody
from daemon.attacks import ATTACKS
from daemon.live import ROOT, Live, program, until

from nqspy.executors import proc, records

SECRET = "hunter2-of-the-other"
SITE = """\
set machine pes=2
create batch_queue batch priority=10 workdir=submit
create batch_queue other priority=5 workdir=submit
enable queue batch
enable queue other
start queue batch
set default batch_request queue batch
set mail command=false
"""
COMMANDS = ("qsub", "qdel", "qhold", "qrls", "qmove", "qcat", "qstat", "qmgr")

pytestmark = [
    pytest.mark.xdist_group("attacks"),  # one house for all
    pytest.mark.privileged,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: real users are made, and act"),
    pytest.mark.skipif(not shutil.which("useradd"), reason="needs useradd: real users are made"),
]


class Person:
    """A real user; ``sh`` runs a line as that user."""

    def __init__(self, name: str, homes: Path) -> None:
        home = homes / name
        subprocess.run(["useradd", "-m", "-d", str(home), "-s", "/bin/sh", name], check=True)
        self.entry = pwd.getpwnam(name)
        self.name, self.home = name, home
        home.chmod(0o700)
        self.environment: dict[str, str] = {}

    def sh(self, line: str) -> "subprocess.CompletedProcess[str]":
        return everybody.run(
            ["setsid", "sh", "-c", line], self.entry.pw_uid, self.entry.pw_gid, cwd=self.home,
            env=self.environment, stdin=subprocess.DEVNULL, timeout=360, umask=0o022,
        )  # fmt: skip

    def ok(self, line: str) -> str:
        run = self.sh(line)
        assert run.returncode == 0, run
        return run.stdout.strip()

    def leave(self) -> None:
        subprocess.run(["userdel", "-r", self.name], capture_output=True, check=False)


class House:
    """One daemon, its two users, and the requests and files of the first."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.known: dict[str, object] | None = None
        self.live = Live(base / "home", base / "work").site(SITE)
        self.shared = base / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o777)
        self.anne, self.ben = Person(f"nqa{os.getpid()}", base), Person(f"nqb{os.getpid()}", base)

    def open(self) -> None:
        self.live.start()
        python = everybody.interpreter()
        tools = self._tools(python)
        for person in (self.anne, self.ben):
            person.environment = {
                "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(person.home),
                "PYTHONPATH": everybody.packages(python, self.base), "NQSPY_HOME": str(self.live.home),
                "OWN": str(person.home), "PYTHONDONTWRITEBYTECODE": "1", "NQSPY_DIALECT": "nqs",
            }  # fmt: skip
        self._submit()
        self._tell_ben()

    def _tools(self, found: str) -> Path:
        tools = self.base / "bin"
        tools.mkdir()
        programs = {name: program(name) for name in COMMANDS}
        programs["nqsd"] = "from nqspy.daemon.command import main; main()"
        for name, code in programs.items():
            (tools / name).write_text(f"#!/bin/sh\nexec {found} -c '{code}' \"$@\"\n")
            (tools / name).chmod(0o755)
        (tools / "python").symlink_to(found)
        return tools

    def _submit(self) -> None:
        anne, secret = self.anne, f"# {SECRET}\necho {SECRET}; echo {SECRET} >&2\n"
        (anne.home / "precious").write_text(SECRET)
        os.chown(anne.home / "precious", anne.entry.pw_uid, anne.entry.pw_gid)
        anne.environment["SECRET"] = SECRET
        script = f"{secret}while :; do sleep 0.2; done\n"
        self.running = anne.ok(f"qsub -x -s /bin/sh <<'END'\n{script}END")
        self.waiting = anne.ok(f"qsub -q other -x -s /bin/sh --key secret-key <<'END'\n{secret}END")
        self.held = anne.ok(f"qsub -q other -h -s /bin/sh <<'END'\n{secret}END")
        self.ended = anne.ok(
            f"qsub --wait -me -s /bin/sh -o {anne.home}/ended.out <<'END'\n{secret}END"
        ).split()[0]
        missing = f"-o {anne.home}/nowhere/ -e {anne.home}/nowhere/"
        self.kept = anne.ok(f"qsub --wait -s /bin/sh {missing} <<'END'\n{secret}END").split()[0]

        until((self.live.home / "mail").exists, "a mail that cannot leave")

    def _tell_ben(self) -> None:
        seq = self.running.split(".")[0]
        folder = self.live.home / "spool" / f"{seq}.1"
        record = until(lambda: records.read(str(folder), "pid"), "the request runs")
        holder = proc.Identity.parse(str(records.holder(str(folder))))
        self.shepherd, self.job = holder.pid, proc.Identity.parse(record["leader"]).pid
        spawner = int(Path(f"/proc/{self.shepherd}/stat").read_text().rpartition(")")[2].split()[1])
        mine = self.ben.ok("echo id | qsub -q other -s /bin/sh")
        self.ben.environment |= {
            "W": self.waiting, "R": self.running, "H": self.held, "E": self.ended, "K": self.kept,
            "MINE": mine,
            "JOB": str(self.job), "SHEPHERD": str(self.shepherd), "NQSD": str(self.live.pid),
            "SPAWNER": str(spawner), "CAGE": record["cage"][1] or "/sys/fs/cgroup", "NQ": str(self.live.home),
            "HIS": str(self.anne.home), "SHARED": str(self.shared), "ANNE": self.anne.name,
            "BEN": self.ben.name,
        }  # fmt: skip

    def state(self) -> dict[str, object]:
        """Return the state that no attack may change."""
        jobs = {id: self.live.job(id) for id in (self.waiting, self.running, self.held)}
        queued = [each.data for each in self.live.client.requests(queue="other")]
        mine = (self.waiting, self.held, self.ben.environment["MINE"])
        kept = ("owner", "queue", "state", "held", "requested", "name")
        return {
            "requests": {id: {name: job[name] for name in kept} for id, job in jobs.items()},
            "order": [job["id"] for job in queued if job["id"] in mine],
            "settings": self.live.client.qmgr("snap"),
            "job": (proc.Stat(self.job).start, proc.Stat(self.job).state != "T"),
            "limits": Path(f"/proc/{self.job}/limits").read_text(),
            "precious": (self.anne.home / "precious").read_text(),
            "files": sorted(os.listdir(self.anne.home)),
            "pid": self.live.pid,
        }

    def close(self) -> None:
        self.live.close()
        for person in (self.anne, self.ben):
            person.leave()
        shutil.rmtree(self.base, ignore_errors=True)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    base = Path(tempfile.mkdtemp(prefix="nqspy-attacks-", dir="/tmp"))
    base.chmod(0o755)
    house = House(base)
    try:
        house.open()
        yield house
    finally:
        house.close()


def test_the_page_names_every_attack_and_no_other():
    page = (ROOT / "nqspy" / "manual" / "security.md").read_text()
    table = re.search(r"<!-- attacks -->\n(.*?)<!-- end of attacks -->", page, re.DOTALL)
    assert table
    assert re.findall(r"^- (.*)$", table[1], re.MULTILINE) == list(ATTACKS)
    assert len(ATTACKS) >= 40


@pytest.mark.parametrize("line", list(ATTACKS.values()), ids=list(ATTACKS))
def test_an_attack_is_beaten_off(house, line):
    before, house.known = house.known or house.state(), None
    run = house.ben.sh(line)
    message = run.stdout + run.stderr
    assert "WON" not in run.stdout, message
    assert SECRET not in message, message
    assert "Traceback" not in message or "python -" in line, message
    after = house.state()
    assert after == before
    house.known = after


def test_the_same_ways_are_open_to_whom_they_belong(house):
    """Otherwise the attacks would prove nothing: the attacker's tools work, on what is his own."""
    ben = house.ben
    id = ben.ok("echo 'echo mine; sleep 60' | qsub -q other -h -s /bin/sh")
    ben.ok(f"qrls {id} && qhold {id} && qrls {id} && qmove batch {id} && qstat {id}")
    until(lambda: "mine" in ben.sh(f"qcat {id}").stdout, "he reads his own output")
    ben.ok(f"qdel -k {id}")
    assert "WON" in ben.sh("python -c 'print(\"WON\")'").stdout
    ben.ok(f"rm -f {ben.home}/out")


def test_undelivered_output_is_in_its_owners_reach(house):
    seq, spool = house.kept.partition(".")[0], house.live.home / "spool"
    message = house.anne.ok(f"qstat --why {house.kept}")
    assert f"qcat {seq} " in " ".join(message.split())
    assert house.anne.sh(f"cat {spool}/{seq}.1/stdout").returncode != 0, "the spool is root's"
    for word in ("", "-e", "-f", "-e -f"):
        assert house.anne.ok(f"qcat {word} {seq}") == SECRET
    assert house.live.run("qcat", seq).ok().out == f"{SECRET}\n", "operators may, as while it runs"


@pytest.mark.parametrize("trick", ["link", "fifo", "device", "another's file"])
def test_nothing_but_a_file_of_the_owners_is_read_for_him(house, trick):
    anne, secret = house.anne, "a secret of root's"
    id = anne.ok(f"echo 'echo mine' | qsub --wait -s /bin/sh -o {anne.home}/nowhere/").split()[0]
    file, treasure = (
        house.live.home / "spool" / f"{id.partition('.')[0]}.1" / "stdout",
        house.base / "treasure",
    )
    treasure.write_text(secret)
    file.unlink()
    if trick == "link":
        file.symlink_to(treasure)
    elif trick == "fifo":
        os.mkfifo(file)
    elif trick == "device":
        os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    else:
        file.write_text(secret)
        os.chown(file, house.ben.entry.pw_uid, -1)
    run = anne.sh(f"qcat {id}")
    assert (run.returncode, run.stdout) == (35, "")
    assert "Job has finished" in run.stderr
