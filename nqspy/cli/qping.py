"""``qping``: whether the daemon answers; the exit status tells."""

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, HelpWanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, hosts = fast.read_options("qping", words)
    if "help" in given:
        raise HelpWanted
    if len(hosts) > 1:
        raise Failure(f"one host at most; {fast.usage('qping')}", 2)
    message: dict[str, object] = {"cmd": "limits", "text": "qping", "hosts": hosts}
    return fast.show("qping", DaemonConnection(given.get("home")).call(message))


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qping", body)
