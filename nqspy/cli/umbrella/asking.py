"""Shared by the parts of `nqspy`: questions to the daemon, printing, the chosen home, other commands."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer

from nqspy.model.errors import NqspyError, Unreachable
from nqspy.rpc.client import Client
from nqspy.rpc.messages import plain

chosen: dict[str, str | None] = {"home": None}
"""The home named in front of the command or, which counts more, behind it."""


def _choose(home: str | None) -> str | None:
    chosen["home"] = home or chosen["home"]
    return home


HomeOption = Annotated[
    str | None,
    typer.Option("--home", callback=_choose, help="the home; else NQSPY_HOME, else the usual place"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="data instead of text")]

Data = dict[str, Any]


def fail(text: object, status: int = 1) -> NoReturn:
    """Print one line on stderr and end with a status."""
    print(f"nqspy: {text}", file=sys.stderr)
    raise SystemExit(status)


@contextmanager
def answering(timeout: float | None = 60.0) -> Iterator[Client]:
    """Yield a client of the chosen home (``timeout``: real seconds). Errors in the block become a line and
    status 1; a closed pipe or Ctrl-C ends the program."""
    client = None
    try:
        client = Client(chosen["home"], timeout=timeout)
        yield client
        sys.stdout.flush()
    except NqspyError as error:
        fail(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's last flush finds no error
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        if client is not None:
            client.close()


def ask(cmd: str, **fields: Any) -> Data:
    """Return the daemon's result of one question; end with a line on stderr and status 1 without one."""
    with answering() as client:
        return question(client, cmd, **fields)


def question(client: Client, cmd: str, **fields: Any) -> Data:
    """Return the result of one question; ask again if the daemon goes away meanwhile. Raises NqspyError."""
    try:
        result: Data = client.call(cmd, **fields)
    except Unreachable as error:
        if isinstance(error.__cause__, (FileNotFoundError, ConnectionRefusedError, TimeoutError)):
            raise
        result = client.call(cmd, repeat=True, **fields)
    return result


def show(data: Data, as_json: bool, text: Callable[[Data], str] | None = None) -> None:
    """Print an answer, or with ``as_json`` its data; ``text``: makes its text (None: the daemon sent it)."""
    ready = data.pop("text", "")
    if as_json:
        ready = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    elif text is not None:
        ready = text(data)
    write(ready)


def write(text: str) -> None:
    """Write text to stdout with its control characters made visible; a closed pipe is no error."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(plain(text).encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(0) from None


def asks(
    room: typer.Typer, name: str, cmd: str, sentence: str, text: Callable[[Data], str] | None = None
) -> None:
    """Add to ``room`` a command ``name`` that prints the answer to question ``cmd``, see `show`."""

    @room.command(name, help=sentence)
    def answer(as_json: JsonOption = False, home: HomeOption = None) -> None:
        show(ask(cmd), as_json, text)


def run_tool(name: str, *words: str) -> NoReturn:
    """Become a command of the daemon's tools, like ``backup``; this process does not return."""
    become("nqspy.daemon.tools", [name, *words, *with_home()])


def with_home() -> list[str]:
    """Return the words that pass the chosen home on to another command; none without a choice."""
    return ["--home", chosen["home"]] if chosen["home"] else []


def become(module: str, words: list[str]) -> NoReturn:
    """Become a command of another module; modules in the current folder are not imported (``-P``)."""
    sys.stdout.flush()
    words = [sys.executable, "-P", "-m", module, *words]
    try:
        os.execv(sys.executable, words)  # noqa: S606 - no shell is meant
    except OSError as error:
        fail(f"{sys.executable} cannot be run: {error.strerror or error}")
