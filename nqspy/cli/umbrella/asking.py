"""How the umbrella asks the daemon and prints: one line for an error, quiet when a pipe closes."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from nqspy.model.errors import NqspyError, Unreachable
from nqspy.rpc.client import Client
from nqspy.rpc.messages import plain

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
