"""``qlimit``: shows the limits that a request may ask for, their options, and how they are kept."""

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, HelpWanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, hosts = fast.read_options("qlimit", words)
    if "help" in given:
        raise HelpWanted
    daemon = DaemonConnection(given.get("home"))
    return fast.show("qlimit", daemon.ask("limits", "qlimit", hosts=hosts, verbose="verbose" in given))


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qlimit", body)
