"""``qstat``: asks the daemon for a table, a summary or JSON, and prints what comes back."""

import os

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, HelpWanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from nqspy.cli.fast import Given

_FORMS = ("why", "full", "json", "server", "pipes", "complexes", "limits")
"""Options that choose the form of the answer, the first one given counts."""

_USUAL_WIDTH = 80


def message(words: list[str]) -> "tuple[dict[str, object], str | None]":
    """The question, and the home it goes to. Raises Failure, HelpWanted."""
    given, found, operands = fast.read_options("qstat", words)
    if "help" in given:
        raise HelpWanted
    if "why" in given:
        operands = [_asked_about(found), *operands]
    question: dict[str, object] = {
        "cmd": "qstat", "text": _form(given), "operands": operands, "queue": given.get("queue"),
        "user": given.get("user"), "state": given.get("state"), "tty": os.isatty(1), "width": _width(),
        "posix": "queues" in given,
    }  # fmt: skip
    for flag in ("ended", "all", "history", "json", "mpp", "expand"):
        question[flag] = flag in given
    return question, given.get("home")


def _asked_about(found: "list[Given]") -> str:
    """What ``--why`` is about: the identifier of a request, which begins with a digit. Raises Failure."""
    id = [one.value for one in found if one.target == "why"][-1]
    if not "0" <= id[:1] <= "9":
        raise Failure("--why needs the identifier of a request" + f", not {id!r}" * bool(id))
    return id


def _form(given: dict[str, str]) -> str:
    for form in _FORMS:
        if form in given:
            return form
    return "queues" if {"queues", "batch", "mpp"} & given.keys() else "table"


def _width() -> int:
    """Columns of the terminal; 0: no terminal, no limit."""
    try:
        return os.get_terminal_size(1).columns or _USUAL_WIDTH
    except OSError:
        return 0


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    if "--graph" in words:
        from nqspy.cli.graph import body as graph

        return graph(words)
    question, home = message(words)
    return fast.show("qstat", DaemonConnection(home).call(question, repeat=True))


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qstat", body)
