"""``gangparms``: shows and sets the scheduling parameters of job classes (the Gang Scheduler's tool of that
name, seed 000), by the same commands that `qmgr` sends."""

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_OF_ALL = "gang"
"""Stands for what holds for jobs of all classes."""


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, operands = fast.read_options("gangparms", words)
    if "help" in given:
        raise fast.HelpWanted
    script = _set(operands) if operands else "show classes\nshow gang\n"
    message = {
        "cmd": "qmgr", "text": "qmgr", "source": "gangparms", "script": script, "atomic": False,
        "check": False, "plan": False, "json": "json" in given, "file": False,
    }  # fmt: skip
    return fast.show("gangparms", DaemonConnection(given.get("home")).call(message))


def _set(operands: list[str]) -> str:
    """The command that sets parameters of a class. Raises Failure."""
    name, *pairs = operands
    if "=" in name or not pairs or not all("=" in pair for pair in pairs):
        raise Failure(f"name a class (or gang), then parameters like wait=10:00; {fast.usage('gangparms')}")
    head = "gang" if name == _OF_ALL else f"class {name}"
    return f"set {head} {' '.join(pairs)}\n"


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("gangparms", body)
