"""Version, help and completions by Typer, made from the tables of `spec`. Loaded only when asked for."""

import contextlib
import inspect
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

from nqspy.cli.request_tables import table_of
from nqspy.cli.spec import SUMMARIES, WITHOUT_VALUE

if TYPE_CHECKING:
    from typer import Typer

OPERANDS = "operands"
"""Name of the parameter for the operands."""


def answer(command: str, words: list[str]) -> int:
    """Answer ``--version``, ``--help`` or a shell's request for completions; return the exit status."""
    try:
        if words[:1] != ["--version"] or f"_{command.upper()}_COMPLETE" in os.environ:
            return _help(command, words)
        if len(words) > 1:
            os.write(2, f"{command}: --version must stand alone, without {words[1]!a}\n".encode())
            return 2
        from nqspy.rpc.version import version

        os.write(1, f"pbs_version = {version()}\n".encode())
        return 0
    except OSError as error:
        os.write(2, f"{command}: the output cannot be written: {error.strerror}\n".encode())
        return 1


def _help(command: str, words: list[str]) -> int:
    """Print the help, or answer a shell that asks for completions; return the exit status."""
    from typer.main import get_command

    wanted = [word for word in words if word.startswith(("--install-completion", "--show-completion"))]
    program = get_command(build(command))
    try:
        with contextlib.suppress(BrokenPipeError):
            program(wanted or ["--help"], prog_name=command, complete_var=f"_{command.upper()}_COMPLETE")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 1
    finally:
        with contextlib.suppress(OSError, AttributeError):  # full, or closed by who began us
            sys.stdout.flush()
    return 0


def build(command: str) -> "Typer":
    """Return a command's Typer application: a parameter for each row of its table, and ``operands``."""
    import typer

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = []
    for number, (flags, target, kind, metavar, text) in enumerate(table_of(command)):
        plain = kind in WITHOUT_VALUE
        value: Any = bool if plain else list[str] | None
        default, name = (False, None) if plain else (None, metavar)
        option = Annotated[value, typer.Option(*flags, metavar=name, help=text, show_default=False)]
        if target != "help":
            own = inspect.Parameter(parameter(number), keyword, default=default, annotation=option)
            parameters.append(own)
    usage, sentence = SUMMARIES[command]
    names = "".join(char for char in usage.removeprefix("[OPTIONS] ") if char not in "[].")  # Typer adds its
    operands = Annotated[list[str] | None, typer.Argument(metavar=names, show_default=False)]
    parameters.append(inspect.Parameter(OPERANDS, keyword, default=None, annotation=operands))

    def run(**given: Any) -> None: ...

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = sentence
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    app = typer.Typer(add_completion=True, rich_markup_mode=None)
    app.command(
        name=command,
        help=sentence,
        options_metavar="[OPTIONS]",
        context_settings={"allow_interspersed_args": command not in ("qsub", "mpprun")},
    )(run)
    return app


def parameter(number: int) -> str:
    """Return the parameter's name for a row of the table."""
    return f"option_{number}"
