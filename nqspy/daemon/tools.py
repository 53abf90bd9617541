"""Tools that look at an installation itself: ``nqspy exits check FILE`` and ``nqspy doctor``."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from nqspy.daemon import memory
from nqspy.daemon.clock import clock_of
from nqspy.daemon.home import Home, file_system, running_pid
from nqspy.executors import pageout
from nqspy.executors.cage import Seat
from nqspy.model.errors import NqspyError
from nqspy.qmgr.parser import ParseError, parse_text
from nqspy.rpc.client import Client
from nqspy.rpc.home import resolve_home
from nqspy.store.reader import Reader
from nqspy.userexit.loader import check_file

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

HomeOption = Annotated[str | None, typer.Option("--home", help="the home")]


class Finding(NamedTuple):
    """One thing the doctor looked at: ``state`` is ok, note or bad."""

    what: str
    state: str
    text: str


@app.command("exits-check")
def exits_check(file: Path, home: HomeOption = None) -> None:
    """Verify a candidate exit file: exit status 0 when it could be loaded."""
    problems = check_file(file)
    for problem in problems:
        print(f"nqspy: {problem}", file=sys.stderr)
    if problems:
        raise SystemExit(1)
    print(f"{file}: ok")


@app.command()
def doctor(home: HomeOption = None, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Look the installation over; exit status 1 when something is bad."""
    findings = list(examine(Home(Path(resolve_home(home)))))
    if as_json:
        print(json.dumps([each._asdict() for each in findings]))
    else:
        print("".join(f"{each.state:<5}{each.what}: {each.text}\n" for each in findings), end="")
    if any(each.state == "bad" for each in findings):
        raise SystemExit(1)


def examine(home: Home) -> Iterator[Finding]:
    """Everything the doctor looks at, in order; nothing is changed."""
    if not home.path.is_dir():
        yield Finding(
            "home", "bad", f"{home.path} does not exist; make it with: nqsd init --home {home.path}"
        )
        return
    for what, look in _LOOKS.items():
        try:
            yield from (Finding(what, state, text) for state, text in look(home))
        except (NqspyError, OSError, ValueError) as error:
            yield Finding(what, "bad", str(error))


_Said = Iterator[tuple[str, str]]


def _home(home: Home) -> _Said:
    kind = file_system(home.path)
    yield "ok", f"{home.path} on {kind}"
    free = shutil.disk_usage(home.path).free
    yield ("ok" if free > 100_000_000 else "bad"), f"{free // 1_000_000} MB free"
    for path, most in ((home.spool, 0o700), (home.database, 0o600)):
        mode = path.stat().st_mode & 0o777 if path.exists() else most
        yield ("ok" if not mode & ~most else "bad"), f"{path.name} has mode {mode:o}"


def _daemon(home: Home) -> _Said:
    pid = running_pid(home)
    if pid is None:
        yield "note", "no nqsd runs"
        return
    with Client(home.path, timeout=10) as client:
        status = client.call("status")
    yield "ok", f"process {pid} answers: {status['requests']} requests, {status['pes']} PEs"
    for alarm in status["alarms"]:
        yield "bad", alarm


def _clock(home: Home) -> _Said:
    clock = clock_of(home.path, None)
    yield ("note", f"accelerated: {clock.text}") if clock.accelerated else ("ok", "the wall clock")


def _cgroups(home: Home) -> _Said:
    seat = Seat(f"doctor-{os.getpid()}")
    seat.leave()
    held = {"none": "their process tree (no cgroup may be written)"}.get(seat.kind, seat.kind)
    yield "ok", f"requests are held together by {held}"
    yield "ok", f"{len(os.sched_getaffinity(0))} CPUs may be used"


def _memory(home: Home) -> _Said:
    size = memory.look().swap
    if not size:
        yield "note", "no swap: requests that give way to memory pressure are stopped and keep their pages"
    elif not pageout.may():
        yield "note", "requests that give way are stopped and keep their pages: paging out needs CAP_SYS_NICE"
    else:
        yield "ok", f"requests that give way to memory pressure can leave it ({size >> 20} MB of swap)"


def _exits(home: Home) -> _Said:
    for file in sorted((home.path / "exits").glob("[!_.]*.py")):
        problems = check_file(file)
        yield ("bad", problems[0]) if problems else ("ok", file.name)


def _queues(home: Home) -> _Said:
    for file in sorted((home.path / "queues.d").glob("*.qmgr")):
        try:
            parse_text(file.read_text(), file.name)
            yield "ok", file.name
        except ParseError as error:
            yield "bad", str(error)


def _database(home: Home) -> _Said:
    if not home.database.exists():
        yield "note", "there is none yet; the first start makes it"
        return
    reader = Reader(home.database)
    problems = reader.problems()
    reader.close()
    yield ("bad", problems[0]) if problems else ("ok", f"{home.database.name} passes integrity_check")


_LOOKS: dict[str, Callable[[Home], _Said]] = {
    "home": _home,
    "daemon": _daemon,
    "clock": _clock,
    "cage": _cgroups,
    "memory": _memory,
    "exits": _exits,
    "queues.d": _queues,
    "database": _database,
}

if __name__ == "__main__":
    app(prog_name="nqspy")
