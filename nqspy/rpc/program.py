"""What is wrong with the words of a command that Typer reads: one line and status 2, as with all commands."""

import sys
from typing import Any, NoReturn

import typer

_Unusable: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What is wrong with a command line, of the click that Typer stands on."""


def run(app: typer.Typer, name: str) -> NoReturn:
    """The program itself; ends the process."""
    try:
        status = app(prog_name=name, standalone_mode=False)
    except _Unusable as error:
        text = error.format_message().rstrip(".")
        if not text or "\n" in text:  # the help of a command that needs another word
            error.show()
            raise SystemExit(error.exit_code) from None
        where = error.ctx.command_path if getattr(error, "ctx", None) else name
        print(f"{name}: {text[0].lower()}{text[1:]}; see `{where} --help`", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except typer.Abort:
        raise SystemExit(130) from None
    raise SystemExit(status or 0)
