"""``qmove``: moves waiting requests into another queue."""

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, HelpWanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, operands = fast.read_options("qmove", words)
    if "help" in given:
        raise HelpWanted
    if len(operands) < 2:
        raise Failure(f"a queue and at least one request are needed; {fast.usage('qmove')}", 2)
    queue, *ids = operands
    message: dict[str, object] = {
        "cmd": "move",
        "text": "qmove",
        "ids": ids,
        "queue": queue.partition("@")[0],
    }
    return fast.show("qmove", DaemonConnection(given.get("home")).call(message))


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qmove", body)
