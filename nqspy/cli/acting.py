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


def tell(command: str, cmd: str, home: "str | None", **fields: object) -> int:
    """Sends a message and shows what comes back: a line for each failure. The exit status is the last
    one's."""
    message: dict[str, object] = {"cmd": cmd, "text": command, **fields}
    return fast.show(command, DaemonConnection(home).call(message))


def forced(command: str, given: dict[str, str]) -> bool:
    """Whether ``-W force`` was given, the only one there is. Raises Failure."""
    if given.get("how", "force") != "force":
        raise Failure(f"-W: {given['how']!r} is not known; there is -W force")
    return "how" in given
