"""The command ``nqspy exits try FILE``, and the result of a trial in words for people."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nqspy.model.errors import NqspyError
from nqspy.model.texts import counted
from nqspy.report.time_text import short
from nqspy.rpc.messages import plain
from nqspy.rpc.program import run
from nqspy.sim.replay.texts import elsewhere, unasked_exits
from nqspy.sim.trying.compare import tried_now
from nqspy.userexit.loader import read_file
from nqspy.userexit.specs import NOTICES

SHOWN = 20
"""Requests shown without ``--all``."""
Data = Mapping[str, Any]

_WOULD = {
    "starts": "{n} would start now",
    "waits": "{n} would not start now",
    "submission": "{n} would have another answer at submission",
    "earlier": "{n} would start earlier",
    "later": "{n} would start later",
    "answer": "{n} would get another answer",
    "place": "{n} would change places in the queue",
}
_WOULD_HAVE = {
    "submission": "{n} would have been refused",
    "earlier": "{n} would have started earlier",
    "later": "{n} would have started later",
    "new": "{n} would have started only with the exit",
    "never": "{n} would not have started",
}


def text(data: Data, every: bool) -> str:
    """Return a trial's result as text for people; ``every``: all changed requests, else the first `SHOWN`."""
    lines = (*_summary(data), *_of_requests(data, every), *_of_calls(data))
    return "".join(f"{line}\n" for line in lines)


def _summary(data: Data) -> Iterator[str]:
    """Yield which exit was tried on which requests and time, and how many would change."""
    past, texts, nothing = "since" in data, _WOULD, "nothing would change"
    how = "in place of the loaded one" if data["replaces"] else "new"
    tried = f"exit {data['exit']} ({how}): tried on"
    if past:
        texts, nothing = _WOULD_HAVE, "nothing would have changed"
        some = f"{counted(data['requests'], 'started request')}"
        yield f"{tried} {some} from {short(data['since'])} to {short(data['until'])}"
    else:
        range_text = f"to {short(data['until'])}" if data["until"] else "to the end"
        some = counted(data["waiting"], "waiting request")
        yield f"{tried} {some} at {short(data['at'])}, simulated {range_text}"
        if data["left_out"]:
            yield f"not tried, because further back in the queues: {data['left_out']}"
    if data["off"]:
        yield f"exit {data['exit']} is switched off; it was tried as if it were on"
    if past and data["as_it_was"]:
        yield f"replayed without the exit: {elsewhere(data)}"
    yield from unasked_exits(data) if past else ()
    yield "; ".join(texts[kind].format(n=n) for kind, n in data["counts"].items() if n) or nothing


def _of_requests(data: Data, every: bool) -> Iterator[str]:
    rows = data["changed"] if every else data["changed"][:SHOWN]
    for row in rows:
        yield f"{row['id']}  {row['name']}  {row['owner']}  {row['queue']}"
        yield f"  was:   {row['was']}"
        yield f"  would: {row['would']}"
        if row["reason"]:
            then = "without the exit: " if "since" in data and row["kind"] in ("earlier", "new") else ""
            yield f"  why:   {then}{row['reason']}"
    if len(rows) < len(data["changed"]):
        yield f"and {len(data['changed']) - len(rows)} more (--all)"


def _of_calls(data: Mapping[str, Any]) -> Iterator[str]:
    for hook, each in data["hooks"].items():
        durations = f"{each['total_ms']:.1f} ms in all, longest {each['longest_ms']:.2f} ms"
        if hook in NOTICES:
            yield f"{hook}: not tried, because a notice acts outside nqspy"
        else:
            yield f"{hook}: {counted(each['calls'], 'call')}, {each['failures']} failed, {durations}"
    for each in data["failures"]:
        times = f" ({each['times']} times)" if each["times"] > 1 else ""
        yield f"FAILED {_call(each)}: {each['text']}{times}"
    for each in data["long"]:
        yield f"LONG {_call(each)}: {each['ms']} ms of {each['budget_ms']} ms"


def _call(each: Data) -> str:
    """Return the called hook and the request as text."""
    hook = f": {each['hook']}" if each["hook"] else ""
    return f"exit {each['exit']}{hook}" + (f" on {each['id']}" if each["id"] else "")


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def try_exit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the candidate")],
    since: Annotated[
        str | None,
        typer.Option("--since", help="try it on the past: from 2026-03-02T21:00, 21:00 or 7d (ago)"),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="show all requests, not only the first 20")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="data instead of text")] = False,
    home: Annotated[str | None, typer.Option("--home", help="the home")] = None,
) -> None:
    """Try a file of exits on a copy of the site: which requests would start, wait, change places."""
    try:
        candidate = read_file(file)
        if since is None:
            data = tried_now(home, candidate)
        else:
            from nqspy.sim.trying.since import tried_since  # heavy, and not needed in the usual case

            data = tried_since(home, candidate, since)
    except NqspyError as error:
        print(f"nqspy: {plain(str(error))}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    as_text = json.dumps(data, indent=2, ensure_ascii=False) + "\n" if as_json else plain(text(data, every))
    try:
        sys.stdout.write(as_text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(0) from None


def main() -> None:
    """Run ``nqspy exits try``."""
    run(app, "nqspy exits try")


if __name__ == "__main__":
    main()
