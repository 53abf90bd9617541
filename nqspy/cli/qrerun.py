"""``qrerun``: ends running requests and queues them again."""

from nqspy.cli import acting, fast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def body(words: list[str]) -> int:
    """The command: gives its exit status."""
    given, _, ids = acting.read("qrerun", words)
    force = acting.forced("qrerun", given)
    return acting.tell("qrerun", "rerun", given.get("home"), ids=ids, force=force)


def main() -> "NoReturn":
    """Entry point of the command."""
    fast.main("qrerun", body)
