"""Makes a whole home by the commands of another checkout, after a night of an accelerated clock.

    python tests/data/make_home.py CHECKOUT/.venv/bin tests/data/home-b4ee003.tar.xz

That checkout's own daemon serves from Monday 20:30 to Tuesday 10:30 (x300, three minutes), and its own
commands hand in, hold, suspend, delete. In the end the power fails: daemon, shepherds and jobs are killed.
The archive has ``home``, ``backup.db`` (made by its ``nqspy backup``) and ``said``: what its commands said
last. Needs root; made once, never again.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from datetime import datetime
from pathlib import Path

SPEED = 300
EVENING = datetime.fromisoformat("2026-03-02T20:30:00+01:00")
MORNING = "2026-03-03T10:30:00+01:00 x1"
WORK = Path("/tmp/nqspy-former-work")
"""Where everybody stood: it is gone when the tests look."""
SITE = """\
set machine pes=4 memory=512mw
set server name=ymp
set timezone Europe/Paris
set grace 5
set privacy group
set managers = (daemon:o)
set default cpu_limit=10:00
set usage half_life=24h charge=pe_wall period=12h
set backup every=off
set history keep=180d
set calendar holidays=FR
add calendar extra=(2026-12-24)
set mail "cat >> {work}/mail"
set mail limit=5
set swap_control off high=90 low=60
set global queued_limit=500
create batch_queue express priority=50
set per_request cpu_limit=30 express
set per_request pe_limit=1 express
create batch_queue normal priority=30 user_limit=9
set per_request cpu_limit=(2:00:00,1:50:00) normal
set per_request memory_limit=32mw normal
create batch_queue night priority=10
set per_request memory_limit=100mw night
create probe licence file={work}/licence every=0.3 timeout=5 fails=2 recovers=2 running=suspend
create batch_queue licensed priority=20 run_limit=1 needs=(licence)
create pipe_queue batch priority=20 destination=(express, normal, night)
set default batch_request queue batch
create complex prime-time queues=(express, normal) user_limit=9 run_limit=12
enable queue express, normal, night, licensed, batch
start queue express, normal, licensed, batch
create group ymp share=80
create group t3d share=20
create group d1 parent=ymp share=60
create group d2 parent=ymp share=40 mail=(chief@example.org)
create group d3 parent=t3d share=5 limit=50%
add members=(daemon, games) d2
set exit large_memory hmax=200mw nproc=6
set exit dependency budget=100ms
define shift day when=("30 8 * * mon-fri") spill=suspend
  set sched_factor share 0 cpu 6 memory 1 time 10
  stop queue night
  enable exit machine_gun
  disable exit large_memory
end
define shift evening when=("0 17 * * mon-fri")
  set sched_factor share 0 cpu 6 memory 1 time 10
  stop queue night
  disable exit machine_gun
  disable exit large_memory
end
define shift night when=("0 21 * * mon-fri")
  set sched_factor share 20 cpu 0 memory 0 time 1
  start queue night
  disable exit machine_gun
  enable exit large_memory
end
define shift report when=("0 6 * * mon-fri")
  set sched_factor share 20 cpu 0 memory 0 time 1
  start queue night
  disable exit machine_gun
  enable exit large_memory
end
"""
CLUMSY = '''\
"""Clumsy: stumbles over what is called poison."""

from nqspy.userexit import setting, userexit

step = setting("step", "count", "2", "how far it steps")


@userexit
def jobselect(request):
    if request.name == "poison":
        raise ValueError("stumbled")
'''
WORKS = "i=0; while [ $i -lt {n} ]; do i=$((i+1)); done; sleep {s}\n"
LASTS = '[ "$NQSPY_ATTEMPT" = 1 ] || exit 0; echo begun; sleep 100000\n'
"""Lasts as long as it may; run again it ends at once."""


class Site:
    """A home, and another checkout's commands at it."""

    def __init__(self, folder: Path, commands: Path) -> None:
        self.home, self.commands = folder / "home", commands
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = kept | {"NQSPY_HOME": str(self.home), "PWD": str(WORK)}

    def run(self, name: str, *words: str, stdin: str = "") -> str:
        """What a command said; one that fails ends it all."""
        done = subprocess.run(
            [str(self.commands / name), *words], input=stdin, capture_output=True, text=True, cwd=WORK,
            env=self.environment, check=False,
        )  # fmt: skip
        print(f"{self.now():%a %H:%M} {name} {' '.join(words)}: {done.returncode} {done.stderr.strip()}")
        if done.returncode:
            raise SystemExit(done.stdout)
        return done.stdout

    def qsub(self, name: str, script: str, *options: str) -> str:
        """A request's number."""
        return self.run("qsub", "-s", "/bin/sh", "-N", name, *options, stdin=script).partition(".")[0]

    def qmgr(self, *commands: str) -> None:
        self.run("qmgr", *(word for each in commands for word in ("-c", each)))

    def now(self) -> datetime:
        """The site's clock."""
        path = self.home / "clock.json"
        if not path.exists():
            return EVENING
        clock = json.loads(path.read_text())
        at = clock["origin"] / 1000 + (time.time() - clock["real"]) * clock["speed"]
        return datetime.fromtimestamp(at, EVENING.tzinfo)

    def wait_for(self, text: str) -> None:
        """Until the clock shows ``2T23:00``."""
        until = datetime.fromisoformat(f"2026-03-0{text}:00+01:00")
        while self.now() < until:
            time.sleep(0.1)

    def state(self, seq: str) -> str:
        [found] = json.loads(self.run("qstat", "--json", seq))
        return str(found["state"])

    def runs(self, *requests: str) -> None:
        """Until all of these run."""
        for seq in requests:
            while self.state(seq) != "running":
                time.sleep(0.2)

    def kill(self) -> None:
        """The daemon dies at once."""
        pid = int((self.home / "nqsd.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            time.sleep(0.05)

    def shepherd_dies(self, seq: str) -> None:
        """The process above a request's job dies."""
        mark = f"QSUB_REQID={seq}.ymp".encode()
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0") and words[3] == entry:
                    os.kill(int(words[1]), signal.SIGKILL)
            except OSError:
                pass

    def power_fails(self) -> None:
        """Everything of this home dies, the daemon first: it sees nobody's end."""
        self.kill()
        mark = f"NQSPY_HOME={self.home}".encode()
        for _ in range(20):
            for entry in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                        os.kill(int(entry), signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.05)
        self._sweep()

    def _sweep(self) -> None:
        """Takes the cgroups away, which nobody else would: this home is never served here again."""
        records = "".join(file.read_text() for file in self.home.glob("spool/*.*/pid"))
        found = [Path(path) for path in re.findall(r'"(/sys/fs/cgroup/[^"]*)"', records)]
        names = {path.parent.name for path in found}
        others = [each for name in names for each in Path("/sys/fs/cgroup").glob(f"*/{name}")]
        for folder in (*found, *(path.parent for path in found), *others):
            with contextlib.suppress(OSError):
                folder.rmdir()


def the_list(site: Site, group: str, count: int, *options: str) -> None:
    """A department's ordered list."""
    lines = []
    for n in range(count):
        script = WORK / f"{group}-{n}.sh"
        script.write_text(WORKS.format(n=60_000 * (n % 3), s=8 + n % 5))
        size = "90mw" if n == 1 else "8mw"
        lines.append(f"-q night -N {group}-{n} -A {group} -lT 2:00:00 -lM {size} -s /bin/sh {script.name}")
    (WORK / f"{group}.list").write_text("\n".join(lines) + "\n")
    site.run("qsub", *options, "--list", str(WORK / f"{group}.list"))


def evening(site: Site) -> dict[str, str]:
    """What is handed in before the night."""
    made = {}
    the_list(site, "d1", 12)
    the_list(site, "d2", 8, "-u", "games")
    the_list(site, "d3", 5)
    night = ("-q", "night", "-lM", "4mw")
    made["fails"] = site.qsub("fails", "echo wrong >&2; exit 3\n", *night, "-A", "d1", "-me")
    made["greedy"] = site.qsub("greedy", "while :; do :; done\n", *night, "-A", "d2", "-lT", "200")
    made["first"] = site.qsub("first", "echo hello\n", *night, "-A", "d1", "-o", "/nowhere/out")
    made["then"] = site.qsub("then", "true\n", *night, "-A", "d1", "--after", made["first"])
    made["after failure"] = site.qsub("orphan", "true\n", *night, "-A", "d1", "--after", made["fails"])
    made["long"] = site.qsub("long", LASTS, *night, "-A", "d1", "-l", "walltime=200:00:00")
    made["once"] = site.qsub("once", LASTS, *night, "-A", "d3", "-nr", "-p", "7", "-ln", "5")
    made["poison"] = site.qsub("poison", "true\n", *night, "-A", "d2", "-u", "games")
    made["licensed"] = site.qsub("licensed", "sleep 12\n", "-q", "licensed", "-A", "d2", "-lT", "1:00:00")
    made["unlucky"] = site.qsub("unlucky", "sleep 1\n", "-q", "licensed", "-A", "d1")
    made["deleted"] = site.qsub("deleted", "true\n", *night, "-h")
    return made


def the_night(site: Site, made: dict[str, str]) -> None:
    """Incidents of many kinds, and one request that is lost."""
    site.wait_for("2T22:00")
    site.kill()
    site.run("nqsd", "start")
    site.wait_for("2T23:00")
    (WORK / "licence").unlink()
    site.wait_for("3T00:30")
    (WORK / "licence").write_text("here again\n")
    site.qmgr("switch shift evening until=01:30", "set usage of group d1 +1h", "set group d2 share=45")
    site.wait_for("3T02:00")
    site.runs(made["once"], made["long"])
    site.run("qdel", made["deleted"])
    made["again"] = site.qsub("again", "sleep 25\n", "-q", "night", "-A", "d3", "-lM", "4mw")
    made["lost"] = site.qsub("lost", "sleep 25\n", "-q", "night", "-A", "d3", "-lM", "4mw", "-nr")
    for name in ("again", "lost"):
        if site.state(made[name]) == "queued":
            site.qmgr(f"schedule request {made[name]} now")
        site.runs(made[name])
    site.qmgr(f"rerun request {made['again']}")
    site.shepherd_dies(made["lost"])
    site.wait_for("3T05:00")
    site.qmgr(f"schedule request {made['poison']} first", f"hold request {made['poison']}")
    the_list(site, "d2", 6)
    site.wait_for("3T08:45")


def the_morning(site: Site, made: dict[str, str]) -> None:
    """The day's work, in the states in which the power fails."""
    day = ("-q", "normal", "-lM", "4mw")
    made["runs"] = site.qsub(
        "runs", LASTS, *day, "-A", "d1", "-lT", "1:00:00", "-me", "-M", "anne@example.org"
    )
    made["runs once"] = site.qsub("runs-once", LASTS, *day, "-A", "d2", "-u", "games", "-nr")
    site.runs(made["runs"], made["runs once"])
    made["stopped"] = site.qsub("stopped", LASTS, *day, "-A", "t3d")
    site.runs(made["stopped"])
    site.qmgr(f"suspend request {made['stopped']}")
    made["broken"] = site.qsub("broken", LASTS, "-q", "licensed", "-A", "d2", "-nr", "-lM", "4mw")
    site.runs(made["broken"])
    (WORK / "licence").unlink()
    while site.state(made["broken"]) != "suspended":
        time.sleep(0.2)
    site.qmgr("stop queue normal, express")
    the_list(site, "d3", 3)
    made["dated"] = site.qsub("dated", "true\n", *day, "-a", "2026-03-05 12:00", "-A", "d1")
    made["user hold"] = site.qsub("user-hold", "true\n", "-h", "-A", "d1", "-lT", "100")
    made["operator hold"] = site.qsub("operator-hold", "true\n", *day, "-u", "games", "-A", "d2", "-lP", "2")
    site.run("qhold", "-h", "o", made["operator hold"])
    made["queued"] = site.qsub("queued", "echo $1\n", *day, "-v", "COLOUR=blue", "-p", "-3", "-lP", "2")
    made["needs"] = site.qsub("needs", "true\n", *day, "-l", "needs=licence", "-l", "walltime=30:00")
    made["short"] = site.qsub("short", "true\n", "-lT", "20", "--key", "the key")
    after = ("--after", f"{made['runs']}:any", "--after", f"{made['stopped']}:ok")
    made["after two"] = site.qsub("after-two", "true\n", *day, *after, "-lc", "0", "-la", "blue")
    made["after start"] = site.qsub("after-start", "true\n", *day, "--after", f"{made['queued']}:start")
    made["done"] = site.qsub("done", "true\n", "-q", "licensed", "-A", "d1", "-h")
    site.run("qdel", made["done"])
    site.qmgr(f"modify request {made['queued']} wall_limit=1:00:00 name=renamed")
    site.wait_for("3T10:00")
    site.run("nqsd", "stop")
    site.run("nqsd", "start", "--clock", MORNING)
    made["last"] = site.qsub("last", "true\n", *day, "-A", "d2")


def what_is_said(site: Site, folder: Path, made: dict[str, str]) -> None:
    """What the commands say, each in a file."""
    texts = {
        "made.json": json.dumps(made, indent=1),
        "clock.json": json.dumps({"at": site.now().isoformat()}),
        "waiting.json": site.run("qstat", "--json"),
        "ended.json": site.run("qstat", "--json", "--ended"),
        "long.txt": site.run("qstat", "-f"),
        "snap.qmgr": site.run("qmgr", "-c", "snap"),
        "usage.json": site.run("nqspy", "report", "usage", "--json"),
        "counters.json": site.run("nqspy", "counters", "--json"),
        "exits.txt": site.run("qmgr", "-c", "show exits"),
        "calendar.txt": site.run("qmgr", "-c", "show calendar"),
        "quota.json": site.run("nqspy", "report", "quota", "--shift", "night", "--json"),
        "night.txt": site.run("nqspy", "report", "night", "--date", "2026-03-02"),
        "night-d1.txt": site.run("nqspy", "report", "night", "--date", "2026-03-02", "--group", "d1"),
        "events.jsonl": site.run("nqspy", "events", "--json"),
    }
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)


def left_out(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What is a file of one moment, or large and of no account."""
    name = entry.name.removeprefix("home/")
    if name in ("log", "nqsd.sock", "spool/reserve") or not (
        entry.isfile() or entry.isdir() or entry.islnk()
    ):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main(commands: str, archive: str) -> None:
    """Makes the archive."""
    WORK.mkdir()
    WORK.chmod(0o777)
    (WORK / "licence").write_text("here\n")
    with tempfile.TemporaryDirectory(prefix="nqspy-former-") as name:
        folder = Path(name)
        site = Site(folder, Path(commands).resolve())
        for each in ("queues.d", "exits"):
            (site.home / each).mkdir(parents=True)
        (site.home / "queues.d" / "10-site.qmgr").write_text(SITE.format(work=WORK))
        (site.home / "exits" / "clumsy.py").write_text(CLUMSY)
        for file in (site.commands.parents[1] / "exits").glob("*.py"):
            (site.home / "exits" / file.name).write_bytes(file.read_bytes())
        try:
            site.run("nqsd", "start", "--clock", f"{EVENING.isoformat()} x{SPEED}")
            made = evening(site)
            the_night(site, made)
            the_morning(site, made)
            site.run("nqspy", "backup", str(folder / "backup.db"))
            what_is_said(site, folder / "said", made)
        finally:
            site.power_fails()
        with tarfile.open(archive, "w:xz", preset=9) as tar:
            for each in ("home", "backup.db", "said"):
                tar.add(folder / each, each, filter=left_out)
    shutil.rmtree(WORK)


if __name__ == "__main__":
    main(*sys.argv[1:])
