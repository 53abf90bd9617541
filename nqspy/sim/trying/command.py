"""The command ``nqspy exits try FILE``."""

import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from nqspy.model.errors import NqspyError
from nqspy.report.time_text import zone_of
from nqspy.rpc.messages import plain
from nqspy.rpc.program import run
from nqspy.sim.trying.compare import Comparison, text
from nqspy.sim.trying.copied import copied
from nqspy.sim.trying.trial import try_out
from nqspy.userexit.loader import read_file

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def try_exit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the candidate")],
    every: Annotated[bool, typer.Option("--all", help="tell all requests, not only the first 20")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="data instead of text")] = False,
    home: Annotated[str | None, typer.Option("--home", help="the home")] = None,
) -> None:
    """Try a file of exits on those that wait now, on a copy: who would start, wait, change place."""
    try:
        candidate = read_file(file)
        copy = copied(home, candidate)
        tried = try_out(copy, candidate)
    except NqspyError as error:
        _fail([str(error)])
    if tried.problems:
        _fail(tried.problems)
    data = Comparison(copy, tried, zone_of(copy.site.timezone)).data()
    if as_json:
        print(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        print(plain(text(data, every)), end="")


def _fail(problems: list[str]) -> NoReturn:
    for problem in problems:
        print(f"nqspy: {plain(problem)}", file=sys.stderr)
    raise SystemExit(1)


def main() -> None:
    """Entry point."""
    run(app, "nqspy exits try")


if __name__ == "__main__":
    main()
