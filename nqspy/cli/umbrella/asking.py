"""Asking the daemon, printing (one line for an error, quiet when a pipe closes), the home that is meant, and
handing over to another room."""

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

HomeOption = Annotated[
    str | None, typer.Option("--home", help="the home; else NQSPY_HOME, else the usual place")
]
JsonOption = Annotated[bool, typer.Option("--json", help="data instead of text")]

Data = dict[str, Any]


def fail(text: object, status: int = 1) -> NoReturn:
    """Ends with one line on stderr."""
    print(f"nqspy: {text}", file=sys.stderr)
    raise SystemExit(status)


@contextmanager
def answering(home: str | None, timeout: float | None = 60.0) -> Iterator[Client]:
    """A client; what goes wrong with it becomes one line and status 1, a closed pipe or Ctrl-C just ends."""
    client = None
    try:
        client = Client(home, timeout=timeout)
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


def ask(home: str | None, cmd: str, **fields: Any) -> Data:
    """The daemon's result of one question."""
    with answering(home) as client:
        result: Data = question(client, cmd, **fields)
    return result


def question(client: Client, cmd: str, **fields: Any) -> Data:
    """The result of one question. Where no daemon listens that is said at once; one that goes away before it
    answers is asked again."""
    try:
        result: Data = client.call(cmd, **fields)
    except Unreachable as error:
        if isinstance(error.__cause__, (FileNotFoundError, ConnectionRefusedError, TimeoutError)):
            raise
        result = client.call(cmd, repeat=True, **fields)
    return result


def show(data: Data, as_json: bool, text: Callable[[Data], str] | None = None) -> None:
    """Prints an answer: its data as JSON, or its text (the daemon's, if it sent one)."""
    ready = data.pop("text", "")
    if as_json:
        out = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    else:
        out = text(data) if text is not None else ready
    write(out)


def write(text: str) -> None:
    """Writes text to stdout, control characters made visible, and what the locale has no letter for; a reader
    that has gone is no error."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(plain(text).encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(0) from None


# ---------------------------------------------------------------- other rooms

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
