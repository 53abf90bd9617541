"""What the umbrella's commands share: which home is meant, and other rooms that a command hands over to."""

import os
import sys
from typing import Annotated, NoReturn

import typer

HomeOption = Annotated[
    str | None, typer.Option("--home", help="the home; else NQSPY_HOME, else the usual place")
]
JsonOption = Annotated[bool, typer.Option("--json", help="data instead of text")]

chosen: dict[str, str | None] = {"home": None}
"""The home named in front of the command."""


def home_of(home: str | None) -> str | None:
    """A command's own ``--home`` counts before the one in front of it."""
    return home if home is not None else chosen["home"]


def run_tool(name: str, words: list[str], home: str | None) -> NoReturn:
    """Hands over to the daemon's room."""
    become("nqspy.daemon.tools", [name, *words, *with_home(home)])


def with_home(home: str | None) -> list[str]:
    """The words that hand a home on."""
    return ["--home", home] if home is not None else []


def become(module: str, words: list[str]) -> NoReturn:
    """This process becomes a command of another room. What lies in the folder one stands in, a ``json.py`` of
    somebody, is not imported (``-P``)."""
    sys.stdout.flush()
    words = [sys.executable, "-P", "-m", module, *words]
    try:
        os.execv(sys.executable, words)  # noqa: S606 - no shell is meant
    except OSError as error:
        print(f"nqspy: {sys.executable} cannot be run: {error.strerror or error}", file=sys.stderr)
        raise SystemExit(1) from None
