"""``qchkpnt``: says that requests are not checkpointed here."""

from nqspy.cli import fast
from nqspy.cli.fast import Failure, HelpWanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: raises Failure, whatever it is asked for."""
    given, _, _ = fast.read_options("qchkpnt", words)
    if "help" in given:
        raise HelpWanted
    raise Failure(
        "requests are not checkpointed here; one that keeps a restart file of its own may be run again"
        " (qrerun), or stand still for a while (qsig -s suspend)"
    )


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qchkpnt", body)
