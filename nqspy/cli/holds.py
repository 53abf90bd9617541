"""What ``qhold`` and ``qrls`` share: letters of a hold and identifiers, one message."""

from nqspy.cli import acting
from nqspy.cli.fast import Failure


def body(command: str, cmd: str, words: list[str], **fields: object) -> int:
    """Sends ``cmd`` ("hold" or "release") with the letters given; gives the exit status."""
    given, _, ids = acting.read(command, words)
    letters = given.get("letters")
    if letters is not None and letters != "n" and letters.strip("uos"):
        raise Failure(f"-h: {letters!r} is none of the letters u, o, s, nor n alone")
    return acting.tell(command, cmd, given.get("home"), ids=ids, letter=letters, **fields)
