"""The command ``nqspy``: it asks the daemon by its socket, or runs other parts of nqspy as processes."""

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from nqspy.cli import submit
from nqspy.cli.umbrella import asking
from nqspy.cli.umbrella.asking import HomeOption, JsonOption, ask, asks, become, run_tool, show, with_home
from nqspy.cli.umbrella.book import print_manual, topics
from nqspy.cli.umbrella.exits import exits
from nqspy.cli.umbrella.journal import instants, print_events
from nqspy.rpc.program import run

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
report = typer.Typer(no_args_is_help=True, help="The night report; shares and their use.")
app.add_typer(report, name="report")
app.add_typer(exits, name="exits")


@app.callback()
def umbrella(home: HomeOption = None) -> None:
    """nqspy, the batch queue whose policy is Python."""
    asking.chosen["home"] = home


asks(
    app, "counters", "counters",
    "Departments: share, CPU used and remaining in the period, finished and running today, this week.",
)  # fmt: skip


@report.command()
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
    data = ask("report_night", **fields)
    if html is not None:
        from nqspy.report.night_pages import night_html  # heavy, and few want a page

        _write_page(html, night_html(data))
        if not as_json:
            print(data["line"])
            return
    show(data, as_json)


def _write_page(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        asking.fail(f"{path} cannot be written: {error.strerror}")


@report.command()
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
    """Print what departments were entitled to, got and could have used; how far that deviates."""
    fields: dict[str, Any] = {} if shift is None else {"shift": shift}
    show(ask("report_quota", **instants(since, until), **fields), as_json)


@report.command()
def swf(
    since: Annotated[
        str | None, typer.Option("--since", help="requests that ended from 2026-03-02T21:00, 21:00, or 7d on")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="and before this, written likewise")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write it into this file")] = None,
    fractions: Annotated[bool, typer.Option("--fractions", help="times to the millisecond")] = False,
    home: HomeOption = None,
) -> None:
    """Print ended requests as a log in the Standard Workload Format 2.2 (`nqspy sim` reads it)."""
    fields = {"fractions": True} if fractions else {}
    text = ask("report_swf", **instants(since, until), **fields)["text"]
    if output is None:
        asking.write(text)
    else:
        _write_page(output, text)


asks(report, "usage", "report_usage",
     "The share tree: entitlement, decayed use, and how far the two agree.")  # fmt: skip
asks(report, "estimates", "report_estimates",
     "How well each user's wall limits, best guesses and past predict run times.")  # fmt: skip


@app.command()
def events(
    since: Annotated[
        str | None, typer.Option("--since", help="2026-03-02T21:00, 21:00, or 30min (before now)")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="continue with new events")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Print the journal: everything that happened, in order."""
    print_events(since, follow, as_json)


@app.command()
def story(
    request: Annotated[str, typer.Argument(metavar="ID", help="the request, ended ones too")],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Print what happened to a request, event by event."""
    print_events(None, False, as_json, request)


def _as_written(name: str, operands: str, sentence: str, act: Callable[[list[str]], object]) -> None:
    """Add a command that reads its words itself, as written: click would take dashes away."""
    settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

    @app.command(name, help=sentence, context_settings=settings, options_metavar="[OPTIONS]")
    def command(words: Annotated[list[str] | None, typer.Argument(metavar=operands)] = None) -> None:
        act(sys.argv[sys.argv.index(name) + 1 :])


_as_written("submit", "[SCRIPT | -- COMMAND]...",
            "Submit a script or, behind --, a command, by options of sbatch's shape "
            "(--time --mem --cpus ...).",
            lambda words: sys.exit(submit.run([*with_home(), *words])))  # fmt: skip


@app.command()
def doctor(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Check the installation: rights, clock, cgroups, exits, the database."""
    run_tool("doctor", *(["--json"] if as_json else []))


@app.command()
def backup(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="nothing: one more in the home's backups")
    ] = None,
    home: HomeOption = None,
) -> None:
    """Copy the database now, while the daemon runs or not, and check the copy."""
    run_tool("backup", *([str(file)] if file is not None else []))


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a backup")], home: HomeOption = None
) -> None:
    """Put a backup in the database's place (the daemon must be stopped); the replaced one is kept."""
    run_tool("restore", str(file))


_as_written("sim", "WORKLOAD", "Run a log of jobs or an invented workload on a simulated machine.",
            lambda words: become("nqspy.sim.command", words))  # fmt: skip
_as_written("replay", "[FROM..TO]",
            "Replay the journal: as it was, or with other settings, queues or user exits.",
            lambda words: become("nqspy.sim.replay.command", [*with_home(), *words]))  # fmt: skip


@app.command()
def gangster(
    once: Annotated[bool, typer.Option("--once", help="print the screen once, as plain text")] = False,
    every: Annotated[
        float, typer.Option("--every", min=1, help="seconds between two looks", metavar="SECONDS")
    ] = 3.0,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show nodes and jobs; change the class of, suspend and resume one's own jobs by keys."""
    if once or as_json:
        from nqspy.report.gangster import screen

        width = os.get_terminal_size(1).columns or None if os.isatty(1) else None
        show(ask("gangster"), as_json, partial(screen, width=width))
    elif not (os.isatty(0) and os.isatty(1)):
        asking.fail("gangster needs a terminal; --once prints the screen as text", 2)
    else:
        from nqspy.cli.umbrella.gangster import run_screen  # Textual takes its time to load

        run_screen(every)


def _topics(begun: str) -> list[str]:
    return [name for name in topics() if name.startswith(begun)]


@app.command()
def manual(
    topic: Annotated[
        str | None,
        typer.Argument(help="a topic, or a word to look for; nothing: the index", autocompletion=_topics),
    ] = None,
) -> None:
    """Print a topic of the manual, or the pages that have a word."""
    print_manual(topic)


@app.command("version")
def version_command() -> None:
    """Print the version."""
    try:
        asking.write(f"nqspy {version('nqspy')}\n")
    except PackageNotFoundError:
        asking.write("nqspy, run from its sources (not installed)\n")


def main() -> None:
    """Run the command ``nqspy``."""
    run(app, "nqspy")
