"""``qmsg``: writes a line into the output of running requests."""

from nqspy.cli import acting, fast
from nqspy.cli.fast import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, operands = acting.read("qmsg", words)
    if "joblog" in given:
        raise Failure("-j: requests have no job log here; -e writes to the errors, -o to the output")
    text, *ids = operands
    if not ids:
        raise Failure(f"a message and at least one request are needed; {fast.usage('qmsg')}", 2)
    streams = [name for name in ("stdout", "stderr") if name in given] or ["stderr"]
    return acting.tell("qmsg", "message", given.get("home"), ids=ids, message=text, streams=streams)


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qmsg", body)
