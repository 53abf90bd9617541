"""The command ``nqspy exits try FILE``."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from nqspy.model.errors import NqspyError
from nqspy.rpc.messages import plain
from nqspy.rpc.program import run
from nqspy.sim.trying.compare import tried_now
from nqspy.sim.trying.texts import text
from nqspy.userexit.loader import read_file

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def try_exit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the candidate")],
    since: Annotated[
        str | None,
        typer.Option("--since", help="on what came from 2026-03-02T21:00, 21:00 or 7d (ago) on"),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="tell all requests, not only the first 20")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="data instead of text")] = False,
    home: Annotated[str | None, typer.Option("--home", help="the home")] = None,
) -> None:
    """Try a file of exits on a copy of the site: who would start, wait, change place."""
    try:
        candidate = read_file(file)
        if since is None:
            data = tried_now(home, candidate)
        else:
            from nqspy.sim.trying.since import tried_since  # heavy, and not asked for on the usual way

            data = tried_since(home, candidate, since)
    except NqspyError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    _print(json.dumps(data, indent=2, ensure_ascii=False) + "\n" if as_json else plain(text(data, every)))


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(0) from None


def _fail(text: str) -> NoReturn:
    print(f"nqspy: {plain(text)}", file=sys.stderr)
    raise SystemExit(1)


def main() -> None:
    """Entry point."""
    run(app, "nqspy exits try")


if __name__ == "__main__":
    main()
