"""``--help`` and completion of the user commands: Typer commands made from the tables of `spec`.

Only loaded when asked for.
"""

import contextlib
import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.main import get_command

from nqspy.cli.request_tables import table_of
from nqspy.cli.spec import SUMMARIES, WITHOUT_VALUE, Row

OPERANDS = "operands"
"""Parameter that takes the operands."""


def build(command: str, callback: Callable[..., None] | None = None) -> typer.Typer:
    """The Typer application of a command. ``callback`` gets one argument per row of its table (`parameter`
    gives the name): the values given, in order, or a flag; and ``operands``."""
    parameters = [_option(number, row) for number, row in enumerate(table_of(command)) if row[1] != "help"]
    operands = Annotated[
        list[str] | None, typer.Argument(metavar=_operand_names(command), show_default=False)
    ]
    parameters.append(
        inspect.Parameter(OPERANDS, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=operands)
    )

    def run(**given: Any) -> None:
        if callback is not None:
            callback(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = SUMMARIES[command][1]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    app = typer.Typer(add_completion=True, rich_markup_mode=None)
    app.command(
        name=command,
        help=SUMMARIES[command][1],
        options_metavar="[OPTIONS]",
        context_settings={"allow_interspersed_args": command not in ("qsub", "mpprun")},
    )(run)
    return app


def parameter(number: int) -> str:
    """Name of the parameter of a table's row."""
    return f"option_{number}"


def _operand_names(command: str) -> str:
    names = SUMMARIES[command][0].removeprefix("[OPTIONS] ")
    return "".join(char for char in names if char not in "[].")  # Typer adds brackets and dots of its own


def _option(number: int, row: Row) -> inspect.Parameter:
    flags, _target, kind, metavar, text = row
    if kind in WITHOUT_VALUE:
        annotation: Any = Annotated[bool, typer.Option(*flags, help=text, show_default=False)]
        default: Any = False
    else:
        option = typer.Option(*flags, metavar=metavar, help=text, show_default=False)
        annotation, default = Annotated[list[str] | None, option], None
    name = parameter(number)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def answer(command: str, words: list[str]) -> int:
    """Prints the help, or answers a shell that asks for completions; gives the exit status."""
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
