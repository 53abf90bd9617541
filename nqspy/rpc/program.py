"""Errors of commands that Typer reads: one line and status 2, or 1 if their output cannot be written."""

import errno
import os
import sys
from typing import Any, NoReturn

import typer

from nqspy.model.errors import NqspyError
from nqspy.rpc.home import speak_utf8

_Unusable: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""Error class for wrong command lines, of the click below Typer."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Error numbers of writing to a full or broken disk."""


def run(app: typer.Typer, name: str) -> NoReturn:
    """Run a Typer program, report errors in one line, and end the process with its exit status."""
    speak_utf8()
    if sys.stdout is None:  # closed by the parent
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    try:
        status = app(prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except _Unusable as error:
        text = error.format_message().rstrip(".")
        if not text or "\n" in text:  # the help of a command that needs another word
            error.show()
            raise SystemExit(error.exit_code) from None
        where = error.ctx.command_path if getattr(error, "ctx", None) else name
        print(f"{name}: {text[0].lower()}{text[1:]}; see `{where} --help`", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except OSError as error:
        if error.errno not in _FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's last flush finds no error
        print(f"{name}: the output cannot be written: {error.strerror}", file=sys.stderr)
        raise SystemExit(1) from None
    except NqspyError as error:
        print(f"{name}: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except typer.Abort:
        raise SystemExit(130) from None
    raise SystemExit(status or 0)
