"""``nqspy exits``: the loaded exits, their answers, and candidate files."""

from pathlib import Path
from typing import Annotated, Any

import typer

from nqspy.cli.umbrella.asking import HomeOption, JsonOption, ask, asks, become, run_tool, show, with_home
from nqspy.model.texts import counted
from nqspy.report.time_text import short, zone_of

exits = typer.Typer(no_args_is_help=True, help="User exits: what is loaded, a candidate file, their answers.")


def _exits_text(data: dict[str, Any]) -> str:
    lines: list[str] = []
    for each in data["exits"]:
        doc = str(each.get("doc") or "").strip().partition("\n")[0]
        lines += [
            f"{each['name']} ({'on' if each['enabled'] else 'off'}): {', '.join(each['hooks'])}",
            *([f"  {doc}"] if doc else []),
            f"  {counted(each['calls'], 'call')}, {counted(each['failures'], 'failure')}, "
            f"{each['total_ms']:.1f} ms in all, longest {each['longest_ms']:.2f} ms",
        ]
        for name, value in (each.get("settings") or {}).items():
            lines.append(f"  {name} = {value.get('value', '') if isinstance(value, dict) else value}")
    return "".join(f"{line}\n" for line in lines) or "no user exits are loaded\n"


asks(exits, "list", "exits_list", "What is loaded, how often it was called, how long it took.", _exits_text)


@exits.command("trace")
def exits_trace(
    request: Annotated[str, typer.Argument(metavar="ID", help="the request")],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Print what each exit last answered about a request."""
    data = ask("exits_trace", request=request)
    zone = None if as_json else zone_of(ask("now")["zone"])
    show(data, as_json, lambda found: _trace_text(found, zone))


def _trace_text(data: dict[str, Any], zone: Any) -> str:
    rows = data["trace"]
    if not rows:
        return f"no exit has been asked about {data['id']}\n"
    lines = [f"{data['id']}:"]
    for row in rows:
        result = f"failed: {row['error']}" if row["error"] else row["answer"] or "the standard rules"
        alike, within = row.get("alike"), row.get("within")
        reached = [f"alike in {', '.join(alike)}"] if alike else []
        reached += [f"by its {' and '.join(within)}"] if within else []
        result += f" (of another request, {', '.join(reached)})" if reached else ""
        lines.append(f"  {short(zone.text(row['at']))}  {row['exit']}.{row['hook']}: {result}")
    return "\n".join(lines) + "\n"


@exits.command("check")
def exits_check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the candidate")], home: HomeOption = None
) -> None:
    """Verify a file before it goes into exits/: hooks, arguments, settings."""
    run_tool("exits-check", str(file))


@exits.command("try")
def exits_try(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the candidate")],
    since: Annotated[
        str | None,
        typer.Option("--since", help="try it on the past: from 2026-03-02T21:00, 21:00 or 7d (ago)"),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="show all requests, not only the first 20")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Try a file on waiting or past requests, in a copy of the site: which start, wait or change place."""
    words = [str(file), *(["--all"] if every else []), *(["--json"] if as_json else [])]
    words += ["--since", since] if since is not None else []
    become("nqspy.sim.trying.command", [*words, *with_home()])


@exits.command("new")
def exits_new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="the hook: jobselect, submit, shrpri ...")],
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="its name, or a path; else that of the hook")
    ] = None,
) -> None:
    """Write an exit to begin with, and its tests beside it; nothing is overwritten."""
    from nqspy.cli.umbrella import skeleton

    skeleton.new(kind, name)
