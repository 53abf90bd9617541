"""Tools for an installation: ``nqspy exits check FILE``, ``doctor``, ``backup`` and ``restore``."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from nqspy.daemon import memory
from nqspy.daemon.clock import clock_of
from nqspy.daemon.disks import full_disks, name_of
from nqspy.daemon.home import Home, file_system, home_of, lock, not_empty, running_pid, unlock
from nqspy.executors import pageout
from nqspy.executors.cgroups import Cgroups
from nqspy.model.errors import NqspyError
from nqspy.model.ids import DAY, HOUR
from nqspy.qmgr.parser import parse_text
from nqspy.rpc.client import Client
from nqspy.store import copies, open_mark, places, restoring
from nqspy.store.errors import StoreError, plain
from nqspy.store.reader import Reader
from nqspy.system import queue_files

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

HomeOption = Annotated[str | None, typer.Option("--home", help="the home")]


class DoctorFinding(NamedTuple):
    """A finding of the doctor about a part (``what``); ``state`` is ok, note or bad."""

    what: str
    state: str
    text: str


@app.command("exits-check")
def exits_check(file: Path, home: HomeOption = None) -> None:
    """Verify a candidate exit file: exit status 0 when it could be loaded."""
    problems = _problems_of(file)
    for problem in problems:
        print(f"nqspy: {problem}", file=sys.stderr)
    if problems:
        raise SystemExit(1)
    print(f"{file}: ok")


def _problems_of(file: Path) -> list[str]:
    from nqspy.decider import file_check  # heavy: the engine and the decider; many homes have no exit

    return file_check.problems_of(file)


@app.command()
def backup(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]")] = None, home: HomeOption = None
) -> None:
    """Make a backup now: to FILE, or one more in the home's folder of backups."""
    where = home_of(home)
    if not where.database.exists():
        raise StoreError(f"{where.database} does not exist: there is nothing to back up")
    if not os.access(where.database, os.R_OK):
        raise StoreError(f"you may not read {where.database}: only its owner and root make backups")
    with Reader(where.database) as reader:
        size = 0 if file is None else reader.backup(file)
        keep = reader.settings("backup").keep
    if file is None:
        try:
            with places.as_owner(where.path):
                file = copies.back_up(where.database, clock_of(where.path, None).now(), keep)
                size = file.stat().st_size
        except copies.SPOILT as error:
            raise StoreError(f"no backup could be made: {plain(error)}") from error
    print(f"{file} made and checked, {size // 1024} KiB")


@app.command()
def restore(file: Annotated[Path, typer.Argument(metavar="FILE")], home: HomeOption = None) -> None:
    """Put a backup in the database's place; the daemon must be stopped. The replaced database stays."""
    where = home_of(home)
    try:
        file = file.absolute()
    except FileNotFoundError:
        raise NqspyError(f"{file}: the current folder is gone; give the whole path") from None
    if not where.path.is_dir():
        raise StoreError(f"home {where.path} does not exist; make it with: nqsd init --home {where.path}")
    if not where.is_new() and not where.is_one():
        raise not_empty(where)
    fd = lock(where)
    try:
        now = clock_of(where.path, None).now()
        date = copies.name_of(now).removeprefix("nqs-").removesuffix(".db")
        done = restoring.restore(where.database, file, date)
    finally:
        unlock(fd)
    former = f"the former database is {done.replaced}" if done.replaced else "there was no database before"
    last = f"number {done.n} ({datetime.fromtimestamp(done.at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC)"
    if done.lost is None:
        lost = f"its last event is {last}, later events are missing"
    elif done.lost > 0:
        lost = f"events after {last} that are lost: {done.lost}"
    else:
        lost = f"nothing is lost: its last event, {last}, was the last one"
    print(f"{file} was restored as {where.database.name}; {former}; {lost}")


@app.command()
def doctor(home: HomeOption = None, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Check the installation; exit status 1 if something is wrong."""
    findings = list(examine(home_of(home)))
    if as_json:
        print(json.dumps([finding._asdict() for finding in findings]))
    else:
        print("".join(f"{finding.state:<5}{finding.what}: {finding.text}\n" for finding in findings), end="")
    if any(finding.state == "bad" for finding in findings):
        raise SystemExit(1)


def examine(home: Home) -> Iterator[DoctorFinding]:
    """Run all checks of the doctor in order; yield the findings. Changes nothing."""
    if why := _no_home(home):
        yield DoctorFinding("home", "bad", why)
        return
    mine = may_read(home)
    for what, check in _CHECKS.items() if mine else _FOR_ALL.items():
        try:
            yield from (DoctorFinding(what, state, text) for state, text in check(home))
        except (NqspyError, OSError, ValueError) as error:
            yield DoctorFinding(what, "bad", str(error))
    if not mine:
        others = ", ".join(what for what in _CHECKS if what not in _FOR_ALL)
        owner = name_of(home.path.stat().st_uid, "user")
        yield DoctorFinding("others", "note", f"only {owner} (owner of the home) and root can check {others}")


def _no_home(home: Home) -> str:
    """Return why a folder is no home; empty if it is one."""
    first = f"make it and start nqsd with: nqsd start --home {home.path}"
    try:
        os.stat(home.path / ".")
    except PermissionError as error:
        return f"{home.path} cannot be read: {error.strerror}"
    except OSError:
        return f"{home.path} does not exist; {first}"
    if home.is_new():
        return f"{home.path} is empty; {first}"
    if not home.is_one():
        return f"{home.path} is not a home of nqspy: it has files, but no queues.d, exits or database"
    return ""


def may_read(home: Home) -> bool:
    """True if this process can read all that the doctor checks: it runs as root or as the home's owner."""
    return os.geteuid() in (0, home.path.stat().st_uid)


_Results = Iterator[tuple[str, str]]


def _home(home: Home) -> _Results:
    kind = file_system(home.path)
    yield "ok", f"{home.path} on {kind}"
    full, free = list(full_disks(home)), shutil.disk_usage(home.path).free
    yield from (("bad", text) for text in full)
    if not full:
        yield "ok", f"{free // 1_000_000} MB free"
    if not may_read(home):
        return
    for path, most in ((home.spool, 0o700), (home.database, 0o600)):
        if path.exists():
            mode = path.stat().st_mode & 0o777
            more = f", others can read it: chmod {most:o} {path}" if mode & ~most else ""
            yield "bad" if more else "ok", f"{path.name} has mode {mode:o}{more}"


def _daemon(home: Home) -> _Results:
    pid = running_pid(home)
    if pid is None:
        yield "note", f"nqsd is not running; start it with: nqsd start --home {home.path}"
        return
    with Client(home.path, timeout=10) as client:
        status = client.call("status")
    yield "ok", f"process {pid} answers; requests: {status['requests']}, PEs: {status['pes']}"
    if "decider" in status:
        yield "ok", status["decider"]
    for alarm in status["alarms"]:
        yield "bad", alarm


def _clock(home: Home) -> _Results:
    clock = clock_of(home.path, None)
    yield ("note", f"accelerated: {clock.text}") if clock.accelerated else ("ok", "wall clock")


def _cgroups(home: Home) -> _Results:
    groups = Cgroups(f"doctor-{os.getpid()}")
    found = groups.controls.found
    groups.remove()
    held = {"none": "process tree (nqsd cannot write cgroups)"}.get(groups.kind, groups.kind)
    yield "ok", f"all processes of a job: found by {held}"
    counts = groups.kind == "cgroup2" or bool(groups.counter)
    how = f"counted by {groups.kind}" if counts else "measured in /proc"
    yield "ok", f"CPU time: {how}, limits also by rlimit"
    for controller, (what, otherwise) in _ENFORCED.items():
        place = found.get(controller)
        yield "ok", f"{what}: " + (f"enforced by cgroup version {place.version}" if place else otherwise)
    yield "ok", f"usable CPUs: {len(os.sched_getaffinity(0))}"


_ENFORCED = {
    "memory": ("memory of a job", "measured in /proc every 0.05 to 1 s"),
    "cpuset": ("PEs of a job", "set by CPU affinity, which a job can change"),
    "pids": ("processes of a job", "counted in /proc every 0.05 to 1 s"),
    "devices": ("devices of consumables", "set by environment variables, which a job can change"),
}


def _memory(home: Home) -> _Results:
    size = memory.read().swap
    if not size:
        yield "note", "no swap: a job that is stopped because memory is scarce keeps its memory"
    elif not pageout.may():
        yield "note", "a job that is stopped keeps its memory, because paging out needs CAP_SYS_NICE"
    else:
        yield "ok", f"a job that is stopped because memory is scarce is paged out ({size >> 20} MB of swap)"


def _exits(home: Home) -> _Results:
    from nqspy.userexit.loader import read_folder

    sources, wrong = read_folder(home.path / "exits")
    yield from (("bad", problem) for problem in wrong)
    for source in sources:
        problems = _problems_of(source.path)
        yield ("bad", problems[0]) if problems else ("ok", source.path.name)


def _queues(home: Home) -> _Results:
    folder, owner = home.path / "queues.d", home.owner()
    queue_files.check_folder(folder, owner)
    for file in queue_files.files_of(folder):
        try:
            parse_text(queue_files.read(file, owner)[2], file.name)
            yield "ok", file.name
        except NqspyError as error:
            yield "bad", str(error)


def _database(home: Home) -> _Results:
    if not home.database.exists():
        yield "note", "no database yet; the first start of nqsd makes it"
        return
    size = _size(home.database.stat().st_size)
    with Reader(home.database) as reader:
        problems = reader.problems()
    yield ("bad", problems[0]) if problems else ("ok", f"{home.database.name} passes integrity_check, {size}")
    if not problems and (count := open_mark.missing(home.database)):
        yield "bad", f"{open_mark.loss_text(count)}; nqsd starts without them, or restore a copy of the log"


_OLD_BACKUP = 2
"""The last backup is reported as bad if it is older than so many intervals between backups."""


def _backups(home: Home) -> _Results:
    if not home.database.exists():
        return
    with Reader(home.database) as reader:
        every = reader.settings("backup").every
    found = copies.by_age(home.database)
    if not found:
        yield "note", f"no backup in {places.backups(home.database)}"
        return
    last = found[-1]
    wrong = copies.problem(last.path)
    age = clock_of(home.path, None).now() - last.at
    state = "bad" if wrong or (every is not None and age > _OLD_BACKUP * every) else "ok"
    old = f"{_age(age)} old"
    if age < 0:
        state, old = "bad", f"{_age(-age)} in the future: the clock was wrong then or is wrong now"
    checked = wrong or "passes integrity_check"
    yield state, f"{last.path.name}, {old}, {checked}; {len(found)} in {places.backups(home.database)}"


def _history(home: Home) -> _Results:
    if not home.database.exists():
        return
    with Reader(home.database) as reader:
        files, wrong = reader.archives(), reader.damaged_archives()
    for text in wrong:
        yield "bad", text
    if not wrong:
        folder = places.history(home.database)
        size = sum((folder / one.name).stat().st_size for one in files)
        yield "ok", f"{len(files)} files, {_size(size)}" if files else "all in the database"


def _size(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


def _age(ms: int) -> str:
    return f"{ms / DAY:.1f} days" if ms >= 2 * DAY else f"{max(0, ms) / HOUR:.1f} hours"


_CHECKS: dict[str, Callable[[Home], _Results]] = {
    "home": _home,
    "daemon": _daemon,
    "clock": _clock,
    "cgroups": _cgroups,
    "memory": _memory,
    "exits": _exits,
    "queues.d": _queues,
    "database": _database,
    "backups": _backups,
    "history": _history,
}

_FOR_ALL = {what: _CHECKS[what] for what in ("home", "daemon")}
"""Checks for users who may not read the home: the daemon reports its alarms to all."""

if __name__ == "__main__":
    try:
        app(prog_name="nqspy")
    except NqspyError as error:
        print(f"nqspy: {error}", file=sys.stderr)
        raise SystemExit(1) from None
