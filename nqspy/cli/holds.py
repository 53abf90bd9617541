"""What ``qhold`` and ``qrls`` share: letters of a hold and identifiers, one message a letter."""

from nqspy.cli import fast
from nqspy.cli.fast import DaemonConnection, Failure, HelpWanted


def body(command: str, cmd: str, words: list[str]) -> int:
    """Sends ``cmd`` ("hold" or "release") for every letter given; gives the exit status."""
    given, _, ids = fast.read_options(command, words)
    if "help" in given:
        raise HelpWanted
    letters = given.get("letters", "")
    if letters.strip("uos"):
        raise Failure(f"-h: {letters!r} is none of the letters u, o, s")
    if not ids:
        raise Failure(f"which request? {fast.usage(command)}", 2)
    daemon, status = DaemonConnection(given.get("home")), 0
    for letter in letters or [None]:
        message: dict[str, object] = {"cmd": cmd, "text": command, "ids": ids, "letter": letter}
        status = fast.show(command, daemon.call(message)) or status
    return status
