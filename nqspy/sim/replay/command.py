"""The command ``nqspy replay``: replay the journal as it was or under a change."""

import json
import sys
from base64 import b64decode
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import typer

from nqspy.engine.replay.what_if import WhatIfChange
from nqspy.model.errors import NqspyError
from nqspy.model.ids import Instant
from nqspy.report.time_text import parse_since
from nqspy.rpc.home import resolve_home
from nqspy.rpc.messages import plain
from nqspy.rpc.program import run
from nqspy.sim.pictures.album import write
from nqspy.sim.replay import picture, steps, texts, what_if
from nqspy.sim.replay.comparison import NightComparison, data_of
from nqspy.sim.replay.home_journal import HomeJournal
from nqspy.sim.replay.isolated import NotReplayed, Progress, isolated
from nqspy.sim.replay.what_if import Alternative, ReplayInput, at_beginning, exits_of, read_input, replayed

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_NEXT_DAY = 25 * 3_600_000
"""Time in ms after now within which a clock time comes exactly once more, even if clocks are put forward."""


@app.command()
def replay(
    span: Annotated[
        str | None, typer.Argument(metavar="[FROM..TO]", help="with --steps: a time, like 03:10..03:20")
    ] = None,
    home: Annotated[
        str | None, typer.Option("--home", help="the home; else NQSPY_HOME, else the usual place")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="begin: 2026-03-02T21:00, 21:00, or 7d (before the last event)"),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="end, written like --since")] = None,
    exits: Annotated[
        Path | None, typer.Option("--exits", metavar="DIR", help="with the user exits of DIR")
    ] = None,
    queues: Annotated[
        Path | None, typer.Option("--queues", metavar="DIR", help="with the files *.qmgr of DIR for queues.d")
    ] = None,
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "-c", metavar="COMMAND", help="with this setting all the time: -c 'set sched_factor share 10'"
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="with the commands of FILE"),
    ] = None,
    show_steps: Annotated[
        bool,
        typer.Option(
            "--steps", help="show each pass: which requests it examined, and why they did not start"
        ),
    ] = False,
    drawn: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="draw both runs: FILE.svg or FILE.png")
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", hidden=True, help="a few lines")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="data instead of text")] = False,
) -> None:
    """Replay the journal as it was, or with other settings, queues or user exits."""
    try:
        if drawn is not None:
            picture.check(drawn)
        past = HomeJournal(Path(resolve_home(home)))
        begin, end = time_asked(past, span, since, until)
        other = _other(exits, queues, commands or [], file)
        if show_steps:
            _show_steps(past, begin, end, as_json, other)
        else:
            _show_both(read_input(past, begin, end), other, drawn, brief, as_json)
    except (NqspyError, OSError) as error:
        print(f"nqspy: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _show_both(what: ReplayInput, other: Alternative, drawn: Path | None, brief: bool, as_json: bool) -> None:
    def compared(done: Progress) -> dict[str, Any]:
        comparison = NightComparison(replayed(what, other, done))
        content = "" if drawn is None else picture.drawn(drawn, comparison)
        return {"data": data_of(comparison), "picture": content}

    made = isolated(compared, len(what.recording.events), what.versions.heartbeat)
    if drawn is not None:
        write(drawn, b64decode(made["picture"]))
    data = made["data"]
    in_words = "" if as_json else texts.text_of(data, other.label, brief)
    _print(in_words or json.dumps(data, ensure_ascii=False) + "\n")
    if other.is_empty and data["differences"]:
        raise SystemExit(1)


def time_asked(
    past: HomeJournal, span: str | None, since: str | None, until: str | None
) -> tuple[Instant | None, Instant | None]:
    """Return the begin and end that ``span`` (``FROM..TO``), or ``since`` and ``until``, say (None: not
    said). Raises BadValue, NotReplayed."""
    if span is not None:
        if since is not None or until is not None or ".." not in span:
            raise NotReplayed(
                f"{span!r}: write the time like 03:10..03:20, or give --since and --until, not both"
            )
        since, _, until = span.partition("..")
    begin = parse_since(since, past.zone, past.last) if since else None
    end = parse_since(until, past.zone, past.last) if until else None
    if until and ":" in until and begin is not None and end is not None and end <= begin:
        # A clock time is the next one after the beginning, which may be after the last event.
        end = parse_since(until, past.zone, Instant(end + _NEXT_DAY))
    if begin is not None and end is not None and begin >= end:
        raise NotReplayed(f"the time from {since} to {until} is empty")
    return begin, end


def _other(exits: Path | None, queues: Path | None, commands: list[str], file: Path | None) -> Alternative:
    """Return the change that the options describe; empty without any. Raises NotReplayed."""
    words, changes = list[str](), list[WhatIfChange]()
    if queues is not None:
        words.append(f"the queues of {queues}")
        changes.append(what_if.other_queues(queues))
    if file is not None:
        words.append(str(file))
        changes.append(what_if.as_if_applied(read_commands(file), file.name))
    if commands:
        words += commands
        changes.append(what_if.throughout("\n".join(commands) + "\n"))
    if exits is not None:
        words.append(f"the exits of {exits}")
    change = reduce(what_if.both, changes, WhatIfChange())
    return Alternative(change, None if exits is None else exits_of(exits), ", ".join(words))


MOST = 1 << 20
"""Most characters of a file of commands."""


def read_commands(file: Path) -> str:
    """Return the text of a file, or of standard input for ``-``. Raises NotReplayed."""
    try:
        with sys.stdin if str(file) == "-" else file.open(encoding="utf-8") as what:
            text = what.read(MOST + 1)
    except UnicodeDecodeError:
        raise NotReplayed(f"{file} is not UTF-8 text") from None
    except OSError as error:
        raise NotReplayed(f"{file} cannot be read: {error.strerror or error}") from None
    if len(text) > MOST:
        raise NotReplayed(f"{file} is longer than {MOST} characters; give a file of commands")
    return text


def _show_steps(
    past: HomeJournal, begin: Instant | None, end: Instant | None, as_json: bool, other: Alternative
) -> None:
    if not other.is_empty:
        raise NotReplayed("--steps shows recorded passes: leave out the change")
    if begin is None or end is None:
        raise NotReplayed("--steps needs a time: nqspy replay 03:10..03:20 --steps")
    # Failures of exits shortly before count.
    what = read_input(past, Instant(begin - steps.BEFORE), end)
    found = isolated(
        lambda done: list(steps.passes(at_beginning(what), begin, end)), heartbeat=what.versions.heartbeat
    )
    for step in found:
        lines = [json.dumps(step, ensure_ascii=False)] if as_json else steps.lines(step)
        _print("".join(f"{line}\n" for line in lines))


def _print(text: str) -> None:
    try:
        sys.stdout.write(plain(text))
        sys.stdout.flush()
    except BrokenPipeError:
        raise SystemExit(0) from None


def main() -> None:
    """Run ``nqspy replay``."""
    run(app, "nqspy replay")


if __name__ == "__main__":
    main()
