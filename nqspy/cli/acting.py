"""What the commands share that do something to requests: options and identifiers in, one message out."""

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, Given, HelpWanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Special = Callable[[str], "Given | None"]


def read(
    command: str, words: list[str], special: "Special | None" = None, least: int = 1
) -> tuple[dict[str, str], list[Given], list[str]]:
    """Options by target, all of them in order, and at least so many operands. Raises Failure, HelpWanted."""
    given, found, operands = fast.read_options(command, words, special)
    if "help" in given:
        raise HelpWanted
    if len(operands) < least:
        raise Failure(f"which request? {fast.usage(command)}", 2)
    return given, found, operands


TOGETHER = 2_000
"""Identifiers in one message: the daemon serves others between two messages."""


def tell(command: str, cmd: str, home: "str | None", ids: "list[str]", **fields: object) -> int:
    """Send a message for each `TOGETHER` identifiers and show what comes back: a line for each failure.
    Return the exit status of the last one."""
    daemon, status = DaemonConnection(home), 0
    for some in together(ids):
        message: dict[str, object] = {"cmd": cmd, "text": command, "ids": some, **fields}
        status = fast.show(command, daemon.call(message)) or status
        if isinstance(mails := fields.get("mails"), int):
            fields["mails"] = max(0, mails - len(some))
    return status


def together(ids: "list[str]") -> "list[list[str]]":
    """Identifiers as they go into one message each."""
    return [ids[start : start + TOGETHER] for start in range(0, len(ids), TOGETHER)]


def forced(command: str, given: dict[str, str]) -> bool:
    """Whether ``-W force`` was given, the only one there is. Raises Failure."""
    if given.get("how", "force") != "force":
        raise Failure(f"-W: {given['how']!r} is not known; there is -W force")
    return "how" in given
