"""The umbrella command ``nqspy``: counters, reports, the journal, user exits, the manual, the doctor.

It reaches the daemon through its socket only; what looks at the installation itself (``doctor``, ``exits
check``) is the daemon's room, ``sim`` and ``exits try`` the simulator's; they run as processes of their own.
"""

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from nqspy.cli.umbrella.asking import (
    HomeOption,
    JsonOption,
    answering,
    ask,
    become,
    chosen,
    fail,
    home_of,
    run_tool,
    show,
    write,
)  # fmt: skip
from nqspy.cli.umbrella.book import print_manual
from nqspy.cli.umbrella.exits import exits
from nqspy.cli.umbrella.journal import instant_of, print_events
from nqspy.rpc.program import run

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
report = typer.Typer(no_args_is_help=True, help="The night report; shares and their use.")
app.add_typer(report, name="report")
app.add_typer(exits, name="exits")


@app.callback()
def umbrella(home: HomeOption = None) -> None:
    """nqspy, the batch queue whose policy is Python."""
    chosen["home"] = home


@app.command()
def counters(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Departments: share, CPU used and remaining in the period, finished and running today, this week."""
    show(ask(home_of(home), "counters"), as_json)


@report.command("night")
def night(
    date: Annotated[
        str | None, typer.Option("--date", help="the night of this day's evening; else the latest")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="the page of this department: its own requests only")
    ] = None,
    final: Annotated[
        bool, typer.Option("--final", help="to the end of its last request, not as it was reported")
    ] = False,
    as_json: JsonOption = False,
    html: Annotated[Path | None, typer.Option("--html", help="write a page into this file")] = None,
    home: HomeOption = None,
) -> None:
    """Report the night: its requests, PEs allocated, CPUs busy, how quotas and order were kept."""
    asked = {"date": date, "group": group, "final": final or None}
    fields: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    data = ask(home_of(home), "report_night", **fields)
    if html is not None:
        from nqspy.report.night_pages import night_html  # heavy, and few want a page

        _write_page(html, night_html(data))
        if not as_json:
            print(data["line"])
            return
    show(data, as_json)


def span(home: str | None, since: str | None, until: str | None, shift: str | None) -> dict[str, Any]:
    """The fields that name a period: ``from`` and ``to`` as instants by the daemon's clock, ``shift``."""
    fields: dict[str, Any] = {}
    with answering(home) as client:
        for name, text in (("from", since), ("to", until)):
            if text is not None:
                fields[name] = instant_of(client, text)
    return fields if shift is None else fields | {"shift": shift}


def _write_page(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}")


@report.command("quota")
def quota(
    since: Annotated[
        str | None, typer.Option("--from", help="beginning: 2026-03-02T21:00, 21:00, or 9h (before now)")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="end, written likewise; else now")] = None,
    shift: Annotated[
        str | None, typer.Option("--shift", help="the latest time that shift was in force; else the night's")
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """What departments were entitled to, got and could have used; how far that deviates."""
    show(ask(home_of(home), "report_quota", **span(home_of(home), since, until, shift)), as_json)


@report.command("swf")
def swf(
    since: Annotated[
        str | None, typer.Option("--since", help="requests that ended from 2026-03-02T21:00, 21:00, or 7d on")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="and before this, written likewise")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write it into this file")] = None,
    fractions: Annotated[bool, typer.Option("--fractions", help="times to the millisecond")] = False,
    home: HomeOption = None,
) -> None:
    """All requests that have ended, as a log in the Standard Workload Format 2.2 (`nqspy sim` reads it)."""
    fields = span(home_of(home), since, until, None) | ({"fractions": True} if fractions else {})
    text = ask(home_of(home), "report_swf", **fields)["text"]
    if output is None:
        write(text)
    else:
        _write_page(output, text)


@report.command("usage")
def usage(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """The share tree: entitlement, decayed use, and how far the two agree."""
    show(ask(home_of(home), "report_usage"), as_json)


@report.command("estimates")
def estimates(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """How well each user's wall limits, best guesses and past tell how long requests run."""
    show(ask(home_of(home), "report_estimates"), as_json)


@app.command()
def events(
    since: Annotated[
        str | None, typer.Option("--since", help="2026-03-02T21:00, 21:00, or 30min (before now)")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on with what happens")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """The journal: everything that happened, in its order."""
    print_events(home_of(home), since, follow, as_json)


@app.command()
def story(
    request: Annotated[str, typer.Argument(metavar="ID", help="the request, ended ones too")],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """All that happened to a request, event by event."""
    print_events(home_of(home), None, False, as_json, request)


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    options_metavar="[OPTIONS]",
)
def submit(
    words: Annotated[list[str] | None, typer.Argument(metavar="[SCRIPT | -- COMMAND]...")] = None,
) -> None:
    """Submit a script or, behind --, a command, by options of sbatch's shape (--time --mem --cpus ...)."""
    from nqspy.cli import submit as command

    after = sys.argv[sys.argv.index("submit") + 1 :]  # as they were written: click takes the dashes away
    home = chosen["home"]
    raise SystemExit(command.run(after if home is None else ["--home", home, *after]))


@app.command()
def doctor(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Check the installation: rights, clock, cgroups, exits, the database."""
    run_tool("doctor", ["--json"] if as_json else [], home_of(home))


@app.command()
def backup(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="nothing: one more in the home's backups")
    ] = None,
    home: HomeOption = None,
) -> None:
    """Copy the database now, while the daemon runs or not, and check the copy."""
    run_tool("backup", [str(file)] if file is not None else [], home_of(home))


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a backup")], home: HomeOption = None
) -> None:
    """Put a backup in the database's place (the daemon must be stopped); the replaced one is kept."""
    run_tool("restore", [str(file)], home_of(home))


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    options_metavar="[OPTIONS]",
)
def sim(words: Annotated[list[str] | None, typer.Argument(metavar="WORKLOAD")] = None) -> None:
    """Run a log of jobs or an invented workload on a simulated machine."""
    after = sys.argv[sys.argv.index("sim") + 1 :]  # as they were written
    become("nqspy.sim.command", after)


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    options_metavar="[OPTIONS]",
)
def replay(words: Annotated[list[str] | None, typer.Argument(metavar="[FROM..TO]")] = None) -> None:
    """Go through what happened again: as it was, or under other settings, queues or user exits."""
    after = sys.argv[sys.argv.index("replay") + 1 :]  # as they were written
    home = chosen["home"]
    become("nqspy.sim.replay.command", after if home is None else ["--home", home, *after])


@app.command()
def manual(topic: Annotated[str | None, typer.Argument(help="nothing: the index")] = None) -> None:
    """Print a topic of the manual."""
    print_manual(topic)


@app.command("version")
def version_command() -> None:
    """Print the version."""
    try:
        write(f"nqspy {version('nqspy')}\n")
    except PackageNotFoundError:
        write("nqspy, run from its sources (not installed)\n")


def main() -> None:
    """Entry point."""
    run(app, "nqspy")
