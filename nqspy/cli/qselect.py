"""``qselect``: identifiers of the requests that satisfy all that is asked for."""

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure
from nqspy.cli.pbs_options import read_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, found, operands = read_options("qselect", words)
    if operands:
        raise Failure(f"what is {operands[0]!r}? {fast.usage('qselect')}", 2)
    question: dict[str, object] = {
        "cmd": "qselect",
        "text": "ids",
        "criteria": [[one.flag[1:], one.value] for one in found if one.kind == "text" and not one.target],
        "letters": "".join([one.flag[1:] for one in found if one.target == "letters"]),
    }
    return fast.show("qselect", DaemonConnection(given.get("home")).call(question, repeat=True))


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qselect", body)
