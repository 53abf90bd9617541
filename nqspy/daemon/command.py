"""The command ``nqsd``: init, start, run, stop, status."""

import os
import select
import signal
import sys
from typing import Annotated, Any

import typer

from nqspy.daemon.home import Home, HomeError, home_of, init, init_if_new, running_pid
from nqspy.daemon.process import become, begin
from nqspy.daemon.starting import StartOptions, check, undone_on_failure
from nqspy.daemon.systemd import unit
from nqspy.model.errors import NqspyError
from nqspy.rpc.client import Client
from nqspy.rpc.program import run as run_program

app = typer.Typer(
    no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False,
    help="The daemon of nqspy: one for each home.",
)  # fmt: skip

HomeOption = Annotated[
    str | None, typer.Option("--home", help="the home; else NQSPY_HOME, else the usual place")
]
QueuesOption = Annotated[
    str | None, typer.Option("--queues", help="folder of *.qmgr files instead of HOME/queues.d")
]
ExitsOption = Annotated[
    str | None, typer.Option("--exits", help="folder of user exits instead of HOME/exits")
]
ClockOption = Annotated[
    str | None, typer.Option("--clock", help='accelerated clock: "2026-03-02T20:55:00+01:00 x360"')
]
SiteOption = Annotated[str | None, typer.Option("--site", help="settings of a new home: day-night or plain")]


def _site(name: str | None) -> Any:
    if name not in (None, "day-night", "plain"):
        raise HomeError(f"there is no site {name}; there are day-night and plain")
    return name


@app.command("init")
def init_command(home: HomeOption = None, site: SiteOption = None) -> None:
    """Fill a new home."""
    where = home_of(home)
    chosen = init(where, _site(site))
    print(f"{where.path} is a new home (site {chosen}); start it with: nqsd start --home {where.path}")


def _absolute(path: str | None) -> str | None:
    try:
        return None if path is None else os.path.abspath(path)
    except FileNotFoundError:
        raise HomeError(f"{path}: the current folder is gone; give the whole path") from None


@app.command("run", help="Serve in the foreground, log on stderr (systemd: Type=notify).")
@app.command("start", help="Start in the background; returns 0 once the socket answers.")
def start_or_run(
    context: typer.Context, home: HomeOption = None, queues: QueuesOption = None, exits: ExitsOption = None,
    clock: ClockOption = None, site: SiteOption = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="without the former state: it is set aside, running jobs go on")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")] = False,
) -> None:  # fmt: skip
    """Start a daemon in the background, or run it in this process."""
    for fd in range(3):  # else the next open file would become a standard descriptor
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor: this one
    where, chosen = home_of(home), _site(site)
    typed, background = StartOptions(queues, exits, clock, forget=forget), context.info_name == "start"
    there = StartOptions(_absolute(queues), _absolute(exits), clock, True, forget) if background else typed
    check(where, typed)
    if forget and not yes:
        _confirm_forgetting(where)
    with undone_on_failure(where):
        init_if_new(where, chosen)
        if not background:
            become(where, typed, lambda text: None)
        elif text := begin(where, there):
            print(f"nqsd: {text}", file=sys.stderr)


def _confirm_forgetting(where: Home) -> None:
    """Ask on a terminal if the state of a home may be set aside. Raises HomeError without a yes."""
    if not where.database.exists() or not (os.isatty(0) and os.isatty(2)):
        return
    if running_pid(where) is None:  # else the start refuses
        text = "all requests and settings of the database are set aside, running jobs become foreign"
        print(f"nqsd: {where.path}: {text}; go on? [y/N] ", end="", file=sys.stderr, flush=True)
        if os.read(0, 100).strip().lower() not in (b"y", b"yes"):
            raise HomeError("nothing was set aside, and nqsd was not started")


@app.command()
def stop(
    home: HomeOption = None,
    drain: Annotated[bool, typer.Option("--drain", help="wait until running jobs have ended")] = False,
    requeue: Annotated[bool, typer.Option("--requeue", help="end running jobs and queue them again")] = False,
) -> None:
    """Stop nqsd. Running jobs continue, and the next start finds them again."""
    where = home_of(home)
    pid = running_pid(where)
    if pid is None:
        raise HomeError(f"no nqsd serves {where.path}")
    if drain and requeue:
        raise HomeError("choose one of --drain and --requeue")
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    mode = "drain" if drain else "requeue" if requeue else "leave"
    try:
        Client(str(where.path)).call("shutdown", mode=mode)
    except (NqspyError, OSError) as error:
        try:
            signal.pidfd_send_signal(fd, signal.SIGTERM)
        except PermissionError:
            raise HomeError(str(error)) from None  # another user's daemon: report its error
    select.select([fd], [], [], 60 if mode == "leave" else None)
    if running_pid(where) == pid:
        raise HomeError(f"process {pid} has not stopped; see {where.log}")


@app.command("unit")
def unit_command(
    home: HomeOption = None,
    user: Annotated[bool, typer.Option("--user", help="for your own systemd, not the machine's")] = False,
) -> None:
    """Print a unit file for systemd: nqsd unit > /etc/systemd/system/nqsd.service"""
    words = (f" --home {home}" if home else "") + (" --user" if user else "")
    print(unit(str(home_of(home).path), user=user, words=words), end="")


@app.command()
def status(home: HomeOption = None) -> None:
    """Exit with 0 if the daemon answers; print how the site stands."""
    where = home_of(home)
    try:
        answer = Client(str(where.path)).call("status")
    except (NqspyError, OSError) as error:
        if pid := running_pid(where):
            raise HomeError(f"process {pid} has {where.path} and does not answer: {error}") from None
        raise HomeError(f"no nqsd serves {where.path}") from None
    print(answer["text"])


def main() -> None:
    """Run the command ``nqsd`` with this process's arguments."""
    os.environ["PYTHONUTF8"] = "1"  # for the processes of the daemon
    run_program(app, "nqsd")


if __name__ == "__main__":
    main()
